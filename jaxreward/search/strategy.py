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
from jaxreward.records import TRAINED_STAGES, Evolve, Failure, Request, Result
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
        stage = result.failure.stage if result.failure else None
        if stage == "duplicate":
            return replace(self, duplicate=self.duplicate + 1)
        if stage is None or stage in TRAINED_STAGES:
            return replace(self, trained=self.trained + 1)
        return replace(self, failed=self.failed + 1)


@dataclass(frozen=True)
class State(Generic[M]):
    """A search between two generations.

    `generation` counts calls of `tell`, `told` counts results; `failures` holds the most recent
    failed programs, newest first; `memory` belongs to the strategy.
    """

    memory: M
    generation: int = 0
    told: int = 0
    counts: Counts = field(default_factory=Counts)
    best: Result | None = None
    failures: tuple[Result, ...] = ()


@dataclass(frozen=True)
class Draft:
    """A request before it has an identity; fields as in `jaxreward.records.Request`."""

    operator: str
    island: int = 0
    parents: tuple[Result, ...] = ()
    best: tuple[Result, ...] = ()
    diverse: tuple[Result, ...] = ()
    failures: tuple[Result, ...] = ()


class Strategy(Protocol):
    """What the evolution loop needs of a search strategy."""

    name: ClassVar[str]

    def init(self) -> State[Any]:
        """The state before anything was asked."""
        ...

    def ask(self, state: State[Any], n: int, rng: np.random.Generator) -> list[Request]:
        """One to `n` requests for the next generation; a pure function of its arguments."""
        ...

    def tell(self, state: State[Any], results: Sequence[Result]) -> State[Any]:
        """The state after a generation; `results` in the order of its requests."""
        ...

    def best(self, state: State[Any]) -> Result | None:
        """The best result so far, None while nothing has a score."""
        ...


@dataclass(frozen=True)
class SearchStrategy(ABC, Generic[M]):
    """Base of the strategies: public verbs keep the books, private hooks hold the idea.

    A subclass is a frozen dataclass of options that sets `name` and writes `_init`, `_ask` and
    `_tell`; it overrides nothing else.
    """

    name: ClassVar[str]
    evolve: Evolve = "both"

    def __post_init__(self) -> None:
        if self.evolve not in get_args(Evolve):
            raise UserError(f"evolve is {self.evolve!r}: choose one of {', '.join(get_args(Evolve))}.")
        self._validate()

    @final
    def init(self) -> State[M]:
        return State(memory=self._init())

    @final
    def ask(self, state: State[M], n: int, rng: np.random.Generator) -> list[Request]:
        if n < 1:
            raise ValueError(f"ask for at least one candidate, not {n}")
        drafts = self._ask(state, n, rng)
        if not 1 <= len(drafts) <= n:
            raise ValueError(f"strategy {self.name} drafted {len(drafts)} requests where 1 to {n} were asked for")
        return [self._stamp(draft, state.generation, k) for k, draft in enumerate(drafts)]

    @final
    def tell(self, state: State[M], results: Sequence[Result]) -> State[M]:
        results = tuple(admit(result) for result in results)
        memory = self._tell(state, results)
        counts, best, failures = state.counts, state.best, state.failures
        for result in results:
            counts = counts.add(result)
            if result.score is not None and (best is None or better(result, best)):
                best = result
            if teaches(result):
                failures = (result, *failures)[:FAILURES_KEPT]
        return State(memory, state.generation + 1, state.told + len(results), counts, best, failures)

    @final
    def best(self, state: State[M]) -> Result | None:
        return state.best

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
        )

    @abstractmethod
    def _validate(self) -> None:
        """Raise `UserError` for an option that makes no sense."""

    @abstractmethod
    def _init(self) -> M:
        """The strategy's own memory before anything was asked."""

    @abstractmethod
    def _ask(self, state: State[M], n: int, rng: np.random.Generator) -> Sequence[Draft]:
        """One to `n` drafts; `rng` is the only source of chance."""

    @abstractmethod
    def _tell(self, state: State[M], results: tuple[Result, ...]) -> M:
        """The memory after `results`, whose scores are finite; `state` is the one before them."""


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


def teaches(result: Result) -> bool:
    """Whether a failure is worth showing: it has a program, and one not shown elsewhere."""
    return result.failure is not None and result.failure.stage != "duplicate" and bool(result.candidate.source)
