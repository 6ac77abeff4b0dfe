"""Asynchronous searches: the real loop and log in virtual time, killed, resumed, replayed, stopped and failing."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.virtual_time import Simulation, Times, VirtualTime, opened, simulate
from jaxreward.errors import End, EndCause, InvalidSetting, ProposerStopped, UserError
from jaxreward.evolution.background import Threads, Work
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.evolution.steady_state import SteadyState, in_flight, searched
from jaxreward.proposers.proposer import Answers, Move, OneByOne
from jaxreward.proposers.replay import ReplayProposer
from jaxreward.records import Failure, Request
from jaxreward.runs import Asked, Checked, Proposed, Repair, RunStarted, Told, Trained, Withdrawn, fold, read_log
from jaxreward.runs.events import AskedRequest
from jaxreward.search import make_strategy
from jaxreward.search.registry import STRATEGIES
from jaxreward.search.seeding import derive_rng
from jaxreward.training import Interrupted
from tests.ends import cause_of
from tests.test_evolve import started, wait_for

pytestmark = pytest.mark.usefixtures("unsynced")
SIM = Simulation("failures", "limen", 24, 3, devices=3, batch=2, times=Times(propose=7.0, train=20.0, spread=1.0))
OVERLAPPING = ("best-of-n", "forge", "limen", "revolve")
OPTIONS = {"forge": ("planner=false",), "limen": ("initial=4", "islands=2"), "revolve": ("initial=4", "islands=2")}


def of(strategy: str, **changes: Any) -> Simulation:
    return dataclasses.replace(SIM, strategy=strategy, options=OPTIONS.get(strategy, ()), **changes)


def events(out: Path, *kinds: type) -> list[Any]:
    found = [entry.event for entry in read_log(out / "run" / "events.jsonl")]
    return [event for event in found if not kinds or isinstance(event, kinds)]


def moves(out: Path) -> list[tuple[str, int]]:
    return [(event.type, event.generation) for event in events(out, Asked, Told)]


def state_of(out: Path, sim: Simulation) -> Any:
    strategy = make_strategy(sim.strategy, **sim.settings(out).strategy_options())
    return fold(events(out), strategy.init(), strategy.tell)


@pytest.fixture(scope="module", params=OVERLAPPING)
def whole(request, tmp_path_factory):
    """The simulation of a strategy, and the folder of its run."""
    out = tmp_path_factory.mktemp(request.param)
    simulate(of(request.param), out)
    return of(request.param), out


@pytest.fixture(scope="module")
def limen(tmp_path_factory):
    out = tmp_path_factory.mktemp("limen")
    return simulate(of("limen"), out), out


# ---- what is asked, and told


def test_a_search_trains_its_budget_and_tells_every_generation_once(whole):
    sim, out = whole
    end = state_of(out, sim)
    assert end.spent.trained == sim.candidates and not end.in_work
    counts = Counter(moves(out))
    assert set(counts.values()) == {1}
    assert {index for _, index in counts} == set(range(len(counts) // 2)), "an index is the number of asks before"


def test_generations_overlap_and_are_told_in_another_order_than_they_were_asked_for(whole):
    _, out = whole
    told = [index for what, index in moves(out) if what == "told"]
    assert told != sorted(told)
    working, most = set[int](), 0
    for _, index in moves(out):
        working ^= {index}
        most = max(most, len(working))
    assert most == SIM.devices + 1


def test_no_more_is_asked_than_the_budgets_leave(whole):
    sim, out = whole
    scored = asked = 0
    results = set[str]()
    for event in events(out, Asked, Checked, Proposed, Trained):
        match event:
            case Asked(requests=requests):
                asked += len(requests)
                assert asked - len(results) + scored <= sim.candidates
            case Trained(results=trained):
                scored += len(trained)
                results |= {result.candidate.id for result in trained}
            case Checked() if event.verdict.failure or event.duplicate_of:
                results.add(event.request_id)
            case Proposed() if event.proposal.failure:
                results.add(event.proposal.request_id)
            case _:
                pass


def test_in_flight_says_how_many_generations_are_in_work(tmp_path):
    for most in (1, 2, 5):
        sim, out = of("limen", in_flight=most), tmp_path / str(most)
        out.mkdir()
        with opened(sim, out) as (main, watch, clock):
            SteadyState(main, VirtualTime(clock, sim.seconds)).search()
        assert watch.in_work == most


def test_a_slot_trains_one_generation_at_a_time_and_none_waits_while_one_is_free(tmp_path):
    sim = of("limen", devices=2, in_flight=6)

    class Watched(VirtualTime):
        taken = dict[Any, float]()
        free = 0.0

        def begin(self, work: Work) -> None:
            if work.kind == "train":
                assert work.slot in (0, 1) and self.taken.get(work.slot, 0.0) <= self.clock.now
                self.taken[work.slot] = self.clock.now + sim.seconds(work)
            super().begin(work)

    with opened(sim, tmp_path) as (main, _, clock):
        SteadyState(main, Watched(clock, sim.seconds)).search()
        assert clock.busy_s > 1.5 * (clock.now - 5 * sim.times.propose), "two devices that hardly ever wait"


def test_what_waits_for_the_proposer_is_proposed_together(tmp_path):
    calls = list[int]()
    sim = of("limen", devices=5)
    with opened(sim, tmp_path) as (main, _, clock):
        answered = main.proposer.propose_all

        def counted(requests: Any, rng_of: Any) -> Answers:
            calls.append(len(requests))
            return answered(requests, rng_of)

        main.proposer.propose_all = counted  # type: ignore[method-assign]
        SteadyState(main, VirtualTime(clock, sim.seconds)).search()
    assert calls[0] == in_flight(5) * sim.batch and len(calls) < len(events(tmp_path, Asked))


# ---- strategies


def pending(count: int, operator: str = "scratch", generation: int = 0, **fields: Any) -> tuple[Request, ...]:
    return tuple(
        Request(id=f"g{generation:04d}-{k:02d}", generation=generation, operator=operator, **fields)
        for k in range(count)
    )


def test_founders_in_work_count_as_founders(whole):
    sim, out = whole
    strategy = make_strategy(sim.strategy, **sim.settings(out).strategy_options())
    if sim.strategy == "best-of-n":
        pytest.skip("it has none but founders")
    state = state_of(out, sim).state
    young = dataclasses.replace(state, counts=dataclasses.replace(state.counts, trained=0))
    rng = derive_rng(0, "ask")
    alone = strategy.ask(young, 2, rng)
    beside = strategy.ask(dataclasses.replace(young, pending=pending(40), in_work=20), 2, rng)
    assert {r.operator for r in alone} == {"scratch"} and "scratch" not in {r.operator for r in beside}
    assert beside[0].generation == state.generation + 20


def test_islands_take_turns_over_what_is_in_work():
    strategy = make_strategy("limen", islands=3)
    asked = [
        strategy.ask(dataclasses.replace(strategy.init(), pending=pending(k), in_work=k), 1, derive_rng(k))[0].island
        for k in range(6)
    ]
    assert asked == [0, 1, 2, 0, 1, 2]


def test_ablations_in_work_are_not_asked_for_again(whole):
    sim, out = whole
    if sim.strategy == "best-of-n":
        pytest.skip("it makes none")
    options = {**sim.settings(out).strategy_options(), "ablations": 2}
    strategy = make_strategy(sim.strategy, **options)
    state = fold(events(out), strategy.init(), strategy.tell).state
    due = [request for request in strategy.ask(state, 4, derive_rng(0)) if request.operator == "ablate"]
    assert len(due) == 2
    again = strategy.ask(dataclasses.replace(state, pending=tuple(due), in_work=1), 4, derive_rng(0))
    assert "ablate" not in {request.operator for request in again}


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_strategy_says_whether_it_can_overlap(name):
    options = {"planner": False} if name == "forge" else {}
    assert make_strategy(name, **options).asynchronous == (name in OVERLAPPING)
    if name in ("forge", "revolve"):
        waits = {"forge": {"planner": True}, "revolve": {"fitness": "preference"}}[name]
        assert not make_strategy(name, **waits).asynchronous


# ---- the log


@pytest.mark.long
def test_killed_at_every_event_and_resumed_it_trains_its_budget(whole, tmp_path):
    sim, out = whole
    lines = (out / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        copy = tmp_path / str(cut)
        shutil.copytree(out / "run", copy / "run")
        (copy / "run" / "events.jsonl").write_bytes(b"".join(lines[:cut]))
        known = state_of(copy, sim)
        simulate(sim, copy)
        end = state_of(copy, sim)
        assert end.spent.trained == sim.candidates and not end.in_work, cut
        assert {k: end.results[k] for k in known.results} == known.results, "nothing that was told is lost"
        assert len({r.id for e in events(copy, Asked, Repair) for r in e.requests}) == len(end.results)


def test_the_log_alone_gives_the_state_of_the_search(tmp_path):
    sim = of("limen")
    with opened(sim, tmp_path) as (main, _, clock):
        SteadyState(main, VirtualTime(clock, sim.seconds)).search()
        live = main.progress
    folded = state_of(tmp_path, sim)
    assert folded.results == live.results and folded.spent == live.spent and folded.state == live.state


@pytest.mark.parametrize("cut", [0, 9, 31])
def test_a_recording_is_replayed_in_its_order_whatever_takes_how_long(whole, tmp_path, cut):
    sim, out = whole
    other = dataclasses.replace(sim, times=Times(propose=1.0, train=5.0, spread=2.0), devices=2)
    begun = tmp_path / "begun"
    shutil.copytree(out / "run", begun / "run")
    lines = (out / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    (begun / "run" / "events.jsonl").write_bytes(b"".join(lines[: cut or 1]))
    with opened(other, begun) as (main, _, clock):
        recording = ReplayProposer(out / "run")
        main.proposer = recording
        SteadyState(main, VirtualTime(clock, other.seconds), recording.order).search()
    assert moves(begun) == moves(out)
    one, two = state_of(begun, sim), state_of(out, sim)
    assert one.results == two.results and one.state.best == two.state.best


def test_generations_overlap_in_the_log_of_an_asynchronous_search_alone():
    strategy = make_strategy("limen")

    def asked(index: int, id: str) -> Asked:
        return Asked(generation=index, requests=(AskedRequest(id=id, operator="scratch"),))

    def folded(config: dict[str, Any], *more: Asked) -> Any:
        begun = RunStarted(task="t", strategy="limen", proposer="p", config=config)
        return fold([begun, *more], strategy.init(), strategy.tell)

    overlap = {"asynchronous": True}
    assert list(folded(overlap, asked(0, "a"), asked(1, "b")).in_work) == [0, 1]
    with pytest.raises(UserError, match="twice"):
        folded(overlap, asked(0, "a"), asked(1, "a"))
    with pytest.raises(UserError, match="is in work"):
        folded(overlap, asked(0, "a"), asked(0, "b"))
    with pytest.raises(UserError, match="is not complete"):
        folded({}, asked(0, "a"), asked(1, "b"))


# ---- what goes wrong


class Failing(VirtualTime):
    """The n-th training fails, and others end after it."""

    def __init__(self, clock: Any, seconds: Any, error: BaseException, at: int) -> None:
        super().__init__(clock, seconds)
        self.error, self.left = error, at

    def begin(self, work: Work) -> None:
        self.left -= work.kind == "train"
        if work.kind == "train" and self.left == 0:
            work = dataclasses.replace(work, compute=self._fail)
        super().begin(work)

    def _fail(self) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), Interrupted("stopped by SIGTERM")])
def test_where_one_training_fails_what_others_came_to_is_kept(tmp_path, error):
    sim = of("limen")
    with (
        pytest.raises(type(error), match=str(error)),
        opened(sim, tmp_path) as (main, _, clock),
    ):
        SteadyState(main, Failing(clock, sim.seconds, error, 4)).search()
    before = state_of(tmp_path, sim)
    assert main.stops() and before.in_work, "what computes is told to end"
    begun = 3  # trainings before the one that failed
    assert len(events(tmp_path, Trained)) >= begun
    assert simulate(sim, tmp_path).trained == sim.candidates


def test_a_signal_ends_it_once_what_computes_has_ended(tmp_path):
    sim = of("limen")
    with pytest.raises(Interrupted, match="SIGTERM"), opened(sim, tmp_path) as (main, watch, clock):

        class Signalled(VirtualTime):
            def ended(self) -> Any:
                if len(watch.curve) == 2:
                    main.stop.reason = "SIGTERM"
                return super().ended()

        SteadyState(main, Signalled(clock, sim.seconds)).search()
    assert state_of(tmp_path, sim).in_work
    assert simulate(sim, tmp_path).trained == sim.candidates


class Capped:
    """A proposer whose budget ends after some answers, or that stops for good."""

    name, accepts_repairs, order = "capped", False, ()

    def __init__(self, inner: Any, answers: int, stopped: bool = False) -> None:
        self.inner, self.left, self.stopped = inner, answers, stopped

    def planned(self, generation: int) -> None:
        return None

    def propose_all(self, requests: Any, rng_of: Any) -> Answers:
        found = self.inner.propose_all(requests[: self.left], rng_of).proposals
        self.left -= len(found)
        if len(found) == len(requests):
            return Answers(found)
        if self.stopped:
            return Answers(found, stopped=ProposerStopped("no endpoint", EndCause.RECORDING, later=True))
        return Answers(found, spent=End("the budget of dollars is spent", EndCause.ATTEMPTS))


def test_where_the_budget_of_the_proposer_ends_what_is_answered_is_trained(tmp_path):
    sim = of("limen")
    with opened(sim, tmp_path) as (main, _, clock):
        main.proposer = Capped(main.proposer, 11)  # type: ignore[assignment]
        end = SteadyState(main, VirtualTime(clock, sim.seconds)).search()
    assert end is not None and end.reason == "the budget of dollars is spent"
    assert len(events(tmp_path, Proposed)) == 11
    back = events(tmp_path, Withdrawn)
    assert len(back) == 1 and back[0].generation is not None
    assert not state_of(tmp_path, sim).in_work


def test_where_the_proposer_stops_what_it_answered_is_logged_and_the_run_goes_on_later(tmp_path):
    sim = of("limen")
    with pytest.raises(ProposerStopped), opened(sim, tmp_path) as (main, _, clock):
        main.proposer = Capped(main.proposer, 11, stopped=True)  # type: ignore[assignment]
        SteadyState(main, VirtualTime(clock, sim.seconds)).search()
    assert len(events(tmp_path, Proposed)) == 11
    assert simulate(sim, tmp_path).trained == sim.candidates


def test_generations_in_a_row_with_nothing_to_train_end_it(tmp_path):
    sim = of("limen")
    with opened(sim, tmp_path) as (main, _, clock):
        same = main.proposer.propose_all(pending(1), main.rng_of).proposals[0]

        class Same(Capped):
            def propose_all(self, requests: Any, rng_of: Any) -> Answers:
                return Answers(tuple(same.model_copy(update={"request_id": r.id}) for r in requests))

        main.proposer = Same(None, 0)  # type: ignore[assignment]
        end = SteadyState(main, VirtualTime(clock, sim.seconds)).search()
    assert cause_of(end) is EndCause.NOTHING_TO_TRAIN
    assert not state_of(tmp_path, sim).in_work


def test_so_many_generations_and_the_run_stays_open(tmp_path):
    sim = of("limen")
    with opened(sim, tmp_path) as (main, _, clock):
        assert SteadyState(main, VirtualTime(clock, sim.seconds)).search(generations=4) is None
        assert main.progress.state.generation == 4 and not main.progress.in_work
    assert simulate(sim, tmp_path).trained == sim.candidates


# ---- proposers that repair, scores that look at the best, trainings that are interrupted


class Mending(OneByOne):
    """Rejects a third of its answers itself, and mends what is sent back."""

    name, accepts_repairs = "mending", True

    def __init__(self, inner: Any, answers: int = 10**6) -> None:
        self.inner, self.left = inner, answers

    def propose_all(self, requests: Any, rng_of: Any) -> Answers:
        found = super().propose_all(requests[: self.left], rng_of).proposals
        self.left -= len(found)
        short = len(found) < len(requests)
        return Answers(found, spent=End("the budget of dollars is spent", EndCause.ATTEMPTS) if short else None)

    def propose(self, request: Request, rng: Any) -> Any:
        proposal = self.inner.propose(request, rng)
        if rng.random() < 0.3:
            failure = Failure(stage="reply", message="there is no program in it")
            return proposal.model_copy(update={"failure": failure, "source": ""})
        return proposal


def mended(sim: Simulation, out: Path, answers: int = 10**6, **changes: Any) -> Any:
    with opened(sim, out) as (main, _, clock):
        main.proposer = Mending(main.proposer, answers)
        main.settings = dataclasses.replace(main.settings, **changes)
        SteadyState(main, VirtualTime(clock, sim.seconds)).search()
        return main.progress


@pytest.mark.parametrize("seed", range(4))
def test_budgets_hold_where_rejected_programs_come_back_mended(tmp_path, seed):
    sim = of("limen", seed=seed, batch=3, in_flight=6)
    end = mended(sim, tmp_path)
    assert end.spent.trained == sim.candidates and not end.seats and not end.unproposed
    assert any("-r" in id for id in end.results)
    (tmp_path / "few").mkdir()
    assert mended(sim, tmp_path / "few", max_attempts=20).spent.attempts <= 20


@pytest.mark.parametrize("seed", range(4))
def test_a_recording_with_repairs_whose_budget_ended_is_replayed(tmp_path, seed):
    sim = of("limen", seed=seed)
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    mended(sim, one, answers=19)
    other = dataclasses.replace(sim, times=Times(propose=1.0, train=9.0, spread=2.0))
    with opened(other, two) as (main, _, clock):
        main.proposer = recording = ReplayProposer(one / "run")
        SteadyState(main, VirtualTime(clock, other.seconds), recording.order).search()
    assert moves(two) == moves(one)
    assert state_of(two, sim).results == state_of(one, sim).results


class Comparing:
    """An objective whose scores depend on the one to beat, as with pruning, which takes a while and can be stopped."""

    def __init__(self, inner: Any, stops: Any = None) -> None:
        self.inner, self.stops = inner, stops

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def score(self, tag: str, label: str, candidates: Any, programs: Any, best: Any, slot: Any = None) -> Any:
        for _ in range(20 if self.stops else 0):
            time.sleep(0.01)
            if self.stops():
                raise Interrupted("stopped after 0 updates")
        scored = self.inner.score(tag, label, candidates, programs, best, slot)
        bar = best.mean if best is not None else 0.0
        results = [
            r.model_copy(update={"score": r.score.model_copy(update={"mean": r.score.mean / 2})})
            if r.score.mean < bar else r for r in scored.results
        ]  # fmt: skip
        return dataclasses.replace(scored, results=tuple(results))


def test_what_a_generation_has_to_beat_is_what_was_best_when_it_was_asked_for(tmp_path):
    sim = of("limen")
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    with opened(sim, one) as (main, _, clock):
        main.objective = cast(Any, Comparing(main.objective))
        SteadyState(main, VirtualTime(clock, sim.seconds)).search()
    other = dataclasses.replace(sim, times=Times(propose=1.0, train=9.0, spread=2.0))
    with opened(other, two) as (main, _, clock):
        main.objective = cast(Any, Comparing(main.objective))
        main.proposer = ReplayProposer(one / "run")
        SteadyState(main, VirtualTime(clock, other.seconds), main.proposer.order).search()
    assert state_of(two, sim).results == state_of(one, sim).results
    assert any(event.incumbent for event in events(one, Asked))


def test_what_a_proposer_answered_before_it_stopped_is_trained_in_threads(tmp_path):
    sim = of("best-of-n", landscape="smooth", devices=1, in_flight=6)
    for attempt in range(2):
        with pytest.raises(ProposerStopped), opened(sim, tmp_path) as (main, _, _), Threads() as threads:
            main.proposer = Capped(main.proposer, 5 if attempt == 0 else 0, stopped=True)  # type: ignore[assignment]
            main.objective = cast(Any, Comparing(main.objective, main.stops))
            SteadyState(main, threads).search()
    end = state_of(tmp_path, sim)
    assert end.spent.attempts == 5 and end.spent.trained == 4, "of two generations, and half of a third"
    assert all(len(g.unproposed()) for g in end.in_work.values()), "what was answered whole is told"


def test_a_search_of_whole_generations_ends_where_the_budget_does(tmp_path):
    sim = of("best-of-n", landscape="smooth", candidates=8, batch=2)
    with opened(sim, tmp_path) as (main, _, clock):
        end = SteadyState(main, VirtualTime(clock, sim.seconds)).search(generations=4)
    assert cause_of(end) is EndCause.CANDIDATES


def test_nothing_more_is_proposed_once_the_budget_of_training_is_spent(tmp_path):
    sim = of("limen", devices=4, in_flight=12)
    with opened(sim, tmp_path) as (main, _, clock):
        main.settings = dataclasses.replace(main.settings, max_env_steps=4)  # a step for each candidate
        end = SteadyState(main, VirtualTime(clock, sim.seconds)).search()
    assert cause_of(end) is EndCause.ENV_STEPS
    log = events(tmp_path)
    spent = next(k for k, e in enumerate(log) if isinstance(e, Trained) and sum(
        len(t.results) for t in log[: k + 1] if isinstance(t, Trained)) >= 4)  # fmt: skip
    assert not [e for e in log[spent:] if isinstance(e, Asked | Repair)]
    assert not state_of(tmp_path, sim).in_work


def test_a_recording_of_an_asynchronous_search_is_not_repeated_by_generations(limen, tmp_path):
    sim = of("limen", asynchronous=False)
    with opened(sim, tmp_path) as (main, _, _):
        main.proposer = ReplayProposer(limen[1] / "run")
        with pytest.raises(InvalidSetting, match="asynchronous"):
            searched(main)


def test_a_recording_of_other_settings_is_refused(limen, tmp_path):
    sim = of("limen", batch=3)
    with opened(sim, tmp_path) as (main, _, clock):
        main.proposer = ReplayProposer(limen[1] / "run")
        with pytest.raises(UserError, match="settings"):
            order: list[Move] = [("asked", 0), ("asked", 1), ("told", 5)]
            SteadyState(main, VirtualTime(clock, sim.seconds), order).search()


# ---- settings


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"in_flight": 3}, "asynchronous"),
        ({"asynchronous": True, "proposer": "manual"}, "manual"),
        ({"asynchronous": True, "profile": True}, "profile"),
        ({"asynchronous": True, "strategy": "rf-agent"}, "rf-agent"),
        ({"asynchronous": True, "strategy": "forge"}, "forge"),
        ({"asynchronous": True, "strategy": "eureka"}, "eureka"),
    ],
)
def test_what_cannot_overlap_is_refused(changes, wrong):
    settings = EvolveSettings(task="probe-corridor", **changes)
    with pytest.raises(InvalidSetting, match=wrong):
        settings.check()
        Setup.of(settings)


# ---- real searches


@pytest.mark.slow
def test_a_real_search_that_is_killed_while_it_trains_goes_on_with_what_it_had(tmp_path):
    more = ("--candidates", "6", "--final-seeds", "0", "--steps", "200000", "--asynchronous")
    log = tmp_path / "run" / "events.jsonl"
    with started(tmp_path, *more) as process:
        wait_for(log, '"told"', process)
        process.kill()
    known = [entry.event for entry in read_log(log)]
    with started(tmp_path, "--resume", *more) as process:
        _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err.decode()
    assert [entry.event for entry in read_log(log)][: len(known)] == known
    progress = fold([entry.event for entry in read_log(log)], None, lambda state, _: state)
    assert progress.spent.trained == 6 and not progress.in_work
    report = (tmp_path / "run" / "report.html").read_text()
    assert "generation 0" in report


# ---- threads


def test_threads_do_work_beside_each_other_and_hand_errors_back(tmp_path):
    with Threads() as threads:
        threads.begin(Work("propose", (0, 1), lambda: "proposals"))
        threads.begin(Work("train", (2,), lambda: "agents", 0))
        threads.begin(Work("train", (3,), lambda: 1 / 0, 1))
        found = {work.generations: future for work, future in (threads.ended() for _ in range(3))}
    assert found[(0, 1)].result() == "proposals" and found[(2,)].result() == "agents"
    with pytest.raises(ZeroDivisionError):
        found[(3,)].result()


def test_a_search_in_threads_is_one_in_virtual_time_but_for_its_order(tmp_path):
    sim = of("best-of-n")
    with opened(sim, tmp_path) as (main, _, _), Threads() as threads:
        SteadyState(main, threads).search()
    other = tmp_path / "other"
    other.mkdir()
    simulate(sim, other)
    one, two = (sorted(r.candidate.source for r in state_of(p, sim).results.values()) for p in (tmp_path, other))
    assert np.mean([a == b for a, b in zip(one, two, strict=False)]) > 0.5, "the same requests are answered the same"
