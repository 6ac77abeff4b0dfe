"""Checks of strategy options, with one wording for the same mistake."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxreward.errors import InvalidSetting


def require_integer(strategy: str, option: str, value: Any, low: int) -> None:
    """Raise an `InvalidSetting` unless `value` is an integer of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise invalid(strategy, option, value, f"give a whole number of at least {low}.")


def require_share(strategy: str, option: str, value: Any) -> None:
    """Raise an `InvalidSetting` unless `value` is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise invalid(strategy, option, value, "give a number from 0 to 1.")


def require_number(strategy: str, option: str, value: Any, low: float = 0.0, *, above: bool = False) -> None:
    """Raise an `InvalidSetting` unless `value` is a finite number of at least `low` (more than `low` with `above`)."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < low or (above and value == low):
        bound = f"greater than {low:g}" if above else f"of at least {low:g}"
        raise invalid(strategy, option, value, f"give a number {bound}.")


def require_choice(strategy: str, option: str, value: Any, choices: Sequence[str]) -> None:
    """Raise an `InvalidSetting` unless `value` is one of `choices`."""
    if value not in choices:
        raise invalid(strategy, option, value, f"choose one of {', '.join(choices)}.")


def require_flag(strategy: str, option: str, value: Any) -> None:
    """Raise an `InvalidSetting` unless `value` is True or False."""
    if not isinstance(value, bool):
        raise invalid(strategy, option, value, "give true or false.")


def invalid(strategy: str, option: str, value: Any, remedy: str) -> InvalidSetting:
    """The error of an option whose value makes no sense; `remedy` says what would."""
    return InvalidSetting(f"Option {option} of strategy {strategy} is {value!r}: {remedy}", f"strategy.{option}")
