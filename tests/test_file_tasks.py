"""A task file that a run's folder or an interface names is executed only when the command line names it again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jaxreward.evolution.settings import EvolveSettings
from jaxreward.runs import Asked, Paused, Run, RunStarted, read_log
from jaxreward.runs.events import AskedRequest
from jaxreward.runs.provenance import Provenance, named_task, with_header
from jaxreward.runs.resume_options import COPIES
from jaxreward.user_files import imported
from tests.test_cli import outcome

TASK = COPIES["task"]
TASK_TEXT = """
from dataclasses import dataclass
from pathlib import Path

from jaxreward.tasks.probe import Probe

Path(__file__).with_name("executed").touch()


@dataclass(frozen=True)
class Mine(Probe):
    kind: str = "choice"
"""
PROGRAM = (
    "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return jnp.stack([state.signal])\n\n\n"
    "def compute_reward(state, action, next_state):\n    return next_state.hit.astype(jnp.float32)\n"
)


class Sent:
    """A run that somebody sent, in `runs/sent`, whose task is a file elsewhere; nothing of it is executed yet."""

    def __init__(self, folder: Path, proposer: str = "genetic") -> None:
        (folder / "elsewhere").mkdir()
        self.file = folder / "elsewhere" / "mine.py"
        self.file.write_text(TASK_TEXT)
        self.path = folder / "runs" / "sent"
        settings = EvolveSettings(task=str(self.file), proposer=proposer)
        with Run.create(self.path, settings.as_config()) as run:
            run.append(
                RunStarted(config=settings.as_config(), task=str(self.file), strategy="limen", proposer=proposer)
            )
            run.append(Asked(generation=0, requests=(AskedRequest(id="g0000-00", operator="scratch"),)))
            run.append(Paused(reason="stopped by SIGTERM"))
            (self.path / TASK).write_text(TASK_TEXT)
            program = with_header(PROGRAM, Provenance(task=str(self.file), digest="d"))
            (self.path / "best_interface.py").write_text(program)

    @property
    def executed(self) -> bool:
        return (self.file.parent / "executed").exists() or (self.path / "executed").exists()

    def state(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in sorted(self.path.rglob("*")) if p.is_file() and p.name != "events.lock"}


@pytest.fixture
def sent(tmp_path, monkeypatch) -> Sent:
    monkeypatch.chdir(tmp_path)
    return Sent(tmp_path)


COMMANDS = [
    ["prompt", "show", "--run", "sent"],
    ["evolve", "--resume", "--name", "sent"],
    ["evolve", "--resume", "--name", "sent", "--dry-run"],
    ["evolve", "--proposer", "replay", "--recording", "runs/sent", "--dry-run"],
    ["evolve", "--config", "runs/sent/config.toml", "--dry-run"],
    ["export", "sent", "--to", "plain"],
    ["film", "runs/sent/best_interface.py"],
]


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_no_command_executes_the_task_of_a_run_unasked(argv, sent, capsys):
    before = sent.state()
    status, _, err = outcome(capsys, *argv)
    assert status == 2 and err.count("\n") == 1
    assert f"names the Python file {sent.file} as its task, which would be executed: look at it first, then say" in err
    assert f"--task {sent.file}" in err
    assert not sent.executed and sent.state() == before


@pytest.mark.parametrize("command", ["ask", "tell"])
def test_ask_and_tell_do_not_execute_the_task_of_a_run_unasked(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sent = Sent(tmp_path, "manual")
    status, _, err = outcome(capsys, command, "--name", "sent")
    assert status == 2 and f"--task {sent.file}" in err and not sent.executed


def test_film_does_not_execute_the_task_of_a_run_unasked(sent, capsys, monkeypatch):
    import jaxreward.commands.film as film

    monkeypatch.setattr(film, "_candidate", lambda facts, id: None)
    status, _, err = outcome(capsys, "film", "sent")
    assert status == 2 and f"say --task {sent.file}" in err and not sent.executed


def ways(sent: Sent) -> dict[str, str]:
    (link := Path("link.py")).symlink_to(sent.file)
    return {
        "absolute": str(sent.file),
        "relative": "elsewhere/mine.py",
        "around": "runs/../elsewhere/mine.py",
        "link": str(link),
        "copy in the run": str(sent.path / TASK),
    }


@pytest.mark.slow
@pytest.mark.parametrize("way", ["absolute", "relative", "around", "link", "copy in the run"])
def test_any_path_to_the_file_names_the_task(way, sent, capsys):
    said = ways(sent)[way]
    status, out, err = outcome(capsys, "prompt", "show", "--run", "sent", "--task", said)
    assert status == 0, err
    assert "Choose action 1 if the signal is 1" in out
    status, _, err = outcome(capsys, "evolve", "--resume", "--name", "sent", "--task", said, "--dry-run")
    assert status == 0, err
    assert ("mine.py" in err or "mine.py" in outcome(capsys, "runs", "list")[1]) and sent.executed


def test_a_file_that_moved_is_known_by_its_text(sent, capsys):
    moved = Path("moved.py")
    os.replace(sent.file, moved)
    status, _, err = outcome(capsys, "prompt", "show", "--run", "sent")
    assert status == 2 and f"say --task {sent.path.relative_to(Path.cwd()) / TASK}" in err, "the copy can be looked at"
    assert outcome(capsys, "prompt", "show", "--run", "sent", "--task", "moved.py")[0] == 0


def test_another_file_is_not_the_task(sent, capsys):
    Path("other.py").write_text(TASK_TEXT + "\n# another\n")
    status, _, err = outcome(capsys, "prompt", "show", "--run", "sent", "--task", "other.py")
    assert status == 2 and "and --task other.py is another" in err and not Path("executed").exists()


def test_a_file_that_has_changed_is_not_the_task_any_more(sent, capsys):
    before = sent.state()
    sent.file.write_text(TASK_TEXT + "\n# changed\n")
    status, _, err = outcome(capsys, "prompt", "show", "--run", "sent", "--task", str(sent.file))
    assert status == 2 and "has changed since the run runs/sent began with it" in err and not sent.executed
    status, _, err = outcome(capsys, "evolve", "--resume", "--name", "sent", "--task", str(sent.file))
    assert status == 2 and f"say --task runs/sent/{TASK}" in err and sent.state() == before


def test_the_class_must_be_the_same(tmp_path, monkeypatch):
    from jaxreward.config import lead_to_the_same

    monkeypatch.chdir(tmp_path)
    Path("a.py").touch()
    assert lead_to_the_same("a.py", f"{tmp_path}/a.py:One")
    assert lead_to_the_same("./a.py:One", f"{tmp_path}/a.py:One")
    assert not lead_to_the_same("a.py:Two", f"{tmp_path}/a.py:One")
    assert not lead_to_the_same("b.py", f"{tmp_path}/a.py")


@pytest.mark.long
def test_lists_and_exported_modules_show_the_name_of_the_file(sent, capsys):
    assert str(sent.file) not in outcome(capsys, "runs", "list")[1]
    _, out, _ = outcome(capsys, "runs", "show", "sent")
    assert "mine.py" in out and str(sent.file) not in out
    assert "--task elsewhere/mine.py --name sent --resume" in out, "what is typed to go on says the task"
    assert "look at them first" not in out
    moved = sent.file.rename(sent.file.with_name("moved.py"))
    _, out, _ = outcome(capsys, "runs", "show", "sent")
    assert f"--task {sent.path.relative_to(Path.cwd()) / TASK} --name sent" in out and "look at them first" in out
    moved.rename(sent.file)
    assert str(sent.file) not in outcome(capsys, "runs", "list", "--json")[1]
    status, out, err = outcome(capsys, "report", "sent")
    assert status == 0, err
    page = (sent.path / "report.html").read_text()
    assert str(sent.file) not in page
    title = page[page.index("<title>") : page.index("</title>")]
    assert "mine.py" in title
    status, out, err = outcome(capsys, "export", "sent", "--to", "gymnasium", "--task", "elsewhere/mine.py")
    assert status == 0, err
    module = Path("mine_gymnasium.py").read_text()
    assert str(sent.file) not in module and "# task: mine.py\n" in module
    assert 'str(Path(__file__).parent / "elsewhere/mine.py")' in module
    assert "mine.py for gymnasium" in out


def test_paths_with_blanks_are_found_again():
    task = "'/a b/mine.py' length=3"
    assert named_task(with_header(PROGRAM, Provenance(task=task, digest="d"))) == ("/a b/mine.py", "length=3")


def test_runs_of_earlier_versions_are_read(sent):
    assert [entry.event.type for entry in read_log(sent.path / "events.jsonl")] == ["run_started", "asked", "paused"]


def test_a_file_finds_the_modules_beside_it_and_they_hide_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "wind_of_mine.py").write_text("SPEED = 3.0\n")
    (tmp_path / "colorsys.py").write_text("raise RuntimeError\n")
    file = tmp_path / "sail.py"
    file.write_text("import colorsys\n\nfrom wind_of_mine import SPEED\n")
    assert imported(file).SPEED == 3.0
    sys.modules.pop("wind_of_mine")


def test_an_edited_module_beside_a_file_is_imported_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a notebook would go on with the old one, and not say so."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    helper, file = tmp_path / "tide_of_mine.py", tmp_path / "boat.py"
    helper.write_text("SPEED = 3.0\n")
    file.write_text("from tide_of_mine import SPEED\n")
    first = imported(file)
    assert first.SPEED == 3.0 and imported(file) is first
    helper.write_text("SPEED = 4.0\n")
    os.utime(helper, ns=(1, 1))
    second = imported(file)
    assert second.SPEED == 4.0 and imported(file) is second
    file.write_text("from tide_of_mine import SPEED as FAST\n")
    helper.write_text("SPEED = 5.0\n")
    os.utime(helper, ns=(2, 2))
    assert imported(file).FAST == 5.0
    sys.modules.pop("tide_of_mine")
