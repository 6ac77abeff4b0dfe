"""Action spaces of other libraries as `Discrete` or `Box`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.tasks.task import Box, Discrete

MOST_COMBINATIONS = 1_000
"""Combinations of several discrete actions that become one."""


@dataclass(frozen=True)
class Actions:
    """An action space, and how one of its actions is written for the library.

    Attributes:
        words: what the action is, if it is not the library's own.
    """

    space: Discrete | Box
    as_own: Callable[[jax.Array], jax.Array]
    words: str = ""


def actions_of(space: Any, name: str) -> Actions:
    """The action space of an environment of gymnax or jumanji.

    Discrete actions stay as they are, several at once become one (`MOST_COMBINATIONS` at most), and real ones are
    scaled from [-1, 1] where their bounds are not all the same.

    Args:
        name: the environment, for the sentence of an error.

    Raises:
        InvalidSetting: actions without bounds, or of another kind.
    """
    values = next((v for v in (getattr(space, key, None) for key in ("num_values", "n")) if v is not None), None)
    dtype = np.dtype(getattr(space, "dtype", np.float32))
    if values is not None and np.ndim(values) == 0:
        return Actions(Discrete(int(values)), lambda action: jnp.asarray(action, dtype))
    if values is not None:
        return _combined(np.asarray(values), dtype, name)
    low = getattr(space, "low", getattr(space, "minimum", None))
    high = getattr(space, "high", getattr(space, "maximum", None))
    if low is None or high is None or not np.issubdtype(dtype, np.floating):
        raise _refused(name, f"are a {type(space).__name__}, which is neither discrete nor a box of real numbers")
    return box(tuple(space.shape), np.asarray(low, np.float32), np.asarray(high, np.float32), name)


def box(shape: tuple[int, ...], low: Any, high: Any, name: str) -> Actions:
    """Real actions within bounds, scalars or arrays of `shape`; raises InvalidSetting where they are not finite."""
    low, high = (np.broadcast_to(np.asarray(bound, np.float32), shape) for bound in (low, high))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise _refused(name, "have no finite bounds")
    if np.unique(low).size == 1 and np.unique(high).size == 1:
        space = Box(shape or (1,), float(low.flat[0]), float(high.flat[0]))
        return Actions(space, lambda action: jnp.clip(action, space.low, space.high).reshape(shape))
    middle, half = (low + high) / 2, (high - low) / 2
    ranges = ", ".join(f"[{a:g}, {b:g}]" for a, b in zip(low.ravel(), high.ravel(), strict=True))
    words = f"in [-1, 1], the ends of the environment's own ranges: {ranges}"
    return Actions(Box(shape), lambda action: middle + half * jnp.clip(action, -1.0, 1.0), words)


def _combined(values: np.ndarray[Any, Any], dtype: Any, name: str) -> Actions:
    count = int(np.prod(values.astype(np.int64)))
    if count > MOST_COMBINATIONS:
        raise _refused(name, f"have {count:,} combinations, of which at most {MOST_COMBINATIONS:,} can be one action")
    sizes = tuple(int(n) for n in values.ravel())
    words = f"one number for {len(sizes)} actions of {', '.join(map(str, sizes))} values, the last varying fastest"

    def as_own(action: jax.Array) -> jax.Array:
        return jnp.stack(jnp.unravel_index(action, sizes)).reshape(values.shape).astype(dtype)

    return Actions(Discrete(count), as_own, words)


def _refused(name: str, what: str) -> InvalidSetting:
    return InvalidSetting(f"the actions of {name} {what}: give a wrapper of it that bounds or discretises them", "task")
