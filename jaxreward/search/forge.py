"""FORGE: planned founders, then crossover of pairs from a pool (the paper's section 3 and Algorithm 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from jaxreward.records import Evolve, Result
from jaxreward.search.draft import Draft
from jaxreward.search.selection import fitness_pairs, scored, top
from jaxreward.search.strategy import SearchStrategy, State, outcomes
from jaxreward.search.strategy_options import require_flag, require_integer, require_number


@dataclass(frozen=True)
class DepthRecord:
    """How many candidates of one depth have a score, and the best of these."""

    scored: int
    best: float


@dataclass(frozen=True)
class ForgeMemory:
    """`pool` holds the best results, best first; `plans` wait to be implemented; `unplanned` says that
    the last request for plans brought none; `depths` is the record of every depth."""

    pool: tuple[Result, ...] = ()
    plans: tuple[Result, ...] = ()
    unplanned: bool = False
    depths: Mapping[int, DepthRecord] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Forge(SearchStrategy[ForgeMemory]):
    """A planner names components, an engineer writes them, pairs of the pool are crossed by their scores.

    The first `initial` trained candidates each implement a plan of their own (with `planner` off, or
    where the proposer has no words, they start from scratch). The best `pool` results are kept; every
    later candidate is the crossover of a pair drawn by `selection.fitness_pairs` (equation 6).

    The search ends early once depth (equation 4, `Candidate.depth`) no longer pays: each of the
    `patience` depths after the shallowest whose best score is within `gain` of the best of all has had
    `trials` scored candidates. `patience=0`, the default, turns that off.
    """

    name: ClassVar[str] = "forge"
    natural: ClassVar[Evolve] = "reward"
    initial: int = 8
    pool: int = 16
    planner: bool = True
    patience: int = 0
    trials: int = 4
    gain: float = 0.0

    def _validate(self) -> None:
        for name in ("initial", "pool", "trials"):
            require_integer(self.name, name, getattr(self, name), 1)
        require_integer(self.name, "patience", self.patience, 0)
        require_flag(self.name, "planner", self.planner)
        require_number(self.name, "gain", self.gain)

    @property
    def asynchronous(self) -> bool:
        # plans that are still to come would be asked for again
        return not self.planner

    def _init(self) -> ForgeMemory:
        return ForgeMemory()

    def _ask(self, state: State[ForgeMemory], n: int, rng: np.random.Generator) -> Sequence[Draft]:
        pool = state.memory.pool
        founders = self.initial - state.counts.trained - len(state.pending)
        if founders > 0 or not pool:
            return self._founders(state, min(n, founders if founders > 0 else self.initial))
        if len(pool) == 1:
            return [Draft("improve", parents=pool)] * n
        return [Draft("crossover", parents=pair) for pair in fitness_pairs(pool, n, rng)]

    def _founders(self, state: State[ForgeMemory], n: int) -> list[Draft]:
        memory = state.memory
        if memory.plans:
            return [Draft("implement", plan=plan) for plan in memory.plans[:n]]
        # After a request without plans, none is requested again at once: words spend no attempt.
        if not self.planner or memory.unplanned or "plan" in state.declined:
            return [Draft("scratch")] * n
        return [Draft("plan")] * n

    def _tell(self, state: State[ForgeMemory], results: tuple[Result, ...]) -> ForgeMemory:
        memory = state.memory
        new = [result for result in results if result.score is not None]
        depths = dict(memory.depths)
        for result in new:
            depth, mean = result.candidate.depth, scored(result).merit
            record = depths.get(depth, DepthRecord(0, mean))
            depths[depth] = DepthRecord(record.scored + 1, max(record.best, mean))
        carried_out = {result.candidate.plan for result in outcomes(results)}
        return ForgeMemory(
            pool=top((*memory.pool, *new), self.pool),
            plans=tuple(plan for plan in memory.plans if plan.candidate.id not in carried_out),
            depths=MappingProxyType(depths),
        )

    def _tell_words(self, state: State[ForgeMemory], results: tuple[Result, ...]) -> ForgeMemory:
        plans = tuple(result for result in results if result.candidate.operator == "plan" and result.words)
        return replace(state.memory, plans=(*state.memory.plans, *plans), unplanned=not plans)

    def words_expected(self, candidates: int) -> int:
        return min(self.initial, candidates) if self.planner else 0

    def finished(self, state: State[ForgeMemory]) -> str:
        depths = state.memory.depths
        if not self.patience or not depths:
            return ""
        best = max(record.best for record in depths.values())
        reached = min(depth for depth, record in depths.items() if record.best >= best - self.gain)
        beyond = range(reached + 1, reached + 1 + self.patience)
        if any(depth not in depths or depths[depth].scored < self.trials for depth in beyond):
            return ""
        return (
            f"depth no longer pays: {self.trials} or more candidates of each of the depths {beyond[0]} to "
            f"{beyond[-1]} were no better than depth {reached} (option patience)"
        )

    def account(self, before: State[ForgeMemory], after: State[ForgeMemory]) -> dict[str, Any]:
        old, new = ({r.candidate.id for r in state.memory.pool} for state in (before, after))
        depths = {
            str(depth): {"scored": record.scored, "best": record.best}
            for depth, record in sorted(after.memory.depths.items())
            if before.memory.depths.get(depth) != record
        }
        return {
            "pool": len(new),
            "joined": sorted(new - old),
            "pruned": sorted(old - new),
            "plans": len(after.memory.plans),
            "depths": depths,
        }
