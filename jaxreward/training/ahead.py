"""Compiling for a training before it is known who else will be in it."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from jaxreward.programs import Program
from jaxreward.tasks import Task
from jaxreward.training.chunk import Chunk
from jaxreward.training.config import PPO, How
from jaxreward.training.plan import chunks_of, collector_of, most_structures
from jaxreward.training.population import Population, padded_sizes


def compile_ahead(
    task: Task, program: Program, ppo: PPO, *, seeds: Sequence[int], steps: int, collector: How, room: tuple[int, int],
    place: int, of: int,
) -> None:  # fmt: skip
    """Compile for the devices of this process what a training of `of` programs has for this one alone.

    Arguments are those that `train` will be given; `place` is where the program will stand among the others. Where it
    turns out otherwise, or collectors are not linked, `train` compiles what it needs.
    """
    devices = jax.local_devices()
    width, terms = padded_sizes([program], room)
    if collector_of(collector, task, ppo, len(seeds), steps, devices[0].platform) == "linked":
        chunks = chunks_of(range(of), of, len(devices), most_structures(devices[0].platform))
        index = next(k for k, members in enumerate(chunks) if place in members)
        population = Population([program], width, terms)
        Chunk(task, population, ppo, seeds, devices[index % len(devices)], "linked").compile_program()
