"""A search driven by a language model, end to end over HTTP on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxreward.cli import main
from jaxreward.errors import UserError
from jaxreward.programs import Program
from jaxreward.proposers.llm.cost import Amount
from jaxreward.runs import Checked, Proposed, Trained, read_log, read_transcript
from jaxreward.runs.provenance import read_header
from tests.proposers.server import Answer, ChatServer
from tests.proposers.talk import KEY

pytestmark = pytest.mark.usefixtures("warm", "unoptimised", "unsynced")
ROOT = Path(__file__).resolve().parents[1]
EASY = ROOT / "interfaces" / "xland_easy"
USAGE = (1000, 200)
PRICE = "openai/mine=1,10"

GOOD = (EASY / "expert.py").read_text()
MEDIOCRE = (EASY / "sparse.py").read_text()
POOR = (
    "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return state.agent.position / 8.0\n\n\n"
    "def compute_reward(state, action, next_state):\n    return 0.01 * (action == 0)\n"
)
LOST = POOR.replace("state.agent.position / 8.0", "jnp.ones(3) * state.step_num / 80.0")
DUPLICATE = POOR.replace("state.agent.position / 8.0", "seen").replace(
    "return seen", "place = state.agent.position\n    return place / 8.0"
)
BROKEN = GOOD.replace("def compute_reward(state, action, next_state):", "def compute_reward(state, action, next_state)")
SAID = "hostile-program-was-here"


def hostile(marker: Path) -> str:
    return f"import os\nos.system('touch {marker}')\n{POOR}"


def wrapped(source: str) -> str:
    return f"The idea is simple.\n\n```python\n{source}```\nGood luck!"


def files_of(run: Path) -> list[Path]:
    return [path for path in run.rglob("*") if path.is_file()]


def substance(run: Path) -> list[str]:
    """The events of a log as written, without times, and without what says who asked."""
    lines = []
    for line in (run / "events.jsonl").read_text().splitlines():
        record = json.loads(line)
        del record["at"]
        event = record["event"]
        for clock in ("compile_s", "run_s"):
            event.pop(clock, None)
        if event["type"] == "run_started":
            for who in ("config", "command", "proposer"):
                del event[who]
        lines.append(json.dumps(record))
    return lines


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search whose model knows one good interface among worthless ones, in an order of its own."""
    out = tmp_path_factory.mktemp("llm")
    marker = out / SAID
    replies = [wrapped(text) for text in (MEDIOCRE, POOR, BROKEN, hostile(marker), LOST, DUPLICATE, GOOD)]
    replies.append("I would rather talk about the weather.")
    order = np.random.default_rng(3).permutation(len(replies))
    patch = pytest.MonkeyPatch()
    patch.setenv("OPENAI_API_KEY", KEY)
    patch.chdir(out)
    with ChatServer(lambda _, n: Answer(replies[order[n % len(order)]], usage=USAGE)) as server:
        status = main([
            "evolve", "--task", "xland-easy", "--proposer", "llm", "--model", "openai/mine", "--api-base", server.url,
            "--price", PRICE, "--candidates", "4", "--generation", "3", "--seeds", "1", "--steps", "100000",
            "--baselines", "--final-seeds", "0", "--max-usd", "1", "--out", str(out), "--name", "run",
        ])  # fmt: skip
    patch.undo()
    assert status == 0
    return out / "run", server, marker


def test_the_good_program_is_found_and_no_hostile_one_is_executed(searched):
    run, _, marker = searched
    best = (run / "best_interface.py").read_text()
    assert GOOD.split("def get_observation")[1].strip() in best
    assert float(read_header(best)["score"].split()[0]) > 0.9
    assert not marker.exists()


def test_log_transcript_cost_and_archive_agree(searched):
    run, server, _ = searched
    exchanges = read_transcript(run / "transcripts" / "exchanges.jsonl")
    events = [entry.event for entry in read_log(run / "events.jsonl")]
    proposals = [event.proposal for event in events if isinstance(event, Proposed)]
    spent = Amount.of(exchanges)
    assert spent.requests == len(server.seen) == sum(p.calls for p in proposals) == len(proposals)
    assert spent.tokens == len(server.seen) * sum(USAGE) == sum(p.tokens for p in proposals)
    assert spent.usd == pytest.approx(len(server.seen) * (1000 * 1e-6 + 200 * 10e-6))
    assert sum(p.cost_usd for p in proposals) == pytest.approx(spent.usd)
    assert {e.request_id for e in exchanges} == {p.request_id for p in proposals}
    trained = [result for event in events if isinstance(event, Trained) for result in event.results]
    best = max(trained, key=lambda r: r.score.mean if r.score else -1.0)
    assert best.candidate.summary is not None
    assert read_header((run / "best_interface.py").read_text())["digest"] == best.candidate.summary.digest
    assert best.candidate.model == "openai/mine"
    assert {p.failure.stage for p in proposals if p.failure} <= {"reply"}
    for exchange in exchanges:  # every reply is there, word for word
        assert exchange.reply and exchange.messages and exchange.model == "openai/mine"


def test_repair_prompts_show_the_program_and_its_error(searched):
    run, server, _ = searched
    prompts = [seen.body["messages"][-1]["content"] for seen in server.seen]
    events = [entry.event for entry in read_log(run / "events.jsonl")]
    repairs = [r for event in events if event.type == "repair" for r in event.requests]
    assert repairs
    assert any("import os\nos.system" in p for p in prompts)  # the program that was rejected ...
    events = [entry.event for entry in read_log(run / "events.jsonl")]
    verdicts = [e.verdict.failure for e in events if isinstance(e, Checked) and e.verdict.failure]
    assert any(verdict.message in p for verdict in verdicts for p in prompts)  # ... and why


def test_the_key_is_in_no_file_of_the_run(searched):
    run, server, _ = searched
    assert all(KEY in "".join(seen.headers.values()) for seen in server.seen)
    for path in files_of(run):
        assert KEY.encode() not in path.read_bytes(), path


@pytest.mark.slow
def test_a_replay_writes_the_same_log_without_a_network(searched, tmp_path):
    run, server, _ = searched
    calls = len(server.seen)
    assert (
        main(["evolve", "--proposer", "replay", "--recording", str(run), "--out", str(tmp_path), "--name", "run"]) == 0
    )
    assert len(server.seen) == calls
    assert substance(tmp_path / "run") == substance(run)
    name = Path("transcripts") / "exchanges.jsonl"
    assert (tmp_path / "run" / name).read_bytes() == (run / name).read_bytes()


PROBE = "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return jnp.stack([state.signal])\n\n\n"


@pytest.mark.slow
def test_killed_between_request_reply_and_log_nothing_is_lost_or_doubled(tmp_path):
    """SIGKILL while one reply is outstanding and the others are on the disk, but not in the log."""
    held = {"first": True}

    def script(body, n):
        reward = (
            f"def compute_reward(state, action, next_state):\n    return next_state.hit * 1.0 + {n}.0 * state.signal\n"
        )
        return Answer(wrapped(PROBE + reward), usage=USAGE, delay_s=60.0 if n == 2 and held["first"] else 0.0)

    with ChatServer(script) as server:
        command = [
            sys.executable, "-m", "jaxreward.cli", "evolve", "--task", "probe-choice", "--proposer", "llm", "--model",
            "openai/mine", "--api-base", server.url, "--price", PRICE, "--candidates", "4", "--generation", "4",
            "--seeds", "1", "--steps", "1024", "--baselines", "--final-seeds", "0", "--ppo.envs", "16", "--ppo.unroll",
            "16", "--out", str(tmp_path), "--name", "run", "--resume",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "OPENAI_API_KEY": KEY}
        said = tmp_path / "run" / "transcripts" / "exchanges.jsonl"
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and (not said.exists() or len(read_transcript(said)) < 3):
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        assert len(read_transcript(said)) == 3
        assert not [e for e in read_log(tmp_path / "run" / "events.jsonl") if e.event.type == "proposed"]
        held["first"] = False
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
            _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err.decode()
        assert server.calls == 5  # the one in flight was sent again, the others were not
    events = [entry.event for entry in read_log(tmp_path / "run" / "events.jsonl")]
    proposals = [event.proposal for event in events if isinstance(event, Proposed)]
    assert [p.request_id for p in proposals] == [f"g0000-0{k}" for k in range(4)]
    assert sum(p.tokens for p in proposals) == 4 * sum(USAGE) == Amount.of(read_transcript(said)).tokens


def test_replies_are_checked_and_compiled_while_others_are_awaited(tmp_path, monkeypatch, capsys):
    """The last reply comes only when the others are compiled; each is compiled for its place among those that train."""
    ahead, compiled, enough = list[tuple[str, dict[str, Any]]](), threading.Event(), "this test trains nothing"

    def compile_ahead(_task: Any, program: Program, _ppo: Any, **how: Any) -> None:
        ahead.append((program.source, how))
        if len(ahead) == 2:
            compiled.set()

    def reply(_: Any, n: int) -> Answer:
        if n == 2:
            compiled.wait(120)  # if in vain, fewer are ahead than is asserted below
        return Answer(wrapped((MEDIOCRE, POOR, GOOD)[n]))

    def train(*_: Any, **__: Any) -> None:
        raise UserError(enough)

    monkeypatch.setattr("jaxreward.objectives.training.objective.compile_ahead", compile_ahead)
    monkeypatch.setattr("jaxreward.objectives.training.objective.train_generation", train)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    with ChatServer(reply) as server:
        status = main([
            "evolve", "--task", "xland-easy", "--proposer", "llm", "--model", "openai/mine", "--api-base", server.url,
            "--price", PRICE, "--candidates", "3", "--generation", "3", "--seeds", "2", "--steps", "1000",
            "--baselines", "--final-seeds", "0", "--name", "run",
        ])  # fmt: skip
    assert status == 2 and enough in capsys.readouterr().err
    proposed = [entry.event for entry in read_log(tmp_path / "runs" / "run" / "events.jsonl")]
    order = [event.proposal.source for event in proposed if isinstance(event, Proposed)]
    assert len(order) == 3 and len(ahead) >= 2
    for source, how in ahead:
        assert (how["steps"], len(how["seeds"]), how["of"]) == (1000, 2, 3) and order[how["place"]] == source
