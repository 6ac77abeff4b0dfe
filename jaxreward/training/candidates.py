"""What `train` is given, as programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxreward.errors import InvalidSetting
from jaxreward.function_source import name_of, role_of
from jaxreward.programs import Program, load_program
from jaxreward.tasks import Task
from jaxreward.value_words import short

Candidate = Program | Callable[..., Any] | tuple[Callable[..., Any], Callable[..., Any]] | Path
"""A program, or what `load_program` makes one of: a function, a pair of functions, a path."""


def programs_of(given: Candidate | Sequence[Candidate], task: Task, trusted: bool) -> tuple[Program, ...]:
    """The candidates as programs, those of functions named after them.

    Raises:
        InvalidSetting: none, or a pair that may mean one candidate or two.
        UserError: functions that make no program, see `load_program`.
    """
    if isinstance(given, Program | Path) or callable(given):
        given = [given]
    if not isinstance(given, str | Sequence | None):
        raise InvalidSetting(f"programs are a list of programs, functions or paths, not {short(given)}", "programs")
    if isinstance(given, str):
        raise InvalidSetting("programs are a list: write [path], or jr.load_program(text, task)", "programs")
    if isinstance(given, tuple) and len(given) == 2 and all(callable(f) for f in given):
        kinds = {role_of(f) == "get_observation" for f in given if callable(f)}
        if len(kinds) == 2:
            one, other = (name_of(f) for f in given)
            message = f"write [({one}, {other})] for one candidate of both functions, or [{one}, {other}] for two"
            raise InvalidSetting(message, "programs")
    if not given:
        raise InvalidSetting("there is no program to train; give at least one", "programs")
    return tuple(p if isinstance(p, Program) else load_program(p, task, trusted=trusted and _is_own(p)) for p in given)


def _is_own(candidate: Any) -> bool:
    """Whether it is made of functions: files are checked in any case."""
    return not isinstance(candidate, str | Path)
