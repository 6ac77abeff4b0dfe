"""From a tape to a function that jit and vmap treat like the original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxreward.programs.limits import Limits
from jaxreward.programs.primitives import SCATTERS, primitives, replayable
from jaxreward.programs.spec import dtype_name, dtype_of
from jaxreward.programs.tape import Tape, TapeError, constant
from jaxreward.programs.unrolling import turns_at_once
from jaxreward.programs.windows import window

Step = Callable[[list[Any]], Sequence[Any]]


def replay(tape: Tape, limits: Limits | None = None) -> Callable[..., list[Any]]:
    """The function of a checked tape: arrays in, list of arrays out.

    It binds the primitives themselves: the functions of `jax.lax` would interpret some arguments
    a second time, such as negative indices.

    Raises:
        TapeError: here for parameters that mean nothing, when called for arrays that do not fit.
    """
    limits = limits or Limits()
    ins = [(tuple(shape), dtype) for shape, dtype in tape["ins"]]
    steps = [(step_of(op, params, limits), operands, outputs, op) for op, params, operands, outputs in tape["nodes"]]
    outs = tape["outs"]

    def function(*arguments: Any) -> list[Any]:
        if [(np.shape(a), dtype_name(a.dtype)) for a in arguments] != ins:
            raise TapeError("the inputs are not those of the tape")
        values: list[Any] = list(arguments)
        for step, operands, outputs, op in steps:
            results = step([values[i] for i in operands])
            if len(results) != outputs:
                raise TapeError(f"malformed tape: {op} has {len(results)} outputs, not {outputs}")
            values += results
        return [values[i] for i in outs]

    return function


def step_of(op: str, params: dict[str, Any], limits: Limits | None = None) -> Step:
    """A node as a function of its operands.

    Raises:
        TapeError: for parameters that mean nothing.
    """
    limits = limits or Limits()
    if op == "const":
        array = constant(params)
        return lambda operands: [array]
    if op == "scan":
        return _scan(params, limits)
    if op == "while":
        return _while(params, limits)
    if op == "cond":
        branches = [replay(b, limits) for b in params["branches"]]
        return lambda operands: lax.switch(operands[0].astype(np.int32), branches, *operands[1:])
    if op not in replayable():
        raise TapeError(f"malformed tape: unknown op {op!r}")
    decoded = {name: decode(value) for name, value in params.items()}
    for promise in ("unique_indices", "indices_are_sorted"):
        if promise in decoded:
            decoded[promise] = False
    if op in SCATTERS:
        return _scatter(op, decoded)
    if "precision" in decoded and decoded["precision"] is None:  # a primitive takes no notice of JAX's default
        decoded["precision"] = (lax.Precision.HIGHEST, lax.Precision.HIGHEST)
    if op == "dynamic_slice":
        return lambda operands: [window(*operands, sizes=decoded["slice_sizes"])]
    primitive = primitives()[op]
    if primitive.multiple_results:
        return lambda operands: primitive.bind(*operands, **decoded)
    return lambda operands: [primitive.bind(*operands, **decoded)]


def _scatter(op: str, params: dict[str, Any]) -> Step:
    function = getattr(lax, SCATTERS[op])
    numbers, mode = params.get("dimension_numbers"), params.get("mode")
    if not isinstance(numbers, lax.ScatterDimensionNumbers):
        raise TapeError("malformed tape: a scatter without dimension numbers")

    def step(operands: list[Any]) -> list[Any]:
        array, indices, updates = operands
        return [function(array, indices, updates, numbers, mode=mode)]

    return step


def _scan(params: dict[str, Any], limits: Limits) -> Step:
    if params["length"] > limits.iterations:
        raise TapeError(f"a loop of {params['length']} iterations", stage="limits")
    consts, carries, body = params["consts"], params["carry"], replay(params["body"], limits)

    def step(operands: list[Any]) -> list[Any]:
        fixed, first, rows = operands[:consts], operands[consts : consts + carries], operands[consts + carries :]

        def turn(carry: Any, row: Any) -> tuple[Any, Any]:
            results = body(*fixed, *carry, *row)
            return tuple(results[:carries]), tuple(results[carries:])

        carry, stacked = lax.scan(
            turn, tuple(first), tuple(rows), length=params["length"], reverse=params["reverse"],
            unroll=turns_at_once(params["length"], params["body"]),
        )  # fmt: skip
        return [*carry, *stacked]

    return step


def _while(params: dict[str, Any], limits: Limits) -> Step:
    first, second = params["condition_consts"], params["body_consts"]
    condition, body = replay(params["condition"], limits), replay(params["body"], limits)

    def step(operands: list[Any]) -> list[Any]:
        for_condition, for_body = operands[:first], operands[first : first + second]

        batched = jax.eval_shape(condition, *for_condition, *operands[first + second :])[0].ndim > 0

        def go_on(state: Any) -> Any:
            # Without this cap one program could stall a whole population.
            going = condition(*for_condition, *state[1])[0]
            return (state[0] < limits.while_iterations) & (
                lax.reduce_or(going, range(going.ndim)) if going.ndim else going
            )

        def turn(state: Any) -> Any:
            results = body(*for_body, *state[1])
            if batched:  # of a loop under vmap: rows that have ended keep their values
                going = condition(*for_condition, *state[1])[0]
                results = [_select_rows(going, new, old) for new, old in zip(results, state[1], strict=True)]
            return state[0] + 1, tuple(results)

        out = lax.while_loop(go_on, turn, (np.int32(0), tuple(operands[first + second :])))[1]
        # A loop that the cap cut short did not compute what its source says. Where it is judged, such a program is
        # refused (see `validate`). On other inputs its floats are NaN, which the trainer reports as a divergence;
        # integers cannot say so.
        cut_short = condition(*for_condition, *out)[0]
        return [_select_rows(cut_short, lax.full_like(x, np.nan), x) if _is_float(x) else x for x in out]

    return step


def _select_rows(mask: Any, new: Any, old: Any) -> Any:
    """`new` where `mask` holds, which is a scalar, or has a value for each entry of the leading axes, else `old`."""
    whole = lax.broadcast_in_dim(mask, old.shape, range(mask.ndim)) if mask.ndim else mask
    return lax.select(whole, new, old)


def _is_float(x: Any) -> bool:
    return jax.dtypes.issubdtype(x.dtype, np.floating)


def decode(value: Any) -> Any:
    """A primitive's parameter from its JSON; lists become tuples."""
    if isinstance(value, list):
        return tuple(decode(v) for v in value)
    if not isinstance(value, dict):
        return value
    ((tag, inner),) = value.items()
    try:
        return _DECODERS[tag](inner)
    except (TypeError, ValueError, KeyError) as error:
        raise TapeError(f"malformed tape: {tag} {inner!r:.80}") from error


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "dtype": dtype_of,
    "float": float.fromhex,
    "gather": lambda v: lax.GatherDimensionNumbers(*decode(v)),
    "scatter": lambda v: lax.ScatterDimensionNumbers(*decode(v)),
    "conv": lambda v: lax.ConvDimensionNumbers(*decode(v)),
    "mode": lambda v: lax.GatherScatterMode[v],
    "precision": lax.Precision,
    "rounding": lax.RoundingMethod,
}


def shapes(tape: Tape) -> list[jax.ShapeDtypeStruct]:
    """The inputs of a tape."""
    return [jax.ShapeDtypeStruct(tuple(shape), dtype_of(dtype)) for shape, dtype in tape["ins"]]
