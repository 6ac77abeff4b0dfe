"""Folders of comparisons that are taken up again, after other commands and other versions: nothing is trained."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest

import jaxreward.programs
import jaxreward.proposers.llm.endpoint
from jaxreward.commands.compare import COMMANDS, hiding
from jaxreward.comparison import cells as compare_cells
from jaxreward.comparison.cells import SearchCell, SparseCell, error_file
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.finished_searches import Grid, Sparse
from jaxreward.comparison.shards import Shard
from jaxreward.errors import ChangedSetting, FileProblem, UnusableFile
from jaxreward.evolution.loop import Evolution
from jaxreward.evolution.setup import OBSERVATION
from jaxreward.identity import Identity
from jaxreward.objectives.training.candidate_trainer import CandidateTrainer
from jaxreward.programs import Program
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.records import Result
from jaxreward.runs import EventLog, Proposed, Resumed, Run, RunStarted, Trained, read_log
from jaxreward.runs.events import json_ready
from jaxreward.runs.toml import to_toml
from jaxreward.secrets import Secrets
from jaxreward.tasks import make_task
from tests.reports.test_comparison import score, write
from tests.test_compare_folders import OTHER, SHARD, SIGNAL

(compare_command,) = COMMANDS

TASK = "probe-choice"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(autouse=True)
def kept_compiled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax, "clear_caches", lambda: None)


@dataclasses.dataclass
class Folder:
    """A comparison of limen alone, written by hand."""

    out: Path

    def command(self, seeds: int, *more: str) -> list[str]:
        return ["--tasks", TASK, "--strategies", "limen", "--search-seeds", str(seeds), "--out", str(self.out), *more]

    def search(self, seed: int, final: float | None = 0.3, change: Change = lambda _: None) -> Path:
        settings = CompareSettings(tasks=(TASK,), strategies=("limen",), search_seeds=seed + 1, out=self.out)
        cell = settings.cells()[-1]
        config = cell.settings.as_config()
        change(config)
        write(cell.path, [[0.2, 0.4]], final=final, seed=seed, config=json_ready(config), task=TASK)
        (cell.path / "config.toml").write_text(to_toml(config))
        return cell.path

    def sparse(self, change: Change = lambda _: None) -> None:
        s = CompareSettings(tasks=(TASK,), strategies=("limen",), out=self.out).cells()[0].settings
        config = json_ready(s.as_config())
        change(config)
        digest = Program.default(make_task(TASK)).digest
        known = Sparse(
            task=TASK, digest=digest, seeds=s.final_seeds, steps=s.steps, ppo=config["ppo"], score=score(0.2)
        )
        (self.out / TASK / "sparse.json").write_text(known.model_dump_json())

    def record(self, seeds: int, name: str = "1-of-1-earlier.json") -> Path:
        grid = Grid(tasks=(TASK,), strategies=("limen",), proposers=("genetic",), search_seeds=seeds)
        path = self.out / "shards" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Shard.model_validate({**SHARD.model_dump(), "grid": grid}).model_dump_json())
        return path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "out")


def report_and_console(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    said = capsys.readouterr()
    return json.loads(said.out.splitlines()[-1]), said.err


# ---- settings that another version did not have


def without(*names: str) -> Change:
    def change(config: dict[str, Any]) -> None:
        for name in names:
            table, _, key = name.rpartition(".")
            del (config[table] if table else config)[key]

    return change


def without_an_option(config: dict[str, Any]) -> None:
    config["option"] = config["option"][1:]


@pytest.mark.parametrize(
    "change", [without("bandit"), without("ppo.gae_lambda"), without("llm", "judge"), without_an_option]
)
@pytest.mark.parametrize("own", [True, False], ids=["asked for again", "of another command"])
def test_searches_of_a_version_without_a_setting_are_compared_with_its_default(
    change: Change, own: bool, folder: Folder, capsys: pytest.CaptureFixture[str]
):
    folder.search(0)
    folder.search(1, change=change)
    folder.sparse()
    folder.record(2)
    assert compare_command(folder.command(2 if own else 1, "--json")) == 0
    assert [row["searches"] for row in report_and_console(capsys)[0]["rows"]] == [2]


def test_a_sparse_of_a_version_without_a_setting_is_that_of_searches_with_its_default(folder: Folder):
    folder.search(0)
    folder.sparse(without("ppo.gae_lambda"))
    assert compare_command(folder.command(1)) == 0


def test_a_setting_that_another_version_had_must_be_alike_before_anything_is_trained(folder: Folder):
    """As in the end: the log is what is compared there, too."""
    folder.search(1, change=lambda config: config.update(bandit=True, newer=3))
    (folder.out / TASK / "limen-genetic-1" / "config.toml").write_text("")
    folder.record(2)
    with pytest.raises(ChangedSetting, check=lambda e: e.setting == "bandit"):
        compare_command(folder.command(1))
    assert not (folder.out / TASK / "limen-genetic-0").exists()


# ---- what earlier commands asked for


def test_a_process_finishes_with_its_own_cells(folder: Folder, capsys: pytest.CaptureFixture[str]):
    """After five seeds were asked for by mistake, and stopped during the second."""
    folder.search(0)
    folder.search(1, final=None)
    folder.sparse()
    file = folder.record(5)
    assert compare_command(folder.command(1, "--json")) == 0
    said, console = report_and_console(capsys)
    assert said["finished"] and said["missing"] == {}
    assert [(row["searches"], row["asked"]) for row in said["rows"]] == [(1, 1)]
    label = f"{TASK}, limen, genetic, search seed"
    assert said["asked_before"] == {
        f"{label} 1": "stopped by SIGTERM", **{f"{label} {k}": "it has not begun" for k in (2, 3, 4)}
    }  # fmt: skip
    (line,) = [line for line in console.splitlines() if line.startswith("Earlier commands")]
    assert f"asked for 4 more that are not finished: {label} 1; {label} 2; {label} 3; and 1 more." in line
    assert f"delete {file} and give this command again" in line and "\nnot finished: " not in console
    page = (folder.out / "comparison.md").read_text()
    assert line in page and "Not finished:" not in page
    assert json.loads((folder.out / "comparison.json").read_text())["asked_before"] == said["asked_before"]


def test_a_shard_leaves_the_table_when_the_cells_of_its_own_command_are_done(folder: Folder):
    folder.search(0)
    folder.sparse()
    folder.record(5)
    assert compare_command(folder.command(1, "--shard", "2/2")) == 0
    assert (folder.out / "comparison.md").exists()


def test_what_was_asked_for_can_be_withdrawn(folder: Folder, capsys: pytest.CaptureFixture[str]):
    folder.search(0)
    folder.sparse()
    file, merge = folder.record(5), ["--merge", str(folder.out), "--out", str(folder.out), "--json"]
    assert compare_command(merge) == 1
    said, _ = report_and_console(capsys)
    assert not said["finished"] and len(said["missing"]) == 4 and said["asked_before"] == {}
    file.unlink()
    assert compare_command(folder.command(1, "--json")) == 0
    assert report_and_console(capsys)[0]["asked_before"] == {}
    assert compare_command(merge) == 0 and report_and_console(capsys)[0]["finished"]


def test_a_task_of_which_nothing_is_there_has_no_table(folder: Folder, capsys: pytest.CaptureFixture[str]):
    folder.search(0)
    folder.sparse()
    file = folder.record(1)
    file.write_text(file.read_text().replace(f'["{TASK}"]', f'["probe-corridor","{TASK}"]'))
    assert compare_command(folder.command(1, "--json")) == 0
    said, console = report_and_console(capsys)
    assert list(said["asked_before"]) == ["probe-corridor, limen, genetic, search seed 0", "probe-corridor, sparse"]
    assert console.count("success of what each search found") == 1


def test_the_training_of_another_simulator_is_not_taken_for_that_of_a_task_object(folder: Folder):
    folder.search(0)
    folder.sparse()
    file, task = folder.out / TASK / "sparse.json", make_task(TASK)
    file.write_text(Sparse.model_validate_json(file.read_text()).model_copy(update={"identity": "A"}).model_dump_json())
    cell = CompareSettings(tasks=(TASK,), strategies=("limen",), out=folder.out).cells()[0]
    assert isinstance(cell, SparseCell)
    dataclasses.replace(cell, identity=Identity("A")).require_same(task)
    for other in ("B", ""):
        with pytest.raises(ChangedSetting, match=f"another version of {TASK}"):
            dataclasses.replace(cell, identity=Identity(other)).require_same(task)


# ---- files that cannot be read


def test_a_config_that_is_no_text_gets_a_sentence(folder: Folder):
    path = folder.search(0) / "config.toml"
    path.write_bytes(b"candidates = 30 # \xff\n")
    with pytest.raises(UnusableFile, check=lambda e: (e.path, e.problem) == (path, FileProblem.UNREADABLE)):
        compare_command(folder.command(1))
    folder.record(1)
    (path.parent / "events.jsonl").unlink()
    with pytest.raises(UnusableFile, check=lambda e: (e.path, e.problem) == (path, FileProblem.UNREADABLE)):
        compare_command([*folder.command(1), "--strategies", "best-of-n"])


def test_a_directory_among_the_records_gets_a_sentence(folder: Folder):
    folder.search(0)
    path = folder.record(1).with_name("2-of-2-x.json")
    path.mkdir()
    for command in (folder.command(1), ["--merge", str(folder.out)]):
        with pytest.raises(UnusableFile, check=lambda e: (e.path, e.problem) == (path, FileProblem.UNREADABLE)):
            compare_command(command)
    path.rmdir()
    (folder.out / TASK / "sparse.json").mkdir()
    sparse = folder.out / TASK / "sparse.json"
    with pytest.raises(UnusableFile, check=lambda e: (e.path, e.problem) == (sparse, FileProblem.UNREADABLE)):
        compare_command(["--merge", str(folder.out), "--out", str(folder.out)])


# ---- keys


def test_a_traceback_hides_the_key_of_a_model_that_does_not_name_its_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "correct-horse-battery")

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("401 for correct-horse-battery")

    monkeypatch.setattr(compare_cells, "run_search", broken)
    monkeypatch.setattr(SparseCell, "run", lambda *_: None)
    monkeypatch.setattr(jaxreward.programs, "Checker", lambda **_: nullcontext())
    options = ["--strategies", "best-of-n", "--proposers", "llm", "--model", "gpt-4o", "--candidates", "2"]
    assert compare_command([*Folder(tmp_path / "out").command(1), *options]) == 2
    kept = error_file(tmp_path / "out" / TASK / "best-of-n-llm-0").read_text()
    shown = capsys.readouterr().out + (tmp_path / "out" / "comparison.md").read_text()
    assert "401 for ***" in kept and "401 for ***" in shown and "correct-horse" not in kept + shown


def test_litellm_is_asked_when_there_is_something_to_hide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked: list[None] = []

    def missing() -> Any:
        asked.append(None)
        raise ImportError("no litellm")

    monkeypatch.setattr(jaxreward.proposers.llm.endpoint, "import_litellm", missing)
    monkeypatch.setenv("OPENAI_API_KEY", "correct-horse-battery")
    redact = hiding(Secrets(tmp_path), LlmSettings(model=("openai/x",)))
    assert not asked
    assert [redact("<correct-horse-battery>") for _ in range(2)] == ["<***>"] * 2 and len(asked) == 1


# ---- an observation that was moved


@pytest.mark.long
def test_a_search_is_resumed_with_an_observation_that_was_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also where its old place now holds another: the copy is what counts."""
    old, new = tmp_path / "x.py", tmp_path / "y.py"
    old.write_text(SIGNAL)
    settings = CompareSettings(
        tasks=(TASK,), strategies=("limen",), search_seeds=1, candidates=2, generation=2, observation=old,
        out=tmp_path / "out",
    )  # fmt: skip
    (cell,) = (c for c in settings.cells() if isinstance(c, SearchCell))
    s = cell.settings
    with Run.create(cell.path, s.as_config()):
        (cell.path / OBSERVATION).write_text(SIGNAL)
    with EventLog(cell.path / "events.jsonl") as log:
        log.append(RunStarted(task=s.task, strategy=s.strategy, proposer=s.proposer, config=s.as_config()))

    def formula(self: Evolution, candidates: Any, _: Any) -> None:
        results = tuple(Result(candidate=c, score=score(0.1 * k, n=2)) for k, c in enumerate(candidates))
        self.log(Trained(results=results))

    def trained(*_: Any, **__: Any) -> Any:
        scores = {"score": lambda _: score(0.1), "feedback": lambda _: None, "alignment": lambda _: None}
        return SimpleNamespace(**scores, env_steps=8, compile_s=0.0, run_s=0.0)

    monkeypatch.setattr(Evolution, "_train", formula)
    monkeypatch.setattr(CandidateTrainer, "train", trained)
    monkeypatch.setattr(compare_cells, "train", trained)
    new.write_text('"""Moved."""\n' + SIGNAL)
    old.write_text(OTHER)
    command = [*Folder(settings.out).command(1), "--candidates", "2", "--generation", "2", "--observation", str(new)]
    assert compare_command(command) == 0
    events = [entry.event for entry in read_log(cell.path / "events.jsonl")]
    (resumed,) = [event for event in events if isinstance(event, Resumed)]
    sources = [event.proposal.source for event in events if isinstance(event, Proposed)]
    assert resumed.config["observation"] == str(new) and cell.status() == "done"
    assert sources and all("[state.signal]" in source for source in sources)
    assert (cell.path / OBSERVATION).read_text() == SIGNAL
    assert compare_command(command) == 0
