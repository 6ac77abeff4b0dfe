"""A clear error for values in a run's files that no run writes and that fail where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxreward.errors import FileProblem, UnusableFile, in_a_line

_ERRORS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, StopIteration)


@contextmanager
def explain_malformed(path: Path) -> Iterator[None]:
    """Turn the errors that such values cause inside the block into an `UnusableFile` that names the run in `path`.

    Every line of a log is validated when it is read, but an edited or forged file may hold settings, numbers and names
    that cannot be used.
    """
    try:
        yield
    except _ERRORS as error:
        raise UnusableFile(
            f"{path} holds something that no run of jaxreward writes ({in_a_line(error)}): restore it from a copy",
            path,
            FileProblem.DAMAGED,
        ) from error
