"""What a user meets when a model, its endpoint or a budget gives out: at the command line, over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxreward.proposers.llm.cost import Amount
from jaxreward.runs import Proposed, Withdrawn, read_log, read_transcript
from tests.proposers.server import Answer, ChatServer, Fault
from tests.proposers.talk import KEY
from tests.test_cli import outcome
from tests.test_llm_search import PRICE, PROBE, USAGE, files_of, wrapped

pytestmark = pytest.mark.usefixtures("warm", "unoptimised", "unsynced")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)


def reward(n: int, name: str = "hit") -> str:
    """The n-th of programs that all differ."""
    value = f"next_state.hit * 1.0 + {n}.5 * state.signal"
    return wrapped(
        f"{PROBE}def compute_reward(state, action, next_state):\n    r = {value}\n    return r, {{'{name}': r}}\n"
    )


def good(_, n: int) -> Answer:
    return Answer(reward(n), usage=USAGE)


def evolve(capsys, url: str, *more: str) -> tuple[int, dict, str]:
    status, out, err = outcome(
        capsys, "evolve", "--task", "probe-choice", "--proposer", "llm", "--model", "openai/mine", "--api-base", url,
        "--price", PRICE, "--candidates", "4", "--generation", "2", "--seeds", "1", "--steps", "256", "--baselines",
        "--final-seeds", "0", "--ppo.envs", "16", "--ppo.unroll", "16", "--wait-s", "0", "--retries", "0", "--name",
        "run", "--concurrency", "1", "--json", *more,
    )  # fmt: skip
    return status, json.loads(out.splitlines()[-1]) if out else {}, err


def resume(capsys, *more: str) -> tuple[int, dict, str]:
    status, out, err = outcome(capsys, "evolve", "--name", "run", "--resume", "--json", *more)
    return status, json.loads(out.splitlines()[-1]) if out else {}, err


def agree(report: dict, complete: bool = True) -> None:
    """Transcript and report agree, and so does the log unless calls wait for an answer."""
    run = Path("runs/run")
    said = Amount.of(e for path in run.rglob("exchanges.jsonl") for e in read_transcript(path))
    assert report["tokens"] == said.tokens and report["cost_usd"] == pytest.approx(said.usd)
    if complete:
        events = [entry.event for path in run.rglob("events.jsonl") for entry in read_log(path)]
        booked = [e.proposal for e in events if isinstance(e, Proposed)] + [
            e for e in events if isinstance(e, Withdrawn)
        ]
        assert sum(b.tokens for b in booked) == said.tokens
        assert sum(b.cost_usd for b in booked) == pytest.approx(said.usd)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "status", "says", "remedy"),
    [
        (Fault(401, "bad key [/v1/keys]"), 2, "does not accept the key", ()),
        (Fault(404, "no such model"), 2, "is not there", ("--model", "openai/other", "--price", "openai/other=1,2")),
        (Fault(400, "temperature must be 1"), 2, "rejects the request", ("--temperature", "1")),
        (Fault(503, "overloaded [/v1]"), 75, "nothing is lost", ()),
    ],
    ids=["401", "404", "400", "503"],
)
def test_an_endpoint_error_ends_the_run_and_its_advice_resumes_it(capsys, fault, status, says, remedy):
    broken = [True]
    with ChatServer(lambda body, n: fault if n and broken[0] else good(body, n)) as server:
        code, report, err = evolve(capsys, server.url)
        assert code == status and says in err and "Traceback" not in err and KEY not in err
        assert not report["finished"] and says in report["reason"]
        agree(report, complete=False)
        broken[0] = False
        code, report, err = resume(capsys, *remedy)
        assert code == 0, err
    assert report["finished"] and report["candidates"]["trained"] == 4
    agree(report)


@pytest.mark.slow
def test_a_cap_holds_over_best_of_n_and_resumption(capsys):
    with ChatServer(good) as server:
        caps = ("--baselines", "best-of-n", "--max-requests", "9")
        code, report, err = evolve(capsys, server.url, *caps)
        assert code == 0, err
        assert server.calls == 8
        code, report, err = resume(capsys, "--candidates", "12")
        assert code == 0, err
        assert server.calls == 9
        agree(report)
        assert report["reason"] == "the budget of requests is spent"
        # with a larger cap both go on, so that the comparison stays fair
        code, report, err = resume(capsys, "--candidates", "6", "--max-requests", "40")
        assert code == 0, err
        agree(report)
    inner = [e.event for e in read_log(Path("runs/run/best-of-n/events.jsonl"))]
    assert sum(len(e.results) for e in inner if e.type == "trained") == 6


@pytest.mark.long
def test_charged_calls_without_a_reply_are_counted(capsys):
    script = [Answer(reward(0), usage=USAGE), Answer("x" * 4000, cut_after=200), Answer("y", cut_after=20)]
    with ChatServer(lambda _, n: script[n] if n < 3 else good(_, n)) as server:
        _, report, err = evolve(capsys, server.url, "--max-requests", "3", "--wait-s", "60", "--retries", "5")
    assert report["reason"] == "the budget of requests is spent", err
    agree(report)


def test_brackets_in_a_program_are_not_markup(capsys):
    with ChatServer(lambda _, n: Answer(reward(n, "[/b] [bold]"), usage=USAGE)) as server:
        code, report, err = evolve(capsys, server.url)
    assert code == 0 and report["finished"], err


def test_a_key_echoed_by_the_server_is_redacted_everywhere(capsys):
    def echo(body, n):
        return Fault(500, f"you sent Bearer {KEY}") if n == 1 else Answer(f"Key {KEY}!\n" + reward(n), usage=USAGE)

    with ChatServer(echo) as server:
        code, report, err = evolve(capsys, server.url, "--retries", "3", "--wait-s", "60")
    assert code == 0, err
    assert KEY not in err and KEY not in json.dumps(report)
    for path in files_of(Path("runs")):
        assert KEY.encode() not in path.read_bytes(), path


def test_options_of_other_commands_or_proposers_are_refused(capsys):
    for says, argv in (
        ("--max-usd is for --proposer llm", ["evolve", "--max-usd", "1"]),
        ("--temperature is for --proposer llm", ["evolve", "--proposer", "manual", "--temperature", "1"]),
        ("--prompts is for --proposer llm", ["evolve", "--prompts", "."]),
        ("--dry-run is for evolve", ["ask", "--dry-run"]),
        ("--dry-run is for evolve", ["tell", "--dry-run", "--name", "x"]),
    ):
        status, _, err = outcome(capsys, *argv)
        assert status == 2 and says in err, argv
    assert not Path("runs").exists()
