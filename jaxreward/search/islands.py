"""Islands of programs with acceptance against the mean, a cap, and migration (REvolve)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxreward.records import Result
from jaxreward.search.selection import uniform, without

Fitness = Callable[[Result], float]
"""How good a result is; larger is better."""

Island = tuple[Result, ...]
"""Members, oldest first."""


def mean_fitness(island: Island, fitness: Fitness) -> float:
    """The mean over the members; minus infinity where there are none."""
    return sum(map(fitness, island)) / len(island) if island else -np.inf


def settle(islands: Sequence[Island], newcomers: Sequence[Result], fitness: Fitness, size: int) -> tuple[Island, ...]:
    """The islands after each newcomer asked to join that of its candidate.

    A founder (no parents) joins; a child joins if its fitness is at least the mean of the island as
    it was before this generation, so that the order of a generation does not matter. What an island
    then holds above `size` goes, the worst first and among equals the oldest, so that a plateau is
    walked over.
    """
    bars = [mean_fitness(island, fitness) for island in islands]
    grown = [list(island) for island in islands]
    for newcomer in newcomers:
        home = newcomer.candidate.island
        if not newcomer.candidate.parents or fitness(newcomer) >= bars[home]:
            grown[home].append(newcomer)
    for members in grown:
        while len(members) > size:
            members.pop(min(range(len(members)), key=lambda k: fitness(members[k])))
    return tuple(map(tuple, grown))


def migrate(islands: Sequence[Island], fitness: Fitness, rng: np.random.Generator) -> tuple[Island, ...]:
    """The weaker half of the islands keeps its best members alone, and each gets a migrant.

    The migrant is a random one of a random stronger island, never that island's best; it leaves its
    home. Where no stronger island has one to spare, there is none.
    """
    moved = list(islands)
    bests = [max(island, key=fitness) if island else None for island in islands]
    ranked = sorted(range(len(moved)), key=lambda k: -np.inf if (b := bests[k]) is None else fitness(b))
    half = len(moved) // 2
    weak, strong = ranked[:half], sorted(ranked[half:])
    for k in weak:
        best = bests[k]
        moved[k] = () if best is None else (best,)
    for k in weak:
        spare = {s: without(moved[s], (b,)) for s in strong if (b := bests[s]) is not None}
        homes = [s for s, others in spare.items() if others]
        if homes:
            home = homes[int(rng.integers(len(homes)))]
            migrant = uniform(spare[home], rng)
            moved[home] = without(moved[home], (migrant,))
            moved[k] = (*moved[k], migrant)
    return tuple(moved)
