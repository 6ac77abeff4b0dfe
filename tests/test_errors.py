"""Exceptions with fields."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path

import pytest

from jaxreward.commands.output import warnings_in_a_line
from jaxreward.errors import (
    CallProblem,
    ChangedSetting,
    EndCause,
    FileProblem,
    InvalidSetting,
    JaxrewardWarning,
    MissingPackage,
    ProposerStopped,
    UnknownName,
    UnusableFile,
    UserError,
    problem_of,
)
from jaxreward.exports.targets import UnsuitableTarget
from jaxreward.files import read_text
from jaxreward.programs import ProgramRejected
from jaxreward.programs.process import NoSandbox
from jaxreward.records import Failure, Verdict
from jaxreward.tasks.finding import Finding
from jaxreward.tasks.validation import InvalidTask
from jaxreward.training.executor import WorkerLost, WorkersLost

ERRORS = [
    UserError("give it a name"),
    UnknownName("task", "xland-eazy", ("xland-easy",)),
    InvalidSetting("steps must be positive", "steps", "ppo.envs"),
    ChangedSetting("the run has another task", "task"),
    UnusableFile("line 3 is damaged", "run.toml", FileProblem.DAMAGED, 3),
    MissingPackage("install litellm", "litellm"),
    NoSandbox("this is plan9"),
    ProgramRejected("mine.py", Verdict(failure=Failure(stage="guard", message="no", line=3))),
    InvalidTask((Finding("`step` fails", "ball.py", 4), Finding("`view` fails"))),
    WorkersLost(1, 3, WorkerLost("gone")),
    ProposerStopped("set a key", EndCause.ENDPOINT, later=False, problem=CallProblem.NO_KEY),
    UnsuitableTarget("brax", "xland-easy", ("plain", "gymnasium")),
]


@pytest.mark.parametrize("error", ERRORS, ids=[type(error).__name__ for error in ERRORS])
def test_an_error_of_another_process_keeps_its_sentence_and_fields(error: UserError):
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


def test_the_problem_of_a_file_follows_from_the_error_of_reading_it(tmp_path: Path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, problem in (
        ("nothing", FileProblem.MISSING), ("binary", FileProblem.WRONG_KIND), (".", FileProblem.WRONG_KIND)
    ):  # fmt: skip
        with pytest.raises((OSError, UnicodeError)) as error:
            read_text(tmp_path / name)
        assert problem_of(error.value) is problem
    assert problem_of(PermissionError(13, "Permission denied")) is FileProblem.UNREADABLE


def test_a_command_prints_warnings_of_this_package_in_a_line_each_time(capsys):
    with warnings.catch_warnings():
        warnings.resetwarnings()
        shown = warnings.showwarning
        with warnings_in_a_line("evolve"):
            for _ in range(2):
                warnings.warn("of a worker:\n  gone", JaxrewardWarning, stacklevel=1)
            with pytest.warns(UserWarning, match="of something else"):
                warnings.warn("of something else", UserWarning, stacklevel=1)
        assert capsys.readouterr().err == 2 * "jaxreward evolve: warning: of a worker: gone\n"
        assert warnings.showwarning is shown


def test_a_filter_of_the_user_comes_first(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JaxrewardWarning)
        with warnings_in_a_line("evolve"):
            warnings.warn("of a worker", JaxrewardWarning, stacklevel=1)
    assert capsys.readouterr().err == ""
