"""JSON and TOML that somebody else may have written: what cannot be read is a ValueError with a reason, whatever it is.

Python's readers take numbers that are infinite, raise RecursionError for deep nesting, and leave data behind that
nests so deeply that whoever walks it fails.
"""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any, NoReturn

DEEPEST = 64
"""Lists and tables within each other."""

_LARGEST_INT = 1 << 63


class Malformed(ValueError):
    """Why a document is refused, as part of a sentence: `it nests too deeply`."""


class Garbled(Malformed):
    """It is no text, or not of the format at all: what a crash leaves of a line."""


def parse_json(text: str | bytes) -> Any:
    """The value that a JSON document is.

    Raises:
        Malformed: it is not text or not JSON, nests more than `DEEPEST` levels deep, or has a number that is not
            finite or an integer beyond 64 bits.
    """
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise Garbled("it is not text") from None
    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_float, parse_int=_int)
    except RecursionError:
        raise Malformed("it nests too deeply") from None
    except json.JSONDecodeError:
        raise Garbled("it is not JSON") from None
    _require_shallow(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """The table that a TOML document is.

    Raises:
        Malformed: it is not TOML, with the reason, or nests more than `DEEPEST` levels deep.
    """
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise Malformed("it nests too deeply") from None
    except ValueError as error:  # TOMLDecodeError, or an integer of too many digits
        raise Malformed(str(error)) from None
    _require_shallow(value)
    return value


def _require_shallow(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    raise Malformed("it nests too deeply")


def _inner(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [v for v in inner if isinstance(v, dict | list)]


def _constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is no number of JSON")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise Malformed(f"the number {digits[:20]} is too large")
    return value


def _int(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else _LARGEST_INT
    if abs(value) >= _LARGEST_INT:
        raise Malformed(f"the number {digits[:20]} is too large")
    return value
