"""Tasks, strategies and proposers that are Python files: which of them a command executes.

What a user types is the user's. What a run's folder, or the header of an interface, names may be anybody's: such a file
is executed only when it is named again on the command line.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from jaxreward.config import class_of, file_of, is_file, lead_to_the_same, named
from jaxreward.errors import FileProblem, UnusableFile, UserError, why_unreadable
from jaxreward.runs.provenance import named_task
from jaxreward.runs.resume_options import COPIES


def named_again(recorded: str, typed: str, where: str, run: Path | None = None, option: str = "task") -> str:
    """The name of the task to make, where something that may be another person's names `recorded`; of the strategy or
    the proposer with that `option`.

    Args:
        typed: what the user typed behind the option; empty for nothing.
        where: what names it, for the sentence.
        run: the folder of a run, which may hold a copy of the file: a file with the same text is as good as the one
            that was recorded, which may lie on another machine.

    Raises:
        UserError: `recorded` is a Python file, and the user did not name it, or has another version of it. Nothing was
            executed.
    """
    if not is_file(recorded):
        return recorded
    copy = run / COPIES[option] if run is not None and (run / COPIES[option]).is_file() else None
    kinds = {class_of(typed), class_of(recorded)} - {""}
    if is_file(typed) and lead_to_the_same(typed, recorded):
        if copy is not None and _text(file_of(typed), option) != _text(copy, option):
            raise UserError(
                f"{file_of(typed)} has changed since {where} began with it: its copy is {copy}; give that back, or say "
                f"--{option} {shlex.quote(named(copy, class_of(recorded)))}"
            )
        return recorded
    if is_file(typed) and copy is not None and len(kinds) < 2 and _text(file_of(typed), option) == _text(copy, option):
        return named(file_of(typed).absolute(), class_of(recorded))
    there = recorded if copy is None or file_of(recorded).is_file() else named(copy, class_of(recorded))
    other = f", and --{option} {typed} is another" if typed else ""
    raise UserError(
        f"{where} names the Python file {recorded} as its {option}{other}, which would be executed: look at it first, "
        f"then say --{option} {shlex.quote(there)}"
    )


def task_of_interface(source: str, typed: str, path: Path) -> tuple[str, ...]:
    """The task of the interface in `path` and its options as KEY=VALUE: what the user typed behind `--task`, or what
    the first lines of `source` name. Options that stand there count where the user names the same file.

    Raises:
        UserError: neither names one, or a Python file stands there that the user did not name.
    """
    recorded, *options = named_task(source) or ("",)
    if typed and not (is_file(typed) and is_file(recorded) and lead_to_the_same(typed, recorded)):
        return (typed,)
    if not recorded:
        raise UserError(f"{path} does not say which task it is for: give --task NAME")
    return named_again(recorded, typed, f"the header of {path}"), *options


def _text(file: Path, option: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UnusableFile(f"there is no file {file} to take a {option} from", file, FileProblem.MISSING) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableFile(f"{file} cannot be read: {why_unreadable(error)}", file, FileProblem.UNREADABLE) from error
