"""Amounts in a few characters, as lines for people say them: dollars, times, counts."""

from __future__ import annotations

import math


def dollars(amount: float) -> str:
    """`$0.0123`, `$12.30`: small amounts to a hundredth of a cent."""
    return f"${amount:,.4f}" if 0 < amount < 0.1 else f"${amount:,.2f}"


_TIMES = (("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 172_800.0), ("d", 86_400.0, float("inf")))
_COUNTS = (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))


def span(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3.9 min`, `2.1 h`, `3.5 d`: a length of time to two or three digits; `unknown` for infinity."""
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
