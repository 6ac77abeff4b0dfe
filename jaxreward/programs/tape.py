"""A tape: a function over arrays as plain data.

    {"ins": [[shape, dtype], ...], "nodes": [[op, params, operands, outputs], ...], "outs": [value, ...]}

Values are numbered: the inputs first, then the outputs of each node in turn; a node's operands are
values before it. `const` holds an array, `scan`, `while` and `cond` hold tapes, every other
op is the name of a primitive of the installed JAX. Tapes are a cache of the source, keyed by
digest and JAX version.

A tape that comes out of the worker is untrusted: `check_tape` accepts the schema and nothing else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

from jaxreward.programs.names import name_set
from jaxreward.programs.spec import DTYPES, dtype_of

Tape = dict[str, Any]

COMMUTATIVE = name_set("add mul max min and or xor eq ne add_any")
BODIES = {"scan": ("body",), "while": ("condition", "body"), "cond": ("branches",)}
_COUNTS = {"scan": ("consts", "carry", "length", "reverse"), "while": ("condition_consts", "body_consts"), "cond": ()}
_TAGS = {"dtype", "float", "gather", "scatter", "conv", "mode", "precision", "rounding"}
MODES = ("CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS", "ONE_HOT")
_DEPTH, _RANK, _NODES, _INT = 8, 8, 20_000, 2**31


class TapeError(Exception):
    """A tape that is not one, or a function that has none; `line` is the line in the source."""

    def __init__(self, message: str, line: int | None = None, hint: str = "", stage: str = "trace") -> None:
        super().__init__(message)
        self.message, self.line, self.hint, self.stage = message, line, hint, stage


def dumps(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), sort_keys=True)


def bodies(op: str, params: dict[str, Any]) -> list[Tape]:
    """The tapes inside a node."""
    if op == "cond":
        return list(params["branches"])
    return [params[name] for name in BODIES.get(op, ())]


def constant(params: dict[str, Any]) -> Any:
    """The array of a `const` node."""
    import numpy as np

    data = np.frombuffer(base64.b64decode(params["data"]), dtype_of(params["dtype"]))
    return data.reshape(tuple(params["shape"]))


def constant_node(array: Any) -> list[Any]:
    """The node of a constant."""
    import numpy as np

    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return ["const", {"shape": [int(d) for d in array.shape], "dtype": array.dtype.name, "data": data}, [], 1]


def bind(tape: Tape, last: Sequence[Any]) -> Tape:
    """`tape` with its last inputs as constants, which come first among the nodes: no value changes its number."""
    ins = tape["ins"][: len(tape["ins"]) - len(last)]
    return {"ins": ins, "nodes": [*map(constant_node, last), *tape["nodes"]], "outs": tape["outs"]}


# ---- digest


def node_digest(op: str, params: dict[str, Any], operands: Sequence[str]) -> str:
    """The digest of a node over those of its operands: a Merkle tree of the computation."""
    if op in BODIES:
        rest = {k: v for k, v in params.items() if k not in BODIES[op]}
        inner = [digests(tape, [f"#{i}" for i in range(len(tape["ins"]))]) for tape in bodies(op, params)]
        text = dumps([rest, inner])
    else:
        text = dumps(params)
    if op in COMMUTATIVE and len(operands) == 2:
        operands = sorted(operands)
    return hashlib.sha256(f"{op}|{text}|{','.join(operands)}".encode()).hexdigest()


def input_digest(label: str, shape: Sequence[int], dtype: str) -> str:
    return hashlib.sha256(dumps(["in", label, list(shape), dtype]).encode()).hexdigest()


def digests(tape: Tape, labels: Sequence[str]) -> list[str]:
    """What each output computes, as digests over inputs called `labels`."""
    values = [input_digest(label, *spec) for label, spec in zip(labels, tape["ins"], strict=True)]
    for op, params, operands, outputs in tape["nodes"]:
        own = node_digest(op, params, [values[i] for i in operands])
        values += [f"{own}:{k}" for k in range(outputs)]
    return [values[i] for i in tape["outs"]]


def reads(tape: Tape) -> list[set[int]]:
    """The inputs that reach each output; every operand of a loop counts for all that leaves it."""
    values: list[set[int]] = [{i} for i in range(len(tape["ins"]))]
    for _, _, operands, outputs in tape["nodes"]:
        union: set[int] = set().union(*(values[i] for i in operands))
        values += [union] * outputs
    return [values[i] for i in tape["outs"]]


def count(tape: Tape) -> int:
    """Nodes, those of loop bodies included."""
    return sum(1 + sum(count(b) for b in bodies(op, params)) for op, params, _, _ in tape["nodes"])


# ---- schema


def check_tape(tape: Any, *, constant_bytes: int = 1 << 20, ops: frozenset[str] | None = None) -> Tape:
    """`tape`, if it is one.

    Args:
        ops: primitives that may occur.

    Raises:
        TapeError: with what is wrong. Nothing else is ever raised.
    """
    budget = [_NODES]
    try:
        _check(tape, budget, constant_bytes, ops, 0)
    except (TypeError, ValueError, KeyError, IndexError, RecursionError, AttributeError, OverflowError) as error:
        raise TapeError(f"malformed tape: {type(error).__name__}: {error}") from error
    return tape


def _fail(what: str) -> None:
    raise TapeError(f"malformed tape: {what}")


def _require(condition: bool, what: str) -> None:
    if not condition:
        _fail(what)


def _integer(value: Any, low: int = -_INT, high: int = _INT) -> int:
    _require(type(value) is int and low <= value <= high, "an integer is out of range")
    return value


def _items(value: Any) -> list[Any]:
    _require(type(value) is list, "a list is missing")
    return value


def _array(shape: Any, dtype: Any) -> int:
    """Checks a shape and a dtype; the number of elements."""
    _require(type(shape) is list and len(shape) <= _RANK, "a shape is not a short list")
    _require(type(dtype) is str and dtype in DTYPES, "unknown dtype")
    return math.prod(_integer(d, 0) for d in shape)


def _check(tape: Any, budget: list[int], constant_bytes: int, ops: frozenset[str] | None, depth: int) -> None:
    _require(depth <= _DEPTH, "loops nested too deeply")
    _require(type(tape) is dict and set(tape) == {"ins", "nodes", "outs"}, "keys")
    ins, nodes, outs = (_items(tape[name]) for name in ("ins", "nodes", "outs"))
    for shape, dtype in ins:
        _array(shape, dtype)
    known = len(ins)
    for op, params, operands, outputs in nodes:
        budget[0] -= 1
        _require(budget[0] >= 0, "too many nodes")
        _require(type(op) is str and type(params) is dict and type(operands) is list, "a node is misshapen")
        for i in operands:
            _integer(i, 0, known - 1)
        _integer(outputs, 0, 4096)
        if op == "const":
            _constant(params, operands, outputs, constant_bytes)
        elif op in BODIES:
            _require(set(params) == {*BODIES[op], *_COUNTS[op]}, f"params of {op}")
            for name in _COUNTS[op]:
                _flag(params[name]) if name == "reverse" else _integer(params[name], 0)
            inner = bodies(op, params)
            _require(1 <= len(inner) <= 4096, "branches")
            for body in inner:
                _check(body, budget, constant_bytes, ops, depth + 1)
        else:
            _require(ops is None or op in ops, f"unknown op {op[:40]!r}")
            for name, value in params.items():
                _require(type(name) is str and name.isidentifier() and len(name) < 40, "name of a param")
                _param(value, 0)
        known += outputs
        _require(known <= 4 * _NODES, "too many values")
    for i in outs:
        _integer(i, 0, known - 1)


def _constant(params: Any, operands: Any, outputs: Any, limit: int) -> None:
    _require(set(params) == {"shape", "dtype", "data"} and operands == [] and outputs == 1, "a constant is misshapen")
    size = _array(params["shape"], params["dtype"]) * dtype_of(params["dtype"]).itemsize
    _require(size <= limit, f"a constant of {size} bytes")
    _require(type(params["data"]) is str and len(params["data"]) <= 2 * limit + 8, "data of a constant")
    try:
        raw = base64.b64decode(params["data"], validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    _require(len(raw) == size, "data of a constant")
    if params["dtype"] == "bool":
        _require(not raw.strip(b"\0\1"), "a truth value is neither 0 nor 1")


def _param(value: Any, depth: int) -> None:
    """JSON of a primitive's parameter: null, bool, int, a list of those, or a tagged value."""
    _require(depth <= 6, "a param is nested too deeply")
    if value is None or type(value) is bool:
        return
    if type(value) is int:
        _integer(value)
    elif type(value) is list:
        _require(len(value) <= 4096, "a param is too long")
        for item in value:
            _param(item, depth + 1)
    elif type(value) is dict:
        _require(len(value) == 1, "a tagged param has one key")
        ((tag, inner),) = value.items()
        _require(tag in _TAGS, "unknown tag")
        if tag in ("gather", "scatter", "conv"):
            _require(type(inner) is list and len(inner) <= 5, f"{tag} numbers")
            _param(inner, depth + 1)
        elif tag == "dtype":
            _require(inner in DTYPES, "unknown dtype")
        elif tag == "float":
            _require(type(inner) is str and len(inner) < 40, "a float is not hexadecimal")
            float.fromhex(inner)
        elif tag == "mode":
            _require(inner in MODES, "unknown mode")
        else:
            _integer(inner, 0, 8)
    else:
        _fail("a param of unknown type")


def _flag(value: Any) -> None:
    _require(type(value) is bool, "a flag is not a truth value")
