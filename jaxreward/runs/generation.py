"""A generation whose results the strategy has not been told yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from jaxreward.operators import REPEATS, WORDS
from jaxreward.records import Candidate, Failure, ProgramSummary, Proposal, Request, Result
from jaxreward.runs.events import Checked


def candidate_of(request: Request, proposal: Proposal, summary: ProgramSummary | None = None) -> Candidate:
    """The candidate that answers a request; `summary` is there once its program was checked."""
    grown = request.parents and request.operator not in WORDS
    return Candidate(
        id=request.id,
        generation=request.generation,
        operator=request.operator,
        island=request.island,
        parents=tuple(parent.candidate.id for parent in request.parents),
        depth=1 + max(parent.candidate.depth for parent in request.parents) if grown else 0,
        plan=request.plan.candidate.id if request.plan else "",
        repairs=request.failed.candidate.id if request.failed else "",
        proposer=proposal.proposer,
        model=proposal.model,
        thought=proposal.thought,
        tokens=proposal.tokens,
        cost_usd=proposal.cost_usd,
        source=proposal.source,
        group=request.group,
        summary=summary,
    )


@dataclass(frozen=True)
class Generation:
    """A generation whose results the strategy has not been told yet; the mappings are keyed by request id.
    `incumbent` is the best candidate when an asynchronous search asked for it."""

    index: int
    requests: tuple[Request, ...]
    proposals: Mapping[str, Proposal] = field(default_factory=dict)
    checks: Mapping[str, Checked] = field(default_factory=dict)
    trained: Mapping[str, Result] = field(default_factory=dict)
    incumbent: Result | None = None

    @cached_property
    def ids(self) -> frozenset[str]:
        """Of its requests."""
        return frozenset(request.id for request in self.requests)

    def unproposed(self) -> tuple[Request, ...]:
        """Requests that no proposer has answered."""
        return self._unproposed

    @cached_property  # those of many generations are counted at every step of an asynchronous search
    def _unproposed(self) -> tuple[Request, ...]:
        return tuple(request for request in self.requests if request.id not in self.proposals)

    def unchecked(self) -> tuple[Proposal, ...]:
        """Proposals with a program that has not been checked."""
        return self._unchecked

    @cached_property
    def _unchecked(self) -> tuple[Proposal, ...]:
        programs = [r for r in self.requests if r.operator not in WORDS]
        answered = (self.proposals[r.id] for r in programs if r.id in self.proposals)
        return tuple(p for p in answered if p.failure is None and p.request_id not in self.checks)

    def untrained(self) -> tuple[Candidate, ...]:
        """Candidates that passed their check, repeat nothing, and have no result."""
        waiting = (r.id for r in self.requests if r.id in self.checks and self.result(r.id) is None)
        return tuple(self.candidate(id) for id in waiting)

    def candidate(self, id: str) -> Candidate:
        """The candidate of an answered request; its summary is there once it was checked."""
        request = next(request for request in self.requests if request.id == id)
        summary = self.checks[id].verdict.summary if id in self.checks else None
        return candidate_of(request, self.proposals[id], summary)

    def result(self, id: str) -> Result | None:
        """The result of a request, None while it is not known."""
        if id in self.trained:
            return self.trained[id]
        if id not in self.proposals:
            return None
        failure, words = self.proposals[id].failure, self.proposals[id].words
        if failure is None and words:
            return Result(candidate=self.candidate(id), words=words)
        if failure is None and id in self.checks:
            check = self.checks[id]
            failure = check.verdict.failure
            if failure is None and check.duplicate_of is not None:
                how = "its outputs equal those of" if check.by_outputs else "computes the same as"
                failure = Failure(stage="duplicate", message=f"{how} {check.duplicate_of}", same_as=check.duplicate_of)
        return None if failure is None else Result(candidate=self.candidate(id), failure=failure)

    def pending(self) -> tuple[Request, ...]:
        """Requests without a result."""
        return self._pending

    @cached_property
    def _pending(self) -> tuple[Request, ...]:
        return tuple(request for request in self.requests if self.result(request.id) is None)

    @cached_property
    def seats(self) -> int:
        """How many candidates of it may still be trained: a rejected one may come back repaired until the end."""
        programs = [r for r in self.requests if r.failed is None and r.operator not in WORDS | REPEATS]
        return len(programs) - sum(result.candidate.operator not in REPEATS for result in self.trained.values())

    def complete(self) -> bool:
        """Whether every request has a result."""
        return not self.pending()

    def results(self) -> tuple[Result, ...]:
        """All results in the order of the requests; ValueError before the generation is complete."""
        results = {request.id: self.result(request.id) for request in self.requests}
        missing = [id for id, result in results.items() if result is None]
        if missing:
            raise ValueError(f"generation {self.index} has no result for {', '.join(missing)}")
        return tuple(result for result in results.values() if result is not None)
