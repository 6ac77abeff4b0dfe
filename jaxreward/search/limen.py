"""LIMEN: quality-diversity search over interfaces (arXiv 2605.03408, Algorithm 1 and section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.records import Result
from jaxreward.search.archive import Archive, Behaviour, Grid
from jaxreward.search.selection import fitness_proportional, sample, top, uniform, without
from jaxreward.search.strategy import Draft, SearchStrategy, State
from jaxreward.search.strategy_options import require_choice, require_integer, require_share

Kind = Literal["structure", "behaviour"]


@dataclass(frozen=True)
class LimenMemory:
    """The archive, and how often its islands have exchanged their best."""

    archive: Archive
    migrations: int = 0


@dataclass(frozen=True)
class Limen(SearchStrategy[LimenMemory]):
    """MAP-Elites on islands, with parents drawn globally by fitness or locally at random.

    `global_share` of the parents come from the whole archive in proportion to their fitness, the
    rest uniformly from the request's own island. The first `initial` trained candidates start from
    scratch (the paper: 1, with which choice by fitness among few is easily trapped by a poor start;
    docs/appendix/landscapes.md has the figures). `crossover` is the share of requests with
    two parents (the paper: 0). A share of `fresh` requests starts from scratch at any time, half of them where the
    proposer chooses new programs by a model of the scores. Every `migration_interval` results each island's
    best moves to its neighbour, also when results come many at a time; 0 turns migration off. A request shows the
    proposer `show_best`, `show_diverse` and `show_failures` other programs. `descriptors` are those of the
    structure of programs, or of what their agents do. Once the best has not changed for `patience` generations, 0 for
    never, a share of `restarts` of every further one, rounded up, starts from scratch.
    """

    name: ClassVar[str] = "limen"
    with_model: ClassVar[Mapping[str, Any]] = MappingProxyType({"fresh": 0.5})
    islands: int = 3
    initial: int = 8
    global_share: float = 0.7
    crossover: float = 0.3
    fresh: float = 0.0
    migration_interval: int = 10
    observation_width: int = 32
    reward_width: int = 100
    reward_max: int = 2000
    descriptors: Kind = "structure"
    patience: int = 0
    restarts: float = 0.2
    show_best: int = 3
    show_diverse: int = 2
    show_failures: int = 2

    def _validate(self) -> None:
        for name in ("islands", "observation_width", "reward_width", "reward_max"):
            require_integer(self.name, name, getattr(self, name), 1)
        for name in ("initial", "migration_interval", "patience", "show_best", "show_diverse", "show_failures"):
            require_integer(self.name, name, getattr(self, name), 0)
        for name in ("global_share", "crossover", "fresh", "restarts"):
            require_share(self.name, name, getattr(self, name))
        require_choice(self.name, "descriptors", self.descriptors, get_args(Kind))
        if self.restarts != Limen.restarts and not self.patience:
            message = "Strategy limen restarts once its patience is over: set patience too."
            raise InvalidSetting(message, "strategy.restarts", "strategy.patience")
        of_structure = ("observation_width", "reward_width", "reward_max")
        given = [name for name in of_structure if getattr(self, name) != getattr(Limen, name)]
        if given and self.descriptors == "behaviour":
            message = f"Strategy limen has {given[0]} for descriptors of structure alone: leave it out."
            raise InvalidSetting(message, f"strategy.{given[0]}", "strategy.descriptors")

    @property
    def asynchronous(self) -> bool:
        return True

    def _init(self) -> LimenMemory:
        if self.descriptors == "behaviour":
            return LimenMemory(Archive.empty(self.islands, Behaviour()))
        grid = Grid(self.observation_width, reward_width=self.reward_width, reward_max=self.reward_max)
        return LimenMemory(Archive.empty(self.islands, grid))

    def _ask(self, state: State[LimenMemory], n: int, rng: np.random.Generator) -> list[Draft]:
        # Islands take turns over the whole run, so that generations of one still visit them all.
        asked = state.num_results + len(state.pending)
        drafts = [self._draft(state, (asked + k) % self.islands, rng) for k in range(n)]
        found = state.best.candidate.generation if state.best is not None else 0
        if not self.patience or state.generation <= found + self.patience:
            return drafts
        new = math.ceil(self.restarts * n)
        fresh = [Draft("scratch", draft.island, failures=draft.failures) for draft in drafts[:new]]
        return fresh + drafts[new:]

    def _tell(self, state: State[LimenMemory], results: tuple[Result, ...]) -> LimenMemory:
        archive, migrations = state.memory.archive, state.memory.migrations
        for result in results:
            if result.score is not None:
                archive = archive.insert(result, result.candidate.island)
        interval, before = self.migration_interval, state.num_results
        # Whether a multiple of the interval was reached: a batch cannot step over it.
        if interval and self.islands > 1 and (before + len(results)) // interval > before // interval:
            archive, migrations = archive.migrate(), migrations + 1
        return LimenMemory(archive, migrations)

    def _draft(self, state: State[LimenMemory], island: int, rng: np.random.Generator) -> Draft:
        archive = state.memory.archive
        failures = state.failures[: self.show_failures]
        elites = archive.elites()
        anywhere = rng.random() < self.global_share
        pool = elites if anywhere else archive.local(island)
        # Nothing archived yet, or this island still waits for its own first interface.
        if (
            not pool
            or state.counts.trained + len(state.pending) < self.initial
            or (self.fresh and rng.random() < self.fresh)
        ):
            return Draft("scratch", island, failures=failures)
        parents = ((fitness_proportional if anywhere else uniform)(pool, rng),)
        others = without(elites, parents)
        if others and rng.random() < self.crossover:
            parents = (*parents, fitness_proportional(others, rng))
        best = top(without(elites, parents), self.show_best)
        home, unshown = archive.grid.cell(parents[0]), without(elites, (*parents, *best))
        elsewhere = [result for result in unshown if archive.grid.cell(result) != home]
        return Draft(
            operator="improve" if len(parents) == 1 else "crossover",
            island=island,
            parents=parents,
            best=best,
            diverse=sample(elsewhere, self.show_diverse, rng),
            failures=failures,
        )
