"""What folders of a comparison hold and whether it can be compared, on folders written by hand: nothing is trained."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from jaxreward.commands.compare import COMMANDS
from jaxreward.comparison import outcome as compare_outcome
from jaxreward.comparison import shards as compare_records
from jaxreward.comparison.cells import Cell, SearchCell, Tools, Unfinished, attempt, error_file
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.finished_searches import Dense, Grid, Sparse
from jaxreward.comparison.shards import Shard, differences, read_shards
from jaxreward.errors import ChangedSetting, FileProblem, UnusableFile
from jaxreward.evolution.setup import OBSERVATION
from jaxreward.programs import Checker
from jaxreward.runs import EventLog, Run, RunStarted, StopSignal
from jaxreward.tasks import make_task
from jaxreward.training.executor import ExecutorLost
from tests.reports.test_comparison import CONFIG, score, write
from tests.silent import Silent

(compare_command,) = COMMANDS

SIGNAL = "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return jnp.stack([state.signal])\n"
OTHER = SIGNAL.replace("[state.signal]", "[state.signal, state.signal]")
PPO = {"lr": 1e-3, "hidden": [8]}
SHARD = Shard(
    grid=Grid(tasks=("toy",), strategies=("limen",), proposers=("genetic",), search_seeds=2),
    shard="1/1", command="jaxreward compare", device="1 x cpu cpu", cores=2, versions={"jax": "0.10.2"}, commit="aaa",
)  # fmt: skip


def folder(
    out: Path, seed: int, ppo: dict[str, Any] = PPO, sparse: dict[str, Any] | None = None, shard: Shard = SHARD,
    observation: Path | None = None, text: str = SIGNAL,
) -> Path:  # fmt: skip
    """A comparison of two seeds of which one is there; `sparse` is what its sparse.json has unlike the others."""
    config: dict[str, Any] = {**CONFIG, "ppo": ppo}
    if observation is not None:
        config["observation"] = str(observation)
    run = out / "toy" / f"limen-genetic-{seed}"
    write(run, [[0.2, 0.4], [0.3, 0.1]], final=0.3, seed=seed, config=config)
    if observation is not None:
        (run / OBSERVATION).write_text(text)
    known = Sparse(task="toy", digest="d", seeds=5, steps=1000, ppo=PPO, score=score(0.25))
    (out / "toy" / "sparse.json").write_text(known.model_copy(update=sparse or {}).model_dump_json())
    (out / "shards").mkdir()
    (out / "shards" / "1-of-1.json").write_text(shard.model_dump_json())
    return out


def merged(*folders: Path) -> dict[str, Any]:
    out = folders[0].parent / "merged"
    compare_command(["--merge", *map(str, folders), "--out", str(out)])
    return json.loads((out / "comparison.json").read_text())


# ---- the observation, by what it says


def test_the_same_observation_from_another_place_can_be_merged(tmp_path: Path):
    a = folder(tmp_path / "a", 0, observation=Path("/here/x.py"))
    b = folder(tmp_path / "b", 1, observation=Path("/there/y.py"))
    assert merged(a, b)["missing"] == {}


def test_another_observation_of_the_same_name_is_not_merged(tmp_path: Path):
    a = folder(tmp_path / "a", 0, observation=Path("/here/x.py"))
    b = folder(tmp_path / "b", 1, observation=Path("/here/x.py"), text=OTHER)
    with pytest.raises(ChangedSetting, match="b/toy/limen-genetic-1", check=lambda e: e.setting == "observation"):
        merged(a, b)
    (b / "toy" / "limen-genetic-1" / OBSERVATION).unlink()
    with pytest.raises(UnusableFile, check=lambda e: (e.path.name, e.problem) == (OBSERVATION, FileProblem.MISSING)):
        merged(a, b)
    with pytest.raises(ChangedSetting, check=lambda e: e.setting == "observation"):
        merged(a, folder(tmp_path / "none", 1))


@pytest.fixture
def begun(tmp_path: Path) -> list[str]:
    """A search that has begun with an observation, and the command that goes on with it."""
    file = tmp_path / "x.py"
    file.write_text(SIGNAL)
    settings = CompareSettings(
        tasks=("probe-choice",), strategies=("limen",), search_seeds=1, observation=file, out=tmp_path / "out"
    )
    (cell,) = (c for c in settings.cells() if isinstance(c, SearchCell))
    s = cell.settings
    with Run.create(cell.path, s.as_config()):
        pass
    (cell.path / OBSERVATION).write_text(SIGNAL)
    with EventLog(cell.path / "events.jsonl") as log:
        log.append(RunStarted(task=s.task, strategy=s.strategy, proposer=s.proposer, config=s.as_config()))
    return ["--tasks", "probe-choice", "--strategies", "limen", "--search-seeds", "1", "--out", str(settings.out),
            "--dry-run", "--observation", str(file)]  # fmt: skip


def test_a_search_goes_on_with_the_observation_that_it_began_with(begun: list[str], tmp_path: Path):
    file = tmp_path / "x.py"
    assert compare_command(begun) == 0
    elsewhere = tmp_path / "y.py"
    elsewhere.write_text('"""The same."""\n' + SIGNAL)
    assert compare_command([*begun[:-1], str(elsewhere)]) == 0
    file.write_text(OTHER)
    with pytest.raises(
        ChangedSetting, match=r"asked for with that of .*x.py", check=lambda e: e.setting == "observation"
    ):
        compare_command(begun)
    with pytest.raises(ChangedSetting, match="the task's:", check=lambda e: e.setting == "observation"):
        compare_command(begun[:-2])


def test_an_observation_that_was_not_yet_used_may_still_be_another(begun: list[str], tmp_path: Path):
    """A search that was killed before it had proposed anything; one whose copy is gone is refused."""
    run = tmp_path / "out" / "probe-choice" / "limen-genetic-0"
    (tmp_path / "x.py").write_text(OTHER)
    (run / OBSERVATION).unlink()
    with pytest.raises(UnusableFile, check=lambda e: (e.path.name, e.problem) == (OBSERVATION, FileProblem.MISSING)):
        compare_command(begun)
    (run / "events.jsonl").write_text("")
    assert compare_command(begun) == 0


# ---- the task's own interface


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ({"digest": "e"}, "task"),
        ({"seeds": 4}, "final_seeds"),
        ({"steps": 10}, "final_steps"),
        ({"ppo": {**PPO, "lr": 1e-2}}, "ppo.lr"),
    ],
    ids=["digest", "seeds", "steps", "ppo"],
)
def test_folders_whose_sparse_differs_are_not_merged(change: dict[str, Any], setting: str, tmp_path: Path):
    with pytest.raises(ChangedSetting, match="a/toy/sparse.json", check=lambda e: e.setting == setting):
        merged(folder(tmp_path / "a", 0), folder(tmp_path / "b", 1, sparse=change))


def test_a_dense_reward_of_one_folder_is_in_the_table_of_all(tmp_path: Path):
    dense = {"dense": Dense(digest="e", score=score(0.75), alignment=None)}
    found = merged(folder(tmp_path / "a", 0), folder(tmp_path / "b", 1, sparse=dense))
    assert (
        found["sparse"]["toy"]["dense"]["score"]["mean"] == 0.75 and "low" in found["sparse"]["toy"]["dense"]["score"]
    )
    assert "| dense | 0.750 |" in (tmp_path / "merged" / "comparison.md").read_text()


def test_a_sparse_of_another_learner_than_the_searches_is_refused(tmp_path: Path):
    out = folder(tmp_path / "a", 0, sparse={"ppo": {**PPO, "lr": 1e-2}})
    with pytest.raises(ChangedSetting, check=lambda e: e.setting == "ppo.lr"):
        merged(out)


# ---- who trained them


def test_processes_that_differ_are_said_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    a = folder(tmp_path / "a", 0)
    other = SHARD.model_copy(update={"commit": "", "versions": {"jax": "0.11.0"}, "device": "1 x gpu H200", "at": 1.0})
    found = merged(a, folder(tmp_path / "b", 1, shard=other))
    says = (
        "for that alone: commit aaa and unknown, jax 0.10.2 and 0.11.0, device 1 x cpu cpu and 1 x gpu H200; `shards`"
    )
    (note,) = found["notes"]
    assert says in note and note in capsys.readouterr().out
    assert note in (tmp_path / "merged" / "comparison.md").read_text()


def test_processes_that_are_alike_are_not_mentioned(tmp_path: Path):
    a, b = folder(tmp_path / "a", 0), folder(tmp_path / "b", 1)
    assert merged(a, b)["notes"] == []
    assert differences([SHARD, SHARD.model_copy(update={"cores": 64, "command": "another", "at": 9.0})]) == []


def test_every_process_that_differs_leaves_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    grid, more = SHARD.grid, SHARD.grid.model_copy(update={"strategies": ("best-of-n",)})
    compare_records.keep_record(tmp_path, more, (1, 1), "b")
    (first,) = read_shards(tmp_path)
    for _ in range(2):
        compare_records.keep_record(tmp_path, more, (1, 1), "b")
        compare_records.keep_record(tmp_path, grid, (1, 1), "a")
    assert [shard.grid for shard in read_shards(tmp_path)] == [more, grid]
    assert read_shards(tmp_path)[0] == first, "a record says when its process first began"
    monkeypatch.setattr(compare_records, "commit", lambda: "later")
    compare_records.keep_record(tmp_path, grid, (1, 1), "a")
    found = read_shards(tmp_path)
    assert len(found) == 3 and found[-1].commit == "later" and "later" in differences(found)[0]


# ---- failures


def test_figures_outlive_a_picture_that_cannot_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    a = folder(tmp_path / "a", 0)
    merged(a)
    drawn = (tmp_path / "merged" / "comparison.png").read_bytes()
    shutil.copytree(a / "toy" / "limen-genetic-0", a / "toy" / "limen-genetic-1")

    def broken(path: Path, _: Any) -> None:
        path.write_text("half")
        raise ValueError("no font")

    log = a / "toy" / "limen-genetic-1" / "events.jsonl"
    log.write_text(re.sub(r'"seed":0', '"seed":1', log.read_text(), count=1))
    monkeypatch.setattr(compare_outcome, "search_curves", broken)
    with pytest.raises(ValueError, match="no font"):
        merged(a)
    assert len(json.loads((tmp_path / "merged" / "comparison.json").read_text())["cells"]) == 2
    assert (tmp_path / "merged" / "comparison.png").read_bytes() == drawn
    assert {p.name for p in (tmp_path / "merged").iterdir()} == {f"comparison.{k}" for k in ("md", "json", "png")}


def test_a_cluster_that_is_lost_may_be_there_later(tmp_path: Path):
    def lost(self: Cell, task: Any, tools: Tools) -> Unfinished | None:
        raise ExecutorLost("the Ray cluster is gone")

    base = CompareSettings(tasks=("probe-choice",), out=tmp_path).cells()[1].settings
    cell = type("Lost", (SearchCell,), {"run": lost})(dataclasses.replace(base))
    with Checker() as checker:
        unfinished = attempt(cell, make_task("probe-choice"), Tools(checker, Silent(), StopSignal(), lambda text: text))
    assert unfinished is not None and unfinished.later and unfinished.reason == "the Ray cluster is gone"


def test_a_traceback_that_cannot_be_kept_is_printed(tmp_path: Path):
    noted: list[str] = []

    class Notes(Silent):
        def note(self, text: str) -> None:
            noted.append(text)

    def broken(self: Cell, task: Any, tools: Tools) -> Unfinished | None:
        raise OSError(28, "No space left on device\udc80")

    (tmp_path / "full").write_text("a file where the folder should be")
    base = CompareSettings(tasks=("probe-choice",), out=tmp_path / "full").cells()[1].settings
    cell = type("Broken", (SearchCell,), {"run": broken})(dataclasses.replace(base))
    with Checker() as checker:
        tools = Tools(checker, Notes(), StopSignal(), lambda text: text)
        unfinished = attempt(cell, make_task("probe-choice"), tools)
    assert unfinished is not None and not unfinished.later and not error_file(cell.path).exists()
    assert unfinished.reason == (
        "OSError: [Errno 28] No space left on device\\udc80 (traceback: above); correct the cause, and give the "
        "same command again"
    )
    assert len(noted) == 1 and "in broken" in noted[0]
