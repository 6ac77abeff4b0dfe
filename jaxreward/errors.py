"""The one exception for mistakes a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """A mistake outside the code: one clear sentence that says what to do.

    Commands print it without a traceback and exit with status 2.
    """
