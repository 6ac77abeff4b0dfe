"""Which numbers a task takes the sine or cosine of: angles, whatever they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from jaxreward.moves import MOST, moved
from jaxreward.tasks.automatic.play import Array

_NONE = -1
"""The number of an element that is no element of an input."""
_INNER = ("jaxpr", "call_jaxpr")
_SAME = frozenset({"copy", "copy_p", "neg", "stop_gradient", "optimization_barrier", "convert_element_type"})
_TURNS = frozenset({"sin", "cos"})


def turned_elements(function: Callable[..., Any], arguments: Sequence[Any]) -> dict[int, frozenset[int]]:
    """Of each leaf of the arguments, counted through, the elements whose sine or cosine `function` takes as they are,
    halved as for a quaternion, or less another angle. Any other multiple, as of a place in hilly land, is no angle."""
    closed = jax.make_jaxpr(function)(*arguments)
    inputs: list[Array | None] = []
    owners: list[tuple[int, int]] = []
    for leaf, var in enumerate(closed.jaxpr.invars):
        size = int(np.prod(var.aval.shape))
        inputs.append(None)
        if size <= MOST and np.issubdtype(_dtype(var), np.floating):
            inputs[-1] = np.arange(len(owners), len(owners) + size).reshape(var.aval.shape)
            owners += [(leaf, k) for k in range(size)]
    found = set[int]()
    _follow(closed.jaxpr, dict(zip(closed.jaxpr.constvars, closed.consts, strict=True)), inputs, found)
    turned: dict[int, set[int]] = {}
    for leaf, element in (owners[k] for k in found):
        turned.setdefault(leaf, set()).add(element)
    return {leaf: frozenset(elements) for leaf, elements in turned.items()}


def _dtype(var: Any) -> Any:
    dtype = var.aval.dtype
    return np.dtype(bool) if jax.dtypes.issubdtype(dtype, jax.dtypes.extended) else dtype


def _follow(
    jaxpr: Any, fixed: Mapping[Any, Any], inputs: Sequence[Array | None], found: set[int]
) -> list[Array | None]:
    """The numbers of the elements that each output holds, for those of the inputs; `found` gets those that are turned.
    `fixed` are constants by variable."""
    known: dict[Any, Array | None] = {v: x for v, x in zip(jaxpr.invars, inputs, strict=True) if x is not None}
    values = dict(fixed)

    def read(var: Any) -> Array | None:
        return None if isinstance(var, core.Literal) else known.get(var)

    def value(var: Any) -> Any:
        return var.val if isinstance(var, core.Literal) else values.get(var)

    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        operands = [read(v) for v in equation.invars]
        results: list[Array | None] = [None] * len(equation.outvars)
        if (inner := next((params[k] for k in _INNER if k in params), None)) is not None:
            closed = inner if isinstance(inner, core.ClosedJaxpr) else core.ClosedJaxpr(inner, ())
            if len(closed.jaxpr.invars) != len(equation.invars):  # a kernel, whose body is given references
                continue
            body, consts = closed.jaxpr, dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
            given = _given(name, params, operands, [v.aval.shape for v in body.invars])
            consts |= {v: x for v, w in zip(body.invars, equation.invars, strict=True)
                       if name != "scan" and (x := value(w)) is not None}  # fmt: skip
            outputs = _follow(body, consts, given, found)
            results = results if name in ("scan", "while") else outputs
        elif name == "cond":
            for branch in params["branches"]:
                consts = dict(zip(branch.jaxpr.constvars, branch.consts, strict=True))
                _follow(branch.jaxpr, consts, operands[1:], found)
        elif name in _TURNS:
            found |= {int(k) for k in np.ravel(operands[0]) if k != _NONE} if operands[0] is not None else set()
        elif any(x is not None for x in operands):
            results = [_moved(equation, operands, [value(v) for v in equation.invars])]
        elif name in ("broadcast_in_dim", "reshape", "convert_element_type", "squeeze"):
            x = value(equation.invars[0])
            if x is not None and np.size(x) <= MOST:
                constant = _rearranged(name, params, [np.asarray(x)], tuple(equation.outvars[0].aval.shape))
                values |= {} if constant is None else {equation.outvars[0]: constant}
        known |= {v: x for v, x in zip(equation.outvars, results, strict=False) if x is not None}
    return [read(v) for v in jaxpr.outvars]


def _given(
    name: str, params: Mapping[str, Any], operands: Sequence[Array | None], shapes: Sequence[tuple[int, ...]]
) -> list[Array | None]:
    """What the body of a call or of the first turn of a loop is given."""
    if name == "scan":
        kept = params["num_consts"] + params["num_carry"]
        operands = [x if k < kept or x is None or not len(x) else x[0] for k, x in enumerate(operands)]
    return [x if x is not None and x.shape == tuple(s) else None for x, s in zip(operands, shapes, strict=True)]


def _moved(equation: Any, operands: Sequence[Array | None], values: Sequence[Any]) -> Array | None:
    """The numbers of the elements of a result; None where it holds none."""
    name, params, shape = equation.primitive.name, equation.params, tuple(equation.outvars[0].aval.shape)
    x = operands[0]
    if name == "concatenate":
        avals = [v.aval for v in equation.invars]
        parts = [np.full(a.shape, _NONE) if k is None else k for k, a in zip(operands, avals, strict=True)]
        return np.concatenate(parts, params["dimension"])
    if name in ("add", "sub"):  # an angle less where it rests
        other = next(k for k in (0, 1) if operands[k] is not None)
        one = operands[other]
        return one if one is not None and one.shape == shape and operands[1 - other] is None else None
    if name in ("mul", "div"):
        other = next(k for k in (0, 1) if operands[k] is not None)
        unit, half = values[1 - other], 0.5 if name == "mul" else 2.0
        one = operands[other]
        is_half = unit is not None and np.size(unit) == 1 and abs(float(np.ravel(unit)[0])) in (half, 1.0)
        return one if is_half and one is not None and one.shape == shape else None
    if x is None:
        return None
    if name == "gather":
        return _gathered(x, params, values[1], shape)
    if any(place is None for place in values[1:]):
        return None
    return _rearranged(name, params, [x, *map(np.asarray, values[1:])], shape)


def _rearranged(name: str, params: Mapping[str, Any], arrays: Sequence[Array], shape: tuple[int, ...]) -> Array | None:
    """What a primitive that keeps or moves entries makes of arrays."""
    return arrays[0].reshape(shape) if name in _SAME else moved(name, params, arrays)


def _gathered(x: Array, params: Mapping[str, Any], index: Any, shape: tuple[int, ...]) -> Array | None:
    """`x[index]` for constant indices of rows."""
    numbers = params["dimension_numbers"]
    if index is None or not tuple(numbers.collapsed_slice_dims) == tuple(numbers.start_index_map) == (0,):
        return None
    found = x[np.asarray(index)[..., 0] % max(len(x), 1)]
    return found if found.shape == shape else None
