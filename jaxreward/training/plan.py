"""How a training is cut: in time by checkpoints and rungs, in space by chunks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jaxreward.errors import InvalidSetting
from jaxreward.tasks import Task
from jaxreward.training.algorithms import algorithm_of
from jaxreward.training.rungs import Rung
from jaxreward.training.sac_hyperparameters import Learner

Device = Any
"""A `jax.Device`, which type checkers take for a variable."""

# Beyond this many structures in one compiled function XLA on CPU saves little more, and running gets slower per
# candidate, not faster (docs/appendix/benchmarks.md). A GPU has not been measured.
_MAX_STRUCTURES_CPU = 16

EVAL_EPISODES = 256
"""Held-out episodes of an agent at a rung and at the end."""


@dataclass(frozen=True)
class Evaluation:
    """Held-out episodes of an agent: `lanes` at a time, once at a checkpoint, `rounds` times at a rung and at the
    end."""

    lanes: int
    rounds: int

    @classmethod
    def of(cls, ppo: Learner, episodes: int) -> Evaluation:
        """`episodes` at the end, rounded up to whole rounds. There are as many lanes as environments in training, whose
        collector then serves both, but no more than episodes: those of thousands of environments would take longer
        than the training between two checkpoints."""
        lanes = min(ppo.envs, episodes)
        return cls(lanes, -(-episodes // lanes))


@dataclass(frozen=True)
class Schedule:
    """Update indices: `checkpoints` are ascending and end with the last; those of `rungs` are among them."""

    updates: int
    checkpoints: tuple[int, ...]
    rungs: tuple[tuple[int, tuple[Rung, ...]], ...]

    def segments(self) -> list[tuple[int, int, tuple[Rung, ...]]]:
        """(first update, update to stop before, rungs to pass there: none at the end) between the cuts."""
        ends = [*self.rungs, (self.updates, ())]
        starts = [0, *(at for at, _ in self.rungs)]
        return [(start, at, rungs) for start, (at, rungs) in zip(starts, ends, strict=True)]


def make_schedule(ppo: Learner, steps: int, checkpoints: int, rungs: Sequence[Rung]) -> Schedule:
    """Updates for a budget of `steps` environment steps a seed, rounded up to whole updates."""
    if steps < 1:
        raise InvalidSetting(f"the budget must be at least 1 environment step, not {steps}", "steps")
    if checkpoints < 1:
        raise InvalidSetting(f"there must be at least 1 checkpoint, not {checkpoints}", "checkpoints")
    updates = -(-steps // ppo.batch)
    even = {max(1, round(updates * (i + 1) / checkpoints)) for i in range(checkpoints)}
    cuts = dict[int, tuple[Rung, ...]]()
    for rung in sorted(rungs, key=lambda r: r.steps):
        rung.check()
        at = -(-rung.steps // ppo.batch)
        if not 0 < at < updates:
            message = f"a rung at {rung.steps} steps must lie inside the budget of {steps} steps"
            raise InvalidSetting(message, "rung.steps", "steps")
        cuts[at] = (*cuts.get(at, ()), rung)
    return Schedule(updates, tuple(sorted({*even, *cuts})), tuple(cuts.items()))


def curve_points(task: Task, ppo: Learner, steps: int, episodes: int = EVAL_EPISODES) -> int:
    """Checkpoints of a training of a search: ten, but fewer, at least four, where their held-out episodes would take
    more steps than the training of a seed; two where those of a single point do."""
    affordable = steps // (Evaluation.of(ppo, episodes).lanes * task.horizon)
    return max(4 if affordable > 1 else 2, min(10, affordable))


def held_out_steps(task: Task, ppo: Learner, points: int, episodes: int) -> int:
    """Environment steps of the held-out episodes of one agent, at most: a round at each point of the curves, and as
    many as it takes for the `episodes` at the end."""
    evaluation = Evaluation.of(ppo, episodes)
    return (points - 1 + evaluation.rounds) * evaluation.lanes * task.horizon


def cut(indices: Sequence[int], largest: int) -> list[list[int]]:
    """`indices` in order, in chunks of nearly equal size of at most `largest`."""
    n = len(indices)
    count = -(-n // max(1, largest))
    bounds = [-(-n * i // count) for i in range(count + 1)]  # rounded up: the first is the largest
    return [list(indices[a:b]) for a, b in pairwise(bounds)]


def even(programs: int, largest: int, devices: int) -> int:
    """The size of chunks, at most `largest`, by which every device has as many of them, where there are enough."""
    count = -(-programs // largest)
    return -(-programs // min(programs, devices * -(-count // devices)))


def chunks_of(
    structures: Sequence[Hashable], largest: int, devices: int, different: int | None = None
) -> list[list[int]]:
    """Positions of programs with these structures, chunk by chunk, each of at most `largest` programs and, if given, as
    many `different` structures.

    Where every structure has several programs, as many as any other, those are neighbours and no chunk holds a part
    of them and something else: so what is compiled for a structure serves all of them, on one device unless there
    are more devices than structures.
    """
    places = dict[Hashable, list[int]]()
    for place, structure in enumerate(structures):
        places.setdefault(structure, []).append(place)
    alike, different = len(structures) // len(places), different or len(structures)
    if alike == 1 or {len(own) for own in places.values()} != {alike}:
        if len(places) == len(structures):
            return cut(range(len(structures)), even(len(structures), min(largest, different), devices))
        return _filled(places.values(), even(len(structures), largest, devices), different)
    share = -(-devices // len(places))  # devices of a structure
    if alike > largest or share > 1:
        return [part for own in places.values() for part in cut(own, even(alike, min(alike, largest), share))]
    whole = cut(range(len(places)), even(len(places), min(largest // alike, different), devices))
    of = list(places.values())
    return [[place for k in part for place in of[k]] for part in whole]


def _filled(places: Iterable[Sequence[int]], largest: int, different: int) -> list[list[int]]:
    """Places of one structure after those of another, in chunks of at most `largest` that hold at most so many
    `different` structures."""
    chunks, held = [list[int]()], 0
    for own in places:
        held += 1
        if held > different and chunks[-1]:
            chunks.append([])
            held = 1
        for place in own:
            if len(chunks[-1]) == largest:
                chunks.append([])
                held = 1
            chunks[-1].append(place)
    return chunks


def memory_limit(memory_gb: float | None, devices: Sequence[Device]) -> int:
    """Bytes that a chunk may take: what the user gave, or most of what a device has free. Devices that are cores of one
    machine share its memory."""
    if memory_gb is not None:
        if not 0 < memory_gb < math.inf:
            message = f"the memory limit must be a positive number of GB, not {memory_gb}"
            raise InvalidSetting(message, "memory_gb")
        return int(memory_gb * 1e9)
    device = devices[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(0.8 * stats["bytes_limit"])
    with open("/proc/meminfo") as file:
        free = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    return free * 1024 // 2 // len(devices)


def first_chunk(widest: int, seeds: int, ppo: Learner, limit: int) -> int:
    """Candidates of a chunk that should fit in memory, before anything is compiled. The compiler's own account corrects
    a guess that is too large, but nothing one that is too small."""
    return max(1, int(limit / (4 * seeds * algorithm_of(ppo).floats(ppo, widest))))


def most_structures(platform: str) -> int | None:
    """Structures of a chunk at most, where there is such a number."""
    return _MAX_STRUCTURES_CPU if platform == "cpu" else None


def worth_compacting(dropped: int, structures: int, steps_left: int, platform: str, stepwise: bool) -> bool:
    """Whether compiling for the `structures` of the survivors costs less than carrying the dropped candidates along.

    `steps_left` are those of one candidate. The rates are rounded measurements of fused collectors (a program compiles
    in the time of a hundred thousand steps on two cores, an environment in that of eight programs); a rule on steps,
    not on the clock, so that a resumed run decides as the first did. Stepwise collectors have the programs compiled.
    """
    steps_per_compile = 100_000 if platform == "cpu" else 10_000_000
    return dropped * steps_left > steps_per_compile * (8 + (0 if stepwise else structures))
