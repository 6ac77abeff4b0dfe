"""Checks of the options of a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import inf
from numbers import Integral
from typing import Any

import numpy as np

from jaxreward.errors import UserError

LONGEST = 1_000_000
"""Steps of an episode, at most."""


def check_whole(name: str, value: Any) -> None:
    """Raise a UserError unless `value` is a whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UserError(f"{name} must be a whole number, not {value!r}")


def check_horizon(value: Any, name: str = "horizon") -> None:
    """Raise a UserError unless `value` is a whole number from 1 to `LONGEST`."""
    check_whole(name, value)
    if value < 1:
        raise UserError(f"{name} must be at least 1 step, not {value}")
    if value > LONGEST:
        raise UserError(f"{name} must be at most {LONGEST:,} steps, not {value}")


def check_not_negative(name: str, value: Any, most: float = inf) -> None:
    """Raise a UserError unless `value` is a finite number from 0 to `most`."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and 0 <= value < inf):
        raise UserError(f"{name} must be a number that is not negative, not {value!r}")
    if value > most:
        raise UserError(f"{name} must be at most {most:g}, not {value!r}")


def call_with_options(name: str, maker: Callable[..., Any], options: dict[str, Any]) -> Any:
    """`maker(**options)`, for the task called `name`.

    Raises:
        UserError: options that it does not take. An error inside `maker` is raised as it is.
    """
    try:
        signature = inspect.signature(maker)
        signature.bind(**options)
    except TypeError as error:
        needed = [
            p.name for p in signature.parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        if lacking := [key for key in needed if key not in options]:
            raise UserError(f"task '{name}' cannot be made without '{lacking[0]}': give that a default") from error
        raise UserError(f"task '{name}' does not take these options: {error}") from error
    return maker(**options)
