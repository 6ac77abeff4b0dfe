"""Whether a batch shows what a computation does: every decision went each way, nothing stood still.

Between two of its decisions (comparisons, minima, roundings, table look-ups) a program is a smooth
formula, which a few hundred inputs pin down. What happens behind a condition that never held, or in
a product with something that was always 0, they do not show.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jax.extend import core

from jaxreward.programs.loops import scan_sizes
from jaxreward.programs.names import words

Array = np.ndarray[Any, Any]

BATCH = 1021
"""A size that no array of a task or a program is likely to have: the axis of this length is the batch's."""

_FEW = 8
_FEW_OF_MANY = 2
_MOVES = words("concatenate pad broadcast_in_dim slice reshape squeeze transpose rev copy scan while cond jit pjit")
"""Equations that compute nothing themselves; what they hold stands for itself elsewhere."""

_LARGEST_TABLE = 64


class Coverage:
    """Watches an evaluation (see `evaluate`) and finds what the batch leaves open.

    A decision must go each way on enough inputs. In an array of up to eight elements each counts for
    itself, as several conditions may be stacked in it; a larger one is a map over cells or classes and
    counts as one. And each number that is computed from the inputs must differ from its usual value on
    enough inputs, in a larger array on two: a product of flags that never hold together is 0, and its
    weight, its sign and its place are anybody's guess. In a loop, this counts for the best of its turns.

    Args:
        closed: the jaxpr to be watched, with a batch axis in all its inputs and nothing in it that does
            not reach its outputs.
        enough: inputs on which each way must have been taken.
    """

    def __init__(self, closed: Any, enough: int) -> None:
        self._enough = enough
        self._counts: dict[int, tuple[Any, list[Array]]] = {}
        self._bodies: dict[int, Any] = {}
        self._spreads: dict[tuple[int, int], tuple[Any, Array]] = {}
        self._closed, self._dependent = closed, set[int]()
        _depend(closed.jaxpr, [True] * len(closed.jaxpr.invars), self._dependent)

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
        if equation.primitive.name not in _MOVES:
            for k, (variable, result) in enumerate(zip(equation.outvars, results, strict=True)):
                if id(variable) in self._dependent:
                    spread = _spread(result, operands)
                    known = self._spreads.get((id(equation), k))
                    self._spreads[id(equation), k] = equation, spread if known is None else np.maximum(spread, known[1])

    def _hidden(self, equation: Any) -> bool:
        """Whether it has bodies that were run unwatched."""
        bodies = [v.jaxpr for v in _bodies(equation)]
        return equation.primitive.name in ("scan", "while", "cond") and any(id(v) not in self._bodies for v in bodies)

    def dormant(self) -> list[Any]:
        """Equations that decide and did not go each way or that give what hardly changes, those aside that JAX adds."""
        idle = set().union(*(_corrections(body) for body in self._bodies.values()))
        found = {k: e for k, (e, counts) in self._counts.items() if any((c < self._enough).any() for c in counts)}
        for (key, _), (equation, spread) in self._spreads.items():
            if (spread < (self._enough if spread.size <= _FEW else _FEW_OF_MANY)).any():
                found[key] = equation
        return [equation for key, equation in found.items() if key not in idle]


def _bodies(equation: Any) -> list[Any]:
    inner = [v for p in equation.params.values() for v in (p if isinstance(p, tuple) else (p,))]
    return [v for v in inner if isinstance(v, core.ClosedJaxpr)]


def _depend(jaxpr: Any, dependent: list[bool], found: set[int]) -> list[bool]:
    """Which outputs depend on the inputs marked in `dependent`; ids of all variables that do go into `found`."""
    known = {v for v, yes in zip(jaxpr.invars, dependent, strict=True) if yes}
    for e in jaxpr.eqns:
        ins = [not isinstance(v, core.Literal) and v in known for v in e.invars]
        outs, name, params = [any(ins)] * len(e.outvars), e.primitive.name, e.params
        if name in ("jit", "pjit"):
            outs = _depend(params["jaxpr"].jaxpr, ins, found)
        elif name == "scan":
            consts, n = scan_sizes(e)
            while True:
                outs = _depend(params["jaxpr"].jaxpr, ins, found)
                carry = [a or b for a, b in zip(ins[consts : consts + n], outs[:n], strict=True)]
                if carry == ins[consts : consts + n]:
                    break
                ins[consts : consts + n] = carry
        elif any(ins):  # of a while or cond without a closer look: all that is inside
            for body in _bodies(e):
                _depend(body.jaxpr, [True] * len(body.jaxpr.invars), found)
        known.update(v for v, yes in zip(e.outvars, outs, strict=True) if yes)
    found.update(map(id, known))
    return [not isinstance(v, core.Literal) and v in known for v in jaxpr.outvars]


def _spread(x: Array, operands: list[Array]) -> Array:
    """On how many inputs each element differs from its median.

    Of reals those that differ more count more: it is (sum of deviations)^2 / (sum of their squares).
    What differs on k inputs has at most k, and a gate such as exp(-20 d) has few though it is nowhere quite
    shut. An element computed from elements that never change tells nothing new, and counts as
    one that differs everywhere.
    """
    if not _batched(x):
        return np.zeros(1)
    rows = _rows(x)
    if rows.dtype == bool:
        held = rows.sum(0)
        spread = np.minimum(held, BATCH - held).astype(np.float64)
    else:
        values = np.nan_to_num(rows.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
        middle = np.median(values[::16], 0)  # of 64: what is usual in 1021 is usual there
        away = np.abs(values - middle)
        away[away <= 1e-6 * np.abs(middle)] = 0.0  # rounding
        if rows.dtype.kind in "iu":  # sets of bits, among others, whose sizes mean nothing
            away = np.sign(away)
        spread = np.square(away.sum(0)) / np.maximum(np.square(away).sum(0), 1e-300)
    if (spread < _FEW).any() and all(o.shape == x.shape for o in operands if _batched(o)):
        given = [_rows(o) for o in operands if _batched(o)]
        if given:
            spread = np.where(np.all([(g == g[0]).all(0) for g in given], 0), np.inf, spread)
    return spread


def _rows(x: Array) -> Array:
    return np.moveaxis(x, x.shape.index(BATCH), 0).reshape(BATCH, -1)


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
    rows = _rows(way)
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
        serves = name in ("lt", "ne", "and", "sign") and users.get(id(e.outvars[0]), {-1}) <= found
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
