"""The ask-and-tell protocol of a search, and the books that every strategy keeps alike.

A strategy is a frozen set of options; everything that changes lives in a `State`, which it never
mutates. The same results told in the same order give the same state, so a run on disk is resumed
by telling its results again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, final, get_args

import numpy as np

from jaxreward.errors import UserError
from jaxreward.operators import WORDS
from jaxreward.records import TRAINED_STAGES, Evolve, Failure, Request, Result
from jaxreward.search.bandit import Bandit
from jaxreward.search.draft import Draft
from jaxreward.search.options import require_flag
from jaxreward.search.selection import better

FAILURES_KEPT = 8

M = TypeVar("M")


@dataclass(frozen=True)
class Counts:
    """How many candidates reached the trainer, failed before it, or repeated an earlier one."""

    trained: int = 0
    failed: int = 0
    duplicate: int = 0

    def add(self, result: Result) -> Counts:
        """With one more program counted."""
        if result.failure and result.failure.stage == "duplicate":
            return replace(self, duplicate=self.duplicate + 1)
        if was_trained(result):
            return replace(self, trained=self.trained + 1)
        return replace(self, failed=self.failed + 1)


@dataclass(frozen=True)
class State(Generic[M]):
    """A search between two generations.

    `generation` counts calls of `tell`, `told` counts results of programs; `failures` holds the most
    recent failed programs, newest first; `declined` are operators that the proposer does not know, not
    to be asked for again; `memory` belongs to the strategy; `bandit` is there if one was asked for.
    """

    memory: M
    generation: int = 0
    told: int = 0
    counts: Counts = field(default_factory=Counts)
    best: Result | None = None
    failures: tuple[Result, ...] = ()
    declined: frozenset[str] = frozenset()
    bandit: Bandit | None = None


class Strategy(Protocol):
    """What the evolution loop needs of a search strategy."""

    name: ClassVar[str]

    @property
    def asks_people(self) -> bool:
        """Whether it asks people which of two agents does better, so that agents must be drawn."""
        ...

    def words_expected(self, candidates: int) -> int:
        """About how many requests for words, beside those to people, it makes while so many candidates train."""
        ...

    def owes_votes(self, state: State[Any]) -> bool:
        """Whether candidates that are trained wait for what people say of them; asked when a budget is spent."""
        ...

    def init(self) -> State[Any]:
        """The state before anything was asked."""
        ...

    def ask(self, state: State[Any], n: int, rng: np.random.Generator) -> list[Request]:
        """One to `n` requests for programs, or any number of requests for words; a pure function of its arguments."""
        ...

    def tell(self, state: State[Any], results: Sequence[Result]) -> State[Any]:
        """The state after a generation; `results` in the order of its requests."""
        ...

    def best(self, state: State[Any]) -> Result | None:
        """The best result so far, None while nothing has a score."""
        ...

    def finished(self, state: State[Any]) -> str:
        """Why nothing more should be asked for though budgets are left; empty while something should."""
        ...

    def account(self, before: State[Any], after: State[Any]) -> dict[str, Any]:
        """What readers of the log want to know of a generation, as JSON; nothing depends on it."""
        ...


@dataclass(frozen=True)
class SearchStrategy(ABC, Generic[M]):
    """Base of the strategies: public verbs keep the books, private hooks hold the idea.

    A subclass is a frozen dataclass of options that sets `name` and writes `_validate`, `_init`, `_ask`
    and `_tell`. Where its idea needs it, it also writes `_hear` (what became of requests for words),
    `_best`, `finished`, `account` and `asks_people`; it overrides nothing else. `natural` is what it evolves unless
    told otherwise.

    `budget` is how many candidates the search will train, 0 if that is not known. With `bandit`, what
    operators and models brought and cost so far decides which of those that a draft allows is asked
    (`jaxreward.search.bandit`); `models` are what it may choose from, fewer than two leave the choice to
    the proposer.
    """

    name: ClassVar[str]
    natural: ClassVar[Evolve] = "both"
    evolve: Evolve = "both"
    budget: int = 0
    bandit: bool = False
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.evolve not in get_args(Evolve):
            raise UserError(f"evolve is {self.evolve!r}: choose one of {', '.join(get_args(Evolve))}.")
        require_flag(self.name, "bandit", self.bandit)
        if self.models and not self.bandit:
            raise UserError(f"Strategy {self.name} chooses among models only with a bandit: set bandit too.")
        self._validate()

    @property
    def asks_people(self) -> bool:
        """Whether it asks people which of two agents does better, so that agents must be drawn."""
        return False

    def words_expected(self, candidates: int) -> int:
        """About how many requests for words, beside those to people, it makes while so many candidates train."""
        return 0

    def owes_votes(self, state: State[M]) -> bool:
        """Whether candidates that are trained wait for what people say of them; asked when a budget is spent."""
        return False

    @final
    def init(self) -> State[M]:
        return State(memory=self._init(), bandit=Bandit() if self.bandit else None)

    @final
    def ask(self, state: State[M], n: int, rng: np.random.Generator) -> list[Request]:
        if n < 1:
            raise ValueError(f"ask for at least one candidate, not {n}")
        drafts = [_known(draft, state.declined) for draft in self._ask(state, n, rng)]
        programs = sum(draft.operator not in WORDS for draft in drafts)
        if not drafts or programs > n or 0 < programs < len(drafts):
            raise ValueError(
                f"strategy {self.name} drafted {len(drafts)} requests, {programs} of them for programs, "
                f"where 1 to {n} for programs or any number for words may be asked"
            )
        if state.bandit is not None:
            drafts = state.bandit.assigned(drafts, self.models, state.declined, rng)
        return [self._stamp(draft, state.generation, k) for k, draft in enumerate(drafts)]

    @final
    def tell(self, state: State[M], results: Sequence[Result]) -> State[M]:
        heard = tuple(result for result in results if result.candidate.operator in WORDS)
        programs = tuple(admit(result) for result in results if result.candidate.operator not in WORDS)
        memory = self._tell(state, programs) if programs else state.memory
        memory = self._hear(replace(state, memory=memory), heard) if heard else memory
        counts, best, failures = state.counts, state.best, state.failures
        for result in programs:
            counts = counts.add(result)
            if result.score is not None and (best is None or better(result, best)):
                best = result
            if teaches(result):
                failures = (result, *failures)[:FAILURES_KEPT]
        for result in heard:
            aligned = result.candidate.operator == "align" and result.words
            if aligned and best is not None and best.candidate.id in result.candidate.parents:
                best = best.with_thought(result.words)  # as the fold of a run does with its results
        declined = {r.candidate.operator for r in results if r.failure and r.failure.stage == "declined"}
        return State(
            memory=memory,
            generation=state.generation + 1,
            told=state.told + len(programs),
            counts=counts,
            best=best,
            failures=failures,
            declined=state.declined | declined,
            bandit=state.bandit.told(programs) if state.bandit is not None else None,
        )

    @final
    def best(self, state: State[M]) -> Result | None:
        return self._best(state)

    def finished(self, state: State[M]) -> str:
        return ""

    def account(self, before: State[M], after: State[M]) -> dict[str, Any]:
        return {}

    def _stamp(self, draft: Draft, generation: int, index: int) -> Request:
        return Request(
            id=f"g{generation:04d}-{index:02d}",
            generation=generation,
            operator=draft.operator,
            island=draft.island,
            evolve=self.evolve,
            parents=draft.parents,
            best=draft.best,
            diverse=draft.diverse,
            failures=draft.failures,
            plan=draft.plan,
            thought=draft.thought,
            remarks=draft.remarks,
            model=draft.model,
        )

    @abstractmethod
    def _validate(self) -> None:
        """Raise `UserError` for an option that makes no sense."""

    @abstractmethod
    def _init(self) -> M:
        """The strategy's own memory before anything was asked."""

    @abstractmethod
    def _ask(self, state: State[M], n: int, rng: np.random.Generator) -> Sequence[Draft]:
        """One to `n` drafts for programs, or any number for words; `rng` is the only source of chance."""

    @abstractmethod
    def _tell(self, state: State[M], results: tuple[Result, ...]) -> M:
        """The memory after `results` of programs, whose scores are finite; `state` is the one before them."""

    def _hear(self, state: State[M], results: tuple[Result, ...]) -> M:
        """The memory after `results` of requests for words; each has `words`, or a failure."""
        return state.memory

    def _best(self, state: State[M]) -> Result | None:
        """The result that the search is about: the best score, unless the strategy has another measure."""
        return state.best


def admit(result: Result) -> Result:
    """`result` with its score kept only where it is finite and nothing failed."""
    if result.score is None:
        if result.failure is not None:
            return result
        failure = Failure(stage="diverged", message="training returned neither a score nor a failure")
        return result.model_copy(update={"failure": failure})
    if result.failure is not None:
        return result.model_copy(update={"score": None})
    if math.isfinite(result.score.mean):
        return result
    failure = Failure(stage="diverged", message=f"the score is {result.score.mean}")
    return result.model_copy(update={"score": None, "failure": failure})


def was_trained(result: Result) -> bool:
    """Whether a program reached the trainer, whatever came of it."""
    return result.failure is None or result.failure.stage in TRAINED_STAGES


def teaches(result: Result) -> bool:
    """Whether a failure is worth showing: it has a program, and one not shown elsewhere."""
    return result.failure is not None and result.failure.stage != "duplicate" and bool(result.candidate.source)


def outcomes(results: Sequence[Result]) -> tuple[Result, ...]:
    """What became of each request of a generation in the end: `results` less those that a repair followed."""
    mended = {result.candidate.repairs for result in results}
    return tuple(result for result in results if result.candidate.id not in mended)


def _known(draft: Draft, declined: frozenset[str]) -> Draft:
    """`draft`, for a program by an operator that the proposer does not know by the one nearest to it."""
    if draft.operator not in declined or draft.operator in WORDS:
        return draft
    return replace(draft.of_first(), operator="improve" if draft.parents else "scratch", plan=None)
