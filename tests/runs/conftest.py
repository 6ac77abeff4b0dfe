"""A small run without training: LIMEN, a proposer and a trainer that are formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jaxreward.records import Failure, ProgramSummary, Proposal, Request, Result, Score, Verdict
from jaxreward.runs import (
    Asked,
    Baseline,
    Checked,
    Event,
    Finished,
    Progress,
    Proposed,
    Resumed,
    RunStarted,
    Told,
    Trained,
    advance,
    fold,
)
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng

GENERATIONS = 4


class SmallRun:
    """The loop of a run over `append`, which logs an event; calls are counted."""

    def __init__(self, append: Callable[[Event], Any], events: list[Event]) -> None:
        self.append = append
        self.strategy = make_strategy("limen", initial=3, islands=2, migration_interval=4)
        self.progress: Progress[Any] = fold(events, self.strategy.init(), self.strategy.tell)
        self.proposed: list[str] = []
        self.trained: list[str] = []

    def log(self, event: Event) -> None:
        self.append(event)
        self.progress = advance(self.progress, event, self.strategy.tell)

    def finish(self) -> Progress[Any]:
        if self.progress.started is None:
            self.log(RunStarted(task="toy", strategy="limen", proposer="formula", config={"lr": 1e-3}))
        else:
            self.log(Resumed())
        if "sparse" not in self.progress.baselines:
            self.log(Baseline(name="sparse", score=Score(mean=0.1, se=0.0, n=1, episodes=8), env_steps=5))
        while self.progress.state.generation < GENERATIONS:
            self.generation()
        best = self.strategy.best(self.progress.state)
        self.log(Finished(reason="budget", best=best.candidate.id if best else None))
        return self.progress

    def generation(self) -> None:
        if self.progress.open is None:
            state = self.progress.state
            self.log(Asked.of(self.strategy.ask(state, 5, derive_rng(0, "ask", state.generation))))
        work = self.open
        for request in work.unproposed():
            self.log(Proposed(proposal=self.propose(request)))
        for proposal in self.open.unchecked():
            self.log(self.check(proposal))
        while waiting := self.open.untrained()[:2]:  # two side by side
            self.trained += [candidate.id for candidate in waiting]
            results = tuple(self.train(candidate) for candidate in waiting)
            self.log(Trained(results=results, compile_s=1.0, run_s=0.5))
        self.log(Told(generation=self.open.index))

    @property
    def open(self):
        assert self.progress.open is not None
        return self.progress.open

    def propose(self, request: Request) -> Proposal:
        self.proposed.append(request.id)
        number = derive_rng(0, "propose", request.id).integers(1, 12) + len(request.parents)
        if number == 3:
            failure = Failure(stage="reply", message="no program in the reply")
            return Proposal(request_id=request.id, proposer="formula", failure=failure, tokens=7)
        return Proposal(request_id=request.id, proposer="formula", source=f"x = {number}", tokens=10, cost_usd=0.25)

    def check(self, proposal: Proposal) -> Checked:
        number = int(proposal.source.removeprefix("x = "))
        if number == 5:
            failure = Failure(stage="trace", message="5 is not allowed", line=1)
            return Checked(request_id=proposal.request_id, verdict=Verdict(failure=failure))
        summary = ProgramSummary(digest=f"d{number}", observation_size=40 * number, reward_nodes=10 * number)
        return Checked(
            request_id=proposal.request_id,
            verdict=Verdict(summary=summary),
            duplicate_of=self.progress.digests.get(summary.digest),
        )

    def train(self, candidate) -> Result:
        number = int(candidate.source.removeprefix("x = "))
        if number == 7:
            failure = Failure(stage="filtered", message="0 % after the short rung")
            return Result(candidate=candidate, failure=failure, env_steps=10)
        return Result(candidate=candidate, score=Score(mean=number / 13, se=0.01, n=2, episodes=64), env_steps=100)


@pytest.fixture(scope="session")
def small_run() -> type[SmallRun]:
    return SmallRun


@pytest.fixture(scope="session")
def whole() -> tuple[list[Event], Progress[Any]]:
    """The events and the progress of an uninterrupted small run."""
    events: list[Event] = []
    return events, SmallRun(events.append, []).finish()
