"""A search through files: `ask`, `tell`, and the manual proposer that waits."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from jaxreward.errors import EndCause, FileProblem, UnusableFile
from jaxreward.proposers.human.manual import ManualProposer
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.proposer import Context
from jaxreward.records import Request
from jaxreward.reports.run_view import RunView
from jaxreward.runs import TranscriptLog
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import card, make_task
from tests.ends import cause_of
from tests.test_cli import outcome

GOOD = (
    "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return jnp.stack([state.signal])\n\n\n"
    "def compute_reward(state, action, next_state):\n    return next_state.hit.astype(jnp.float32)\n"
)
SMALL = (
    "--task", "probe-choice", "--candidates", "2", "--generation", "2", "--seeds", "1", "--steps", "512", "--baselines",
    "--final-seeds", "0", "--ppo.envs", "16", "--ppo.unroll", "16", "--name", "by-hand",
)  # fmt: skip


@pytest.mark.usefixtures("warm", "unoptimised")
def test_ask_and_tell_make_a_search(capsys, tmp_path):
    here = ("--out", str(tmp_path), "--json")
    status, out, err = outcome(capsys, "ask", *SMALL, *here)
    assert status == 0, err
    asked = json.loads(out.splitlines()[-1])
    first, second = asked["requests"]
    text = Path(first["request"]).read_text()
    assert "state.signal" in text and first["reply"] in text
    facts = RunView.read(tmp_path / "by-hand")
    assert facts.standing == "paused" and cause_of(facts.progress.ended) is EndCause.PEOPLE
    # asked again, nothing changes
    _, out, _ = outcome(capsys, "ask", "--name", "by-hand", *here)
    assert json.loads(out.splitlines()[-1]) == asked
    # one reply is missing
    Path(first["reply"]).write_text(GOOD)
    status, _, err = outcome(capsys, "tell", "--name", "by-hand", *here)
    assert status == 75 and "1 of 2 requests" in err and f"{second['id']}.py" in err
    # one is rejected, and its verdict is a request of its own
    Path(second["reply"]).write_text("import os\n" + GOOD)
    status, _, err = outcome(capsys, "tell", "--name", "by-hand", *here)
    assert status == 75 and f"{second['id']}-r1.py" in err
    repair = tmp_path / "by-hand" / "requests" / f"{second['id']}-r1.md"
    assert "os" in repair.read_text()
    answer = "Here it is:\n```python\n" + GOOD.replace("state.signal]", "state.signal * 2.0, state.signal]") + "```\n"
    (tmp_path / "by-hand" / "replies" / f"{second['id']}-r1.md").write_text(answer)
    status, out, err = outcome(capsys, "tell", "--name", "by-hand", *here)
    assert status == 0, err
    report = json.loads(out.splitlines()[-1])
    assert report["candidates"] == {"trained": 2, "failed": 1, "duplicate": 0} and report["finished"]
    assert report["reason"] == "all candidates are trained"
    # the run is over
    _, out, _ = outcome(capsys, "ask", "--name", "by-hand", *here)
    assert json.loads(out.splitlines()[-1])["requests"] == []


def test_tell_without_a_run_is_a_mistake(capsys, tmp_path):
    status, _, err = outcome(capsys, "tell", "--name", "none", "--out", str(tmp_path))
    assert status == 2 and "start one with jaxreward ask" in err
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("warm", "unoptimised")
def test_tell_refuses_a_run_of_another_proposer(capsys, tmp_path):
    small = [*SMALL, "--out", str(tmp_path)]
    assert outcome(capsys, "evolve", *small)[0] == 0
    status, _, err = outcome(capsys, "ask", "--name", "by-hand", "--out", str(tmp_path))
    assert status == 2 and "--proposer" in err and "genetic" in err


@pytest.fixture(scope="module")
def words():
    return card(make_task("probe-choice"))


def proposer(words, folder: Path, **settings) -> ManualProposer:
    made = ManualProposer(words, LlmSettings(**settings))
    made.open(Context(folder=folder, transcript=TranscriptLog(folder / "exchanges.jsonl")))
    return made


REQUESTS = [Request(id=f"g0000-0{k}", generation=0, operator="scratch") for k in range(2)]


def rng_of(request: Request):
    return derive_rng(0, request.id)


def test_it_waits_for_files_that_come_later(words, tmp_path):
    made = proposer(words, tmp_path, wait_s=30)

    def answer() -> None:
        time.sleep(0.5)
        for request in REQUESTS:
            (tmp_path / "replies" / f"{request.id}.py").write_text(GOOD)

    thread = threading.Thread(target=answer)
    thread.start()
    answers = made.propose_all(REQUESTS, rng_of)
    thread.join()
    assert [p.request_id for p in answers.proposals] == [r.id for r in REQUESTS]
    assert all(p.source == GOOD and p.tokens == 0 for p in answers.proposals)
    # what was read once stays, whatever becomes of the file
    (tmp_path / "replies" / "g0000-00.py").write_text("changed")
    assert proposer(words, tmp_path, wait_s=0).propose_all(REQUESTS, rng_of) == answers


def test_a_wait_without_replies_ends_resumably(words, tmp_path):
    stopped = proposer(words, tmp_path, wait_s=0).propose_all(REQUESTS, rng_of).stopped
    assert stopped is not None and stopped.later and stopped.cause is EndCause.PEOPLE
    assert "2 of 2 requests" in str(stopped)
    assert sorted(p.name for p in (tmp_path / "requests").iterdir()) == ["g0000-00.md", "g0000-01.md"]


def test_a_signal_ends_the_wait_for_replies(words, tmp_path):
    made = ManualProposer(words, LlmSettings())
    made.open(Context(folder=tmp_path, should_stop=lambda: True))
    assert made.propose_all(REQUESTS, rng_of).proposals == ()


def test_two_replies_to_one_request_are_a_mistake(words, tmp_path):
    (tmp_path / "replies").mkdir()
    for suffix in (".py", ".md"):
        (tmp_path / "replies" / f"g0000-00{suffix}").write_text(GOOD)
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.EXISTS):
        proposer(words, tmp_path, wait_s=0).propose_all(REQUESTS, rng_of)
