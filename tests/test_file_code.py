"""A search with Python files goes on with the code that it began with, also that of modules which they import."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import jaxreward as jr
from jaxreward.comparison.cells import SearchCell, SparseCell
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.finished_searches import Sparse
from jaxreward.errors import UserError
from jaxreward.evolution import ask, file_code
from jaxreward.evolution.file_code import code_of, require_same_code
from jaxreward.evolution.python_settings import search_settings
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup, save_files
from jaxreward.identity import Identity
from jaxreward.identity.parts import MOST, Parts, difference
from jaxreward.programs import Program
from jaxreward.proposers import registry as proposers
from jaxreward.records import Proposal, Score
from jaxreward.runs import Asked, Proposed, Run, RunStarted, read_log
from jaxreward.runs.events import AskedRequest, json_ready
from jaxreward.runs.provenance import versions
from jaxreward.search import registry as strategies
from jaxreward.tasks import from_file
from tests.silent import Silent
from tests.test_cli import outcome
from tests.test_own_files import PROPOSER, STRATEGY

TASK = '''
from dataclasses import dataclass
from enum import Enum

import helping.deep
from helping import GAIN, shift
from jaxreward.tasks.probe import Probe


class Mode(Enum):
    FAST = 1


@dataclass(frozen=True)
class Mine(Probe):
    """A bit."""

    kind: str = "choice"
    mode: Mode = Mode.FAST

    def success(self, state):
        return helping.deep.near(shift(state.hit) * GAIN)
'''
HELPER = "GAIN = 2.0\nPASSWORD = 'one'\nUNUSED = 1\n\n\ndef shift(x, by=0.5):\n    PASSWORD\n    return x + by\n"
DEEP = "def near(x):\n    return x > 1\n"
MADE = """
import jax.numpy as jnp

import jaxreward as jr
from helping import GAIN
from jaxreward.records import Measure
from jaxreward.tasks.metrics import Sum

score = Sum(lambda state, action, after: after["x"] * GAIN, Measure(name="x", rate=False))
task = jr.from_functions(
    lambda key: {"x": jnp.zeros(())}, lambda state, action: state, jr.Discrete(2), 5,
    observation=lambda view: view["x"][None], terminated=lambda state: state["x"] > 1, score=score,
)
"""
VALIDATE = "    def _validate(self):\n        shift(self.first)"
CLIMB = "from helping import shift\n" + STRATEGY.replace("    def _validate(self):\n        pass", VALIDATE)
FIXED = "from helping import shift\n" + PROPOSER.replace("{rng.random():.6f}", "{shift(rng.random()):.6f}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    package = tmp_path / "helping"
    package.mkdir()
    (package / "__init__.py").write_text(HELPER)
    (package / "deep.py").write_text(DEEP)
    for name, text in (("mine", TASK), ("climb", CLIMB), ("fixed", FIXED)):
        (tmp_path / f"{name}.py").write_text(text)
    another_process()
    return tmp_path


def another_process() -> None:
    """Forget what was imported from files."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "helping" or n.startswith("jaxreward_file_")]:
        del sys.modules[name]
    for known in (from_file._made, strategies._own, proposers._of_files, file_code._known):
        known.clear()  # type: ignore[attr-defined]


def changed(file: str, old: str, new: str) -> None:
    """Change a file, and forget what was imported from it."""
    path = Path(file)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    another_process()


def code(file: str = "mine.py") -> Identity:
    settings = EvolveSettings(task=str(Path(file).absolute()))
    return code_of(settings, settings.make_task())["task"]


IMPORTED = [
    ("helping/__init__.py", "GAIN = 2.0", "GAIN = 3.0", "GAIN was 2.0 and is 3.0"),
    ("helping/__init__.py", "by=0.5", "by=0.7", "helping.shift(by) was 0.5 and is 0.7"),
    ("helping/__init__.py", "x + by", "x - by", "the source of helping.shift has changed"),
    ("helping/deep.py", "x > 1", "x > 2", "the source of helping.deep.near has changed"),
    ("helping/__init__.py", "'one'", "'two'", ""),
]


def test_what_a_file_imports_counts_and_is_the_same_in_every_process(folder: Path):
    before = code()
    assert code() is before
    another_process()
    (folder / "elsewhere").mkdir()
    shutil.copy("mine.py", "elsewhere/task.py")
    assert code() == code("elsewhere/task.py") == before, "modules of files have another name in every process"
    assert not any(word in str(before) for word in ("jaxreward_file_", "mine", "elsewhere", str(folder), "one'"))
    for file, old, new, says in IMPORTED:
        changed(file, old, new)
        now = code()
        assert now.text != before.text and difference("task", before.parts, now.parts) == says
        changed(file, new, old)
    changed("helping/__init__.py", "UNUSED = 1", "UNUSED = 2  # never read")
    assert code() == before


def test_the_functions_of_a_task_that_a_file_makes_itself_count(folder: Path):
    Path("made.py").write_text(MADE)
    before = code("made.py")
    assert before.parts["._metric.figure"].startswith("function ")
    changed("helping/__init__.py", "GAIN = 2.0", "GAIN = 3.0")
    assert difference("task", before.parts, code("made.py").parts) == "GAIN was 2.0 and is 3.0"


@pytest.mark.long
def test_asking_records_the_code_and_is_refused_with_another(folder: Path):
    settings = EvolveSettings(task=str(folder / "mine.py"), strategy=str(folder / "climb.py"), proposer="manual")
    settings = dataclasses.replace(settings, name="run", candidates=2, out=folder / "runs")
    strategies.load_strategy(settings.strategy)
    ask(settings, Silent())
    started = read_log(folder / "runs/run/events.jsonl")[0].event
    assert isinstance(started, RunStarted) and started.code.keys() == started.parts.keys() == {"task", "strategy"}
    assert started.parts["task"]["GAIN"] == "2.0" and started.objects == {}
    log = (folder / "runs/run/events.jsonl").read_bytes()
    changed("helping/__init__.py", "by=0.5", "by=0.7")
    strategies.load_strategy(settings.strategy)
    with pytest.raises(
        UserError, match=r"helping.shift\(by\) was 0.5 and is 0.7; give that back, or start another run"
    ):
        ask(dataclasses.replace(settings, resume=True), Silent())
    assert (folder / "runs/run/events.jsonl").read_bytes() == log


def began(settings: EvolveSettings, code: Mapping[str, Identity], of: dict[str, str] | None = None) -> None:
    """Write a run that began with these settings and that code, with packages of the versions `of`."""
    config = settings.as_config()
    with Run.create(settings.out / settings.run_name, config) as run:
        run.append(RunStarted(
            config=config, task=settings.task, strategy=settings.strategy, proposer=settings.proposer,
            versions=versions() if of is None else of, code={option: c.text for option, c in code.items()},
            parts={option: dict(c.parts) for option, c in code.items()},
        ))  # fmt: skip
        run.append(Asked(generation=0, requests=(AskedRequest(id="g0000-00", operator="scratch"),)))
        run.append(Proposed(proposal=Proposal(request_id="g0000-00")))
    save_files(settings, run.path)


@pytest.mark.parametrize(("option", "file"), [("task", "mine.py"), ("strategy", "climb.py"), ("proposer", "fixed.py")])
def test_the_call_and_the_command_refuse_other_code(option, file, folder: Path, capsys: pytest.CaptureFixture[str]):
    given: dict[str, Any] = {"task": "probe-choice", option: file}
    how: dict[str, Any] = {"name": "run", "candidates": 2, "progress": False}
    settings = search_settings(
        given["task"], given.get("strategy", "limen"), given.get("proposer", "genetic"), "quick",
        {"name": "run", "candidates": 2},
    )[0]  # fmt: skip
    began(settings, Setup.of(settings).code)
    assert Setup.of(dataclasses.replace(settings, resume=True)).code.keys() == {option}
    log = Path("runs/run/events.jsonl").read_bytes()
    changed("helping/__init__.py", "by=0.5", "by=0.7")
    says = f"{file}, or a module that it imports, has changed since runs/run began with it: "
    with pytest.raises(UserError) as error:
        jr.evolve(**given, **how)
    assert says in str(error.value) and "(by) was 0.5 and is 0.7; give that back, or " in str(error.value)
    assert "name=" in str(error.value) and "--" not in str(error.value)
    another_process()
    status, _, err = outcome(capsys, "evolve", "--resume", "--name", "run", f"--{option}", file)
    assert status == 2 and says in err and "start another run with --name" in err and err.count("\n") == 1
    assert Path("runs/run/events.jsonl").read_bytes() == log


def test_logs_of_other_versions_are_gone_on_with(folder: Path):
    settings = EvolveSettings(task=str(folder / "mine.py"), out=folder / "runs", name="without")
    parts = {**code().parts, "of an earlier version": "1"}
    began(settings, {})
    began(dataclasses.replace(settings, name="earlier"), {"task": Identity("other", parts)}, of={"jax": "0.1"})

    def go_on(name: str) -> None:
        require_same_code(folder / "runs" / name, settings, code_of(settings, settings.make_task()))

    go_on("without")
    go_on("earlier")
    changed("helping/__init__.py", "GAIN = 2.0", "GAIN = 3.0")
    go_on("without")
    with pytest.raises(UserError, match="GAIN was 2.0 and is 3.0"):
        go_on("earlier")


def test_a_comparison_refuses_other_code(folder: Path):
    def cells() -> tuple[SparseCell, SearchCell]:
        s = CompareSettings(tasks=(str(folder / "mine.py"),), strategies=("limen",), search_seeds=1, out=folder / "out")
        sparse, search = s.cells()
        assert isinstance(sparse, SparseCell) and isinstance(search, SearchCell)
        return sparse, search

    sparse, search = cells()
    settings, task = sparse.settings, search.settings.make_task()
    code = code_of(search.settings, task)
    began(search.settings, code)
    known = Sparse(
        task=settings.task, digest=Program.default(task).digest, seeds=settings.final_seeds, steps=settings.steps,
        ppo=json_ready(settings.as_config())["ppo"], score=Score(mean=0.5, se=0.1, n=1, episodes=8),
        code=code["task"].text, parts=dict(code["task"].parts), versions=versions(),
    )  # fmt: skip
    sparse.path.write_text(known.model_dump_json())
    for cell in cells():
        cell.require_same(task)
    changed("helping/__init__.py", "GAIN = 2.0", "GAIN = 3.0")
    for cell in cells():
        with pytest.raises(UserError, match="GAIN was 2.0 and is 3.0; give that back, or compare in another folder"):
            cell.require_same(search.settings.make_task())


def test_a_difference_is_told_in_words():
    def of(one: str, other: str) -> str:
        return difference("task", {".a": "1", ".x": one}, {".a": "1", ".x": other})

    assert of("7", "9") == "task.x was 7 and is 9"
    assert of("7", "values #0123456789ab") == "task.x was 7 and is values"
    assert of("array float32 (9,) #0123456789ab", "array float32 (9,) #ab0123456789") == "task.x has other values"
    assert difference("task", {".x": "7"}, {}) == "task.x is gone" and difference("task", {}, {".x": "7"}).endswith(
        "new"
    )
    full = {f".{k}": "1" for k in range(MOST)}
    assert difference("task", full, {**full, ".y": "1"}) == "", "it may have been left out before"


def test_parts_hold_no_secrets_and_are_few():
    class Holder:
        def __init__(self, key: str, **more: Any) -> None:
            self.api_key, self.more, self.size = key, more, 7

    given = Holder("of words", headers={"Authorization": "words"}, url="a8Xb71LmZ0", tokens={"words"}, raw=b"words")
    identity = Identity.of(given)
    assert "words" not in str(identity) and "a8Xb71LmZ0" not in str(identity)
    assert identity.parts[".size"] == "7" and Identity.of(Holder("another key")).text != identity.text
    many = Parts()
    for k in range(2 * MOST):
        with many.at(f"[{k}]"):
            many.value("x" * 1000, "0123456789ab")
    assert len(many.kept()) == MOST and len(str(many.kept())) < 100 * MOST
