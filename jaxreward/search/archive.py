"""MAP-Elites over the structure of an interface or over what its agents do, on islands that exchange their best.

Descriptors of structure are observation dimension and reward AST nodes, binned uniformly (LIMEN, section 4.2;
Mouret and Clune, 2015). An `Archive` is immutable: `insert` and `migrate` return a new one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from jaxreward.records import Result
from jaxreward.search.selection import better, scored, stages, top

Cell = tuple[int, int]
"""Indices of the two descriptors' bins."""


REACHED = 0.05
"""Mean over episodes from which on a stage counts as reached: their share, or how much of it they did."""


class Descriptors(Protocol):
    """What tells elites apart: those of one cell compete, the others do not."""

    @property
    def shape(self) -> tuple[int, int]: ...
    def cell(self, result: Result) -> Cell: ...


@dataclass(frozen=True)
class Behaviour:
    """How many of its stages of progress, success the last where it is a rate, the agents of a program reach, and how
    long their episodes last, in powers of two. Where a task names no stages, success alone is one."""

    most_stages: int = 16
    most_doublings: int = 16

    @property
    def shape(self) -> tuple[int, int]:
        return (self.most_stages + 1, self.most_doublings + 1)

    def cell(self, result: Result) -> Cell:
        known, feedback, score = stages(result), result.feedback, scored(result)
        success = score.mean if score.measure.rate else score.level or 0.0
        reached = int((known.mean(-1) >= REACHED).sum()) if known.size else int(success >= REACHED)
        length = feedback.length[-1] if feedback is not None and feedback.length else 0.0
        doublings = int(math.log2(length)) if 1.0 <= length < math.inf else 0
        return (min(reached, self.most_stages), min(doublings, self.most_doublings))


@dataclass(frozen=True)
class Grid:
    """Uniform bins: observation dimension 1..`observation_max` in steps of `observation_width`,
    reward nodes 0..`reward_max` in steps of `reward_width`, and one bin for what is above."""

    observation_width: int = 32
    observation_max: int = 512
    reward_width: int = 100
    reward_max: int = 2000

    @property
    def shape(self) -> tuple[int, int]:
        return (-(-self.observation_max // self.observation_width), -(-self.reward_max // self.reward_width) + 1)

    def cell(self, result: Result) -> Cell:
        """The cell of a result whose candidate was summarised by the checker."""
        summary = result.candidate.summary
        if summary is None:
            raise ValueError(f"candidate {result.candidate.id} has a score but no summary: check it before training")
        rows, columns = self.shape
        row = (max(summary.observation_size, 1) - 1) // self.observation_width
        column = max(summary.reward_nodes, 0) // self.reward_width
        return (min(row, rows - 1), min(column, columns - 1))


Island = Mapping[Cell, Result]


@dataclass(frozen=True)
class ArchiveStats:
    """`occupied` of `cells` hold an elite on some island; `coverage` is their ratio; `qd_score`
    sums the best mean score of each occupied cell; `elites` counts elites island by island."""

    occupied: int
    cells: int
    coverage: float
    qd_score: float
    elites: tuple[int, ...]


@dataclass(frozen=True)
class Archive:
    """`islands` map cells to elites; an elite may live on several islands after a migration."""

    islands: tuple[Island, ...]
    grid: Descriptors = field(default_factory=Grid)

    @classmethod
    def empty(cls, islands: int, grid: Descriptors | None = None) -> Archive:
        return cls(tuple(MappingProxyType({}) for _ in range(islands)), grid or Grid())

    def insert(self, result: Result, island: int) -> Archive:
        """With `result` on `island`, if its cell there is free or holds a worse elite."""
        cell = self.grid.cell(result)
        elites = self.islands[island]
        if cell in elites and not better(result, elites[cell]):
            return self
        # Sorted, so that draws by position do not depend on the order of arrival.
        changed = MappingProxyType(dict(sorted({**elites, cell: result}.items())))
        return replace(self, islands=(*self.islands[:island], changed, *self.islands[island + 1 :]))

    def migrate(self) -> Archive:
        """With each island's best offered to the next island of the ring, all at the same moment."""
        archive = self
        for k, elites in enumerate(self.islands):
            for emigrant in top(tuple(elites.values()), 1):
                archive = archive.insert(emigrant, (k + 1) % len(self.islands))
        return archive

    def local(self, island: int) -> tuple[Result, ...]:
        """The elites of one island, in the order of their cells."""
        return tuple(self.islands[island].values())

    def elites(self) -> tuple[Result, ...]:
        """The elites of all islands, island by island, each candidate once."""
        return tuple({result.candidate.id: result for island in self.islands for result in island.values()}.values())

    def stats(self) -> ArchiveStats:
        best: dict[Cell, Result] = {}
        for island in self.islands:
            for cell, result in island.items():
                if cell not in best or better(result, best[cell]):
                    best[cell] = result
        rows, columns = self.grid.shape
        return ArchiveStats(
            occupied=len(best),
            cells=rows * columns,
            coverage=len(best) / (rows * columns),
            qd_score=sum(scored(result).merit for result in best.values()),
            elites=tuple(len(island) for island in self.islands),
        )
