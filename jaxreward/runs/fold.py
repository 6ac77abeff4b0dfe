"""The state of a run, folded from its events.

A live run and a resumed one go through the same function: append an event, then `advance` by it.
What is in memory is therefore always what a reader of the log would compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from jaxreward.errors import End, UserError
from jaxreward.operators import OF_JUDGES, REPEATS, WORDS
from jaxreward.records import TRAINED_STAGES, ProgramSummary, Proposal, Request, Result
from jaxreward.runs.events import (
    Asked,
    AskedRequest,
    Baseline,
    Checked,
    Event,
    Failed,
    Finished,
    Paused,
    Proposed,
    Repair,
    Resumed,
    RunStarted,
    Told,
    Trained,
    Withdrawn,
)
from jaxreward.runs.generation import Generation

S = TypeVar("S")
Tell = Callable[[S, Sequence[Result]], S]


@dataclass(frozen=True)
class Spent:
    """What a run has used. `attempts` counts proposed programs, but for those that are scored again; each ends as
    `trained`, `failed` or `duplicate`. `words` counts answers to requests for words; baselines are apart. `calls`,
    `tokens`, `cost_usd` and `unpriced_tokens` as in `Proposal`."""

    attempts: int = 0
    words: int = 0
    trained: int = 0
    failed: int = 0
    duplicate: int = 0
    env_steps: int = 0
    baseline_env_steps: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0
    compile_s: float = 0.0
    run_s: float = 0.0


@dataclass(frozen=True)
class Progress(Generic[S]):
    """A run after some events.

    `state` is the strategy's after the last complete generation, `in_work` are the generations that it was not told
    yet, by index, in the order in which they were asked for: one at most unless the search is asynchronous; of their
    requests `unproposed` have no answer, and they may train `seats` candidates;
    `results` holds every result told so far by candidate id; `digests` maps what the candidates
    checked so far compute to the first that did, `known` those firsts to their summaries; `exhausted`
    is the budget of the proposer that ended, until the run is resumed with another configuration or
    asks again;
    `ended` is the last `Paused`, `Finished` or `Failed`, None while the run goes on.
    """

    state: S
    in_work: Mapping[int, Generation] = field(default_factory=dict)
    unproposed: int = 0
    seats: int = 0
    results: Mapping[str, Result] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, ProgramSummary] = field(default_factory=dict)
    exhausted: End | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    started: RunStarted | None = None
    ended: Paused | Finished | Failed | None = None

    @property
    def open(self) -> Generation | None:
        """The generation in work that was asked for first."""
        return next(iter(self.in_work.values()), None)


def fold(events: Iterable[Event], state: S, tell: Tell[S]) -> Progress[S]:
    """The progress of a run from its events, given a strategy's initial `state` and its `tell`."""
    progress = Progress(state)
    for event in events:
        progress = advance(progress, event, tell)
    return progress


def advance(progress: Progress[S], event: Event, tell: Tell[S]) -> Progress[S]:
    """The progress after one more event; `UserError` where it cannot follow what came before."""
    match event:
        case RunStarted():
            _require(progress.started is None, event, "the run has started already")
            return replace(progress, started=event, config=event.config)
        case Resumed():
            same = event.config == progress.config
            return replace(progress, ended=None, config=event.config, exhausted=progress.exhausted if same else None)
        case Paused() | Finished() | Failed():
            return replace(progress, ended=event)
        case Baseline():
            return _baseline(progress, event)
        case Asked():
            return _asked(progress, event)
        case Repair():
            return _repair(progress, event)
        case Withdrawn():
            return _withdrawn(progress, event)
        case Proposed():
            return _proposed(progress, event)
        case Checked():
            return _checked(progress, event)
        case Trained():
            return _trained(progress, event)
        case Told():
            return _told(progress, event, tell)


def _contradiction(event: Event, problem: str) -> UserError:
    return UserError(f"The log contradicts itself at an event of type {event.type}: {problem}. It was edited.")


def _require(condition: bool, event: Event, problem: str) -> None:
    if not condition:
        raise _contradiction(event, problem)


def _of(progress: Progress[S], event: Event, id: str) -> Generation:
    """The generation in work of which `id` is a request."""
    for generation in progress.in_work.values():
        if id in generation.ids:
            return generation
    raise _contradiction(event, f"{id} was not asked for")


def _with(progress: Progress[S], generation: Generation, **changes: Any) -> Progress[S]:
    """With a generation in work in place of what it was, or after the others, and other changes."""
    before = progress.in_work.get(generation.index)
    return replace(
        progress,
        in_work={**progress.in_work, generation.index: generation},
        # sums over those in work would be most of the time of a search on hundreds of devices
        unproposed=progress.unproposed + len(generation.unproposed()) - (len(before.unproposed()) if before else 0),
        seats=progress.seats + generation.seats - (before.seats if before else 0),
        **changes,
    )


def _baseline(progress: Progress[S], event: Baseline) -> Progress[S]:
    spent = replace(
        progress.spent,
        baseline_env_steps=progress.spent.baseline_env_steps + event.env_steps,
        compile_s=progress.spent.compile_s + event.compile_s,
        run_s=progress.spent.run_s + event.run_s,
    )
    return replace(progress, baselines={**progress.baselines, event.name: event}, spent=spent)


def _asked(progress: Progress[S], event: Asked) -> Progress[S]:
    alone = not progress.config.get("asynchronous")
    _require(not (progress.in_work and alone), event, "the generation before it is not complete")
    _require(event.generation not in progress.in_work, event, f"generation {event.generation} is in work")
    ids = [asked.id for asked in event.requests]
    taken = progress.results.keys() | set[str]().union(*(g.ids for g in progress.in_work.values()))
    fresh = len(set(ids)) == len(ids) and not taken & set(ids)
    _require(fresh, event, "a request id occurs twice")
    requests = tuple(_request(asked, event, event.generation, progress.results) for asked in event.requests)
    incumbent = progress.results.get(event.incumbent)
    # What costs the proposer nothing says nothing of its budget.
    free = all(request.operator in REPEATS | OF_JUDGES for request in requests)
    generation = Generation(event.generation, requests, incumbent=incumbent)
    return _with(progress, generation, exhausted=progress.exhausted if free else None)


def _repair(progress: Progress[S], event: Repair) -> Progress[S]:
    if not progress.in_work:
        raise _contradiction(event, "no generation is in work")
    first = event.requests[0].failed if event.requests else ""
    generation = _of(progress, event, first) if first else next(iter(progress.in_work.values()))
    results = dict(progress.results)
    for request in generation.requests:
        result = generation.result(request.id)
        if result is not None:
            results[request.id] = result
    ids = [asked.id for asked in event.requests]
    _require(len(set(ids)) == len(ids) and not results.keys() & set(ids), event, "a request id occurs twice")
    more = tuple(_request(asked, event, generation.index, results) for asked in event.requests)
    return _with(progress, replace(generation, requests=(*generation.requests, *more)))


def _withdrawn(progress: Progress[S], event: Withdrawn) -> Progress[S]:
    generation = progress.open if event.generation is None else progress.in_work.get(event.generation)
    if generation is None:
        raise _contradiction(event, "no generation is in work")
    answered = tuple(request for request in generation.requests if request.id in generation.proposals)
    return _with(
        progress,
        replace(generation, requests=answered),
        exhausted=End(event.reason, event.cause),
        spent=_billed(progress.spent, event),
    )


def _billed(spent: Spent, event: Proposal | Withdrawn) -> Spent:
    return replace(
        spent,
        calls=spent.calls + event.calls,
        tokens=spent.tokens + event.tokens,
        cost_usd=spent.cost_usd + event.cost_usd,
        unpriced_tokens=spent.unpriced_tokens + event.unpriced_tokens,
    )


def _request(asked: AskedRequest, event: Event, generation: int, results: Mapping[str, Result]) -> Request:
    """The request in full, its candidates looked up among earlier results."""

    def known(ids: tuple[str, ...]) -> tuple[Result, ...]:
        for id in ids:
            _require(id in results, event, f"{asked.id} refers to {id}, which has no result")
        return tuple(results[id] for id in ids)

    return Request(
        id=asked.id,
        generation=generation,
        operator=asked.operator,
        island=asked.island,
        evolve=asked.evolve,
        parents=known(asked.parents),
        best=known(asked.best),
        diverse=known(asked.diverse),
        failures=known(asked.failures),
        plan=known((asked.plan,))[0] if asked.plan else None,
        failed=known((asked.failed,))[0] if asked.failed else None,
        thought=asked.thought,
        remarks=asked.remarks,
        model=asked.model,
        group=asked.group,
        ablations=known(asked.ablations),
        watched=known((asked.watched,))[0] if asked.watched else None,
        examples=asked.examples,
    )


def _proposed(progress: Progress[S], event: Proposed) -> Progress[S]:
    proposal = event.proposal
    generation = _of(progress, event, proposal.request_id)
    _require(proposal.request_id not in generation.proposals, event, f"{proposal.request_id} was answered already")
    spent = _billed(progress.spent, proposal)
    spent = replace(
        spent, env_steps=spent.env_steps + proposal.env_steps, compile_s=spent.compile_s + proposal.compile_s,
        run_s=spent.run_s + proposal.run_s,
    )  # fmt: skip
    operator = next(r.operator for r in generation.requests if r.id == proposal.request_id)
    if operator in WORDS:
        spent = replace(spent, words=spent.words + 1)
    elif operator not in REPEATS:
        failed = proposal.failure is not None
        spent = replace(spent, attempts=spent.attempts + 1, failed=spent.failed + failed)
    proposals = {**generation.proposals, proposal.request_id: proposal}
    return _with(progress, replace(generation, proposals=proposals), spent=spent)


def _checked(progress: Progress[S], event: Checked) -> Progress[S]:
    id = event.request_id
    generation = _of(progress, event, id)
    _require(id in generation.proposals, event, f"{id} was not proposed")
    _require(id not in generation.checks, event, f"{id} was checked already")
    duplicate = event.verdict.ok and event.duplicate_of is not None
    spent = replace(
        progress.spent,
        failed=progress.spent.failed + (not event.verdict.ok),
        duplicate=progress.spent.duplicate + duplicate,
    )
    digests, known = progress.digests, progress.known
    if event.verdict.ok and event.verdict.summary is not None and not duplicate:
        digests = {event.verdict.summary.digest: id, **digests}  # the first of its kind stays
        known = {**known, id: event.verdict.summary}
    generation = replace(generation, checks={**generation.checks, id: event})
    return _with(progress, generation, spent=spent, digests=digests, known=known)


def _trained(progress: Progress[S], event: Trained) -> Progress[S]:
    spent = progress.spent
    spent = replace(spent, compile_s=spent.compile_s + event.compile_s, run_s=spent.run_s + event.run_s)
    digests, known = progress.digests, progress.known
    for result in event.results:
        id = result.candidate.id
        generation = _of(progress, event, id)
        _require(id in generation.checks, event, f"{id} was not checked")
        _require(generation.result(id) is None, event, f"{id} has a result already")
        trained = result.failure is None or result.failure.stage in TRAINED_STAGES
        new = result.candidate.operator not in REPEATS
        spent = replace(
            spent,
            trained=spent.trained + (trained and new),
            failed=spent.failed + (not trained and new),
            env_steps=spent.env_steps + result.env_steps,
        )
        progress = _with(progress, replace(generation, trained={**generation.trained, id: result}))
        if result.candidate.summary is not None:  # with other weights, it may not be what was checked
            digests = {result.candidate.summary.digest: id, **digests}
            if id in known:
                known = {**known, id: result.candidate.summary}
    return replace(progress, spent=spent, digests=digests, known=known)


def _told(progress: Progress[S], event: Told, tell: Tell[S]) -> Progress[S]:
    generation = progress.in_work.get(event.generation)
    if generation is None:
        raise _contradiction(event, f"generation {event.generation} is not in work")
    _require(generation.complete(), event, f"generation {event.generation} is not complete")
    results = generation.results()
    told = {**progress.results, **{result.candidate.id: result for result in results}}
    for result in results:
        if result.candidate.operator == "align" and result.words:
            parent = result.candidate.parents[0]
            told[parent] = told[parent].with_thought(result.words)
    others = {index: other for index, other in progress.in_work.items() if index != event.generation}
    seats = progress.seats - generation.seats
    return replace(progress, state=tell(progress.state, results), in_work=others, results=told, seats=seats)
