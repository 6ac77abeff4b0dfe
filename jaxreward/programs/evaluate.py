"""Running a jaxpr once, without compiling it: numpy where numpy means the same, else JAX op by op.

For the numeric checks: a program is evaluated on one batch, and compiling it would take a hundred
times longer. Rounding may differ from XLA's in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend import core

from jaxreward.programs.loops import scan_sizes

Rule = Callable[..., Any]
Watch = Callable[[Any, Any, list[Any], list[Any]], None]

_TURNS = 100_000
"""Loops of more equations in all are compiled."""


def evaluate(closed: Any, arguments: list[Any], watch: Watch | None = None) -> list[np.ndarray[Any, Any]]:
    """The outputs of a `ClosedJaxpr` on numpy arrays.

    Args:
        watch: is called after each equation, those of loop bodies once a turn, with the jaxpr that it
            stands in, the equation, its operands and its results. Loops that are compiled for their
            length are not watched inside.
    """
    with np.errstate(all="ignore"):
        return [np.asarray(x) for x in _run(closed.jaxpr, closed.consts, arguments, watch)]


def _run(jaxpr: Any, consts: Any, arguments: list[Any], watch: Watch | None) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> Any:
        if not isinstance(atom, core.Literal):
            return values[atom]
        aval: Any = atom.aval
        return np.asarray(atom.val, aval.dtype)

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        name, params = equation.primitive.name, equation.params
        if name in ("jit", "pjit"):
            results = _run(params["jaxpr"].jaxpr, params["jaxpr"].consts, operands, watch)
        elif name == "cond":  # under vmap those are left whose choice is one for the batch
            branch = params["branches"][int(np.clip(operands[0], 0, len(params["branches"]) - 1))]
            results = _run(branch.jaxpr, branch.consts, operands[1:], watch)
        elif name == "scan" and _is_short(params["length"], params["jaxpr"], watch):
            results = _scan(operands, equation, watch)
        elif name == "while" and _is_short(256, params["body_jaxpr"], watch):
            results = _while(operands, params, watch)
        elif name in _RULES and all(o.dtype.kind in "biuf" for o in operands):
            aval = equation.outvars[0].aval
            arrays = [np.asarray(o) for o in operands]
            results = [np.asarray(_RULES[name](*arrays, **params)).astype(aval.dtype, copy=False)]
            if results[0].shape != aval.shape:
                raise AssertionError(f"{name}: {results[0].shape} for {aval.shape}")
        else:
            results = equation.primitive.bind(*[jax.numpy.asarray(o) for o in operands], **params)
            results = results if equation.primitive.multiple_results else [results]
        values.update(zip(equation.outvars, results, strict=True))
        if watch is not None and results:
            watch(jaxpr, equation, operands, results)
    return [read(atom) for atom in jaxpr.outvars]


def _is_short(turns: int, body: Any, watch: Watch | None) -> bool:
    """Whether a loop is run here: it is short, or the `while` loops in it are watched."""
    return turns * len(body.jaxpr.eqns) <= _TURNS or (watch is not None and _holds_while(body.jaxpr))


def _holds_while(jaxpr: Any) -> bool:
    bodies = [v for e in jaxpr.eqns for p in e.params.values() for v in (p if isinstance(p, tuple) else (p,))]
    return any(e.primitive.name == "while" for e in jaxpr.eqns) or any(
        _holds_while(b.jaxpr) for b in bodies if isinstance(b, core.ClosedJaxpr)
    )


def still_going(equation: Any, operands: list[Any], carry: list[Any]) -> np.ndarray[Any, Any]:
    """Whether the condition of a `while` equation holds for `carry`: a scalar, or one value for each of a batch."""
    condition, consts = equation.params["cond_jaxpr"], operands[: equation.params["cond_nconsts"]]
    return np.asarray(_run(condition.jaxpr, condition.consts, [*consts, *carry], None)[0])


def _scan(operands: list[Any], equation: Any, watch: Watch | None) -> list[Any]:
    params, (consts, carries) = equation.params, scan_sizes(equation)
    body = params["jaxpr"]
    fixed, carry, rows = operands[:consts], operands[consts : consts + carries], operands[consts + carries :]
    turns = range(params["length"])
    stacked: list[list[Any]] = []
    for t in reversed(turns) if params["reverse"] else turns:
        results = _run(body.jaxpr, body.consts, [*fixed, *carry, *(np.asarray(r)[t] for r in rows)], watch)
        carry = results[:carries]
        stacked.append(results[carries:])
    if params["reverse"]:
        stacked.reverse()
    outs = body.out_avals[carries:]
    if not stacked:
        return [*carry, *(np.zeros((0, *a.shape), a.dtype) for a in outs)]
    return [*carry, *(np.stack([np.asarray(row[i]) for row in stacked]) for i in range(len(outs)))]


def _while(operands: list[Any], params: dict[str, Any], watch: Watch | None) -> list[Any]:
    first, second = params["cond_nconsts"], params["body_nconsts"]
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    carry = operands[first + second :]
    while True:  # ends, because a replay caps its loops
        go_on = np.asarray(_run(condition.jaxpr, condition.consts, [*operands[:first], *carry], watch)[0])
        if not go_on.any():
            return carry
        turned = _run(body.jaxpr, body.consts, [*operands[first : first + second], *carry], watch)
        if go_on.ndim:  # under vmap, rows that are done keep their values
            turned = [_select_rows(go_on, new, old) for new, old in zip(turned, carry, strict=True)]
        carry = turned


def _select_rows(mask: Any, new: Any, old: Any) -> Any:
    new, old = np.asarray(new), np.asarray(old)
    return np.where(mask.reshape(mask.shape + (1,) * (new.ndim - mask.ndim)), new, old)


def _plain(function: Rule) -> Rule:
    return lambda *operands, **params: function(*operands)


def _convert(x: Any, *, new_dtype: Any, **_: Any) -> Any:
    return x.astype(new_dtype)


def _broadcast(x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    expanded = [1] * len(shape)
    for axis, d in enumerate(broadcast_dimensions):
        expanded[d] = x.shape[axis]
    return np.broadcast_to(x.reshape(expanded), shape)


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any, **_: Any) -> Any:
    steps = strides or [1] * x.ndim
    return x[tuple(slice(*b) for b in zip(start_indices, limit_indices, steps, strict=True))]


def _select(which: Any, *cases: Any, **_: Any) -> Any:
    if len(cases) == 2:
        return np.where(which, cases[1], cases[0])
    stacked = np.stack([np.broadcast_to(c, cases[0].shape) for c in cases])
    index = np.broadcast_to(which, cases[0].shape)
    return np.take_along_axis(stacked, index[None].astype(np.int64), 0)[0]


def _div(x: Any, y: Any, **_: Any) -> Any:
    if x.dtype.kind == "f":
        return x / y
    safe = np.where(y == 0, 1, y).astype(np.int64)  # as C does: towards zero; by zero -1
    quotient = np.abs(x.astype(np.int64)) // np.abs(safe)
    return np.where(y == 0, -1, np.where((x < 0) != (safe < 0), -quotient, quotient))


def _power(x: Any, *, y: int, **_: Any) -> Any:
    return np.power(x, y) if y >= 0 or x.dtype.kind == "f" else np.ones_like(x)


def _round(x: Any, *, rounding_method: int, **_: Any) -> Any:
    away = np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)
    return np.rint(x) if int(rounding_method) == 1 else away


def _rem(x: Any, y: Any, **_: Any) -> Any:
    return np.fmod(x, y) if x.dtype.kind == "f" else np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))


def _accumulate(function: Rule) -> Rule:
    def rule(x: Any, *, axis: int, reverse: bool, **_: Any) -> Any:
        if not reverse:
            return function.accumulate(x, axis)  # type: ignore[attr-defined]
        return np.flip(function.accumulate(np.flip(x, axis), axis), axis)  # type: ignore[attr-defined]

    return rule


def _dot(x: Any, y: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    (cx, cy), (bx, by) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in x.shape]
    right = [left[cx[cy.index(i)]] if i in cy else left[bx[by.index(i)]] if i in by else next(letters)
             for i in range(y.ndim)]  # fmt: skip
    out = [left[i] for i in bx]
    out += [c for i, c in enumerate(left) if i not in bx and i not in cx]
    out += [c for i, c in enumerate(right) if i not in by and i not in cy]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)


def _reduce(function: Rule) -> Rule:
    def rule(x: Any, *, axes: Any, **_: Any) -> Any:
        options = {"dtype": x.dtype} if function in (np.sum, np.prod) else {}
        return function(x, axis=tuple(axes), **options)

    return rule


_RULES: dict[str, Rule] = {
    name: _plain(function)
    for name, function in {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "neg": np.negative,
        "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "sin": np.sin, "cos": np.cos, "tan": np.tan,
        "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "log2": np.log2,
        "expm1": np.expm1, "sqrt": np.sqrt, "square": np.square, "atan2": np.arctan2, "sinh": np.sinh,
        "cosh": np.cosh, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
        "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "not": np.invert, "is_finite": np.isfinite, "rsqrt": lambda x: 1 / np.sqrt(x), "pow": np.power,
        "logistic": lambda x: 1 / (1 + np.exp(-x)), "add_any": np.add, "stop_gradient": lambda x: x,
    }.items()
}  # fmt: skip
_RULES |= {
    "convert_element_type": _convert,
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "select_n": _select,
    "div": _div,
    "integer_pow": _power,
    "clamp": lambda low, x, high, **_: np.minimum(np.maximum(x, low), high),
    "reshape": lambda x, *, new_sizes, **_: x.reshape(new_sizes),
    "squeeze": lambda x, *, dimensions, **_: np.squeeze(x, tuple(dimensions)),
    "transpose": lambda x, *, permutation, **_: np.transpose(x, permutation),
    "concatenate": lambda *xs, dimension, **_: np.concatenate(xs, dimension),
    "rev": lambda x, *, dimensions, **_: np.flip(x, tuple(dimensions)),
    "iota": lambda *, dtype, shape, dimension, **_: _broadcast(
        np.arange(shape[dimension]), shape=shape, broadcast_dimensions=(dimension,)
    ).astype(dtype),
    "sign": lambda x, **_: np.sign(x),
    "round": _round,
    "rem": _rem,
    "cumsum": _accumulate(np.add),
    "cummax": _accumulate(np.maximum),
    "cummin": _accumulate(np.minimum),
    "argmax": lambda x, *, axes, **_: np.argmax(x, axes[0]),
    "argmin": lambda x, *, axes, **_: np.argmin(x, axes[0]),
    "dot_general": _dot,
    "reduce_sum": _reduce(np.sum),
    "reduce_prod": _reduce(np.prod),
    "reduce_max": _reduce(np.max),
    "reduce_min": _reduce(np.min),
    "reduce_and": _reduce(np.all),
    "reduce_or": _reduce(np.any),
}
