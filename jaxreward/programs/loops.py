"""Loop equations, across versions of JAX."""

from __future__ import annotations

from typing import Any


def scan_sizes(equation: Any) -> tuple[int, int]:
    """How many constants and how many carries a `scan` equation has.

    Derived from the shapes, which all versions of JAX have: carries leave the loop in the body's shape, stacked outputs
    and scanned inputs have one more axis.
    """
    body = equation.params["jaxpr"]
    carries = _same_rank(equation.outvars, body.out_avals)
    return _same_rank(equation.invars, body.in_avals) - carries, carries


def _same_rank(outside: Any, inside: Any) -> int:
    return sum(len(v.aval.shape) == len(aval.shape) for v, aval in zip(outside, inside, strict=True))
