"""Formatting for people: untrusted text made printable; dollars, durations and counts in a few characters."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from typing import Any

_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of Unicode: control characters, format characters (those that turn the direction of text or have no
width), halves of surrogate pairs, separators of lines and paragraphs."""


class _Escapes(dict[int, str]):
    """The text for each character, by code point, filled on demand."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        hidden = char not in "\n\t" and unicodedata.category(char) in _INVISIBLE
        self[code] = char if not hidden else _escaped(code)
        return self[code]


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPES = _Escapes()


def printable(text: str) -> str:
    """The text with every invisible character as its escape, such as `\\x1b` or `\\u202e`.

    These are control characters, which can move the cursor or change a terminal, characters that turn the direction of
    text or have no width, which can make a program read as another, and halves of surrogate pairs. Line feeds and tabs
    stay, and carriage return with line feed is a line feed.
    """
    return text.replace("\r\n", "\n").translate(_ESCAPES)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` applied to what its dictionaries, lists and tuples hold; tuples become lists."""
    if isinstance(value, dict):
        return {change(key): mapped(item, change) for key, item in value.items()}
    return [mapped(item, change) for item in value] if isinstance(value, list | tuple) else change(value)


def shortened(text: str, longest: int) -> str:
    """The text, cut to `longest` characters where it has more."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def dollars(amount: float) -> str:
    """`$0.0123`, `$12.30`: small amounts to a hundredth of a cent."""
    return f"${amount:,.4f}" if 0 < amount < 0.1 else f"${amount:,.2f}"


_TIMES = (("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 172_800.0), ("d", 86_400.0, float("inf")))
_COUNTS = (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))


def span(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3.9 min`, `2.1 h`, `3.5 d`: a duration to two or three digits; `unknown` for infinity."""
    if not math.isfinite(seconds):
        return "unknown"
    unit, size = next((unit, size) for unit, size, until in _TIMES if seconds < until)
    value = max(0.0, seconds) / size
    return f"{value:.0f} {unit}" if value >= 9.95 or value == 0.0 else f"{value:.1f} {unit}"


def count(number: float) -> str:
    """`950`, `12.3k`, `1.23M`: a number to three digits."""
    if abs(number) < 999.5:
        return f"{number:.0f}"
    suffix, size = next((pair for pair in _COUNTS if abs(number) < 999.5 * pair[1]), _COUNTS[-1])
    value = number / size
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}{suffix}"


def counted(count: int, noun: str) -> str:
    """`1 step`, `1,200 steps`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def seeds_text(count: int, kind: str = "") -> str:
    """`1 seed`, `3 seeds`, or with a kind `3 fresh seeds`."""
    return f"{count} {kind}seed" + "s" * (count != 1)
