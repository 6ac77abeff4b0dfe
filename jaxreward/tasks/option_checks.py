"""What is wrong with the options of a task, in one sentence."""

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
    """That the option is a whole number.

    Raises:
        UserError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UserError(f"{name} must be a whole number, not {value!r}")


def check_horizon(value: Any, name: str = "horizon") -> None:
    """That `value` can be the horizon of a task; `name` is what it is called in the sentence.

    Raises:
        UserError: it is no whole number, or less than 1, or too long to be counted with care.
    """
    check_whole(name, value)
    if value < 1:
        raise UserError(f"{name} must be at least 1 step, not {value}")
    if value > LONGEST:
        raise UserError(f"{name} must be at most {LONGEST:,} steps, not {value}")


def check_not_negative(name: str, value: Any, most: float = inf) -> None:
    """That the option is a finite number from 0 on, `most` at most.

    Raises:
        UserError: it is none.
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and 0 <= value < inf):
        raise UserError(f"{name} must be a number that is not negative, not {value!r}")
    if value > most:
        raise UserError(f"{name} must be at most {most:g}, not {value!r}")


def call_with_options(name: str, maker: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What `maker` makes of `options`, for the task called `name`.

    Raises:
        UserError: options that it does not take. A mistake inside `maker` stays what it is.
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
