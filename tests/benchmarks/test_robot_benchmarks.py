"""The benchmarks of robots, in the smallest sizes: what they measure is in docs/appendix/robot_results.md."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import pytest

from benchmarks import brax_parity, held_out, learner_speed, reward_units, task_speed
from benchmarks.measure import ceiling
from jaxreward.tasks import make_task, simulation, slice_limit
from jaxreward.tasks.probe import Probe
from jaxreward.training import SAC


@pytest.mark.parametrize(
    ("benchmark", "words"),
    [
        (task_speed, ["--updates", "0"]), (task_speed, ["--tasks", "no-such-task"]),
        (brax_parity, ["--seeds", "0"]), (brax_parity, ["--candidates", "17"]),
        (learner_speed, ["--candidates", "17"]), (learner_speed, ["--updates", "0"]),
        (held_out, ["--repeats", "0"]), (held_out, ["--tasks", "no-such-task"]),
        (reward_units, ["--scales", "0"]), (reward_units, ["--tasks", "probe-aim"]),
    ],
)  # fmt: skip
def test_impossible_measurements_are_refused_at_once(benchmark, words, capsys):
    assert benchmark.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(benchmark.__name__.split(".")[-1]) and error.count("\n") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
def test_the_speed_of_training_and_of_random_steps_is_measured():
    row = task_speed.of_task("probe-choice", (1,), 1)
    (training,), (random,) = row["training"], row["random"]
    assert random["steps_per_s"] > 0 and random["candidates"] == training["candidates"] == 1
    assert min(training[name] for name in ("compile_s", "steps_per_s", "peak_bytes")) > 0
    assert task_speed._line({"task": "x", "error": "no luck"}) == "| `x` | no luck |"


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
def test_rounds_that_end_early_are_timed_beside_whole_ones(tmp_path):
    words = ["--tasks", "probe-corridor", "--steps", "4096", "--repeats", "1", "--candidates", "1"]
    assert held_out.main([*words, "--out", str(tmp_path / "found.json")]) == 0
    (row,) = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert row["alike"] and row["held_out_steps"] > 0 and row["early"]["cpu_s"] > 0


def test_a_state_with_nothing_in_it_is_stepped_too():
    """As the arrays of a robot without a target that moves."""

    @dataclass(frozen=True)
    class Bare(Probe):
        kind: str = "endless"

        def reset(self, key: Any) -> Any:
            return super().reset(key), jnp.zeros((0, 3))

        def step(self, state: Any, action: Any) -> Any:
            return super().step(state[0], action), state[1]

        def terminated(self, state: Any) -> Any:
            return super().terminated(state[0])

    assert ceiling(Bare(), 2, 1, 4, 3, seconds=0.01)["lanes"] == 8


def test_the_reason_of_a_failure_is_reported():
    text = (
        "Traceback ...\n  File x\nZeroDivisionError: modulo by zero\n-----\nFor simplicity, JAX has removed frames.\n"
    )
    assert task_speed._reason(text) == "ZeroDivisionError: modulo by zero" and task_speed._reason("") == "no message"


@pytest.mark.parametrize("words", [[], ["--whole"]])
def test_whole_steps_are_asked_for_in_the_process_that_is_measured(words, monkeypatch, tmp_path):
    limits = list[int]()

    def of_task(name: str, *_: Any) -> dict[str, Any]:
        limits.append(slice_limit(make_task(name), "cpu"))
        return {"task": name, "random": [], "training": []}

    def process(command: list[str], **_: Any) -> Any:
        assert task_speed.main(command[2:]) == 0
        return SimpleNamespace(returncode=1, stdout="", stderr="")

    monkeypatch.setattr(task_speed, "of_task", of_task)
    monkeypatch.setattr(task_speed, "subprocess", SimpleNamespace(run=process, TimeoutExpired=TimeoutError))
    monkeypatch.setattr(simulation, "ENVS_PER_CORE", 64)
    out = tmp_path / "speed.json"
    assert task_speed.main(["--tasks", "hopper", *words, "--out", str(out)]) == 0
    assert limits == [0 if words else 64 * simulation.cores_of_a_device()]
    assert json.loads(out.read_text())["whole"] == bool(words)


@pytest.mark.slow
def test_the_speed_of_a_task_is_measured_in_a_process_of_its_own(tmp_path: Path):
    out = tmp_path / "results" / "speed.json"
    assert task_speed.main(["--tasks", "probe-choice", "--candidates", "1", "--updates", "1", "--out", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["rows"][0]["task"] == "probe-choice" and report["commit"]


@pytest.mark.slow
def test_units_are_measured_with_and_without_scaling(tmp_path: Path):
    out = tmp_path / "units.json"
    words = ["--tasks", "quadcopter-hover", "--scales", "1", "--seeds", "1", "--steps", "1000", "--eval-episodes", "4"]
    assert reward_units.main([*words, "--out", str(out)]) == 0
    assert [row["scale_rewards"] for row in json.loads(out.read_text())["rows"]] == [False, True]


@pytest.mark.slow
def test_returns_are_compared_with_those_of_brax(tmp_path: Path):
    out, plot = tmp_path / "parity.json", tmp_path / "parity.png"
    words = ["--tasks", "inverted-pendulum", "--seeds", "1", "--steps", "20480", "--candidates", "2", "--evals", "2"]
    assert brax_parity.main([*words, "--out", str(out), "--plot", str(plot)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert len(row["brax"]) == 1 and len(row["jaxreward"]["returns"][0]) == 2 and plot.stat().st_size > 1000
    assert row["candidates"]["candidates"] == 2


@pytest.mark.slow
def test_learners_are_timed_by_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """What is compiled and timed is stood in for."""

    def timed(task: Any, programs: Any, learner: Any, seeds: int, updates: int) -> Any:
        return SimpleNamespace(compile_s=1.0, steps_per_s=1000.0 * len(programs), peak_bytes=2_000_000)

    monkeypatch.setattr("benchmarks.measure.training", timed)
    out = tmp_path / "speed.json"
    assert learner_speed.main(["--tasks", "inverted-pendulum", "--candidates", "1", "2", "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["rows"]
    assert [(row["learner"], row["candidates"]) for row in rows] == [("ppo", 1), ("ppo", 2), ("sac", 1), ("sac", 2)]
    sac = SAC()
    assert rows[3]["gradient_steps_per_s"] == pytest.approx(2000.0 * sac.updates / sac.batch)
    capsys.readouterr()
    assert learner_speed.main(["--table", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "| inverted-pendulum | sac | 2 | 1.0 | 2,000 | 31 | 2 | 2.0 |"
