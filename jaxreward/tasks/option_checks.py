"""Checks of the options of a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from math import inf
from numbers import Integral
from typing import Any

import numpy as np

from jaxreward.errors import InvalidSetting, UnknownName, did_you_mean

LONGEST = 1_000_000
"""Steps of an episode, at most."""

NO_OPTIONS = {"name", "kind", "description", "state_notes"}
"""Fields of tasks that are no options."""


def invalid_option(name: str, message: str) -> InvalidSetting:
    """The error of an invalid value of the option `name`, whose path as a setting is `task.<name>`."""
    return InvalidSetting(message, f"task.{name}")


def check_choice(name: str, value: Any, choices: Collection[str]) -> None:
    """Raise an InvalidSetting unless `value` is one of `choices`."""
    if value not in choices:
        raise invalid_option(name, f"{name} is {value!r}: choose one of {', '.join(choices)}")


def check_whole(name: str, value: Any, called: str = "") -> None:
    """Raise an InvalidSetting unless `value` is a whole number; `called` is the option's name in the sentence."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise invalid_option(name, f"{called or name} must be a whole number, not {value!r}")


def check_horizon(value: Any, called: str = "horizon") -> None:
    """Raise an InvalidSetting unless `value` is a whole number from 1 to `LONGEST`."""
    check_whole("horizon", value, called)
    if value < 1:
        raise invalid_option("horizon", f"{called} must be at least 1 step, not {value}")
    if value > LONGEST:
        raise invalid_option("horizon", f"{called} must be at most {LONGEST:,} steps, not {value}")


def check_not_negative(name: str, value: Any, most: float = inf) -> None:
    """Raise an InvalidSetting unless `value` is a finite number from 0 to `most`."""
    if not (_is_number(value) and 0 <= value < inf):
        raise invalid_option(name, f"{name} must be a number that is not negative, not {value!r}")
    if value > most:
        raise invalid_option(name, f"{name} must be at most {most:g}, not {value!r}")


def check_finite(name: str, value: Any) -> None:
    """Raise an InvalidSetting unless `value` is a finite number."""
    if not (_is_number(value) and -inf < value < inf):
        raise invalid_option(name, f"{name} must be a finite number, not {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def call_with_options(name: str, maker: Callable[..., Any], options: dict[str, Any]) -> Any:
    """`maker(**options)`, for the task called `name`.

    Raises:
        UnknownName: an option that it does not take.
        InvalidSetting: an option without a default is not given.

    An error inside `maker` is raised as it is.
    """
    try:
        signature = inspect.signature(maker)
        signature.bind(**options)
    except TypeError as error:
        known = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        names = [p.name for p in known if p.name not in NO_OPTIONS]
        if lacking := [p.name for p in known if p.default is p.empty and p.name not in options]:
            message = f"task '{name}' cannot be made without '{lacking[0]}': give that a default"
            raise invalid_option(lacking[0], message) from error
        unknown = next(key for key in options if key not in signature.parameters)
        message = f"task '{name}' has no option '{unknown}'; {did_you_mean(unknown, names)}"
        raise UnknownName("option", unknown, names, message=message, settings=(f"task.{unknown}",)) from error
    return maker(**options)
