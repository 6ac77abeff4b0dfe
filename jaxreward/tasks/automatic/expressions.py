"""A traced computation as the text of a program.

A task's own functions, such as its sparse reward, cannot be called by programs. Traced, most of them are a few
equations, which this module writes as one expression of `jax.numpy`, or a few assignments:

    jnp.all(next_state.agent == next_state.door) & next_state.has_key
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import tree_util
from jax.extend import core
from jax.interpreters import partial_eval

from jaxreward.tasks.automatic.texts import UNKNOWN

_LONGEST = 2_000
"""Characters of an expression, at most."""
_LARGEST = 64
"""Elements of a constant that is written out, at most."""

_INFIX = {
    "add": "+", "add_any": "+", "sub": "-", "mul": "*", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "and": "&", "or": "|", "xor": "^", "pow": "**",
}  # fmt: skip
_CALLS = {
    "abs": "jnp.abs", "sign": "jnp.sign", "floor": "jnp.floor", "ceil": "jnp.ceil", "exp": "jnp.exp", "log": "jnp.log",
    "sin": "jnp.sin", "cos": "jnp.cos", "tan": "jnp.tan", "asin": "jnp.arcsin", "acos": "jnp.arccos",
    "atan": "jnp.arctan", "tanh": "jnp.tanh", "sqrt": "jnp.sqrt", "rsqrt": "jax.lax.rsqrt", "square": "jnp.square",
    "log1p": "jnp.log1p", "expm1": "jnp.expm1", "logistic": "jax.nn.sigmoid", "is_finite": "jnp.isfinite",
    "max": "jnp.maximum", "min": "jnp.minimum", "atan2": "jnp.arctan2", "rem": "jax.lax.rem", "round": "jnp.round",
}  # fmt: skip
_PREFIX = {"neg": "-", "not": "~"}
_REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_and": "all", "reduce_or": "any",
               "reduce_prod": "prod", "argmax": "argmax", "argmin": "argmin"}  # fmt: skip
_SAME = frozenset({"copy", "copy_p", "stop_gradient", "optimization_barrier"})
_COMPARED = frozenset({"eq", "ge", "gt", "le", "lt"})
_SCALES = frozenset({"mul", "div", "pow", "integer_pow", "rem", "clamp", "max", "min", "convert_element_type"})
"""What a number may do to a quantity without being another quantity itself: a unit or a bound."""
_LOOKS_UP = frozenset({"gather", "dynamic_slice", "scatter"})
_PLAIN = (0.0, math.pi / 2, math.pi, 2 * math.pi)
"""Numbers that say nothing about a task."""
_NEARLY = 1e-4


class Inexpressible(Exception):
    """A computation that cannot be written as a short program."""


class Text(NamedTuple):
    """An expression, which inputs it reads, counted through, and the shape of its value.

    `scalar` marks a scalar that stands for an array of its own repetitions; `embeds` says that a constant of the code
    is part of it that is more than a unit or a bound: `x` less the place of something, a table that is looked up.
    """

    text: str
    reads: frozenset[int]
    shape: tuple[int, ...]
    dtype: Any
    scalar: bool = False
    embeds: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether it is a constant of the code."""
        return not self.reads


class Comparison(NamedTuple):
    """`left` compared with `right` by `operator`, one of eq, ge, gt, le and lt."""

    operator: str
    left: Text
    right: Text


class Written(NamedTuple):
    """The outputs of a function as expressions, the comparisons of numbers that are made on the way, and the pairs of
    expressions that are subtracted from one another or compared."""

    outputs: tuple[Text, ...]
    comparisons: tuple[Comparison, ...]
    differences: tuple[tuple[str, str], ...]


@dataclass
class _Met:
    """What is met on the way through a computation."""

    comparisons: list[Comparison] = field(default_factory=list)
    differences: list[tuple[str, str]] = field(default_factory=list)


def written(function: Callable[..., Any], arguments: Sequence[Any], paths: Sequence[str]) -> Written:
    """`function` of `arguments`, trees of arrays or their shapes, as expressions of the `paths` of their leaves.

    What no expression is known for, or would be long, has the text `UNKNOWN`.
    """
    return following(function, arguments, paths, {}, None)


def following(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    paths: Sequence[str],
    named: Mapping[int, str],
    only: frozenset[int] | None,
) -> Written:
    """The same for those of the outputs that `only` numbers; an output in `named` is called that wherever it is used.

    Args:
        only: leaves of the output; all if None.
    """
    closed = jax.make_jaxpr(function)(*arguments)
    outvars = closed.jaxpr.outvars
    wanted = [only is None or k in only for k in range(len(outvars))]
    jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, wanted, instantiate=True)
    avals: list[Any] = [v.aval for v in jaxpr.invars]
    inputs = [
        Text(path, frozenset([k]), tuple(aval.shape), aval.dtype)
        for k, (path, aval) in enumerate(zip(paths, avals, strict=True))
    ]
    names = {v: named[k] for k, v in enumerate(outvars) if k in named and not isinstance(v, core.Literal)}
    names = _of_sources(closed.jaxpr, names)
    met = _Met()
    outputs = _interpreted(jaxpr, [_constant(c) for c in closed.consts], inputs, met, names)
    return Written(tuple(outputs), tuple(met.comparisons), tuple(met.differences))


def paths_of(name: str, tree: Any) -> list[str]:
    """How a program writes the leaves of the argument of this name."""
    return [name + tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(tree)[0]]


def inputs_read(function: Callable[..., Any], arguments: Sequence[Any]) -> frozenset[int]:
    """Which leaves of the arguments, counted through, the value of `function` depends on."""
    closed = jax.make_jaxpr(function)(*arguments)
    _, used = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    return frozenset(k for k, is_used in enumerate(used) if is_used)


def _interpreted(
    jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Text], met: _Met, names: Mapping[Any, str]
) -> list[Text]:
    """The outputs of `jaxpr` for expressions of its inputs; `names` are texts of variables that are not to be written
    out."""
    known: dict[Any, Text] = {}
    names = _of_sources(jaxpr, names)
    for var, text in zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *inputs), strict=True):
        known[var] = text

    def read(var: Any) -> Text:
        return _constant(var.val) if isinstance(var, core.Literal) else known[var]

    for equation in jaxpr.eqns:
        operands = [read(v) for v in equation.invars]
        reads = frozenset().union(*(x.reads for x in operands)) if operands else frozenset()
        unknown = [Text(UNKNOWN, reads, tuple(v.aval.shape), v.aval.dtype) for v in equation.outvars]
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        if inner is not None and equation.primitive.name not in ("while", "scan", "cond"):
            closed = inner if isinstance(inner, core.ClosedJaxpr) else core.ClosedJaxpr(inner, ())
            pairs = zip(closed.jaxpr.outvars, equation.outvars, strict=True)
            below = {v: names[w] for v, w in pairs if w in names and not isinstance(v, core.Literal)}
            results = _interpreted(closed.jaxpr, [_constant(c) for c in closed.consts], operands, met, below)
        elif any(UNKNOWN in x.text for x in operands) or len(equation.outvars) > 1:
            results = unknown
        else:
            try:
                results = [_equation(equation, operands, met)]
            except Inexpressible:
                results = unknown
        results = [u if len(r.text) > _LONGEST else r for r, u in zip(results, unknown, strict=True)]
        for var, result in zip(equation.outvars, results, strict=True):
            known[var] = _named(result, names[var]) if var in names else result
    return [read(v) for v in jaxpr.outvars]


def _named(result: Text, name: str) -> Text:
    """A result under the name that it has in programs, for which how it came about does not count."""
    return result._replace(text=name, scalar=False, embeds=False, reads=result.reads or frozenset([-1]))


def _of_sources(jaxpr: Any, names: Mapping[Any, str]) -> dict[Any, str]:
    """The same names, which what is only passed on to a named variable has too."""
    found = dict(names)
    for equation in reversed(jaxpr.eqns):
        if equation.outvars[0] in found and _passes_on(equation):
            found.setdefault(equation.invars[0], found[equation.outvars[0]])
    return found


def _passes_on(equation: Any) -> bool:
    source, name = equation.invars[0] if equation.invars else None, equation.primitive.name
    if source is None or isinstance(source, core.Literal):
        return False
    return name in _SAME or (name == "convert_element_type" and source.aval.dtype == equation.outvars[0].aval.dtype)


def _equation(equation: Any, operands: list[Text], met: _Met) -> Text:
    name, params, out = equation.primitive.name, equation.params, equation.outvars[0].aval
    shape = tuple(out.shape)
    reads = frozenset().union(*(x.reads for x in operands)) if operands else frozenset()
    embeds = any(x.embeds for x in operands) or _embeds(name, operands)

    def made(text: str, scalar: bool = False) -> Text:
        return Text(text, reads, shape, out.dtype, scalar, embeds)

    scalar = bool(operands) and bool(shape) and all(x.scalar or not x.shape for x in operands)
    texts = [x.text for x in operands]
    if name in _COMPARED and operands[0].dtype != np.dtype(bool):
        met.comparisons.append(Comparison(name, operands[0], operands[1]))
    if (name == "sub" or name in _COMPARED) and not any(x.is_fixed for x in operands):
        met.differences.append((texts[0], texts[1]))
    if name in _SAME:
        return operands[0]._replace(shape=shape)
    if name in _INFIX:
        return made(f"({texts[0]} {_INFIX[name]} {texts[1]})", scalar)
    if name == "div":
        real = np.issubdtype(out.dtype, np.floating)
        return made(f"({texts[0]} / {texts[1]})" if real else f"jax.lax.div({_full(operands)})", scalar and real)
    if name in _CALLS:
        arguments = _full(operands) if name == "rem" else ", ".join(texts)
        return made(f"{_CALLS[name]}({arguments})", scalar and name != "rem")
    if name in _PREFIX:
        return made(f"({_PREFIX[name]}{texts[0]})", scalar)
    if name == "integer_pow":
        return made(f"({texts[0]} ** {params['y']})", scalar)
    if name == "clamp":
        return made(f"jnp.clip({texts[1]}, {texts[0]}, {texts[2]})", scalar)
    if name == "convert_element_type":
        if operands[0].dtype == out.dtype:
            return operands[0]
        return made(_converted(operands[0], np.dtype(out.dtype)), operands[0].scalar)
    if name == "select_n" and len(operands) == 3 and operands[0].dtype == np.dtype(bool):
        return made(f"jnp.where({texts[0]}, {texts[2]}, {texts[1]})", scalar)
    if name == "broadcast_in_dim" and (operands[0].scalar or not operands[0].shape):
        return made(texts[0], scalar=bool(shape))
    array = _whole(operands[0]) if operands else ""
    if name == "broadcast_in_dim":
        return made(f"jax.lax.broadcast_in_dim({array}, {shape}, {tuple(params['broadcast_dimensions'])})")
    if name in _REDUCTIONS:
        axes = tuple(params["axes"])
        whole = len(axes) == len(operands[0].shape)
        axis = "" if whole else f", axis={axes[0] if len(axes) == 1 else axes}"
        return made(f"jnp.{_REDUCTIONS[name]}({array}{axis})")
    if name in ("reshape", "squeeze", "expand_dims"):
        if len(operands[0].shape) == len(shape):
            return operands[0]
        if name == "squeeze" and (element := _element(array, operands[0].shape, params["dimensions"])):
            return made(element)
        return made(f"jnp.reshape({array}, {shape})")
    if name == "transpose":
        return made(f"jnp.transpose({array}, {tuple(params['permutation'])})")
    if name == "slice" and not params.get("strides"):
        spans = zip(params["start_indices"], params["limit_indices"], operands[0].shape, strict=True)
        parts = [":" if (a, b) == (0, n) else f"{a}:{b}" for a, b, n in spans]
        return made(f"{array}[{', '.join(parts)}]")
    if name == "stack":
        return made(f"jnp.stack([{', '.join(map(_whole, operands))}], axis={params['axis']})")
    if name == "concatenate" and all(x.scalar and x.shape == (1,) for x in operands):
        return made(f"jnp.stack([{', '.join(texts)}])")
    if name == "concatenate":
        return made(f"jnp.concatenate([{', '.join(map(_whole, operands))}], axis={params['dimension']})")
    if name == "iota":
        return made(f"jax.lax.broadcasted_iota(jnp.{np.dtype(out.dtype).name}, {shape}, {params['dimension']})")
    if name == "gather" and (element := _gathered(operands, params, shape)):
        return made(element)
    if name == "scatter" and len(operands[0].shape) == 1 and not shape[1:] and operands[1].text.isdigit():
        return made(f"{array}.at[{operands[1].text}].set({texts[2]})")
    if name == "dot_general":
        (left, right), (batch, _) = params["dimension_numbers"]
        plain = not batch and tuple(left) == (len(operands[0].shape) - 1,) and tuple(right) == (0,)
        if plain and len(operands[1].shape) <= 2:
            return made(f"jnp.dot({_whole(operands[0])}, {_whole(operands[1])})")
    raise Inexpressible(f"there is no expression for {name}")


def _embeds(name: str, operands: Sequence[Text]) -> bool:
    """Whether an equation makes a constant of the code part of what is read from inputs."""
    fixed = [x for x in operands if x.is_fixed]
    if len(fixed) in (0, len(operands)):
        return False
    if name in _LOOKS_UP:
        return operands[0].is_fixed
    if any(x.shape and not x.scalar for x in fixed):
        return True
    return name not in _SCALES and not all(_is_plain(x.text) for x in fixed)


def _is_plain(text: str) -> bool:
    value = literal(text)
    return value is not None and any(abs(abs(value) - plain) < _NEARLY for plain in _PLAIN)


def literal(text: str) -> float | None:
    """The number that an expression is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return {"True": 1.0, "False": 0.0}.get(text)


def _gathered(operands: Sequence[Text], params: Mapping[str, Any], shape: tuple[int, ...]) -> str:
    """`x[k]` for a number k, where that is what is gathered; else empty."""
    table, index = operands
    numbers = params["dimension_numbers"]
    rows = tuple(numbers.collapsed_slice_dims) == tuple(numbers.start_index_map) == (0,)
    one = index.scalar and index.shape == (1,) and shape == table.shape[1:]
    return f"{_whole(table)}[{index.text}]" if rows and one else ""


_SPAN = re.compile(r":|\d+:\d+")


def _element(array: str, shape: tuple[int, ...], dimensions: Sequence[int]) -> str:
    """`x[2:3, :]` less its first dimension as `x[2]`; empty where `array` is no such slice."""
    head, _, tail = array.rpartition("[")
    parts = tail.removesuffix("]").split(", ")
    if not (head and array.endswith("]") and len(parts) == len(shape) and all(map(_SPAN.fullmatch, parts))):
        return ""
    if any(parts[k] == ":" for k in dimensions):
        return ""
    parts = [p.partition(":")[0] if k in dimensions else p for k, p in enumerate(parts)]
    while parts[-1] == ":" and len(parts) > 1:
        parts.pop()
    return f"{head}[{', '.join(parts)}]"


def _full(operands: Sequence[Text]) -> str:
    """Arguments of a function that wants arrays of equal shape and dtype."""
    return ", ".join(map(_whole, operands))


def _whole(text: Text) -> str:
    """An expression of the full shape."""
    if text.scalar and text.shape == (1,):
        return f"jnp.stack([{text.text}])"
    return f"jnp.full({text.shape}, {text.text})" if text.scalar else text.text


def _converted(text: Text, dtype: np.dtype[Any]) -> str:
    name = "bool_" if dtype.kind == "b" else dtype.name
    if text.text.replace(".", "").replace("-", "").isdigit() and dtype.kind == "f":
        return repr(float(text.text))
    return f"jnp.asarray({text.text}, jnp.{name})" if not text.reads else f"{text.text}.astype(jnp.{name})"


def _constant(value: Any) -> Text:
    """A constant of the computation, written out."""
    dtype = getattr(value, "dtype", np.asarray(value).dtype)
    if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        return Text(UNKNOWN, frozenset(), (), dtype)
    array = np.asarray(value)
    if array.size > _LARGEST or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        return Text(UNKNOWN, frozenset(), array.shape, array.dtype)
    kind = "bool_" if array.dtype == bool else array.dtype.name
    text = _number(array.tolist(), array.dtype)
    if array.shape:
        text = f"jnp.array({text}, jnp.{kind})"
    return Text(text, frozenset(), array.shape, array.dtype)


def _number(value: Any, dtype: np.dtype[Any]) -> str:
    """A number, or a list of numbers, with as few digits as its dtype needs."""
    if isinstance(value, list):
        return f"[{', '.join(_number(v, dtype) for v in value)}]"
    return repr(float(str(np.float32(value)))) if dtype.kind == "f" else repr(value)
