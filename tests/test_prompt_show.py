"""`jaxreward prompt show` prints what would be sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxreward.runs import read_log
from tests.test_by_hand import GOOD, SMALL
from tests.test_cli import outcome


@pytest.fixture(scope="module")
def run(warm, tmp_path_factory):
    """A finished run by hand: one generation of two."""
    from jaxreward.cli import main

    out = tmp_path_factory.mktemp("shown")
    assert main(["ask", *SMALL, "--out", str(out)]) == 0
    for k in range(2):
        text = GOOD.replace("state.signal]", "state.signal" + ", state.signal" * k + "]")
        (out / "by-hand" / "replies" / f"g0000-0{k}.py").write_text(text)
    assert main(["tell", "--name", "by-hand", "--out", str(out)]) == 0
    return out / "by-hand"


def shown(capsys, *argv: str) -> dict:
    status, out, err = outcome(capsys, "prompt", "show", *argv, "--json")
    assert status == 0, err
    return json.loads(out.splitlines()[-1])


def test_the_first_request_of_a_search(capsys):
    first = shown(capsys, "--task", "probe-choice")
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert "state.signal" in first["messages"][1]["content"]
    assert shown(capsys, "--task", "probe-choice") == first
    alone = shown(capsys, "--task", "probe-choice", "--evolve", "reward")
    assert alone["messages"] != first["messages"]


def test_a_request_of_a_run_is_shown_as_it_was_sent(capsys, run: Path):
    sent = (run / "requests" / "g0000-01.md").read_text()
    for message in shown(capsys, "--run", str(run), "--request", "g0000-01")["messages"]:
        assert message["content"].strip() in sent


def test_a_request_about_a_candidate(capsys, run: Path):
    user = shown(capsys, "--run", str(run), "--parent", "g0000-01")["messages"][1]["content"]
    assert "state.signal, state.signal" in user


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["prompt"], "jaxreward prompt show"),
        (["prompt", "show", "--parent", "g0000-00"], "give it with --run"),
        (["prompt", "show", "--run", "RUN", "--parent", "g9"], "this run has g0000-00, g0000-01"),
        (["prompt", "show", "--run", "RUN", "--request", "g9"], "has no request 'g9'"),
        (["prompt", "show", "--run", "RUN"], "its budget is spent"),
        (["prompt", "show", "--run", "nowhere"], "there is no run nowhere, here or in runs"),
        (["prompt", "show", "--operator", "impove"], "there is no operator 'impove'; did you mean 'improve'?"),
        (["prompt", "show", "--prompts", "nowhere"], "nowhere"),
    ],
)
def test_mistakes(capsys, run: Path, argv, says):
    status, _, err = outcome(capsys, *[str(run) if word == "RUN" else word for word in argv])
    assert status == 2 and says in err


def test_showing_writes_nothing(capsys, run: Path):
    before = len(read_log(run / "events.jsonl"))
    shown(capsys, "--run", str(run), "--parent", "g0000-00")
    assert len(read_log(run / "events.jsonl")) == before
