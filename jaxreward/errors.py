"""The exceptions for mistakes a user can mend, and for work that cannot go on now."""

from __future__ import annotations

from pathlib import Path
from traceback import walk_tb

USAGE_EXIT_CODE = 2
"""What a command leaves with after a mistake that has to be mended first."""


FAILED_EXIT_CODE = 1
"""What a command leaves with that did what it was told, where what came of it is no good."""


class UserError(Exception):
    """A mistake outside the code: one clear sentence that says what to do.

    Commands print it without a traceback and exit with status 2.
    """


class ProposerStopped(UserError):
    """A proposer cannot go on; what it did so far is kept and the run can be resumed.

    `later` is whether the same command may succeed later with nothing changed: an endpoint that is
    down, a person who has not answered yet.
    """

    def __init__(self, message: str, *, later: bool) -> None:
        super().__init__(message)
        self.later = later


FILE_OF_USER = "_jaxreward_file_of_user"
"""A global of the modules that are made of a user's file: its path."""


def users_line(error: BaseException) -> str:
    """Where in a file of the user's an exception rose, `(FILE.py, line 3)` as a SyntaxError says it; else empty."""
    lines = [(frame.f_globals.get(FILE_OF_USER), line) for frame, line in walk_tb(error.__traceback__)]
    own = [(Path(file).name, line) for file, line in lines if file]
    return f"({own[-1][0]}, line {own[-1][1]})" if own else ""


def in_a_line(error: BaseException) -> str:
    """An exception of code that is not ours as part of a sentence: its kind, what it says, where in a user's file."""
    said = " ".join(str(error).split())
    return " ".join(
        filter(None, [f"{type(error).__name__}:" if said else type(error).__name__, said, users_line(error)])
    )


def why_unreadable(error: Exception) -> str:
    """Why a file cannot be read, in words."""
    if isinstance(error, UnicodeError):
        return "it is not text in UTF-8"
    return (isinstance(error, OSError) and error.strerror) or str(error)
