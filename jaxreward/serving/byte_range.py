"""The `Range` of a request (RFC 9110, section 14), by which browsers seek in videos."""

from __future__ import annotations

import re

_ONE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Unsatisfiable(ValueError):
    """The range begins after the end of the file."""


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first byte and the one after the last that are asked for; None for all of the file, which also answers
    several ranges and what is no range.

    Raises:
        Unsatisfiable: no byte of the file lies in the range.
    """
    found = _ONE.fullmatch((header or "").replace(" ", ""))
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:  # the last n bytes
        if not int(last) or not size:
            raise Unsatisfiable
        return max(0, size - int(last)), size
    begin, end = int(first), min(size, int(last) + 1) if last else size
    if last and int(last) < begin:
        return None
    if begin >= size:
        raise Unsatisfiable
    return begin, end
