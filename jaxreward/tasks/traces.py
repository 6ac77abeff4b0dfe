"""The methods of a task on abstract arrays: what they return, and whether it is what the trainer can use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util
from jax.core import Tracer
from jax.extend import core
from jax.interpreters import partial_eval

from jaxreward.errors import UserError, did_you_mean
from jaxreward.tasks.contract import described, one_line, without_addresses
from jaxreward.tasks.finding import Finding, Location
from jaxreward.tasks.source_locator import SourceLocator

_MAX_LISTED = 3
"""Arrays of a state that one sentence names."""

_LEAKED = (
    "it uses an array that an earlier call left behind: keep everything in the state, and nothing in `self` or in a "
    "global"
)

_EXPLANATIONS: tuple[tuple[type[BaseException], str], ...] = (
    (jax.errors.TracerBoolConversionError,
     "`if`, `while`, `and`, `or` or `not` is asked about an array, whose value is not known when the function is "
     "compiled: use jnp.where, jax.lax.cond, and & | ~"),
    (jax.errors.TracerIntegerConversionError,
     "an array is used where Python needs an integer: index a jnp.array with it, not a list, and give shapes and loops "
     "plain integers"),
    (jax.errors.TracerArrayConversionError, "numpy is given an array of JAX: use jax.numpy"),
    (jax.errors.NonConcreteBooleanIndexError,
     "a mask selects a number of elements that is not known when the function is compiled: use jnp.where(mask, x, 0)"),
    (jax.errors.ConcretizationTypeError,
     "Python needs the value of an array, which is not known when the function is compiled: use .astype in place of "
     "int(), float() and bool(), and constants for shapes"),
    (jax.errors.UnexpectedTracerError, _LEAKED),
)  # fmt: skip


def _equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a computation, those inside of others included."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(inner):
                yield from _equations(getattr(inner, "jaxpr", inner))


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, core.Jaxpr | core.ClosedJaxpr)


class InvalidMethod(Exception):
    """A method that the trainer cannot use; `finding` says why."""

    def __init__(self, message: str, location: Location) -> None:
        self.finding = Finding(message, *location)
        super().__init__(str(self.finding))


@dataclass(frozen=True)
class Traced:
    """A method after it was traced: the shapes of what it returns, a tree, and the computation."""

    out: Any
    jaxpr: core.ClosedJaxpr

    @cached_property
    def equations(self) -> int:
        """How many equations it has, those inside of others included."""
        return sum(1 for _ in _equations(self.jaxpr.jaxpr))

    def equation_of(self, index: int) -> Any:
        """The equation that computes the leaf `index` of `out`; None for one that is passed on or constant."""
        var = self.jaxpr.jaxpr.outvars[index]
        return next((e for e in self.jaxpr.jaxpr.eqns if any(v is var for v in e.outvars)), None)


def traced(name: str, method: Callable[..., Any], arguments: tuple[Any, ...], locator: SourceLocator) -> Traced:
    """A method, which the user calls `name`, on `ShapeDtypeStruct`s.

    Raises:
        InvalidMethod: it fails, or returns something that is no pytree of arrays.
    """

    def call(*given: Any) -> Any:
        value = method(*given)
        if value is None:
            raise InvalidMethod(
                f"`{name}` returns None: end it with a return statement", locator.line_of_result(method)
            )
        for path, leaf in tree_util.tree_flatten_with_path(value)[0]:
            if not _is_array(leaf):
                where = f" at {label(path)}" if path else ""
                class_hint = "make its class a flax.struct.PyTreeNode or a NamedTuple, or use register_dataclass"
                is_object = type(leaf).__module__ not in ("builtins", "numpy")
                hint = class_hint if is_object else "use jnp arrays"
                message = f"`{name}` returns {described(leaf)}{where}, which is no array: {hint}"
                raise InvalidMethod(message, locator.line_of_result(method))
        return value

    try:
        jaxpr, out = jax.make_jaxpr(call, return_shape=True)(*arguments)
    except InvalidMethod:
        raise
    except (Exception, SystemExit) as error:
        raise method_error(name, error, locator) from error
    for var, value in zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True):
        if isinstance(value, Tracer):
            user = next((e for e in jaxpr.jaxpr.eqns if any(v is var for v in e.invars)), None)
            raise InvalidMethod(f"`{name}` fails: {_LEAKED}", locator.line_of_value(user, method))
    called = next((e for e in _equations(jaxpr.jaxpr) if e.params.get("vmap_method", "") is None), None)
    given = jax.tree.leaves(arguments)
    if called is not None and given:  # as JAX leaves it by default: it then batches no call with batched arguments
        try:
            jax.eval_shape(jax.vmap(core.jaxpr_as_fun(jaxpr)), *map(_two_of, given))
        except NotImplementedError as error:
            raise InvalidMethod(
                f"`{name}` calls a function of the host that is not batched, and many environments step at once: give "
                'jax.pure_callback, or jax.ffi.ffi_call, vmap_method="broadcast_all" if the function takes arrays with '
                'one more dimension in front, else vmap_method="sequential"', locator.line_of_value(called, method)
            ) from error  # fmt: skip
    return Traced(out, jaxpr)


def _two_of(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype)


def method_error(name: str, error: BaseException, locator: SourceLocator) -> InvalidMethod:
    """An exception of a method that the user calls `name`, with what it means."""
    meaning = next((text for kind, text in _EXPLANATIONS if isinstance(error, kind)), "")
    if isinstance(error, UserError):
        meaning = str(error)
    return InvalidMethod(f"`{name}` fails: {meaning or one_line(error)}", locator.line_of_error(error))


def require_deterministic(
    name: str, method: Callable[..., Any], arguments: tuple[Any, ...], first: Traced, locator: SourceLocator
) -> None:
    """Raise `InvalidMethod` unless a second trace gives the same computation: the method draws or counts outside of
    JAX."""
    again = traced(name, method, arguments, locator)
    if _text(first.jaxpr) == _text(again.jaxpr) and _same(first.jaxpr.consts, again.jaxpr.consts):
        return
    location = next((location for called, location in locator.calls_in(method) if _DRAWS.search(called)), None)
    if location is None:
        pairs = zip(first.jaxpr.jaxpr.eqns, again.jaxpr.jaxpr.eqns, strict=False)
        differs = next((e for e, other in pairs if without_addresses(str(e)) != without_addresses(str(other))), None)
        location = locator.line_of_value(differs, method)
    raise InvalidMethod(
        f"`{name}` computes something else each time it is compiled: numpy's random numbers, clocks and counters are "
        "read once and then fixed; draw with jax.random and a key, and count in the state", location
    )  # fmt: skip


_DRAWS = re.compile(r"(?<!jax\.)\b(random\.|rng\.|time\.|uuid\.|os\.urandom|secrets\.|datetime\.)")


def _text(jaxpr: Any) -> str:
    """A computation as text, without dead code: JAX leaves some where it traces for the first time."""
    return without_addresses(str(partial_eval.dce_jaxpr(jaxpr.jaxpr, [True] * len(jaxpr.jaxpr.outvars))[0]))


def _same(first: Any, again: Any) -> bool:
    def equal(x: Any, y: Any) -> bool:
        if hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        return x is y or np.array_equal(np.asarray(x), np.asarray(y), equal_nan=np.asarray(x).dtype.kind in "fc")

    return len(first) == len(again) and all(equal(x, y) for x, y in zip(first, again, strict=True))


def tree_changes(
    name: str, before: Any, after: Traced, method: Callable[..., Any], locator: SourceLocator
) -> Iterator[Finding]:
    """How what a method returns differs from `before`, the tree of shapes that it was given and must return.

    `name` is what to call it in the sentence, such as `step`.
    """
    given, found = (dict(_leaves(tree)) for tree in (before, after.out))
    if type(after.out) is tuple and type(before) is not tuple:
        what = "the next state" if name == "step" else "what it gathers"
        text = f"`{name}` returns {described_tree(after.out)}, and must return {what} alone"
        yield Finding(text, *locator.line_of_result(method))
        return
    if jax.tree.structure(before) != jax.tree.structure(after.out):
        lost, new = sorted(given.keys() - found.keys()), sorted(found.keys() - given.keys())
        changes = [f"without {', '.join(lost[:_MAX_LISTED])}"] if lost else []
        changes += [f"with {', '.join(new[:_MAX_LISTED])} added"] if new else []
        how = " and ".join(changes) or f"of another kind, {jax.tree.structure(after.out)!s:.120}"
        message = f"`{name}` returns a tree {how}: its fields must stay the same"
        yield Finding(message, *locator.line_of_result(method))
        return
    reported = 0
    for index, (path, leaf) in enumerate(found.items()):
        if (leaf.shape, leaf.dtype) == (given[path].shape, given[path].dtype) or reported == _MAX_LISTED:
            continue
        reported += 1
        location = locator.line_of_value(after.equation_of(index), method)
        hint = "keep its shape" if leaf.shape != given[path].shape else _cast(given[path].dtype, leaf.dtype)
        yield Finding(
            f"`{name}` turns {path} from {dtype_and_shape(given[path])} into {dtype_and_shape(leaf)}: {hint}", *location
        )


def _cast(before: Any, after: Any) -> str:
    """What to do about a dtype that changes; a whole number that becomes a real one may have been meant as one."""
    meant = jnp.issubdtype(after, jnp.floating) and not jnp.issubdtype(before, jnp.floating)
    return f"add .astype(jnp.{before.name})" + (f", or begin with jnp.{after.name}" if meant else "")


def require_scalar(
    name: str, what: Traced, kinds: str, wanted: str, method: Callable[..., Any], locator: SourceLocator
) -> None:
    """Raise `InvalidMethod` unless a method returns one number of some kinds of dtype.

    Args:
        kinds: the letters of numpy's kinds, such as `b`.
        wanted: what to return, in words.
    """
    leaf, hint = what.out, ""
    if _is_leaf(leaf):
        real = jnp.issubdtype(leaf.dtype, jnp.floating) and "f" in kinds
        if leaf.shape == () and (real or np.dtype(leaf.dtype).kind in kinds):
            return
        if leaf.shape != ():
            hint = f": select one, or use {'.any() or .all()' if kinds == 'b' else '.sum() or .mean()'}"
        elif kinds == "b":
            hint = ": compare, or add .astype(bool)"
    equation = what.equation_of(0) if what.jaxpr.jaxpr.outvars else None
    location = locator.line_of_value(equation, method)
    raise InvalidMethod(f"`{name}` returns {described_tree(leaf)}, and must return {wanted}{hint}", location)


def require_vector(name: str, what: Traced, method: Callable[..., Any], locator: SourceLocator) -> None:
    """Raise `InvalidMethod` unless a method returns a float32 vector with at least one element."""
    leaf = what.out
    flat = _is_leaf(leaf) and leaf.ndim == 1 and leaf.shape[0] > 0
    if flat and leaf.dtype == jnp.float32:
        return
    hint = "add .astype(jnp.float32)" if flat else "use jnp.concatenate or jnp.stack"
    message = f"`{name}` returns {described_tree(leaf)}, and must return a float32 vector: {hint}"
    raise InvalidMethod(message, locator.line_of_result(method))


def _is_leaf(tree: Any) -> bool:
    return tree_util.treedef_is_leaf(jax.tree.structure(tree))


def described_tree(tree: Any) -> str:
    """What a method returns, in a sentence."""
    if _is_leaf(tree):
        return dtype_and_shape(tree)
    if type(tree) in (tuple, list):
        return f"a {type(tree).__name__} of {len(tree)}"
    return f"a tree of {len(jax.tree.leaves(tree))} arrays"


def check_state_words(view: Any, task: Any, locator: SourceLocator) -> Iterator[Finding]:
    """What is wrong with `state_words` of a task: names of no array, words that are no text."""
    paths = [path for path, _ in _leaves(view, root="")]
    for name, text in task.state_words.items():
        location: Location = locator.line_of_text(name) or locator.line_of_name("state_words")
        if not isinstance(text, str):
            yield Finding(f"`state_words` has {described(text)} for '{name}': write a few words", *location)
        elif name not in (*paths, "action") and not (_inherited(task) and locator.line_of_text(name) is None):
            hint = did_you_mean(name, [*paths, "action"], "its arrays are")
            yield Finding(f"`state_words` names '{name}', which is no array of the view: {hint}", *location)


def _inherited(task: Any) -> bool:
    """Whether the words are those of a base class of ours, which may name arrays that a task leaves out."""
    owner = next((kind for kind in type(task).__mro__ if "state_words" in vars(kind)), None)
    return (
        "state_words" not in getattr(task, "__dict__", {})
        and owner is not None
        and owner.__module__.startswith("jaxreward.")
    )


def label(path: Any, root: str = "state") -> str:
    """A path into a tree with dots: `state.agent.position`."""
    return ".".join(filter(None, (root, tree_util.keystr(path, simple=True, separator="."))))


def _leaves(tree: Any, root: str = "state") -> list[tuple[str, Any]]:
    return [(label(path, root), leaf) for path, leaf in tree_util.tree_flatten_with_path(tree)[0]]


def dtype_and_shape(leaf: Any) -> str:
    """The dtype and shape of an array."""
    return f"{leaf.dtype.name} {tuple(leaf.shape)}"


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind in "biufcV"  # V is that of bfloat16
    return isinstance(leaf, jax.Array | bool | int | float)
