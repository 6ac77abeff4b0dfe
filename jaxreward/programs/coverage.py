"""Whether every decision that a computation takes on its inputs went each way on a batch.

Between two of its decisions (comparisons, minima, roundings, table look-ups) a program is a smooth
formula, which a few hundred inputs pin down. What happens behind a condition that never held they
do not show.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jax.extend import core

Array = np.ndarray[Any, Any]

BATCH = 1021
"""A size that no array of a task or a program is likely to have: the axis of this length is the batch's."""

_FEW = 8
_LARGEST_TABLE = 64


class Coverage:
    """Watches an evaluation (see `evaluate`) and counts how often each decision went which way.

    In an array of up to eight elements each counts for itself, as several conditions may be stacked
    in it; a larger one is a map over cells or classes, of which some never occur, and counts as one.

    Args:
        enough: inputs on which each way must have been taken.
    """

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._counts: dict[int, tuple[Any, list[Array]]] = {}
        self._bodies: dict[int, Any] = {}
        self._thresholds: dict[int, set[float]] = {}

    def __call__(self, jaxpr: Any, equation: Any, operands: list[Array], results: list[Array]) -> None:
        self._bodies[id(jaxpr)] = jaxpr
        if self._hidden(equation):
            self._counts[id(equation)] = (equation, [np.zeros(1)])
            return
        operands, results = [np.asarray(x) for x in operands], [np.asarray(x) for x in results]
        counts = [_count(way) for way in _ways(equation, operands, results)]
        if counts:
            known = self._counts.get(id(equation))
            if known is not None:  # a loop body comes by once a turn
                counts = [old + new for old, new in zip(known[1], counts, strict=True)]
            self._counts[id(equation)] = (equation, counts)
        if equation.primitive.name in ("lt", "le", "gt", "ge"):
            fixed = [x for x in operands if not _batched(x)]
            self._thresholds.setdefault(id(equation), set()).update(float(v) for x in fixed for v in np.unique(x))

    def _hidden(self, equation: Any) -> bool:
        """Whether it has bodies that were run unwatched."""
        inner = [v for p in equation.params.values() for v in (p if isinstance(p, tuple) else (p,))]
        inner = [v.jaxpr for v in inner if isinstance(v, core.ClosedJaxpr)]
        return equation.primitive.name in ("scan", "while", "cond") and any(id(v) not in self._bodies for v in inner)

    def _idle(self) -> set[int]:
        return set().union(*(_corrections(body) for body in self._bodies.values()))

    def thresholds(self) -> tuple[float, ...]:
        """The numbers with which something was compared by size."""
        idle = self._idle()
        return tuple(sorted(set().union(*(v for key, v in self._thresholds.items() if key not in idle))))

    def dormant(self) -> list[Any]:
        """Equations that decide and did not go each way, those aside that JAX adds of itself."""
        idle = self._idle()
        return [
            equation
            for key, (equation, counts) in self._counts.items()
            if key not in idle and any((count < self._enough).any() for count in counts)
        ]


def _ways(equation: Any, operands: list[Array], results: list[Array]) -> Iterable[Array]:
    """Truth values that must each hold somewhere, from what an equation took and gave; none if it decides nothing."""
    name, result = equation.primitive.name, results[0]
    if not any(_batched(x) for x in (*operands, result)):
        return
    if name == "gather":
        yield from _look_ups(equation, operands)
    elif name in ("reduce_max", "reduce_min", "argmax", "argmin"):
        if operands[0].size <= _FEW * BATCH:
            axes = tuple(equation.params["axes"])
            extreme = np.max if name.endswith("max") else np.min
            yield operands[0] == extreme(operands[0], axes, keepdims=True)
    elif not _batched(result):
        return
    elif result.dtype == bool:
        yield from (result, ~result)
    elif name in ("max", "min"):
        yield from (operands[0] < operands[1], operands[0] > operands[1])
    elif name == "clamp":
        low, x, high = operands
        yield from (x < low, x > high, (x > low) & (x < high))
    elif name == "select_n" and operands[0].dtype != bool and _batched(operands[0]):
        yield from (operands[0] == case for case in range(len(operands) - 1))
    elif _is_step(name, operands[0], result):
        yield result != _first(result)


def _look_ups(equation: Any, operands: list[Array]) -> Iterable[Array]:
    """Of a table that does not depend on the inputs, every entry must be looked up."""
    table, indices = operands
    if _batched(table):
        return
    for k, axis in enumerate(equation.params["dimension_numbers"].start_index_map):
        entries = table.shape[axis] - equation.params["slice_sizes"][axis] + 1
        if entries > _LARGEST_TABLE:
            yield np.zeros(BATCH, bool)
        elif entries > 1:
            yield from (indices[..., k] == entry for entry in range(entries))


def _batched(x: Any) -> bool:
    return BATCH in np.shape(x)


def _first(x: Array) -> Array:
    return np.take(x, [0], axis=x.shape.index(BATCH))


def _is_step(name: str, before: Array, after: Array) -> bool:
    """Whether an operation goes from reals to whole numbers, or leaves a remainder behind."""
    if name in ("convert_element_type", "div") and after.dtype.kind in "iu":
        return name == "div" or before.dtype.kind == "f"
    return name in ("floor", "ceil", "round")


def _count(way: Array) -> Array:
    """On how many inputs it holds: by element, or for any element of a larger array."""
    rows = np.moveaxis(way, way.shape.index(BATCH), 0).reshape(BATCH, -1)
    return rows.sum(0) if rows.shape[1] <= _FEW else rows.any(1).sum()[None]


# ---- what JAX adds of itself


def _corrections(jaxpr: Any) -> set[int]:
    """Conditions by which `x[i]` turns negative indices, and `//` and `%` negative integers, into what Python means.

    They almost never hold, and a program does not mean anything by them.
    """
    made = {id(v): e for e in jaxpr.eqns for v in e.outvars}
    users: dict[int, set[int]] = {id(v): {-1} for v in jaxpr.outvars}
    for e in jaxpr.eqns:
        for v in e.invars:
            users.setdefault(id(v), set()).add(id(e))
    found: set[int] = set()
    for e in reversed(jaxpr.eqns):
        name = e.primitive.name
        corrects = name == "select_n" and _is_correction(e, made)
        serves = name in ("lt", "ne", "and") and users.get(id(e.outvars[0]), {-1}) <= found
        if corrects or serves:
            found.add(id(e))
    return found


def _is_correction(select: Any, made: dict[int, Any]) -> bool:
    """Whether it is `i + n if i < 0 else i`, or adds to a quotient or remainder where signs differ and one is left."""

    def maker(atom: Any, *names: str) -> Any:
        e = made.get(id(atom))
        return e if e is not None and e.primitive.name in names else None

    which, plain, corrected = select.invars[:3]
    change, test = maker(corrected, "add", "sub"), maker(which, "lt", "and")
    if change is None or test is None or select.outvars[0].aval.dtype.kind not in "iu":
        return False
    if not any(v is plain for v in change.invars):
        return False
    if test.primitive.name == "lt":
        return test.invars[0] is plain and isinstance(test.invars[1], core.Literal) and not np.any(test.invars[1].val)
    return maker(plain, "div", "rem") is not None and all(maker(v, "ne") is not None for v in test.invars)
