"""REvolve: reward evolution on islands, with a score or people's preferences as fitness (Hazra et al., ICLR 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from jaxreward.records import Evolve, Result
from jaxreward.search.draft import OF_PROGRAM, Draft
from jaxreward.search.elo import START, rated, read_preference
from jaxreward.search.islands import Fitness, Island, mean_fitness, migrate, settle
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import draw, merit, sample, scored, softmax, unit_range
from jaxreward.search.strategy import SearchStrategy, State
from jaxreward.search.strategy_options import require_choice, require_integer, require_number, require_share

FitnessKind = Literal["score", "preference"]

MAX_REMARKS = 3
"""Remarks of voters per candidate, the latest."""


@dataclass(frozen=True)
class RevolveMemory:
    """`pending` are trained candidates that wait for their votes; `ratings` are of those voted on;
    `remarks` are voters' comments on a candidate, latest last."""

    islands: tuple[Island, ...]
    pending: tuple[Result, ...] = ()
    ratings: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    voted: Mapping[str, Result] = field(default_factory=lambda: MappingProxyType({}))
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    migrations: int = 0


@dataclass(frozen=True)
class Revolve(SearchStrategy[RevolveMemory]):
    """Islands of at most `island_size` programs; children join if they are at least as good as the mean.

    The first `initial` trained candidates start from scratch and are dealt to the `islands`, the
    emptiest first; an island without members gets a founder before anything else. Then an island is
    drawn by softmax of its mean fitness, and on it, with chance `crossover`, two parents by softmax of
    theirs, or else one parent of which one term is changed. Fitness is mapped to [0, 1] over all
    members before the softmax, which divides by `temperature`. Whenever the number of results passes a
    multiple of `migration_interval` (REvolve's generation, however large those of the run are),
    migration happens with chance `migration`.

    With `fitness="preference"`, people compare each new candidate with `votes` others, and fitness is
    its Elo rating; where `prefer` is declined it is the score. A request shows
    `show_failures` recent failures.
    """

    name: ClassVar[str] = "revolve"
    natural: ClassVar[Evolve] = "reward"
    islands: int = 4
    island_size: int = 8
    initial: int = 8
    temperature: float = 0.25
    crossover: float = 0.5
    migration: float = 0.3
    migration_interval: int = 15
    fitness: FitnessKind = "score"
    votes: int = 2
    show_failures: int = 2

    def _validate(self) -> None:
        for name in ("islands", "island_size", "migration_interval", "votes"):
            require_integer(self.name, name, getattr(self, name), 1)
        for name in ("initial", "show_failures"):
            require_integer(self.name, name, getattr(self, name), 0)
        for name in ("crossover", "migration"):
            require_share(self.name, name, getattr(self, name))
        require_number(self.name, "temperature", self.temperature, above=True)
        require_choice(self.name, "fitness", self.fitness, get_args(FitnessKind))

    @property
    def asks_people(self) -> bool:
        return self.fitness == "preference"

    @property
    def asynchronous(self) -> bool:
        return not self.asks_people

    def _init(self) -> RevolveMemory:
        return RevolveMemory(((),) * self.islands)

    def _ask(self, state: State[RevolveMemory], n: int, rng: np.random.Generator) -> list[Draft]:
        if state.memory.pending and self._by_votes(state):
            votes = self._votes(state.memory, rng)
            if votes:
                return votes
        founders = self._founders(state, n)
        return founders + self._children(state, n - len(founders), rng)

    def _founders(self, state: State[RevolveMemory], n: int) -> list[Draft]:
        """Drafts from scratch, dealt to the emptiest islands."""
        counts = [len(island) for island in state.memory.islands]
        wanted, settled = self.initial - state.counts.trained - len(state.pending), any(counts)
        for request in state.pending:
            counts[request.island] += 1
        if not settled:
            wanted = max(wanted, n)  # there is nothing yet to make children of
        drafts: list[Draft] = []
        while len(drafts) < n and (len(drafts) < wanted or 0 in counts):
            home = counts.index(min(counts))
            counts[home] += 1
            drafts.append(Draft("scratch", home, failures=state.failures[: self.show_failures]))
        return drafts

    def _children(self, state: State[RevolveMemory], n: int, rng: np.random.Generator) -> list[Draft]:
        if n < 1:
            return []
        islands, fitness = state.memory.islands, self._fitness(state)
        values = iter(unit_range([fitness(member) for island in islands for member in island]))
        logits = [np.asarray([next(values) for _ in island]) / self.temperature for island in islands]
        settled = [k for k, island in enumerate(islands) if island]
        chances = softmax([logits[k].mean() for k in settled])
        drafts = []
        for _ in range(n):
            home = settled[int(rng.choice(len(settled), p=chances))]
            two = len(islands[home]) > 1 and rng.random() < self.crossover
            parents = draw(islands[home], logits[home], 2 if two else 1, rng)
            drafts.append(
                Draft(
                    "crossover" if two else "term",
                    home,
                    parents=parents,
                    failures=state.failures[: self.show_failures],
                    remarks=_remarks(state.memory, parents),
                )
            )
        return drafts

    def _votes(self, memory: RevolveMemory, rng: np.random.Generator) -> list[Draft]:
        """Comparisons of each pending candidate with others, no two candidates twice."""
        others = (*(member for island in memory.islands for member in island), *memory.pending)
        compared: set[frozenset[str]] = set()
        drafts = []
        for new in memory.pending:
            me = new.candidate.id
            free = [o for o in others if o.candidate.id != me and {me, o.candidate.id} not in compared]
            for opponent in sample(free, self.votes, rng):
                compared.add(frozenset((me, opponent.candidate.id)))
                drafts.append(Draft("prefer", new.candidate.island, parents=(new, opponent)))
        return drafts

    def _tell(self, state: State[RevolveMemory], results: tuple[Result, ...]) -> RevolveMemory:
        new = tuple(result for result in results if result.score is not None)
        memory = state.memory
        if self._by_votes(state):
            memory = replace(memory, pending=(*memory.pending, *new))
            lone = len(memory.pending) == 1 and not any(memory.islands)
            if lone:  # no other to compare with
                memory = self._settled(memory, self._fitness(state))
        else:
            memory = self._settled(replace(memory, pending=new), self._fitness(state))
        return self._migrated(memory, state, results)

    def _settled(self, memory: RevolveMemory, fitness: Fitness) -> RevolveMemory:
        islands = settle(memory.islands, memory.pending, fitness, self.island_size)
        return replace(memory, islands=islands, pending=())

    def _migrated(self, memory: RevolveMemory, state: State[RevolveMemory], results: Sequence[Result]) -> RevolveMemory:
        interval = self.migration_interval
        due = (state.num_results + len(results)) // interval > state.num_results // interval
        # A state has no generator: the results are the seed, so that a replay draws the same.
        rng = derive_rng(state.generation, "migrate", *(result.candidate.source for result in results))
        if self.islands < 2 or not due or rng.random() >= self.migration or not all(memory.islands):
            return memory
        islands = migrate(memory.islands, self._fitness(replace(state, memory=memory)), rng)
        return replace(memory, islands=islands, migrations=memory.migrations + 1)

    def _tell_words(self, state: State[RevolveMemory], results: tuple[Result, ...]) -> RevolveMemory:
        memory = state.memory
        known = {r.candidate.id: r for island in (*memory.islands, memory.pending) for r in island}
        ratings, voted, remarks = dict(memory.ratings), dict(memory.voted), dict(memory.remarks)
        for result in results:
            words, left = _without_side(result.words)
            verdict, remark = read_preference(words)
            if verdict is None:
                continue
            first, second = result.candidate.parents
            ratings = rated(ratings, first, second, verdict)
            for me, place in ((first, "first"), (second, "second")):
                voted[me] = known[me]
                if remark:
                    text = f"{_standing(verdict, place, left)}: {remark}"
                    remarks[me] = (*remarks.get(me, ()), text)[-MAX_REMARKS:]
        memory = replace(
            memory,
            ratings=MappingProxyType(ratings),
            voted=MappingProxyType(voted),
            remarks=MappingProxyType(remarks),
        )
        declined = any(result.failure and result.failure.stage == "declined" for result in results)
        fitness = _score if declined else self._fitness(replace(state, memory=memory))
        return self._settled(memory, fitness)

    def _by_votes(self, state: State[RevolveMemory]) -> bool:
        return self.fitness == "preference" and "prefer" not in state.declined

    def _fitness(self, state: State[RevolveMemory]) -> Fitness:
        if not self._by_votes(state):
            return _score
        ratings = state.memory.ratings
        return lambda result: ratings.get(result.candidate.id, START)

    def _best(self, state: State[RevolveMemory]) -> Result | None:
        voted = state.memory.voted.values()
        if not voted or not self._by_votes(state):
            return state.best
        rating = self._fitness(state)
        return max(voted, key=lambda result: (rating(result), merit(result)))

    def owes_votes(self, state: State[RevolveMemory]) -> bool:
        memory = state.memory
        alone = len(memory.pending) == 1 and not any(memory.islands)
        return bool(memory.pending) and not alone and self._by_votes(state)

    def account(self, before: State[RevolveMemory], after: State[RevolveMemory]) -> dict[str, Any]:
        fitness, memory = self._fitness(after), after.memory
        account: dict[str, Any] = {
            "islands": [
                {"members": len(island), "mean": mean_fitness(island, fitness) if island else None}
                for island in memory.islands
            ],
            "migrations": memory.migrations,
            "fitness": "preference" if self._by_votes(after) else "score",
        }
        if self.fitness == "preference":
            account["pending"] = len(memory.pending)
            account["ratings"] = {id: r for id, r in memory.ratings.items() if before.memory.ratings.get(id) != r}
            if not self._by_votes(after):
                account["note"] = "requests to prefer are declined: fitness is the score"
        return account


def _score(result: Result) -> float:
    return scored(result).merit


def _without_side(words: str) -> tuple[str, str]:
    """An answer to `prefer` without the line that names the agent on the left, and that agent; empty if unknown."""
    verdict, _, rest = words.strip().partition("\n")
    side, _, remark = rest.partition("\n")
    left = {"left: first": "first", "left: second": "second"}.get(side, "") if remark else ""
    return (f"{verdict}\n{remark}", left) if left else (words, "")


def _standing(verdict: str, place: str, left: str) -> str:
    """How the agent at `place` did, with its side if that is known, since remarks refer to sides."""
    if left:
        preferred = "neither" if verdict == "equal" else "the left" if verdict == left else "the right"
        return f"on the {'left' if place == left else 'right'} of two, {preferred} was preferred"
    if verdict == "equal":
        return "as good as another agent"
    return "preferred to another agent" if verdict == place else "another agent was preferred"


def _remarks(memory: RevolveMemory, parents: Sequence[Result]) -> tuple[str, ...]:
    """Remarks on the parents, each with the number of its program where there are two."""
    return tuple(
        OF_PROGRAM.format(k + 1) + remark if len(parents) > 1 else remark
        for k, parent in enumerate(parents)
        for remark in memory.remarks.get(parent.candidate.id, ())
    )
