"""Checks of strategy options, with one wording for the same mistake."""

from __future__ import annotations

from typing import Any

from jaxreward.errors import UserError


def require_integer(strategy: str, option: str, value: Any, low: int) -> None:
    """`value` is an integer of at least `low`, or a UserError says so."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise UserError(f"Option {option} of strategy {strategy} is {value!r}: give a whole number of at least {low}.")


def require_share(strategy: str, option: str, value: Any) -> None:
    """`value` is a number from 0 to 1, or a UserError says so."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise UserError(f"Option {option} of strategy {strategy} is {value!r}: give a number from 0 to 1.")
