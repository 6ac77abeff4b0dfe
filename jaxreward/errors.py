"""The exceptions for mistakes a user can mend, and for work that cannot go on now."""

from __future__ import annotations

USAGE_EXIT_CODE = 2
"""What a command leaves with after a mistake that has to be mended first."""


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
