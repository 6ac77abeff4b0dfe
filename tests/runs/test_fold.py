"""Resumed equals uninterrupted, whatever event a run was killed at."""

from __future__ import annotations

import pytest

from jaxreward.errors import EndCause, UserError
from jaxreward.records import Candidate, Failure, Proposal, Result, Score, Verdict
from jaxreward.runs import (
    Asked,
    AskedRequest,
    Checked,
    Finished,
    Paused,
    Proposed,
    Resumed,
    RunStarted,
    Told,
    Trained,
    Withdrawn,
    advance,
    fold,
)
from jaxreward.runs.log import EventLog, read_log
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng


class Killed(BaseException):
    """Stands for SIGKILL: nothing after the event runs."""


def without_resumes(events):
    return [event for event in events if event.type != "resumed"]


def test_the_small_run_has_everything_in_it(whole):
    events, progress = whole
    spent = progress.spent
    assert spent.trained and spent.failed and spent.duplicate
    assert spent.attempts == spent.trained + spent.failed + spent.duplicate == 20
    stages = {result.failure.stage for result in progress.results.values() if result.failure}
    assert stages == {"reply", "trace", "duplicate", "filtered"}
    assert progress.state.memory.migrations > 0
    assert isinstance(progress.ended, Finished) and progress.ended.best == progress.state.best.candidate.id
    counts = progress.state.counts
    assert (counts.trained, counts.failed, counts.duplicate) == (spent.trained, spent.failed, spent.duplicate)
    assert spent.env_steps == sum(result.env_steps for result in progress.results.values())
    assert spent.baseline_env_steps == 5
    assert {event.type for event in events} == {
        "run_started", "baseline", "asked", "proposed", "checked", "trained", "told", "finished",
    }  # fmt: skip


def test_folding_at_once_is_folding_event_by_event(whole):
    events, final = whole
    strategy = make_strategy("limen", initial=3, islands=2, migration_interval=4)
    assert fold(events, strategy.init(), strategy.tell) == final
    progress = fold([], strategy.init(), strategy.tell)
    for k, event in enumerate(events):
        progress = advance(progress, event, strategy.tell)
        assert progress == fold(events[: k + 1], strategy.init(), strategy.tell)


def test_killed_at_every_event_a_run_ends_the_same(whole, small_run):
    events, final = whole
    for survived in range(len(events)):
        log = list(events[:survived])
        resumed = small_run(log.append, list(log))
        progress = resumed.finish()
        assert progress.state == final.state
        assert progress.results == final.results
        assert progress.spent == final.spent
        assert without_resumes(log) == without_resumes(events)
        answered = {event.proposal.request_id for event in events[:survived] if event.type == "proposed"}
        trained = {r.candidate.id for event in events[:survived] if event.type == "trained" for r in event.results}
        assert not answered & set(resumed.proposed) and not trained & set(resumed.trained)


def test_killed_again_and_again_on_disk_a_run_ends_the_same(tmp_path, whole, small_run):
    """Every process dies after two more events; the last byte of each log is torn off half-way."""
    events, final = whole
    path = tmp_path / "events.jsonl"
    for _attempt in range(200):
        with EventLog(path) as log:
            start = len(log.entries)

            def append(event, log=log, start=start):
                if len(log.entries) - start >= 3:
                    raise Killed
                log.append(event)

            try:
                progress = small_run(append, [entry.event for entry in log.entries]).finish()
            except Killed:
                pass
            else:
                break
        with path.open("ab") as torn:
            torn.write(b'{"v":1,"seq":99,"at":17')
    assert progress.state == final.state and progress.spent == final.spent
    assert without_resumes([entry.event for entry in read_log(path)]) == without_resumes(events)


def test_the_open_generation_knows_what_is_left(whole, small_run):
    events, _ = whole
    run = small_run(lambda event: None, events[: 2 + 1 + 2])  # started, baseline, asked, two proposals
    work = run.open
    assert [request.id for request in work.unproposed()] == ["g0000-02", "g0000-03", "g0000-04"]
    assert {proposal.request_id for proposal in work.unchecked()} <= {"g0000-00", "g0000-01"}
    assert not work.untrained() and not work.complete()
    with pytest.raises(ValueError, match="generation 0 has no result for"):
        work.results()


def test_a_request_is_rebuilt_with_its_context(whole, small_run):
    events, _ = whole
    third = next(k for k, event in enumerate(events) if event.type == "asked" and event.generation == 2)
    run = small_run(lambda event: None, events[: third + 1])
    asked = run.strategy.ask(run.progress.state, 5, derive_rng(0, "ask", 2))
    assert list(run.open.requests) == asked
    assert any(request.parents and request.best for request in asked)


@pytest.fixture
def strategy():
    return make_strategy("best-of-n")


ASKED = Asked(generation=0, requests=(AskedRequest(id="a", operator="scratch"),))
PROPOSED = Proposed(proposal=Proposal(request_id="a", source="x"))
CHECKED = Checked(request_id="a", verdict=Verdict())
SCORED = Result(
    candidate=Candidate(id="a", generation=0, operator="scratch"), score=Score(mean=0.5, se=0.1, n=1, episodes=4)
)
TRAINED = Trained(results=(SCORED,))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([RunStarted(task="t", strategy="s", proposer="p")] * 2, "started already"),
        ([PROPOSED], "a was not asked for"),
        ([ASKED, ASKED], "not complete"),
        ([Asked(generation=0, requests=(AskedRequest(id="a", operator="x"),) * 2)], "occurs twice"),
        ([Asked(generation=0, requests=(AskedRequest(id="a", operator="x", best=("b",)),))], "refers to b"),
        ([ASKED, PROPOSED, PROPOSED], "answered already"),
        ([ASKED, CHECKED], "not proposed"),
        ([ASKED, PROPOSED, CHECKED, CHECKED], "checked already"),
        ([ASKED, PROPOSED, TRAINED], "not checked"),
        ([ASKED, PROPOSED, CHECKED, TRAINED, TRAINED], "has a result already"),
        ([ASKED, PROPOSED, CHECKED, Told(generation=0)], "not complete"),
        ([ASKED, Told(generation=1)], "not in work"),
        ([ASKED, PROPOSED, CHECKED, TRAINED, Told(generation=0), ASKED], "occurs twice"),
    ],
)
def test_a_log_that_contradicts_itself_is_refused(strategy, events, message):
    with pytest.raises(UserError, match=message):
        fold(events, strategy.init(), strategy.tell)


@pytest.mark.parametrize(("operator", "ended"), [("keep", True), ("watch", True), ("improve", False)])
def test_a_budget_stays_spent_while_the_proposer_is_asked_for_nothing(strategy, operator, ended):
    """To score a program again, or to judge its agent, costs the proposer nothing."""
    spent = [ASKED, PROPOSED, CHECKED, TRAINED, Told(generation=0)]
    more = Asked(generation=1, requests=(AskedRequest(id="b", operator="scratch"),))
    spent += [more, Withdrawn(reason="the requests are spent", cause=EndCause.REQUESTS), Told(generation=1)]
    progress = fold(spent, strategy.init(), strategy.tell)
    assert progress.exhausted is not None
    again = Asked(generation=2, requests=(AskedRequest(id="c", operator=operator, parents=("a",)),))
    assert (advance(progress, again, strategy.tell).exhausted is not None) == ended


def test_a_pause_lasts_until_the_run_is_resumed(strategy):
    paused = fold([Paused(reason="SIGUSR1")], strategy.init(), strategy.tell)
    assert paused.ended == Paused(reason="SIGUSR1")
    assert advance(paused, Resumed(), strategy.tell).ended is None


@pytest.mark.parametrize("mean", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_logged_as_a_failure(mean):
    wild = SCORED.model_copy(update={"score": Score(mean=mean, se=0.0, n=1, episodes=4)})
    (result,) = Trained(results=(wild,)).results
    assert result.score is None and result.failure is not None and result.failure.stage == "diverged"


def test_a_result_has_a_score_or_a_failure():
    failure = Failure(stage="diverged", message="no")
    for update in ({"score": None}, {"failure": failure}):
        with pytest.raises(ValueError, match="needs a score or a failure"):
            Trained(results=(SCORED.model_copy(update=update),))


def test_a_log_with_sketches_and_duplicates_by_outputs_is_still_read():
    """Earlier versions compared programs by their outputs too."""
    summary = {"digest": "d", "observation_size": 3, "sketch": [0.5], "reward_rms": 1.0, "constants": [[2.0], [3.0]]}
    event = {"request_id": "b", "verdict": {"summary": summary}, "duplicate_of": "a", "by_outputs": True}
    checked = Checked.model_validate(event)
    assert checked.by_outputs and checked.duplicate_of == "a"
    assert checked.verdict.summary is not None and checked.verdict.summary.digest == "d"
