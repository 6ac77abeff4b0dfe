"""The ask-and-tell protocol of a search, and the state that all strategies share.

A strategy is a frozen set of options; everything that changes lives in a `State`, which it never
mutates. The same results in the same order give the same state, so a run on disk is resumed
by replaying its results.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, final, get_args

import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.operators import REPEATS, WORDS
from jaxreward.records import TRAINED_STAGES, Evolve, Failure, Request, Result
from jaxreward.search.ablation import ABLATE, Ablations
from jaxreward.search.bandit import Bandit
from jaxreward.search.confirmation import Confirmation
from jaxreward.search.draft import Draft
from jaxreward.search.selection import better
from jaxreward.search.strategy_options import require_flag, require_integer
from jaxreward.sentences import mention

MAX_FAILURES = 8

M = TypeVar("M")


@dataclass(frozen=True)
class Counts:
    """How many candidates reached the trainer, failed before it, or duplicated an earlier one."""

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

    `generation` counts calls of `tell`, `num_results` counts results of programs; `failures` holds the most
    recent failed programs, newest first; `declined` are operators that the proposer does not know and that are
    not requested again; `memory` belongs to the strategy; `bandit`, `ablations` and `confirmation` are there if the
    options ask for them. `pending` are requests for programs of which it was not told the results yet, of `in_work`
    generations; there are some only where `ask` is called before a generation is complete (`asynchronous`).
    """

    memory: M
    generation: int = 0
    num_results: int = 0
    counts: Counts = field(default_factory=Counts)
    best: Result | None = None
    failures: tuple[Result, ...] = ()
    declined: frozenset[str] = frozenset()
    bandit: Bandit | None = None
    ablations: Ablations | None = None
    confirmation: Confirmation | None = None
    pending: tuple[Request, ...] = ()
    in_work: int = 0

    @property
    def told(self) -> int:
        """The name of `num_results` in earlier versions."""
        return self.num_results


@dataclass(frozen=True)
class SearchStrategy(ABC, Generic[M]):
    """Base of the strategies: public methods update the shared state, private hooks implement the strategy.

    A subclass is a frozen dataclass of options that sets `name` and implements `_validate`, `_init`, `_ask`
    and `_tell`. It may override `_tell_words` (results of requests for words), `_tell_ablated`, `_best`, `finished`,
    `account`, `words_expected`, `owes_votes`, `unsettled`, `rescoring`, `asks_people`, `watches`, `starts_warm` and
    `asynchronous`, and nothing else.
    `natural` is what it evolves by default, `ablates` and `confirms` whether it takes the options `ablations` and
    `confirm`, `learns` whether its programs may depend on the scores of others; `with_model` are options in place of
    their defaults where the proposer chooses new programs by a model of the scores, as it does by default with the
    strategies that have some; `instructed` strategies are for tasks with an instruction alone.

    `budget` is how many candidates the search will train, 0 if that is not known. With `bandit`, gains and
    costs so far decide which of the operators and models that a draft allows is used
    (`jaxreward.search.bandit`); `models` are the choices, fewer than two leave the choice to the proposer.
    With `ablations`, each new best program, once the founders (`initial`) are trained, is tried without each of so many
    groups of its parts, and what they turned out to be worth is shown with it from then on. With `confirm`, programs
    that may be the best are scored again when the search ends (`to_confirm`), until the best is one of them.
    """

    name: ClassVar[str]
    natural: ClassVar[Evolve] = "both"
    ablates: ClassVar[bool] = True
    confirms: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    instructed: ClassVar[bool] = False
    with_model: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    evolve: Evolve = "both"
    budget: int = 0
    bandit: bool = False
    models: tuple[str, ...] = ()
    ablations: int = 0
    confirm: bool = False

    def __post_init__(self) -> None:
        if self.evolve not in get_args(Evolve):
            raise InvalidSetting(
                f"evolve is {self.evolve!r}: choose one of {', '.join(get_args(Evolve))}.", "strategy.evolve"
            )
        require_flag(self.name, "bandit", self.bandit)
        if self.models and not self.bandit:
            message = f"Strategy {self.name} chooses among models only with a bandit: set bandit too."
            raise InvalidSetting(message, "strategy.bandit", "strategy.models")
        require_integer(self.name, "ablations", self.ablations, 0)
        if self.ablations and not self.ablates:
            message = f"Strategy {self.name} makes no ablations: leave {mention('ablations')} out."
            raise InvalidSetting(message, "ablations")
        require_flag(self.name, "confirm", self.confirm)
        if self.confirm and (not self.confirms or self.asks_people):
            why = "goes by people's preferences" if self.confirms else "confirms its best in its own way"
            raise InvalidSetting(f"Strategy {self.name} {why}: leave {mention('confirm_seeds')} out.", "confirm_seeds")
        self._validate()

    @property
    def asks_people(self) -> bool:
        """Whether it asks people which of two agents does better, so that agents must be rendered."""
        return False

    @property
    def watches(self) -> bool:
        """Whether a judge watches its agents, and says how well they do each subtask of the task's instruction."""
        return False

    @property
    def starts_warm(self) -> bool:
        """Whether the agents of a program begin with the policy of its parent."""
        return False

    @property
    def asynchronous(self) -> bool:
        """Whether it can be asked while requests are `State.pending`, and be told generations in any order."""
        return False

    def words_expected(self, candidates: int) -> int:
        """About how many requests for words, those to people excluded, it makes while `candidates` are trained."""
        return 0

    def owes_votes(self, state: State[M]) -> bool:
        """Whether trained candidates wait for votes, or to be watched; asked when a budget is spent."""
        return False

    def unsettled(self, state: State[M]) -> bool:
        """Whether the search must still revise the scores of what it has, which takes no new candidates; asked when
        their budget is spent."""
        return False

    def rescoring(self, state: State[M]) -> bool:
        """Whether programs wait to be scored again on other data: no budget ends the search before."""
        return False

    @final
    def init(self) -> State[M]:
        """The state at the beginning."""
        ablations = Ablations() if self.ablations else None
        confirmation = Confirmation() if self.confirm else None
        bandit = Bandit() if self.bandit else None
        return State(memory=self._init(), bandit=bandit, ablations=ablations, confirmation=confirmation)

    @final
    def ask(self, state: State[M], n: int, rng: np.random.Generator) -> list[Request]:
        """One to `n` requests for programs, or any number of requests for words, or to score programs again, for which
        nothing is proposed; a pure function of its arguments."""
        if n < 1:
            raise ValueError(f"ask for at least one candidate, not {n}")
        ablated = self._due(state)[:n]
        drafts = self._drafted(state, n - len(ablated), rng) if len(ablated) < n else []
        if all(draft.operator not in WORDS | REPEATS for draft in drafts):
            drafts = [*ablated, *drafts]
        if state.ablations is not None:
            drafts = [state.ablations.shown(draft) for draft in drafts]
        return self._requests(state, drafts)

    @final
    def to_confirm(self, state: State[M]) -> list[Request]:
        """Requests to score programs again before the search ends, with the option `confirm`; none once the best is one
        of those."""
        return self._requests(state, state.confirmation.drafts() if state.confirmation is not None else ())

    def _requests(self, state: State[M], drafts: Sequence[Draft]) -> list[Request]:
        g = state.generation + state.in_work
        own = {"generation": g, "evolve": self.evolve}
        return [Request(id=f"g{g:04d}-{k:02d}", **own, **vars(draft)) for k, draft in enumerate(drafts)]

    def _drafted(self, state: State[M], n: int, rng: np.random.Generator) -> list[Draft]:
        """What `_ask` drafts, checked, with operators that the proposer knows, or those that the bandit chooses."""
        drafts = [_known(draft, state.declined) for draft in self._ask(state, n, rng)]
        programs = sum(draft.operator not in WORDS | REPEATS for draft in drafts)
        if not drafts or programs > n or 0 < programs < len(drafts):
            raise ValueError(
                f"strategy {self.name} drafted {len(drafts)} requests, {programs} of them for programs, "
                f"where 1 to {n} for programs or any number for words may be asked"
            )
        if state.bandit is not None:
            drafts = state.bandit.assigned(drafts, self.models, state.declined, rng)
        return drafts

    def _due(self, state: State[M]) -> list[Draft]:
        """The ablations of the best program that are not known yet; none while founders are to come."""
        best, founders = self.best(state), getattr(self, "initial", 0)
        if state.ablations is None or best is None or ABLATE in state.declined or state.counts.trained < founders:
            return []
        if best.candidate.operator in REPEATS:  # a resumed search has ablated it when it was new
            return []
        asked = {(r.parents[0].candidate.id, r.group) for r in state.pending if r.operator == ABLATE}
        due = state.ablations.drafts(best, self.ablations)
        return [draft for draft in due if (best.candidate.id, draft.group) not in asked]

    @final
    def tell(self, state: State[M], results: Sequence[Result]) -> State[M]:
        """The state after a generation; `results` in the order of its requests."""
        words = tuple(result for result in results if result.candidate.operator in WORDS)
        programs = tuple(checked(result) for result in results if result.candidate.operator not in WORDS)
        again = ()
        if state.confirmation is not None:
            again = tuple(result for result in programs if result.candidate.operator in REPEATS)
            programs = tuple(result for result in programs if result.candidate.operator not in REPEATS)
        ablated = tuple(result for result in programs if result.candidate.operator == ABLATE)
        others = tuple(result for result in programs if result.candidate.operator != ABLATE)
        memory = self._tell(state, others) if others else state.memory
        if ablated:
            so_far = replace(state, memory=memory, num_results=state.num_results + len(others))
            memory = self._tell_ablated(so_far, ablated)
        memory = self._tell_words(replace(state, memory=memory), words) if words else memory
        counts, best, failures = state.counts, state.best, state.failures
        for result in programs:
            counts = counts.add(result)
            if result.score is not None and (best is None or better(result, best)):
                best = result
            if worth_showing(result):
                failures = (result, *failures)[:MAX_FAILURES]
        for result in words:
            aligned = result.candidate.operator == "align" and result.words
            if aligned and best is not None and best.candidate.id in result.candidate.parents:
                best = best.with_thought(result.words)  # as the fold of a run does with its results
        declined = {r.candidate.operator for r in results if r.failure and r.failure.stage == "declined"}
        return State(
            memory=memory,
            generation=state.generation + 1,
            num_results=state.num_results + len(programs),
            counts=counts,
            best=best,
            failures=failures,
            declined=state.declined | declined,
            bandit=state.bandit.updated(programs) if state.bandit is not None else None,
            ablations=state.ablations.updated(ablated) if state.ablations is not None else None,
            confirmation=state.confirmation.updated(programs, again) if state.confirmation is not None else None,
        )

    @final
    def best(self, state: State[M]) -> Result | None:
        """The best result so far, None while nothing has a score."""
        confirmed = state.confirmation.best if state.confirmation is not None else None
        return confirmed or self._best(state)

    def finished(self, state: State[M]) -> str:
        """Why the search ends before its budgets are spent; empty while it goes on."""
        return ""

    def account(self, before: State[M], after: State[M]) -> dict[str, Any]:
        """A summary of a generation for the log, as JSON; nothing depends on it."""
        return {}

    @abstractmethod
    def _validate(self) -> None:
        """Raise `InvalidSetting` for an option that makes no sense."""

    @abstractmethod
    def _init(self) -> M:
        """The strategy's own memory at the beginning."""

    @abstractmethod
    def _ask(self, state: State[M], n: int, rng: np.random.Generator) -> Sequence[Draft]:
        """One to `n` drafts for programs, or any number for words; `rng` is the only source of chance."""

    @abstractmethod
    def _tell(self, state: State[M], results: tuple[Result, ...]) -> M:
        """The memory after `results` of programs, whose scores are finite; `state` is the one before them."""

    def _tell_ablated(self, state: State[M], results: tuple[Result, ...]) -> M:
        """The memory after `results` of ablations; by default they are programs like others."""
        return self._tell(state, results)

    def _tell_words(self, state: State[M], results: tuple[Result, ...]) -> M:
        """The memory after `results` of requests for words; each has `words`, or a failure."""
        hook = getattr(self, "_hear", None)  # its name in earlier versions
        return hook(state, results) if hook else state.memory

    def _best(self, state: State[M]) -> Result | None:
        """The result of the best score, unless the strategy has another criterion."""
        return state.best


def checked(result: Result) -> Result:
    """`result` with its score kept only where it is finite and nothing failed."""
    failure, score = result.failure, result.score
    if failure is None and score is not None and math.isfinite(score.mean):
        return result
    message = f"the score is {score.mean}" if score else "training returned neither a score nor a failure"
    return result.model_copy(update={"score": None, "failure": failure or Failure(stage="diverged", message=message)})


def was_trained(result: Result) -> bool:
    """Whether a program reached the trainer."""
    return result.failure is None or result.failure.stage in TRAINED_STAGES


def worth_showing(result: Result) -> bool:
    """Whether it is a failure to show a proposer: one with a program that is no duplicate."""
    return result.failure is not None and result.failure.stage != "duplicate" and bool(result.candidate.source)


def outcomes(results: Sequence[Result]) -> tuple[Result, ...]:
    """The final results of a generation: those that no repair followed."""
    repaired = {result.candidate.repairs for result in results}
    return tuple(result for result in results if result.candidate.id not in repaired)


def _known(draft: Draft, declined: frozenset[str]) -> Draft:
    """`draft`, with an operator that the proposer does not know replaced by the nearest one."""
    if draft.operator not in declined or draft.operator in WORDS:
        return draft
    return replace(draft.of_first(), operator="improve" if draft.parents else "scratch", plan=None)
