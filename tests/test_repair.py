"""Which rejected candidates are repaired, and how often."""

from __future__ import annotations

import pytest

from jaxreward.evolution.repair import repair_requests
from jaxreward.records import Failure, ProgramSummary, Proposal, Request, Result, Score, Verdict
from jaxreward.runs import Checked, Generation


class Chain:
    """One request whose answers are rejected at given stages."""

    def __init__(self) -> None:
        self.generation = Generation(0, (Request(id="g0000-00", generation=0, operator="improve", island=1),))

    def answer(self, stage: str | None) -> None:
        """The last request is answered; `stage` is where it fails, None where it passes."""
        id = self.generation.requests[-1].id
        failure = Failure(stage=stage, message="no") if stage else None  # type: ignore[arg-type]
        unusable = failure if stage == "reply" else None
        proposal = Proposal(request_id=id, source="" if unusable else f"# {id}", failure=unusable)
        checks = dict(self.generation.checks)
        if not unusable:
            summary = ProgramSummary(digest=id, observation_size=1) if failure is None else None
            checks[id] = Checked(request_id=id, verdict=Verdict(summary=summary, failure=failure))
        proposals = {**self.generation.proposals, id: proposal}
        self.generation = Generation(0, self.generation.requests, proposals, checks, self.generation.trained)

    def sent_back(self, repairs: int = 2) -> list[Request]:
        found = repair_requests(self.generation, repairs)
        g = self.generation
        self.generation = Generation(0, (*g.requests, *found), g.proposals, g.checks, g.trained)
        return found


@pytest.mark.parametrize(
    ("stages", "repairs", "expected"),
    [
        (["guard", "trace", "numeric"], 2, 2),
        (["guard", "trace"], 1, 1),
        (["guard"], 0, 0),
        (["reply", "reply"], 2, 1),
        (["reply", "guard", "limits", "contract"], 2, 3),
        (["guard", "reply", "guard", "guard"], 2, 3),
        (["reply"], 0, 1),
        (["guard", None], 2, 1),
        ([None], 2, 0),
    ],
)
def test_an_unusable_answer_is_repaired_once_and_a_rejected_one_repairs_times(stages, repairs, expected):
    chain, count = Chain(), 0
    for stage in stages:
        chain.answer(stage)
        found = chain.sent_back(repairs)
        assert chain.sent_back(repairs) == []  # not twice
        count += len(found)
        if not found:
            break
    assert count == expected


def test_a_repair_request_has_the_verdict_and_the_context():
    chain = Chain()
    chain.answer("guard")
    (again,) = chain.sent_back()
    assert (again.id, again.operator, again.island) == ("g0000-00-r1", "improve", 1)
    assert again.failed is not None and again.failed.candidate.source == "# g0000-00"
    chain.answer("trace")
    (again,) = chain.sent_back()
    assert again.id == "g0000-00-r2" and again.failed is not None and again.failed.candidate.id == "g0000-00-r1"


def test_failures_of_the_trainer_are_not_repaired():
    chain = Chain()
    chain.answer(None)
    candidate = chain.generation.candidate("g0000-00")
    for result in (
        Result(candidate=candidate, failure=Failure(stage="filtered", message="")),
        Result(candidate=candidate, score=Score(mean=0, se=0, n=1, episodes=1)),
    ):
        g = chain.generation
        assert repair_requests(Generation(0, g.requests, g.proposals, g.checks, {"g0000-00": result}), 2) == []
