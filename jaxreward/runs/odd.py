"""What a run's files can say that no run writes, and that is found only when it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxreward.errors import UserError, in_a_line

_ODD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, StopIteration)


@contextmanager
def as_written(path: Path) -> Iterator[None]:
    """Work on what the files of the run in `path` say.

    Each line of a log is checked by itself when it is read, but a file that was edited or made by somebody may hold
    settings, numbers and names that nothing can be done with.

    Raises:
        UserError: in place of the errors that such values cause.
    """
    try:
        yield
    except _ODD as error:
        raise UserError(
            f"{path} holds something that no run of jaxreward writes ({in_a_line(error)}): restore it from a copy"
        ) from error
