"""Compilation for a training before its other programs are known."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from jaxreward.programs import Program
from jaxreward.tasks import Task
from jaxreward.training.chunk import Chunk
from jaxreward.training.execution import Execution
from jaxreward.training.plan import EVAL_EPISODES, Evaluation, chunks_of, most_structures
from jaxreward.training.population import Population, padded_sizes
from jaxreward.training.sac_hyperparameters import Learner


def compile_ahead(
    task: Task,
    program: Program,
    ppo: Learner,
    *,
    seeds: Sequence[int],
    steps: int,
    execution: Execution,
    place: int,
    of: int,
    eval_episodes: int = EVAL_EPISODES,
) -> None:
    """Compile for the devices of this process what a training of `of` programs has for this one alone.

    Arguments are those that `train` will be given; `place` is the expected position of the program. Where it differs,
    or the collector is not stepwise, or programs are data of a bank, `train` compiles what it needs.
    """
    devices = jax.local_devices()
    width, terms = padded_sizes([program], execution.room)
    if execution.form(devices[0].platform) == "bank":
        return
    if execution.resolve(task, ppo, len(seeds), steps, devices[0].platform)[0] == "stepwise":
        chunks = chunks_of(range(of), of, len(devices), most_structures(devices[0].platform))
        index = next(k for k, members in enumerate(chunks) if place in members)
        population = Population([program], width, terms)
        lanes, device = Evaluation.of(ppo, eval_episodes).lanes, devices[index % len(devices)]
        Chunk(task, population, ppo, seeds, device, "stepwise", lanes=lanes).compile_program()
