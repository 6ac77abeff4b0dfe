"""The benchmarks of robots, in the smallest sizes: what they measure is in docs/robots.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import brax_parity, reward_units, task_speed


@pytest.mark.parametrize(
    ("benchmark", "words"),
    [
        (task_speed, ["--updates", "0"]), (task_speed, ["--tasks", "no-such-task"]),
        (brax_parity, ["--seeds", "0"]), (reward_units, ["--scales", "0"]), (reward_units, ["--tasks", "probe-aim"]),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_said_at_once(benchmark, words, capsys):
    assert benchmark.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(benchmark.__name__.split(".")[-1]) and error.count("\n") == 1


@pytest.mark.usefixtures("hasty")
def test_speed_of_a_task():
    row = task_speed.of_task("probe-choice", (1,), 1)
    (training,) = row["training"]
    assert row["random"]["steps_per_s"] > 0 and training["candidates"] == 1
    assert min(training[name] for name in ("compile_s", "steps_per_s", "peak_bytes")) > 0
    assert task_speed._line({"task": "x", "error": "no luck"}) == "| `x` | no luck |"


@pytest.mark.slow
def test_speed_of_a_task_in_a_process_of_its_own(tmp_path: Path):
    out = tmp_path / "results" / "speed.json"
    assert task_speed.main(["--tasks", "probe-choice", "--candidates", "1", "--updates", "1", "--out", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["rows"][0]["task"] == "probe-choice" and report["commit"]


@pytest.mark.slow
def test_units_of_a_reward(tmp_path: Path):
    out = tmp_path / "units.json"
    words = ["--tasks", "quadcopter-hover", "--scales", "1", "--seeds", "1", "--steps", "1000", "--eval-episodes", "4"]
    assert reward_units.main([*words, "--out", str(out)]) == 0
    assert [row["scale_rewards"] for row in json.loads(out.read_text())["rows"]] == [False, True]


@pytest.mark.slow
def test_parity_with_brax(tmp_path: Path):
    out, plot = tmp_path / "parity.json", tmp_path / "parity.png"
    words = ["--tasks", "inverted-pendulum", "--seeds", "1", "--steps", "20480", "--candidates", "2", "--evals", "2"]
    assert brax_parity.main([*words, "--out", str(out), "--plot", str(plot)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert len(row["brax"]) == 1 and len(row["jaxreward"]["returns"][0]) == 2 and plot.stat().st_size > 1000
    assert row["candidates"]["candidates"] == 2
