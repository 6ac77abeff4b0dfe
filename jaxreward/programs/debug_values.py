"""What the `debug` of a program returns on states, as arrays by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from jaxreward.devices import exact
from jaxreward.programs.interpret import replay
from jaxreward.programs.program import Program

BATCH = 128
"""States that are evaluated together: always as many, so that a program is compiled once."""

Array = np.ndarray[Any, Any]


def debug_values(program: Program, states: Sequence[Array]) -> dict[str, Array]:
    """The arrays that `debug` returns on n states.

    Args:
        program: one that was checked with `debug=True`.
        states: the leaves of their views (n, ...), in the order of `Spec.leaves`; at least one state.

    Returns:
        By name, in the order of the dictionary, (n, ...): booleans, integers, or float32, which need not be finite.
        None for a program without `debug`.
    """
    if program.debug is None:
        return {}
    evaluate, n, parts = _compiled(program), len(states[0]), list[list[Array]]()
    for first in range(0, n, BATCH):
        rows = np.minimum(np.arange(first, first + BATCH), n - 1)
        parts.append([np.asarray(x) for x in evaluate(*(np.asarray(leaf)[rows] for leaf in states))])
    columns = zip(*parts, strict=True)
    return {name: np.concatenate(column)[:n] for name, column in zip(program.debug.terms, columns, strict=True)}


@lru_cache(maxsize=64)
def _compiled(program: Program) -> Callable[..., list[Any]]:
    assert program.debug is not None
    return jax.jit(exact(jax.vmap(replay(program.debug.tape))))
