"""From a traced function to its tape: inlined, without duplicate or dead code, in a canonical order."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core

from jaxreward.moves import moved
from jaxreward.programs.limits import Limits
from jaxreward.programs.loops import scan_sizes
from jaxreward.programs.primitives import SCATTERS, replayable
from jaxreward.programs.spec import DTYPES
from jaxreward.programs.tape import COMMUTATIVE, Tape, TapeError, bodies, count, input_digest, node_digest

_INLINE = {
    "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat", "remat2",
}  # fmt: skip
_IDENTITY = {"copy", "copy_p", "stop_gradient", "optimization_barrier", "name"}
_MUST_BE_NONE = {"sharding", "out_sharding", "accuracy", "out_dtype", "mesh", "concrete_mesh"}
_SCATTER_DROPS = {"update_jaxpr", "update_consts"}
_FLIPPED = {"gt": "lt", "ge": "le"}
_GATHER = ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
           "start_indices_batching_dims")  # fmt: skip
_SCATTER = ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "operand_batching_dims",
            "scatter_indices_batching_dims")  # fmt: skip


def encode(closed: Any, labels: Sequence[str], limits: Limits | None = None) -> Tape:
    """The tape of a `ClosedJaxpr`.

    Args:
        labels: names of the inputs; they order commutative operands, as in the digest.

    Raises:
        TapeError: for a primitive or a constant that tapes do not hold, or too many operations.
    """
    limits = limits or Limits()
    builder = _Builder([v.aval for v in closed.jaxpr.invars], labels, limits, [limits.equations])
    outs = builder.run(closed.jaxpr, closed.consts, list(range(len(closed.jaxpr.invars))))
    return builder.finish(outs)


class _Builder:
    """Nodes with their digests; equal nodes are one."""

    def __init__(self, avals: Sequence[Any], labels: Sequence[str], limits: Limits, visits: list[int]) -> None:
        self.limits, self.visits = limits, visits
        self.ins = [[[int(d) for d in a.shape], self.dtype(a.dtype)] for a in avals]
        self.digests = [input_digest(label, *spec) for label, spec in zip(labels, self.ins, strict=True)]
        self.nodes: list[list[Any]] = []
        self.memo: dict[str, list[int]] = {}
        self.size = 0
        self.consts: dict[int, np.ndarray[Any, Any]] = {}
        self.tables: dict[int, np.ndarray[Any, Any]] = {}  # `consts`, and broadcasts of them
        self.line: int | None = None

    def refuse(self, message: str, hint: str = "", stage: str = "trace") -> None:
        raise TapeError(message, self.line, hint, stage)

    def dtype(self, dtype: Any) -> str:
        name = getattr(dtype, "name", str(dtype))
        if name not in DTYPES:
            raise TapeError(
                f"an array has dtype {name}", getattr(self, "line", None), f"programs compute with {', '.join(DTYPES)}"
            )
        return name

    # ---- nodes

    def const(self, value: Any) -> int:
        array = np.asarray(value)
        name = self.dtype(array.dtype)
        if array.size > 1 and array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
            # jnp.zeros and a table of zeros are one computation.
            scalar = self.const(array.reshape(-1)[0])
            shape = {"shape": [int(d) for d in array.shape], "broadcast_dimensions": [], "sharding": None}
            (index,) = self.add("broadcast_in_dim", shape, [scalar], 1)
            self.tables[index] = array
            return index
        if array.nbytes > self.limits.constant_bytes:
            limit = self.limits.constant_bytes
            self.refuse(f"a constant of {array.nbytes} bytes; the limit is {limit}", "compute it", "limits")
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        (index,) = self.add("const", {"shape": [int(d) for d in array.shape], "dtype": name, "data": data}, [], 1)
        self.consts[index] = self.tables[index] = array
        return index

    def add(self, op: str, params: dict[str, Any], operands: Sequence[int], outputs: int) -> list[int]:
        operands = list(operands)
        if op in _FLIPPED:
            op, operands = _FLIPPED[op], operands[::-1]
        if op in COMMUTATIVE:
            operands.sort(key=lambda i: self.digests[i])
        key = node_digest(op, params, [self.digests[i] for i in operands])
        if key in self.memo:
            return self.memo[key]
        self.size += 1 + sum(count(b) for b in bodies(op, params))
        if self.size > self.limits.operations:
            hint = "use array operations in place of unrolled loops"
            self.refuse(f"more than {self.limits.operations} operations", hint, "limits")
        self.nodes.append([op, params, operands, outputs])
        first = len(self.digests)
        self.digests += [f"{key}:{k}" for k in range(outputs)]
        self.memo[key] = list(range(first, first + outputs))
        return self.memo[key]

    def run(self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[int]) -> list[int]:
        values: dict[Any, int] = {}

        def read(atom: Any) -> int:
            if isinstance(atom, core.Literal):
                aval: Any = atom.aval
                return self.const(np.asarray(atom.val, dtype=aval.dtype))
            return values[atom]

        for var, const in zip(jaxpr.constvars, consts, strict=True):
            values[var] = self.const(const)
        for var, operand in zip(jaxpr.invars, operands, strict=True):
            values[var] = operand
        for equation in jaxpr.eqns:
            self.visits[0] -= 1
            if self.visits[0] < 0:
                self.refuse(f"more than {self.limits.equations} equations", "unroll less", "limits")
            outer, self.line = self.line, candidate_line(equation) or self.line
            outs = self.equation(equation, [read(atom) for atom in equation.invars])
            self.line = outer
            values.update(zip(equation.outvars, outs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def body(self, closed: Any) -> Tape:
        labels = [f"#{i}" for i in range(len(closed.jaxpr.invars))]
        inner = _Builder([v.aval for v in closed.jaxpr.invars], labels, self.limits, self.visits)
        inner.size, inner.line = self.size, self.line
        return inner.finish(inner.run(closed.jaxpr, closed.consts, list(range(len(labels)))))

    # ---- one equation

    def equation(self, equation: Any, operands: list[int]) -> list[int]:
        name, params = equation.primitive.name, equation.params
        if equation.effects:
            self.refuse("it has side effects", "return everything that you compute")
        if name in _INLINE:
            return self.run(*_callee(params), operands)
        if name == "call_hi_primitive":  # what custom derivatives are from JAX 0.12 on
            expanded = _expanded(equation)
            return self.run(expanded.jaxpr, expanded.consts, operands)
        if name == "empty":  # functions of JAX fill it before they read it
            return [self.const(np.zeros(params["shape"], params["dtype"]))]
        if name == "custom_linear_solve":
            sizes = params["const_lengths"]
            first, rest = sizes.matvec + sizes.vecmat, sum(sizes)
            solve = params["jaxprs"].solve
            return self.run(solve.jaxpr, solve.consts, operands[first : first + sizes.solve] + operands[rest:])
        if name in _IDENTITY:
            return operands
        if name == "platform_index":  # read by a `cond` that `conditional` resolves
            return operands or [self.const(np.int32(-1))]
        outputs = len(equation.outvars)
        if name in ("convert_element_type", "reshape", "broadcast_in_dim") and len(operands) == 1:
            before, after = equation.invars[0].aval, equation.outvars[0].aval
            if before.shape == after.shape and before.dtype == after.dtype:
                return operands
            if name == "convert_element_type" and operands[0] in self.consts:
                folded = _fold(self.consts[operands[0]], after.dtype)
                if folded is not None:
                    return [self.const(folded)]
        entries = None
        if operands and all(i in self.tables for i in operands):
            entries = moved(name, params, [self.tables[i] for i in operands])
            if entries is not None and name != "broadcast_in_dim":
                return [self.const(entries)]
        if name == "cond":
            return self.conditional(params, operands, outputs)
        if name == "scan":
            if params["length"] > self.limits.iterations:
                self.refuse(f"a loop of {params['length']} iterations", f"at most {self.limits.iterations}", "limits")
            consts, carry = scan_sizes(equation)
            tape = {"consts": consts, "carry": carry,
                    "length": int(params["length"]), "reverse": bool(params["reverse"])}  # fmt: skip
            return self.add("scan", {**tape, "body": self.body(params["jaxpr"])}, operands, outputs)
        if name == "while":
            if at_import(equation):
                hint = "use jax.lax.fori_loop with constant bounds"
                self.refuse("a while loop runs when the module is imported", hint, "limits")
            tape = {"condition_consts": int(params["cond_nconsts"]), "body_consts": int(params["body_nconsts"])}
            loop = {"condition": self.body(params["cond_jaxpr"]), "body": self.body(params["body_jaxpr"])}
            return self.add("while", {**tape, **loop}, operands, outputs)
        if name not in replayable():
            self.refuse(f"the operation '{name}' is not available to programs", _instead(name))
        found = self.add(name, self.params(name, params), operands, outputs)
        if entries is not None:  # of a broadcast, which stays one: it is smaller than what it makes
            self.tables[found[0]] = entries
        return found

    def conditional(self, params: dict[str, Any], operands: list[int], outputs: int) -> list[int]:
        platforms = params.get("branches_platforms")
        if platforms is not None:  # one branch per platform; the default one works on all of them
            chosen = next((i for i, p in enumerate(platforms) if p is None), None)
            if chosen is None:
                chosen = next((i for i, p in enumerate(platforms) if "cpu" in p), 0)
            branch = params["branches"][chosen]
            return self.run(branch.jaxpr, branch.consts, operands[1:])
        return self.add("cond", {"branches": [self.body(b) for b in params["branches"]]}, operands, outputs)

    def params(self, name: str, params: dict[str, Any]) -> dict[str, Any]:
        encoded: dict[str, Any] = {}
        for key, value in params.items():
            if key in _MUST_BE_NONE and value is not None:
                self.refuse(f"{name} with {key}", "leave that argument out")
            if name in SCATTERS and key in _SCATTER_DROPS:
                continue
            if key in ("unique_indices", "indices_are_sorted"):
                value = False  # a false promise is undefined behaviour
            if key == "weak_type":
                value = False
            encoded[key] = self.param(name, value)
        return encoded

    def param(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        for kind, tag in ((lax.Precision, "precision"), (lax.RoundingMethod, "rounding")):
            if isinstance(value, kind):
                return {tag: int(value.value)}
        if isinstance(value, lax.GatherScatterMode):
            return {"mode": value.name}
        for numbers, tag, fields in (
            (lax.GatherDimensionNumbers, "gather", _GATHER),
            (lax.ScatterDimensionNumbers, "scatter", _SCATTER),
            (lax.ConvDimensionNumbers, "conv", ("lhs_spec", "rhs_spec", "out_spec")),
        ):
            if isinstance(value, numbers):
                return {tag: [self.param(name, tuple(getattr(value, f))) for f in fields]}
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            return {"float": float(value).hex()}
        if isinstance(value, tuple | list):
            return [self.param(name, v) for v in value]
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return {"dtype": self.dtype(np.dtype(value))}
        raise TapeError(f"{name} with a {type(value).__name__}", self.line, "leave that argument out")

    # ---- the finished tape

    def finish(self, outs: list[int]) -> Tape:
        """Live nodes only, in depth-first order from the outputs: the order of statements is gone."""
        inputs, owner, first = len(self.ins), [], []
        for i, node in enumerate(self.nodes):
            first.append(inputs + len(owner))
            owner += [i] * node[3]
        order: list[int] = []
        done: set[int] = set()
        for out in outs:
            stack = [(owner[out - inputs], 0)] if out >= inputs else []
            while stack:
                i, k = stack.pop()
                if i in done:
                    continue
                operands = self.nodes[i][2]
                while k < len(operands) and (operands[k] < inputs or owner[operands[k] - inputs] in done):
                    k += 1
                if k < len(operands):
                    stack += [(i, k + 1), (owner[operands[k] - inputs], 0)]
                else:
                    done.add(i)
                    order.append(i)
        new = dict(zip(range(inputs), range(inputs), strict=True))
        if any(node[0] == "while" and i not in done for i, node in enumerate(self.nodes)):
            self.refuse("the result of a while loop is not used", "remove the loop: it may never end", "limits")
        nodes = []
        for i in order:
            op, params, operands, outputs = self.nodes[i]
            nodes.append([op, params, [new[o] for o in operands], outputs])
            for k in range(outputs):
                new[first[i] + k] = len(new)
        return {"ins": self.ins, "nodes": nodes, "outs": [new[o] for o in outs]}


def _callee(params: dict[str, Any]) -> tuple[Any, Sequence[Any]]:
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        inner = params.get(key)
        if isinstance(inner, core.ClosedJaxpr):
            return inner.jaxpr, inner.consts
        if inner is not None:
            return inner, ()
    raise TapeError("a call without a body")


def _expanded(equation: Any) -> Any:
    """The jaxpr of a `jax.experimental.hijax` primitive, in terms of other primitives."""
    primitive = equation.params["_prim"]

    def expand(*arguments: Any) -> list[Any]:
        return jax.tree.leaves(primitive.expand(*jax.tree.unflatten(primitive.in_tree, arguments)))

    avals = [v.aval for v in equation.invars]
    return jax.make_jaxpr(expand)(*[jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals])


def _fold(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any] | None:
    """A converted constant; None where numpy and XLA may differ."""
    if array.size > 4096 or (array.dtype.kind not in "biu" and np.dtype(dtype).kind in "iu"):
        return None
    return array.astype(dtype)


def _instead(name: str) -> str:
    if name.startswith(("random", "threefry", "rng")):
        return "programs are deterministic"
    if name in ("svd", "qr", "eigh", "eig", "schur", "householder_product", "geqrf"):
        return "of matrix decompositions only cholesky and lu (solve, inv, det) are available"
    return "express it with elementary array operations"


def candidate_line(equation: Any) -> int | None:
    """The line of a program that an equation comes from."""
    traceback = getattr(getattr(equation, "source_info", None), "traceback", None)
    for frame in getattr(traceback, "frames", None) or ():
        if getattr(frame, "file_name", "") == "<candidate>":
            return frame.line_num
    return None


def at_import(equation: Any) -> bool:
    """Whether an equation comes from a program's module level, and not from a call of its entry points."""
    traceback = getattr(getattr(equation, "source_info", None), "traceback", None)
    frames = getattr(traceback, "frames", None) or ()
    return any(frame.file_name == "<candidate>" and frame.function_name == "<module>" for frame in frames)


def trace(function: Any, structs: Sequence[Any], labels: Sequence[str], limits: Limits) -> Tape:
    """The tape of a function over flat arrays; `function` returns a list of arrays."""
    return encode(jax.make_jaxpr(function)(*structs), labels, limits)
