"""Comparisons end to end, on a task that trains in a second."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import pytest

from jaxreward.commands.compare import COMMANDS
from jaxreward.comparison import cells as compare_cells
from jaxreward.comparison.cells import SearchCell
from jaxreward.comparison.finished_searches import read_search
from jaxreward.errors import ChangedSetting, FileProblem, InvalidSetting, UnusableFile
from jaxreward.programs import Checker
from jaxreward.runs import REQUEUE_EXIT_CODE, Baseline, Checked, Proposed, Resumed, Told, Trained, read_log
from jaxreward.tasks import make_task_of
from tests.replacing import replacing

pytestmark = pytest.mark.usefixtures("warm", "unoptimised", "unsynced")
(compare_command,) = COMMANDS

ROOT = Path(__file__).resolve().parents[1]
TINY = """
tasks = ["probe-choice"]
strategies = ["limen", "best-of-n"]
search_seeds = 2
candidates = 2
generation = 2
seeds = 2
steps = 256
final_seeds = 2
evolve = "both"
option = ["limen.initial=2", "limen.islands=2"]

[ppo]
envs = 8
unroll = 8
minibatches = 2
hidden = [8]
"""
CELLS = ["limen-genetic-0", "best-of-n-genetic-0", "limen-genetic-1", "best-of-n-genetic-1"]


@pytest.fixture(scope="module", autouse=True)
def compiled_once():
    """One task and one checker for all, and cells may find what others compiled: it costs only comparable seconds."""
    with pytest.MonkeyPatch.context() as patch, Checker() as checker:
        patch.setattr(jax, "clear_caches", lambda: None)
        running, made = lambda **_: nullcontext(checker), functools.cache(make_task_of)
        with replacing({"jaxreward.programs.Checker": running, "jaxreward.tasks.make_task_of": made}):
            yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("settings") / "tiny.toml"
    file.write_text(TINY)
    return str(file)


@pytest.fixture(scope="module")
def whole(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted comparison; nobody may change it."""
    out = tmp_path_factory.mktemp("whole") / "out"
    assert compare_command(["--config", tiny, "--out", str(out)]) == 0
    return out


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def log_of(out: Path, cell: str) -> Path:
    return out / "probe-choice" / cell / "events.jsonl"


def substance(log: Path) -> list[Any]:
    """The events of a run without clocks, and without the marks of having been resumed."""
    kept = []
    for entry in read_log(log):
        event = entry.event
        if isinstance(event, Trained | Baseline):
            event = event.model_copy(update={"compile_s": 0.0, "run_s": 0.0})
        if isinstance(event, Proposed | Checked | Trained | Told | Baseline):
            kept.append(event)
    return kept


def table(out: Path) -> str:
    """The table in Markdown, its seconds blanked."""
    return re.sub(r"\d+ \| \d+ \|$", "s | s |", (out / "comparison.md").read_text(), flags=re.MULTILINE)


def figures(out: Path) -> dict[str, Any]:
    """`comparison.json` without seconds, paths and what each process says of itself."""
    found = json.loads((out / "comparison.json").read_text())
    del found["shards"]
    for part in (*found["rows"], *found["cells"]):
        for name in ("compile_s", "run_s"):
            part["used"].pop(name)
        part.pop("path", None)
        part.pop("device_s", None)
    for sparse in found["sparse"].values():
        del sparse["compile_s"], sparse["run_s"]
    return found


def test_a_comparison_leaves_table_picture_and_figures(whole: Path):
    assert {p.name for p in (whole / "probe-choice").iterdir()} == {*CELLS, "sparse.json"}
    found = json.loads((whole / "comparison.json").read_text())
    assert [(row["strategy"], row["searches"]) for row in found["rows"]] == [("limen", 2), ("best-of-n", 2)]
    assert found["rows"][0]["minus_best_of_n"]["pairs"] == 2 and found["missing"] == {}
    assert found["rows"][0]["used"]["trained"] == 2
    assert {c["score"]["n"] for c in found["cells"]} == {2} and len(found["cells"]) == 4
    (shard,) = found["shards"]
    assert shard["command"].startswith("jaxreward compare --config") and shard["device"].startswith("1 x cpu")
    assert "jax" in shard["versions"]
    assert "| sparse |" in (whole / "comparison.md").read_text()
    assert (whole / "comparison.png").stat().st_size > 5000


def test_every_cell_is_a_run_with_its_own_settings(whole: Path):
    limen, rival = read_search(log_of(whole, CELLS[0]).parent), read_search(log_of(whole, CELLS[1]).parent)
    assert limen is not None and rival is not None
    assert {"initial=2", "islands=2"} < set(limen.config["option"]) and rival.config["option"] == []
    for name in ("candidates", "generation", "seeds", "steps", "evolve", "final_seeds", "seed"):
        assert limen.config[name] == rival.config[name]
    assert limen.config["baselines"] == []


def test_a_finished_comparison_trains_nothing(copy: Path, tiny: str, whole: Path):
    before = {cell: log_of(copy, cell).read_bytes() for cell in CELLS}
    assert compare_command(["--config", tiny, "--out", str(copy)]) == 0
    assert {cell: log_of(copy, cell).read_bytes() for cell in CELLS} == before
    assert (copy / "comparison.md").read_text() == (whole / "comparison.md").read_text()


@pytest.mark.slow
def test_an_interrupted_comparison_continues(copy: Path, tiny: str, whole: Path):
    """Half of the cells gone, the log of another cut in the middle of a line."""
    for cell in CELLS[:2]:
        shutil.rmtree(copy / "probe-choice" / cell)
    (copy / "probe-choice" / "sparse.json").unlink()
    lines = log_of(copy, CELLS[2]).read_bytes().splitlines(keepends=True)
    log_of(copy, CELLS[2]).write_bytes(b"".join(lines[:4]) + lines[4][:20])
    assert compare_command(["--config", tiny, "--out", str(copy)]) == 0
    assert any(isinstance(e.event, Resumed) for e in read_log(log_of(copy, CELLS[2])))
    for cell in CELLS:
        assert substance(log_of(copy, cell)) == substance(log_of(whole, cell))
    assert table(copy) == table(whole) and figures(copy) == figures(whole)


@pytest.mark.slow
def test_shards_merge_to_the_whole(tiny: str, tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str]):
    parts = [tmp_path / "a", tmp_path / "b"]
    for i, out in enumerate(parts, start=1):
        assert compare_command(["--config", tiny, "--out", str(out), "--shard", f"{i}/2"]) == 0
        assert "--merge" in capsys.readouterr().out and not (out / "comparison.md").exists()
    mine = [{p.name for p in (out / "probe-choice").iterdir()} for out in parts]
    assert mine[0] & mine[1] == set() and mine[0] | mine[1] == {*CELLS, "sparse.json"}
    merged = tmp_path / "merged"
    assert compare_command(["--out", str(merged), "--merge", *map(str, parts)]) == 0
    assert table(merged) == table(whole) and figures(merged) == figures(whole)


def test_shards_in_one_folder_leave_the_table_when_the_last_is_done(copy: Path, tiny: str, whole: Path):
    shutil.rmtree(copy / "shards")
    (copy / "comparison.md").unlink()
    shutil.move(copy / "probe-choice" / CELLS[1], copy / "elsewhere")
    assert compare_command(["--config", tiny, "--out", str(copy), "--shard", "1/3"]) == 0
    assert not (copy / "comparison.md").exists()
    shutil.move(copy / "elsewhere", copy / "probe-choice" / CELLS[1])
    assert compare_command(["--config", tiny, "--out", str(copy), "--shard", "2/3"]) == 0
    assert (copy / "comparison.md").read_text() == (whole / "comparison.md").read_text()


def test_a_merge_without_some_cells_says_which(copy: Path, capsys: pytest.CaptureFixture[str]):
    shutil.rmtree(copy / "probe-choice" / CELLS[3])
    assert compare_command(["--out", str(copy), "--merge", str(copy), "--json"]) == 1
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["missing"] == {"probe-choice, best-of-n, genetic, search seed 1": "it has not begun"}
    assert said["rows"][1]["searches"] == 1 and said["rows"][0]["minus_best_of_n"]["pairs"] == 1
    assert "Not finished" in (copy / "comparison.md").read_text()


def test_a_folder_with_other_settings_is_refused(copy: Path, tiny: str):
    before = log_of(copy, CELLS[0]).read_bytes()
    for change, setting in (
        (["--candidates", "3"], "candidates"),
        (["--ppo.learning-rate", "1e-3"], "ppo.learning_rate"),
        (["--option", "limen.initial=1"], "option"),
        (["--final-seeds", "3"], "final_seeds"),
    ):
        with pytest.raises(ChangedSetting, match="another folder with --out") as refused:
            compare_command(["--config", tiny, "--out", str(copy), *change])
        assert refused.value.setting == setting
    assert log_of(copy, CELLS[0]).read_bytes() == before


@pytest.mark.long
def test_a_failed_cell_is_reported_and_the_others_continue(
    copy: Path, tiny: str, whole: Path, capsys: pytest.CaptureFixture[str]
):
    lines = log_of(copy, CELLS[0]).read_bytes().splitlines(keepends=True)
    log_of(copy, CELLS[0]).write_bytes(b"".join([*lines[:3], b"damaged\n", *lines[4:]]))
    shutil.rmtree(copy / "probe-choice" / CELLS[3])
    assert compare_command(["--config", tiny, "--out", str(copy)]) == 2
    out = capsys.readouterr().out
    assert "not finished: probe-choice, limen, genetic, search seed 0" in out and "line 4 is damaged" in out
    assert substance(log_of(copy, CELLS[3])) == substance(log_of(whole, CELLS[3]))
    assert "| limen |" in (copy / "comparison.md").read_text()


@pytest.mark.slow
def test_a_cell_that_raises_is_reported_and_tried_again(
    copy: Path, tiny: str, whole: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """An error that nobody foresaw ends its cell alone; the traceback is kept without the key that it shows."""
    for cell in (CELLS[0], CELLS[3]):
        shutil.rmtree(copy / "probe-choice" / cell)
    search, status = compare_cells.run_search, []
    monkeypatch.setenv("SOME_API_KEY", "sk-q8Xb71LmZ0")

    def broken(settings: Any, *args: Any, **named: Any) -> Any:
        if settings.strategy == "limen":
            raise RuntimeError("RESOURCE_EXHAUSTED: no room beside sk-q8Xb71LmZ0\nand more")
        return search(settings, *args, **named)

    monkeypatch.setattr(compare_cells, "run_search", broken)
    for _ in range(2):
        status.append(compare_command(["--config", tiny, "--out", str(copy)]))
    file = copy / "probe-choice" / f"{CELLS[0]}.error.txt"
    assert status == [2, 2]
    assert substance(log_of(copy, CELLS[3])) == substance(log_of(whole, CELLS[3]))
    says = f"seed 0: RuntimeError: RESOURCE_EXHAUSTED: no room beside *** (traceback: {file}); let training take less"
    assert says in capsys.readouterr().out and says in (copy / "comparison.md").read_text()
    kept = file.read_text()
    assert kept.count("Traceback") == 2 and "in broken" in kept and "and more" in kept and "sk-q8" not in kept
    assert compare_command(["--merge", str(copy), "--out", str(copy)]) == 1
    assert f"it has not begun; tracebacks of earlier failures are in {file}" in (copy / "comparison.md").read_text()
    monkeypatch.undo()
    assert compare_command(["--config", tiny, "--out", str(copy)]) == 0
    assert table(copy) == table(whole)


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_interrupts_and_exits_end_the_comparison(
    copy: Path, tiny: str, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
):
    shutil.rmtree(copy / "probe-choice" / CELLS[0])

    def ended(*_: Any, **__: Any) -> Any:
        raise end

    monkeypatch.setattr(compare_cells, "run_search", ended)
    with pytest.raises(end):
        compare_command(["--config", tiny, "--out", str(copy)])


@pytest.mark.long
def test_added_searches_join_the_comparison(copy: Path, tiny: str, whole: Path):
    """Only the new strategy on the command line, and the table of both; at another budget nothing is trained."""
    shutil.rmtree(copy / "shards")
    for cell in (CELLS[1], CELLS[3]):
        shutil.rmtree(copy / "probe-choice" / cell)
    assert compare_command(["--config", tiny, "--out", str(copy), "--strategies", "limen"]) == 0
    alone = ["--config", tiny, "--out", str(copy), "--strategies", "best-of-n", "--option"]
    for change, setting in ((["--candidates", "3"], "candidates"), (["--bandit"], "bandit")):
        with pytest.raises(ChangedSetting, match="only searches of equal budget") as refused:
            compare_command([*alone, *change])
        assert refused.value.setting == setting
    assert not log_of(copy, CELLS[1]).exists() and len(list((copy / "shards").iterdir())) == 1
    assert compare_command(alone) == 0
    assert table(copy) == table(whole) and figures(copy) == figures(whole)


@pytest.mark.long
def test_shards_of_another_number_go_on_in_the_same_folder(copy: Path, tiny: str, whole: Path):
    shutil.rmtree(copy / "shards")
    shutil.rmtree(copy / "probe-choice" / CELLS[3])
    (copy / "comparison.md").unlink()
    assert compare_command(["--config", tiny, "--out", str(copy), "--shard", "1/3"]) == 0
    assert not (copy / "comparison.md").exists()
    assert compare_command(["--config", tiny, "--out", str(copy), "--shard", "1/2"]) == 0
    assert table(copy) == table(whole)


def test_a_dead_endpoint_can_be_tried_again(
    copy: Path, tiny: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    dead = ["--model", "openai/x", "--api-base", "http://127.0.0.1:9/v1", "--retries", "0", "--wait-s", "0"]
    status = compare_command(
        ["--config", tiny, "--out", str(copy), "--search-seeds", "1", "--strategies", "best-of-n", "--option",
         "--proposers", "llm", "genetic", *dead, "--json"]
    )  # fmt: skip
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert status == REQUEUE_EXIT_CODE and not said["finished"]
    assert list(said["missing"]) == ["probe-choice, best-of-n, llm, search seed 0"]
    # in addition to what was asked for in this folder before
    assert [(row["strategy"], row["proposer"], row["searches"], row["asked"]) for row in said["rows"]] == [
        ("limen", "genetic", 2, 2), ("best-of-n", "genetic", 2, 2), ("best-of-n", "llm", 0, 1),
    ]  # fmt: skip


@pytest.mark.long
def test_a_signal_stops_it_and_the_same_command_goes_on(
    copy: Path, tiny: str, whole: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for cell in CELLS[2:]:
        shutil.rmtree(copy / "probe-choice" / cell)
    search = SearchCell.run

    def signalled(self: SearchCell, task: Any, tools: Any) -> Any:
        os.kill(os.getpid(), signal.SIGUSR1)
        return search(self, task, tools)

    monkeypatch.setattr(SearchCell, "run", signalled)
    assert compare_command(["--config", tiny, "--out", str(copy)]) == REQUEUE_EXIT_CODE
    assert "stopped by SIGUSR1" in capsys.readouterr().out
    assert not log_of(copy, CELLS[3]).exists(), "it went on after the signal"
    monkeypatch.undo()
    assert compare_command(["--config", tiny, "--out", str(copy)]) == 0
    assert table(copy) == table(whole)


def test_a_dry_run_lists_the_cells_and_leaves_nothing(
    tiny: str, tmp_path: Path, copy: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "none"
    assert compare_command(["--config", tiny, "--out", str(out), "--dry-run", "--shard", "2/2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [cell["state"] for cell in said["cells"]] == ["to do", "to do"] and not out.exists()
    shutil.rmtree(copy / "probe-choice" / CELLS[3])
    before = sorted(copy.rglob("*"))
    assert compare_command(["--config", tiny, "--out", str(copy), "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [cell["state"] for cell in said["cells"]] == ["done"] * 4 + ["to do"]
    assert said["env_steps"] == 2 * 2 * 256 + 2 * 256
    assert sorted(copy.rglob("*")) == before


@pytest.mark.long
def test_compiled_programs_are_forgotten_before_each_cell(copy: Path, tiny: str, monkeypatch: pytest.MonkeyPatch):
    """Else the device seconds of a search would depend on which ran before it."""
    for cell in CELLS[:2]:
        shutil.rmtree(copy / "probe-choice" / cell)
    forgotten: list[None] = []
    monkeypatch.setattr(jax, "clear_caches", lambda: forgotten.append(None))
    assert compare_command(["--config", tiny, "--out", str(copy)]) == 0
    assert len(forgotten) == 2


def test_folders_that_cannot_be_merged_are_refused(copy: Path, tiny: str, tmp_path: Path, whole: Path):
    with pytest.raises(UnusableFile, check=lambda e: (e.path, e.problem) == (tmp_path, FileProblem.WRONG_KIND)):
        compare_command(["--merge", str(tmp_path)])
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("merge",)):
        compare_command(["--merge", str(copy), str(whole)])
    other = tmp_path / "other"
    shutil.copytree(copy, other)
    for cell in CELLS:
        shutil.rmtree((other if cell.endswith("0") else copy) / "probe-choice" / cell)
    log = log_of(other, CELLS[2])
    log.write_text(log.read_text().replace('"candidates":2', '"candidates":3', 1))
    with pytest.raises(ChangedSetting, check=lambda e: e.setting == "candidates"):
        compare_command(["--merge", str(copy), str(other), "--out", str(tmp_path / "merged")])
    next((copy / "shards").iterdir()).write_text("{")
    with pytest.raises(
        UnusableFile, check=lambda e: e.problem is FileProblem.DAMAGED and e.path.parent == copy / "shards"
    ):
        compare_command(["--merge", str(copy)])


def test_the_figures_of_the_documentation_are_those_of_the_file(whole: Path):
    """Every key of comparison.json has its place on the page."""
    text = (ROOT / "docs" / "compare.md").read_text()
    found = json.loads((whole / "comparison.json").read_text())
    keys = {*found, *found["rows"][0], *found["cells"][0], *found["cells"][0]["used"], *found["shards"][0]}
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []
