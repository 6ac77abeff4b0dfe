"""What a log adds up to."""

from __future__ import annotations

import pytest

from jaxreward.records import Failure, Measure, Proposal
from jaxreward.reports.run_events import EventFormatter
from jaxreward.reports.timeline import CHECKING, FINAL, PROPOSING, REST, TRAINING, Timeline, first_to_reach
from jaxreward.runs import Asked, AskedRequest, Entry, Paused, Proposed, Resumed, Told
from tests.reports import example

WHOLE = example.entries(example.events())


def test_working_time_leaves_out_the_pauses():
    kinds = [Told(generation=0), Paused(reason="SIGTERM"), Resumed(), Told(generation=1)]
    entries = [Entry(k, at, event) for k, (at, event) in enumerate(zip((10.0, 13.0, 500.0, 504.0), kinds, strict=True))]
    assert Timeline(entries).wall_s == 7.0
    assert Timeline([]).wall_s == 0.0


def test_periods_are_the_start_the_generations_and_the_final_training():
    timeline = Timeline(WHOLE)
    assert [p.name for p in timeline.periods] == ["start", "generation 0", "generation 1", "final"]
    first, second = timeline.generations
    assert first.seconds == {REST: 20.0, PROPOSING: 40.0, CHECKING: 40.0, TRAINING: 10.0} and first.complete
    assert (first.candidates, first.scored, first.failed, first.duplicate) == (2, 1, 2, 1)
    assert first.best is first.best_so_far and second.best is second.best_so_far is timeline.best
    assert timeline.periods[-1].seconds == {FINAL: 20.0, REST: 10.0} and timeline.periods[-1].candidates == 2
    assert sum(p.wall_s for p in timeline.periods) == timeline.wall_s == 250.0


def test_a_request_for_words_without_an_answer_is_no_failed_program():
    requests = (AskedRequest(id="a", operator="plan"), AskedRequest(id="b", operator="scratch"))
    failures = [Proposal(request_id=id, failure=Failure(stage="reply", message="it was empty")) for id in "ab"]
    events = [Asked(generation=0, requests=requests), *(Proposed(proposal=p) for p in failures)]
    entries = [Entry(k, float(k), event) for k, event in enumerate(events)]
    assert Timeline(entries).generations[0].failed == 1
    lines = EventFormatter(clock=str)
    _, words, program = map(lines.line, entries)
    assert "a: no words: reply: it was empty" in words and "b: no program: reply: it was empty" in program


def test_trained_candidates_know_what_was_used_until_then():
    timeline = Timeline(WHOLE)
    assert [c.number for c in timeline.candidates] == [1, 2, 3, 4]
    assert [c.result.candidate.id for c in timeline.candidates if c.best is c.result] == ["g0000-00", "g0001-00"]
    third = timeline.candidates[2]
    assert (third.env_steps, third.device_s, third.wall_s) == (7000, 16.0, 210.0)
    assert third.cost_usd == pytest.approx(0.4) and timeline.compile_s == 12.0
    assert first_to_reach(timeline.candidates, Measure(), 0.8) is third
    assert first_to_reach(timeline.candidates, Measure(), 0.95) is None


@pytest.mark.parametrize("at", range(1, len(WHOLE), 4))
def test_the_whole_is_the_same_when_it_comes_in_two_parts(at: int):
    timeline = Timeline(WHOLE[:at])
    for entry in WHOLE[at:]:
        timeline.add(entry)
    whole = Timeline(WHOLE)
    assert (timeline.periods, timeline.candidates) == (whole.periods, whole.candidates)
    assert timeline.seconds == whole.seconds
