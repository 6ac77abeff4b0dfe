"""A published figure with a language model in place of the genetic proposer, over HTTP on loopback."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from jaxreward.commands.reproduce import COMMANDS
from tests.proposers.server import Answer, ChatServer, closed_port
from tests.proposers.talk import KEY

pytestmark = pytest.mark.usefixtures("unsynced")
(command,) = COMMANDS

FACES = """```python
import jax.numpy as jnp

STEPS = jnp.array([[0, 1], [1, 0], [0, -1], [-1, 0]])


def compute_reward(state, action, next_state):
    here = next_state.grid[:, :, 0] == 10
    row, column = jnp.argmax(here.any(1)), jnp.argmax(here.any(0))
    ahead = jnp.array([row, column]) + STEPS[next_state.grid[row, column, 2]]
    kind, colour = next_state.grid[ahead[0], ahead[1], 0], next_state.grid[ahead[0], ahead[1], 1]
    named = (kind == next_state.mission[0, 1]) & (colour == next_state.mission[0, 2])
    return BONUS * named.astype(jnp.float32) - 4.0
```"""


def writes(_: dict[str, Any], n: int) -> Answer:
    return Answer(FACES.replace("BONUS", f"{8 + n % 2}.0"))


@pytest.mark.slow
def test_a_figure_by_a_language_model(
    checker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("jaxreward.programs.Checker", lambda **_: nullcontext(checker))
    monkeypatch.setattr("jaxreward.reproduction.grace.figure4.TRAJECTORIES", (4, 8))
    monkeypatch.setattr("jaxreward.reproduction.grace.episodes.HELD_OUT", 12)
    out = tmp_path / "figure"
    words = ["grace/figure4", "--only", "GoToObjS4", "--seeds", "1", "--candidates", "2", "--out", str(out)]
    asked = ["--proposer", "llm", "--model", "openai/mine", "--price", "openai/mine=1,2", "--wait-s", "0"]

    def run(url: str) -> int:
        return command([*words, *asked, "--retries", "0", "--api-base", url, "--json"])

    assert run(f"http://127.0.0.1:{closed_port()}/v1") != 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert not told["finished"] and len(told["missing"]) == 2
    with ChatServer(writes) as server:
        assert run(server.url) == 0
        calls = server.calls
        assert run(server.url) == 0 and server.calls == calls
    assert calls == 4
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    (table,) = told["tables"]
    row = table["rows"][0]
    assert row.pop("level") == "GoToObjS4" and [figure["mean"] for figure in row.values()] == [1.0] * 2
    prompts = [seen.body["messages"][1]["content"] for seen in server.seen]
    assert all("State of the expert" in prompt and "GoToObj" not in prompt for prompt in prompts)
    assert not any(KEY in path.read_text(errors="replace") for path in out.rglob("*") if path.is_file())
