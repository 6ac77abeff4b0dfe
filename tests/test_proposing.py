"""The loop between the proposer and the checker: repairs, duplicates, budgets, kills."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from jaxreward.errors import End, EndCause, ProposerStopped
from jaxreward.evolution.loop import Evolution
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.objectives.training.objective import TrainingObjective
from jaxreward.proposers.proposer import Answers, Context, Proposer
from jaxreward.proposers.replay import ReplayProposer
from jaxreward.records import Exchange, Failure, Proposal, Request
from jaxreward.runs import Checked, Proposed, Repair, Run, StopSignal, Told, Withdrawn, read_log, read_transcript
from jaxreward.search import make_strategy
from jaxreward.training import PPO
from tests.ends import cause_of
from tests.silent import Silent

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced")
SETTINGS = EvolveSettings(
    task="probe-choice", proposer="manual", candidates=4, generation=2, seeds=1, steps=64,
    option=("initial=2", "islands=2"), final_seeds=0, baselines=(),
    ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,)),
)  # fmt: skip
HEAD = "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return jnp.stack([state.signal])\n\n\n"


def program(k: int, scale: float = 1.0) -> str:
    reward = f"{scale} * (next_state.hit.astype(jnp.float32) + {k}.0 * state.signal)"
    return f"{HEAD}def compute_reward(state, action, next_state):\n    return {reward}\n"


class Scripted(Proposer):
    """Answers by request id: a source, or a failure for an answer without a program.

    Like a language model it costs, and keeps its exchanges in the transcript. After `limit`
    answers its budget is spent.
    """

    name, accepts_repairs = "scripted", True

    def __init__(self, script: dict[str, str], limit: int = 1000) -> None:
        self.script, self.limit, self.asked = script, limit, []
        self.context = Context(folder=Path())

    def open(self, context: Context) -> None:
        self.context = context

    def propose_all(self, requests, rng_of) -> Answers:
        found = []
        for request in requests:
            if not self.context.transcript.of(request.id):
                if len(self.context.transcript.exchanges()) >= self.limit:
                    # A call that broke off but was charged: the request that it was for gets no answer.
                    self.context.transcript.add(Exchange(request_id=request.id, turn=0, model="m", error="cut off",
                                                      finish="x", prompt_tokens=5, cost_usd=0.125))  # fmt: skip
                    return Answers(tuple(found), spent=End("the budget of requests is spent", EndCause.REQUESTS))
                self.asked.append(request)
                text = self.script.get(request.id, program(hash_of(request)))
                self.context.transcript.add(Exchange(request_id=request.id, turn=0, model="m", reply=text,
                                                  prompt_tokens=7, completion_tokens=3, cost_usd=0.25))  # fmt: skip
            text = self.context.transcript.of(request.id)[0].reply
            failure = None if "def " in text or "import" in text else Failure(stage="reply", message="no program")
            found.append(Proposal(request_id=request.id, source="" if failure else text, proposer="scripted", model="m",
                                  failure=failure, calls=1, tokens=10, cost_usd=0.25))  # fmt: skip
        return Answers(tuple(found))


def hash_of(request: Request) -> int:
    return 2 + int(request.id[1:5]) * 10 + int(request.id[6:8]) + 100 * request.id.count("r")


SCRIPT = {
    "g0000-00": "import os\n",
    "g0000-00-r1": HEAD + "def compute_reward(state, action, next_state):\n    return jnp.zeros(3)\n",
    "g0000-01": "I would rather not.",
    "g0000-01-r1": program(2),
    "g0001-00": program(2) + "# the same program\n",
}
"""g0000-00 is repaired twice, g0000-01 asked again once; g0001-00 repeats g0000-01-r1 and is repaired."""


@pytest.fixture(scope="module")
def machine(checker, task_of):
    return {"task": task_of("probe-choice"), "checker": checker}


def search(machine: dict[str, Any], out: Path, proposer: Any, **changes: Any) -> Evolution:
    settings = dataclasses.replace(SETTINGS, out=out, name="run", **changes)
    path = out / "run"
    objective = TrainingObjective(machine["task"], settings)
    parts = Setup(machine["task"], objective, make_strategy("limen", **settings.strategy_options()), proposer)
    opened = Run.resume(path) if path.exists() else Run.create(path, settings.as_config())
    with opened as run:
        main = Evolution(run, settings, parts, machine["checker"], Silent(), StopSignal())
        main.search()
        return main


def events(out: Path, *kinds: type) -> list[Any]:
    found = [entry.event for entry in read_log(out / "run" / "events.jsonl")]
    return [event for event in found if not kinds or isinstance(event, kinds)]


def substance(out: Path) -> list[Any]:
    return [e.model_copy(update={"compile_s": 0.0, "run_s": 0.0}) if e.type == "trained" else e
            for e in events(out) if e.type not in ("run_started", "resumed")]  # fmt: skip


@pytest.fixture(scope="module")
def whole(machine, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    proposer = Scripted(SCRIPT)
    return search(machine, out, proposer), out, proposer


def test_rejected_candidates_are_repaired_and_every_answer_is_an_attempt(whole):
    main, out, proposer = whole
    results = main.progress.results
    stages = {id: r.failure.stage if r.failure else None for id, r in results.items()}
    assert stages["g0000-00"] == "guard" and stages["g0000-00-r1"] == "contract" and stages["g0000-00-r2"] is None
    assert stages["g0000-01"] == "reply" and stages["g0000-01-r1"] is None
    assert stages["g0001-00"] == "duplicate" and stages["g0001-00-r1"] is None
    assert results["g0000-00-r2"].candidate.repairs == "g0000-00-r1"
    spent = main.progress.spent
    assert spent.trained == 4 and spent.attempts == len(results) == len(proposer.asked) == 8
    assert (spent.tokens, spent.calls, spent.cost_usd) == (80, 8, 2.0)
    assert main.progress.state.counts.trained == 4  # the strategy hears of all of them
    assert sum(e.cost_usd or 0 for e in read_transcript(out / "run" / "transcripts" / "exchanges.jsonl")) == 2.0


def test_a_program_of_equal_digest_is_not_trained_again(whole):
    main, out, _ = whole
    (check,) = [e for e in events(out, Checked) if e.request_id == "g0001-00"]
    assert check.duplicate_of == "g0000-01-r1"
    assert main.progress.results["g0001-00"].failure.same_as == "g0000-01-r1"


def test_a_repair_request_carries_the_failed_candidate(whole):
    _, out, proposer = whole
    asked = {request.id: request for request in proposer.asked}
    assert asked["g0000-00-r2"].failed.failure.stage == "contract"
    assert "jnp.zeros(3)" in asked["g0000-00-r2"].failed.candidate.source
    assert [len(e.requests) for e in events(out, Repair)] == [2, 1, 1]


@pytest.mark.slow
def test_after_a_kill_at_any_event_no_call_is_lost_or_repeated(machine, whole, tmp_path):
    main, out, _ = whole
    lines = (out / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        copy = tmp_path / str(cut)
        shutil.copytree(out / "run", copy / "run")
        (copy / "run" / "events.jsonl").write_bytes(b"".join(lines[:cut]))
        again = Scripted({})
        resumed = search(machine, copy, again)
        assert again.asked == []  # every reply was in the transcript
        assert substance(copy) == substance(out)
        assert resumed.progress.spent.cost_usd == main.progress.spent.cost_usd


def test_after_a_kill_between_reply_and_transcript_one_call_is_repeated(machine, whole, tmp_path):
    _, out, _ = whole
    events_lines = (out / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    said = (out / "run" / "transcripts" / "exchanges.jsonl").read_bytes().splitlines(keepends=True)
    asked = next(i for i, line in enumerate(events_lines) if b'"asked"' in line)
    shutil.copytree(out / "run", tmp_path / "run")
    (tmp_path / "run" / "events.jsonl").write_bytes(b"".join(events_lines[: asked + 1]))
    (tmp_path / "run" / "transcripts" / "exchanges.jsonl").write_bytes(said[0] + said[1][:30])
    again = Scripted(SCRIPT)
    resumed = search(machine, tmp_path, again)
    assert "g0000-00" not in [r.id for r in again.asked] and again.asked[0].id == "g0000-01"
    assert substance(tmp_path) == substance(out)
    assert resumed.progress.spent.calls == 8


def test_where_a_budget_of_the_proposer_ends_the_rest_is_withdrawn(machine, tmp_path):
    main = search(machine, tmp_path, Scripted(SCRIPT, limit=5))
    assert cause_of(main.spent()) is EndCause.REQUESTS
    assert events(tmp_path, Withdrawn)[0].cause is EndCause.REQUESTS
    assert len(events(tmp_path, Withdrawn)) == 1
    assert events(tmp_path)[-1].type == "told"  # the generation is complete
    said = read_transcript(tmp_path / "run" / "transcripts" / "exchanges.jsonl")
    assert main.progress.spent.cost_usd == sum(e.cost_usd or 0 for e in said)  # what was lost is booked
    generations = len(events(tmp_path, Told))
    again = search(machine, tmp_path, Scripted(SCRIPT, limit=5))  # nothing to do with the same budgets
    assert cause_of(again.spent()) is EndCause.REQUESTS and len(events(tmp_path, Told)) == generations
    more = search(machine, tmp_path, Scripted({}), max_attempts=17)  # the configuration has changed
    assert more.progress.spent.trained == 4


def test_max_attempts_bounds_repairs(machine, tmp_path):
    main = search(machine, tmp_path, Scripted(SCRIPT), max_attempts=3)
    assert main.progress.spent.attempts == 3


def test_a_proposer_that_accepts_no_repairs_gets_none(machine, tmp_path):
    proposer = Scripted(SCRIPT)
    proposer.accepts_repairs = False
    search(machine, tmp_path, proposer)
    assert not events(tmp_path, Repair)


def test_a_replay_writes_the_same_log_and_transcript(machine, whole, tmp_path):
    _, out, _ = whole
    replay = ReplayProposer(out / "run")
    assert replay.accepts_repairs
    search(machine, tmp_path, replay)
    assert substance(tmp_path) == substance(out)
    name = Path("run") / "transcripts" / "exchanges.jsonl"
    assert (tmp_path / name).read_bytes() == (out / name).read_bytes()


def test_a_replay_of_a_run_with_a_spent_budget_ends_where_it_ended(machine, tmp_path):
    search(machine, tmp_path / "a", Scripted(SCRIPT, limit=5))
    search(machine, tmp_path / "b", ReplayProposer(tmp_path / "a" / "run"))
    assert substance(tmp_path / "b") == substance(tmp_path / "a")


def test_a_proposer_that_stops_leaves_a_run_to_be_resumed(machine, tmp_path):
    dead = Dead(SCRIPT)
    with pytest.raises(ProposerStopped):
        search(machine, tmp_path, dead)
    assert [e.proposal.request_id for e in events(tmp_path, Proposed)] == ["g0000-00"]  # what was paid for is booked
    again = Scripted(SCRIPT)
    main = search(machine, tmp_path, again)
    assert "g0000-00" not in [r.id for r in again.asked]
    assert main.progress.spent.attempts == 8


class Dead(Scripted):
    """Answers the first request and finds its endpoint down."""

    def propose_all(self, requests, rng_of):
        found = super().propose_all(requests[:1], rng_of).proposals
        return Answers(found, stopped=ProposerStopped("the endpoint is down", EndCause.ENDPOINT, later=True))


def test_a_replay_stops_where_its_recording_stopped(machine, tmp_path):
    with pytest.raises(ProposerStopped):
        search(machine, tmp_path / "a", Dead(SCRIPT))
    with pytest.raises(ProposerStopped, check=lambda e: e.cause is EndCause.RECORDING and not e.later):
        search(machine, tmp_path / "b", ReplayProposer(tmp_path / "a" / "run"))
    assert substance(tmp_path / "b") == substance(tmp_path / "a")


@pytest.mark.long
def test_a_replay_of_a_run_that_was_extended_takes_the_same_generations(machine, tmp_path):
    """With the last budgets alone the first generation would have been larger."""
    search(machine, tmp_path / "a", Scripted({}), candidates=1)
    search(machine, tmp_path / "a", Scripted({}), candidates=4)
    search(machine, tmp_path / "b", ReplayProposer(tmp_path / "a" / "run"), candidates=4)
    assert substance(tmp_path / "b") == substance(tmp_path / "a")


def test_a_replay_goes_on_where_a_raised_cap_let_the_recorded_run_go_on(machine, tmp_path):
    search(machine, tmp_path / "a", Scripted(SCRIPT, limit=2))
    search(machine, tmp_path / "a", Scripted({}), max_attempts=17)
    search(machine, tmp_path / "b", ReplayProposer(tmp_path / "a" / "run"), max_attempts=17)
    assert substance(tmp_path / "b") == substance(tmp_path / "a")
