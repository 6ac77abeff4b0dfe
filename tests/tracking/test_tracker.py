"""What sinks are fed with, that each event reaches them once, and that none of them can harm a run."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from jaxreward.cli import main
from jaxreward.errors import MissingPackage
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.runs import Entry
from jaxreward.tracking import Tracker, require
from jaxreward.tracking.items import COLUMNS, Curve, Ended, Item, ItemBuilder, Line, Program, Scalars, Started
from tests.reports import example
from tests.tracking.records import Value, read_folder

T = TypeVar("T")
WHOLE = example.entries(example.events())


class Recorder:
    """A sink that keeps what it is given, and fails at event number `fails`."""

    name = where = "recorder"

    def __init__(self, fed: int = -1, fails: int | None = None) -> None:
        self.fed, self.fails = fed, fails
        self.given: list[tuple[int, list[Item]]] = []
        self.remembered: list[Item] = []
        self.closed: list[bool] = []

    def remember(self, items: Iterable[Item]) -> None:
        self.remembered += items

    def write(self, seq: int, items: Sequence[Item]) -> None:
        if seq == self.fails:
            raise OSError(f"no space left for {example.SECRET}\nand more")
        self.given.append((seq, list(items)))

    def close(self, *, whole: bool = True) -> None:
        self.closed.append(whole)


def fed(sink: Recorder, path: Path, entries: Iterable[Entry], notes: list[str]) -> Tracker:
    hide = lambda text: text.replace(example.SECRET, "***")  # noqa: E731
    with Tracker(["tensorboard"], path, notes.append, hide, make=lambda *_: sink) as tracker:
        for entry in entries:
            tracker.feed(entry)
    return tracker


def test_items_follow_from_the_log(tmp_path: Path):
    sink = Recorder()
    fed(sink, tmp_path, WHOLE, notes := [])
    items = [item for _, given in sink.given for item in given]
    assert notes == ["recorder"] and sink.closed == [True]

    def of(kind: type[T]) -> list[T]:
        return [item for item in items if isinstance(item, kind)]

    assert [(p.step, p.candidate) for p in of(Program)] == [(1, "g0000-00"), (3, "g0001-00")]
    scores = {i.step: i.values for i in of(Scalars) if "score/best_so_far" in i.values}
    assert scores == {
        1: {"score/candidate": 0.4, "score/best_so_far": 0.4}, 2: {"score/best_so_far": 0.4},
        3: {"score/candidate": 0.9, "score/best_so_far": 0.9}, 4: {"score/candidate": 0.3, "score/best_so_far": 0.9},
    }  # fmt: skip
    spent = {i.step: i.values for i in of(Scalars) if "spent/dollars" in i.values}
    assert spent[4]["spent/dollars"] == pytest.approx(0.4) and spent[2]["spent/environment_steps"] == 3000
    assert {k: v for i in of(Scalars) for k, v in i.values.items() if k.startswith("final")} == {
        "final/best_on_fresh_seeds": pytest.approx(0.85), "final/sparse": 0.2,
    }  # fmt: skip
    curves = {(c.candidate, c.name): c for c in of(Curve)}
    assert {name for _, name in curves} == {"success", "return", "length", "terms/near"}
    assert curves["g0001-00", "success"].steps == (500, 1000) and curves["g0001-00", "success"].values == (0.45, 0.9)
    assert len(of(Line)) == 8 and sum(line.values[COLUMNS.index("score")] is not None for line in of(Line)) == 3
    assert of(Started)[0].config["ppo.learning_rate"] == 1e-3 and len(of(Ended)) == 1


@pytest.mark.parametrize("at", range(1, len(WHOLE), 3))
def test_an_event_reaches_a_sink_once_however_often_the_run_is_resumed(tmp_path: Path, at: int):
    """The second process folds the log from its start and gives what the first had not."""
    whole, first = Recorder(), Recorder()
    fed(whole, tmp_path, WHOLE, [])
    fed(first, tmp_path, WHOLE[:at], [])
    second = Recorder(fed=first.given[-1][0])
    fed(second, tmp_path, WHOLE, [])
    assert first.given + second.given == whole.given
    assert second.remembered == [item for _, items in first.given for item in items]


def test_a_failed_sink_is_reported_once_and_the_others_continue(tmp_path: Path):
    sinks = {"tensorboard": Recorder(fails=5), "wandb": Recorder()}
    notes: list[str] = []
    with Tracker(["tensorboard", "wandb"], tmp_path, notes.append, make=lambda name, _: sinks[name]) as tracker:
        for entry in WHOLE:
            tracker.feed(entry)
    assert len(sinks["tensorboard"].given) == 5 and len(sinks["wandb"].given) == len(WHOLE)
    assert sinks["tensorboard"].closed == [False] and sinks["wandb"].closed == [True]
    (said,) = [note for note in notes if note != "recorder"]
    assert "recorder is not fed any more (OSError: no space left" in said and "runs track" in said and "\n" not in said
    assert tracker.failed == ["recorder"]


def test_the_error_of_a_sink_is_redacted(tmp_path: Path):
    fed(Recorder(fails=2), tmp_path, WHOLE, notes := [])
    assert example.SECRET not in notes[-1] and "***" in notes[-1]


def test_a_sink_that_cannot_begin_or_end_harms_nothing(tmp_path: Path):
    def broken(*_: Any) -> Any:
        raise ConnectionError("no route to host")

    class Stuck(Recorder):
        def close(self, *, whole: bool = True) -> None:
            raise TimeoutError("the server does not answer")

    for make in (broken, lambda *_: Stuck()):
        notes: list[str] = []
        with Tracker(["wandb"], tmp_path, notes.append, make=make) as tracker:
            for entry in WHOLE:
                tracker.feed(entry)
        assert len([note for note in notes if "not fed any more" in note]) == 1


def test_two_processes_do_not_feed_one_sink(tmp_path: Path):
    notes: list[str] = []
    with Tracker(["tensorboard"], tmp_path, notes.append, make=lambda *_: Recorder()):
        fed(second := Recorder(), tmp_path, WHOLE, notes)
    assert second.given == [] and "another process feeds it" in notes[0]


def test_a_missing_package_is_said_with_its_extra_before_anything_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for module in ("wandb", "tensorboardX"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackage, match=r"jaxreward\[wandb\]", check=lambda e: e.package == "wandb"):
        require(["wandb"])
    with pytest.raises(MissingPackage, match=r"jaxreward\[tensorboard\]", check=lambda e: e.package == "tensorboardX"):
        EvolveSettings(track=("tensorboard",), out=tmp_path).check()
    assert list(tmp_path.iterdir()) == []


def test_tracking_is_no_part_of_what_a_run_was_started_with():
    """It may be given anew when the run is resumed, or left out."""
    assert EvolveSettings(track=("wandb",)).as_config() == EvolveSettings().as_config()


def test_secrets_are_looked_for_once_more():
    started = example.events({"llm": {"api_base": f"http://{example.SECRET}@host"}})[0]
    book = ItemBuilder(lambda text: text.replace(example.SECRET, "***"))
    (item,) = book.add(Entry(0, 0.0, started))
    assert isinstance(item, Started) and item.config["llm.api_base"] == "http://***@host"


# ---- TensorBoard


def board(path: Path) -> dict[str, list[Value]]:
    """What TensorBoard shows, by its runs."""
    folders = [path / "tensorboard/search", *sorted((path / "tensorboard/candidates").iterdir())]
    return {folder.name: read_folder(folder) for folder in folders}


def test_tensorboard_gets_scalars_curves_and_the_best_program(tmp_path: Path, capsys):
    pytest.importorskip("tensorboardX")
    path = example.write_run(tmp_path / "run")
    assert main(["runs", "track", str(path), "--to", "tensorboard"]) == 0
    assert f"tensorboard --logdir {path / 'tensorboard'}" in capsys.readouterr().out
    shown = board(path)
    search = {(v.tag, v.step): v.value for v in shown["search"]}
    assert search["score/best_so_far", 3] == pytest.approx(0.9) and search["score/candidate", 4] == pytest.approx(0.3)
    assert ("score/candidate", 2) not in search, "a candidate without a score"
    assert "def compute_reward" in str(search["best_program/text_summary", 3])
    assert "| candidates | 6 |" in str(search["settings/text_summary", 0])
    assert list(shown) == ["search", "g0000-00", "g0001-00", "g0001-01"]
    curve = [(v.step, v.value) for v in shown["g0001-00"] if v.tag == "curves/success"]
    assert curve == [(500, pytest.approx(0.45)), (1000, pytest.approx(0.9))]
    assert {v.tag for v in shown["g0001-00"]} == {"curves/success", "curves/return", "curves/length", "terms/near"}
    at = {entry.seq: entry.at for entry in WHOLE}
    assert {v.at for v in shown["g0001-00"]} == {at[21]}, "when it happened, and not when it was fed"


def test_tensorboard_has_nothing_twice_after_a_run_was_killed_and_resumed(tmp_path: Path):
    pytest.importorskip("tensorboardX")
    path = example.write_run(tmp_path / "run")
    with Tracker(["tensorboard"], path, lambda _: None) as tracker:
        for entry in WHOLE[:14]:
            tracker.feed(entry)
    half = path / "tensorboard/search"
    (half / "events.out.tfevents.0000000001.host").write_bytes(b"half a rec")  # of a process that was killed
    for _ in range(2):
        with Tracker(["tensorboard"], path, lambda _: None) as tracker:
            for entry in WHOLE:
                tracker.feed(entry)
    shown = board(path)
    for values in shown.values():
        assert len({(v.tag, v.step) for v in values}) == len(values) > 0
    assert len(shown["search"]) > 20


def test_what_cannot_be_drawn_is_left_out(tmp_path: Path):
    pytest.importorskip("tensorboardX")
    of = example.events()
    trained = of[10]
    assert trained.type == "trained"
    result = trained.results[0]
    assert result.feedback is not None
    broken = result.model_copy(update={"feedback": result.feedback.model_copy(update={"success": (float("nan"), 0.5)})})
    of[10] = trained.model_copy(update={"results": (broken, *trained.results[1:])})
    notes: list[str] = []
    with Tracker(["tensorboard"], tmp_path, notes.append) as tracker:
        for entry in example.entries(of):
            tracker.feed(entry)
    assert [v.step for v in board(tmp_path)["g0000-00"] if v.tag == "curves/success"] == [1000]
    assert tracker.failed == [] and len(notes) == 1


def test_a_full_disk_is_reported_and_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tensorboardX")
    from tensorboardX import RecordWriter

    notes: list[str] = []
    with Tracker(["tensorboard"], tmp_path, notes.append) as tracker:
        for entry in WHOLE:
            if entry.seq == 8:
                monkeypatch.setattr(
                    RecordWriter, "flush", lambda _: (_ for _ in ()).throw(OSError(28, "No space left"))
                )
            tracker.feed(entry)
    assert len([note for note in notes if "No space left" in note]) == 1


# ---- Weights & Biases


class Run:
    """A run of W&B's as far as the sink uses it; rows of the past are refused, as W&B does."""

    disabled, offline, url, dir, id = False, True, "", "/runs/x/wandb/offline-run/files", "id"

    def __init__(self, rows: dict[int, dict[str, Any]]) -> None:
        self.rows = rows
        self.refused: list[int] = []
        self.ended: list[int] = []

    def define_metric(self, *_: Any, **__: Any) -> None: ...

    def log(self, values: dict[str, Any], step: int) -> None:
        if step in self.rows or step < max(self.rows, default=-1):
            self.refused.append(step)
        self.rows.setdefault(step, values)

    def finish(self, exit_code: int) -> None:
        self.ended.append(exit_code)


@dataclasses.dataclass
class FakeWandb:
    """`wandb` with the functions that the sink calls; `begun` are the arguments of `init`."""

    rows: dict[int, dict[str, Any]] = dataclasses.field(default_factory=dict)
    begun: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    runs: list[Run] = dataclasses.field(default_factory=list)

    def init(self, **arguments: Any) -> Run:
        self.begun.append(arguments)
        self.runs.append(Run(self.rows))
        return self.runs[-1]

    def Settings(self, **settings: Any) -> dict[str, Any]:
        return settings

    def Html(self, text: str, **_: Any) -> str:
        return text

    def Table(self, columns: list[str], data: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
        assert all(len(row) == len(columns) for row in data)
        return columns, data


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    import sys

    monkeypatch.setitem(sys.modules, "wandb", made := FakeWandb())  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize("at", [1, 11, 12, 22, 24])
def test_wandb_has_one_run_with_each_row_once(fake: FakeWandb, tmp_path: Path, at: int):
    for entries in (WHOLE[:at], WHOLE):
        with Tracker(["wandb"], tmp_path, lambda _: None) as tracker:
            for entry in entries:
                tracker.feed(entry)
        assert tracker.failed == []
    assert len({run["id"] for run in fake.begun}) == 1 and all(run["resume"] == "allow" for run in fake.begun)
    assert all(run.refused == [] and run.ended == [0] for run in fake.runs)
    rows = list(fake.rows.values())
    assert [row["score/best_so_far"] for row in rows if "score/best_so_far" in row] == [0.4, 0.4, 0.9, 0.9]
    assert sum("best_program" in row for row in rows) == 2
    columns, lines = rows[-1]["candidates"]
    assert len(lines) == 8 and lines[4][columns.index("score")] == 0.9 and len(rows[-1]["learning_curves"][1]) == 24


def test_wandb_gets_no_information_about_the_machine(fake: FakeWandb, tmp_path: Path):
    with Tracker(["wandb"], tmp_path, lambda _: None) as tracker:
        tracker.feed(WHOLE[0])
    settings = fake.begun[0]["settings"]
    assert settings["console"] == "off" and settings["x_disable_meta"] and settings["disable_git"]


def test_wandb_itself_takes_a_run_offline_and_keeps_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The real package, where it is installed: it takes what it is given, and keeps no key."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_API_KEY", example.SECRET)
    path = example.write_run(tmp_path / "run")
    notes: list[str] = []
    require(["wandb"])
    with Tracker(["wandb"], path, notes.append) as tracker:
        for entry in WHOLE:
            tracker.feed(entry)
    assert tracker.failed == [] and "wandb sync" in notes[0]
    written = [file for file in (path / "wandb").rglob("*") if file.is_file()]
    assert any(file.suffix == ".wandb" for file in written)
    assert not any(example.SECRET.encode() in file.read_bytes() for file in written)
