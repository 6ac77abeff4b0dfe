"""A model that is served on loopback, and writes programs of mixed quality."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.served_model import Model, ServedModelSettings, main
from jaxreward.tasks import card, make_task

HARD = card(make_task("xland-hard"))
SHOWN = """\
import jax.numpy as jnp


def get_observation(state):
    return state.agent.position / 13.0


def compute_reward(state, action, next_state):
    return 0.25 * (action == 3)
"""


def sound(answer: str) -> bool:
    source = answer.split("```python\n")[1].split("```")[0]
    try:
        return {"get_observation", "compute_reward"} <= {n.name for n in ast.parse(source).body if hasattr(n, "name")}  # type: ignore[attr-defined]
    except SyntaxError:
        return False


def test_some_answers_are_broken_some_new_and_some_edits():
    model = Model(HARD, ServedModelSettings(broken=0.25, scratch=0.25), seed=0)
    answers = [model.answer(f"Improve:\n\n```python\n{SHOWN}```\n", np.random.default_rng(k)) for k in range(200)]
    kept = sum("state.agent.position / 13.0" in answer or "0.25 * (action == 3)" in answer for answer in answers)
    assert 30 < sum(not sound(answer) for answer in answers) < 70
    assert 60 < kept < 140
    nothing = [model.answer("Begin.", np.random.default_rng(k)) for k in range(20)]
    assert any(map(sound, nothing))


def test_the_same_prompt_has_another_answer_the_second_time_and_the_same_in_another_search():
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Begin."}]}
    one, other = (Model(HARD, ServedModelSettings(broken=0.0), seed=3) for _ in range(2))
    first, second = one(body, 0).text, one(body, 1).text
    assert first != second and [other(body, 7).text, other(body, 8).text] == [first, second]
    assert Model(HARD, ServedModelSettings(broken=0.0), seed=4)(body, 0).text != first


@pytest.mark.usefixtures("warm", "unoptimised", "unsynced")
@pytest.mark.slow
def test_searches_are_written_down_and_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "served.json"
    words = ["--task", "probe-corridor", "--candidates", "2", "--generation", "2", "--steps", "256", "--searches", "1"]
    words += ["--final-seeds", "1", "--ways", "confirm"]
    for _ in range(2):
        assert main([*words, "--out", str(out)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["way"] == "confirm" and row["trained"] == 2 and row["answers"] >= 2 and row["fresh"] is not None
    assert main([*words, "--out", str(tmp_path / "again.json")]) == 0
    (again,) = json.loads((tmp_path / "again.json").read_text())["rows"]
    assert again == row, "the same search"
    assert main([*words, "--ways", "plain", "nothing", "--out", str(out)]) == 2
    assert main([*words, "--broken", "0.8", "--out", str(out)]) == 2
    assert main(["--task", "xland-medium", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "no way of searching 'nothing': there are plain" in said and "not 0.8 and 0.3" in said
