"""The quick learner has the shape that suits the device that trains it, unless somebody said otherwise."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest

import jaxreward as jr
from jaxreward.commands.compare import COMMANDS as COMPARE
from jaxreward.commands.evolve import COMMANDS as EVOLVE
from jaxreward.commands.film import COMMANDS as FILM
from jaxreward.commands.resolve import Command, resolve
from jaxreward.commands.train import COMMANDS as TRAIN
from jaxreward.comparison.shards import keep_record
from jaxreward.errors import ChangedSetting
from jaxreward.evolution.presets import PAPER_BUDGETS, preset, quick_learner
from jaxreward.evolution.python_settings import search_settings
from jaxreward.evolution.setup import task_card
from jaxreward.programs import Program
from jaxreward.runs import Finished, Run, RunStarted
from jaxreward.runs.events import json_ready
from jaxreward.tasks import make_task
from jaxreward.tasks.registry import task_names
from jaxreward.training import PPO, Execution, quick, quick_real, train
from jaxreward.training.executor import Job
from jaxreward.training.learners import SHAPES, shape_of
from jaxreward.training.plan import EVAL_EPISODES

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX says that it computes on a GPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_every_row_of_the_table_is_a_learner_of_every_task(platform: str):
    for name in task_names():
        quick_learner(name, platform).check()


def test_on_a_cpu_the_defaults_are_what_they_were():
    assert quick_learner("xland-easy", "cpu") == PPO() and quick_learner("hopper", "cpu") == quick_real()
    assert tuple(SHAPES["discrete"]["cpu"]) == (64, 16, 1, 4, 2, 3e-3)
    assert tuple(SHAPES["continuous"]["cpu"]) == (128, 10, 4, 8, 4, 1e-3)
    assert {name: quick(make_task(name)) for name in ("xland-easy", "hopper")} == {
        "xland-easy": PPO(), "hopper": quick_real(),
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ["xland-easy", "hopper"])
def test_devices_differ_in_the_fields_of_the_table_alone(name: str):
    """So what a language model is told of the learner does not depend on the device."""
    task, cpu = make_task(name), quick_learner(name, "cpu")
    for platform in ("gpu", "tpu"):
        other = quick_learner(name, platform)
        assert other != cpu and shape_of(name == "hopper", "cpu").of(other) == cpu
        assert task_card(task, None, other) == task_card(task, None, cpu)


def test_the_documented_shapes_are_those_of_the_code():
    page = (ROOT / "docs" / "trainer.md").read_text()
    for kind, rows in SHAPES.items():
        for names, s in (("CPU", rows["cpu"]), ("GPU and TPU", rows["gpu"])):
            unroll = f"{s.unroll} x {s.unrolls}" if s.unrolls > 1 else f"{s.unroll}"
            rate = f"{s.learning_rate:.0e}".replace("e-0", "e-")
            row = f"| {kind} actions, {names} | {s.envs} | {unroll} | {s.minibatches} | {s.epochs} | {rate} |"
            assert row in page
        assert rows["tpu"] == rows["gpu"]


@pytest.mark.parametrize("name", ["xland-easy", "hopper"])
def test_there_are_more_environments_where_launches_are_the_cost(name: str):
    cpu, gpu = (quick_learner(name, platform) for platform in ("cpu", "gpu"))
    assert gpu.envs > cpu.envs and gpu.batch // gpu.minibatches == cpu.batch // cpu.minibatches
    assert gpu.envs <= EVAL_EPISODES, "else held-out episodes have a collector of their own"


def test_a_platform_without_a_row_is_a_gpu():
    assert quick_learner("xland-easy", "rocm") == quick_learner("xland-easy", "gpu")


class _Asked(Exception):
    """Ends a training before it compiles anything."""


class _Elsewhere:
    """An executor on devices that are not here; `jobs` are those it was asked for."""

    platform, slots, limit = "gpu", 1, 10**12

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def prepare(self, jobs: Any) -> int:
        self.jobs += jobs
        raise _Asked

    def submit(self, job: Job, supervisor: Any) -> Future[Any]:
        raise NotImplementedError


def test_train_takes_the_row_of_the_devices_that_train():
    task, executor = make_task("xland-easy"), _Elsewhere()
    for given, expected in ((None, quick(task, "gpu")), (PPO(), PPO())):
        with pytest.raises(_Asked):
            train(task, [Program.default(task)], given, seeds=1, steps=10_000, execution=Execution(executor=executor))
        assert executor.jobs[-1].ppo == expected


def test_devices_that_are_given_decide_the_platform():
    assert Execution(devices=[SimpleNamespace(platform="tpu")]).platform == "tpu"
    assert Execution().platform == jax.default_backend()


def test_presets_have_the_learner_of_the_device(on_gpu: None):
    assert preset("quick", "xland-medium").ppo == quick_learner("xland-medium", "gpu")
    assert preset("quick", "xland-medium", platform="cpu").ppo == PPO()
    for task in PAPER_BUDGETS:
        assert preset("paper-budget", task).ppo == quick_learner(task, "gpu")
        assert preset("paper", task).ppo == preset("paper", task, platform="cpu").ppo, "the paper names its learner"


def learner(command: Command[Any], *words: str) -> PPO:
    return resolve(command, list(words)).settings.ppo


def test_commands_have_the_learner_of_the_device(on_gpu: None):
    for task in ("xland-easy", "hopper"):
        expected = quick_learner(task, "gpu")
        assert learner(EVOLVE[0], "--task", task) == learner(TRAIN[0], "--task", task) == expected
    assert learner(FILM[0], str(ROOT / "interfaces" / "xland_easy" / "expert.py")) == quick_learner("xland-easy", "gpu")


def test_what_is_said_of_the_learner_takes_precedence(on_gpu: None, tmp_path: Path):
    assert learner(EVOLVE[0], "--ppo.envs", "64") == quick_learner("xland-easy", "gpu").replace(envs=64)
    file = tmp_path / "settings.toml"
    file.write_text("[ppo]\nenvs = 128\n")
    assert learner(TRAIN[0], "--config", str(file)).envs == 128


def test_help_starts_no_backend(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def started() -> str:
        raise AssertionError("a backend was started")

    monkeypatch.setattr(jax, "default_backend", started)
    for command in (EVOLVE[0], TRAIN[0], COMPARE[0]):
        with pytest.raises(SystemExit):
            learner(command, "--help", "ppo")
    assert "[64" in capsys.readouterr().out


def test_a_run_keeps_its_learner_on_another_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started = resolve(EVOLVE[0], ["--out", str(tmp_path), "--name", "run"]).settings
    Run.create(tmp_path / "run", started.as_config()).close()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert learner(EVOLVE[0], "--out", str(tmp_path), "--name", "run", "--resume") == PPO()
    replayed = learner(EVOLVE[0], "--out", str(tmp_path), "--proposer", "replay", "--recording", str(tmp_path / "run"))
    assert replayed == PPO()


def test_the_same_call_goes_on_on_another_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In Python as well: what the caller did not give is that of the run."""
    call: dict[str, Any] = {"out": tmp_path}

    def begin(name: str, **given: Any) -> None:
        started, _ = search_settings("probe-choice", "limen", "genetic", "quick", {**call, "name": name, **given})
        config = started.as_config()
        with Run.create(tmp_path / name, config) as run:
            run.append(RunStarted(task="probe-choice", strategy="limen", proposer="genetic", config=json_ready(config)))
            run.append(Finished(reason="all candidates are trained", best=None))

    begin("cpu", ppo={"hidden": (8,)})
    begin("own", ppo={"envs": 32, "entropy": 0.02})
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    begin("gpu")
    assert jr.evolve("probe-choice", name="cpu", ppo={"hidden": [8]}, **call).standing == "finished"
    assert jr.evolve("probe-choice", name="own", ppo={"envs": 32, "entropy": 0.02}, **call).standing == "finished"
    for given, setting in (
        ({"hidden": (8,), "envs": 256}, "ppo.envs"), ({"hidden": (8,), "clip": 0.3}, "ppo.clip"),
        (quick_learner("probe-choice", "gpu").replace(hidden=(8,)), "ppo.envs"),
    ):  # fmt: skip
        with pytest.raises(ChangedSetting, check=lambda e, name=setting: e.setting == name):
            jr.evolve("probe-choice", name="cpu", ppo=given, **call)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert jr.evolve("probe-choice", name="gpu", **call).standing == "finished"


def test_a_comparison_keeps_its_learners_on_another_device(tmp_path: Path, on_gpu: None):
    words = ["--tasks", "xland-easy", "quadcopter-hover", "--out", str(tmp_path)]

    def learners() -> list[PPO]:
        return [cell.settings.ppo for cell in resolve(COMPARE[0], words).settings.cells()]

    fresh = learners()
    assert {ppo.envs for ppo in fresh} == {quick_learner(t, "gpu").envs for t in ("xland-easy", "quadcopter-hover")}
    settings = resolve(COMPARE[0], words).settings
    keep_record(tmp_path, settings.grid(), (1, 2), "on a CPU", "cpu")
    assert {ppo.envs for ppo in learners()} == {64, 128}
    keep_record(tmp_path, settings.grid(), (2, 2), "on a GPU", settings.platform)
    assert {ppo.envs for ppo in learners()} == {64, 128}, "the first decides"
