"""What JAX's versions say of a loop in different words."""

from __future__ import annotations

from typing import Any


def scan_sizes(equation: Any) -> tuple[int, int]:
    """How many constants and how many carries a `scan` equation has.

    Read off the shapes, which every version of JAX gives in the same way: what is carried leaves the loop as it leaves
    the body, what is stacked has one axis more; so have the inputs that are scanned over.
    """
    body = equation.params["jaxpr"]
    carries = _same_rank(equation.outvars, body.out_avals)
    return _same_rank(equation.invars, body.in_avals) - carries, carries


def _same_rank(outside: Any, inside: Any) -> int:
    return sum(len(v.aval.shape) == len(aval.shape) for v, aval in zip(outside, inside, strict=True))
