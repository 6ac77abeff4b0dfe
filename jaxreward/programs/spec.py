"""The inputs of a program: the tree of a task's view, and its action."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from jaxreward.errors import UserError, in_a_line
from jaxreward.views import view_shapes

DTYPES = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32")


def dtype_name(dtype: Any) -> str:
    return np.dtype(dtype).name


def dtype_of(name: str) -> np.dtype[Any]:
    """The numpy dtype of an allowed name, `bfloat16` included."""
    return np.dtype(jax.numpy.bfloat16) if name == "bfloat16" else np.dtype(name)


class InvalidView(UserError):
    """A view that programs cannot read, or one of another task.

    Attributes:
        leaf: the array or field concerned, by its path; empty if it is the view as a whole.
    """

    def __init__(self, message: str, leaf: str = "") -> None:
        super().__init__(message)
        self.leaf = leaf


@dataclass(frozen=True)
class Leaf:
    """One array of a view; `name` is its path, such as `agent.position` or `info.gyro`."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def struct(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(self.shape, dtype_of(self.dtype))

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {self.shape}"


@dataclass(frozen=True)
class Spec:
    """The inputs of a program.

    Attributes:
        tree: nested JSON-able nodes, `["leaf", index]`, `["attr" | "dict", [[name, node], ...]]`
            or `["tuple", [node, ...]]`; leaves are numbered in the order of `jax.tree.leaves`.
        leaves: the arrays of a view.
        action: name `action`, int32 () for discrete actions, else float32.
        actions: number of discrete actions, 0 if the action is real.
        bounds: range of continuous actions.
    """

    tree: Any
    leaves: tuple[Leaf, ...]
    action: Leaf
    actions: int = 0
    bounds: tuple[float, float] = (-1.0, 1.0)

    @staticmethod
    def of(task: Any, action: Any = None) -> Spec:
        """The spec of a task, or of a bare `(view, action)` of `jax.ShapeDtypeStruct`.

        Args:
            task: has `reset`, `view` and `action_space`; or a tree of arrays or
                `ShapeDtypeStruct` for the view, with `action` as the second argument, or `(view, action)`.

        Raises:
            InvalidView: a view that programs cannot read.
        """
        if isinstance(task, Spec):
            return task
        if action is None and hasattr(task, "action_space"):
            try:
                view = view_shapes(task)
            except Exception as error:
                raise InvalidView(f"the view of the task cannot be traced: {in_a_line(error)}") from error
            space = task.action_space
            if hasattr(space, "n"):
                return Spec._build(view, Leaf("action", (), "int32"), actions=int(space.n))
            bounds = (_finite(getattr(space, "low", -1.0), -1.0, min), _finite(getattr(space, "high", 1.0), 1.0, max))
            shape = tuple(int(d) for d in space.shape)
            return Spec._build(view, Leaf("action", shape, "float32"), bounds=bounds)
        if action is None:
            if not (isinstance(task, tuple) and len(task) == 2):
                raise InvalidView("give a task, or a pair (state, action) of trees of jax.ShapeDtypeStruct")
            task, action = task
        return Spec._build(task, _leaf("action", action))

    @staticmethod
    def _build(view: Any, action: Leaf, actions: int = 0, bounds: tuple[float, float] = (-1.0, 1.0)) -> Spec:
        paths = tree_util.tree_flatten_with_path(view)[0]
        if not paths:
            raise InvalidView("the view has no arrays: a program would have nothing to read")
        leaves = tuple(_leaf(".".join(str(_step(k)[1]) for k in path) or "state", leaf) for path, leaf in paths)
        tree = _grow([([_step(k) for k in path], i) for i, (path, _) in enumerate(paths)])
        return Spec(tree, leaves, action, actions, bounds)

    def flatten(self, view: Any) -> list[Any]:
        """The arrays of `view` in the order of `leaves`.

        Raises:
            InvalidView: a view of another shape than this spec's.
        """
        arrays = jax.tree.leaves(view)
        if len(arrays) != len(self.leaves):
            raise InvalidView(f"this program reads a view of {len(self.leaves)} arrays and was given {len(arrays)}")
        for leaf, array in zip(self.leaves, arrays, strict=True):
            _expect(leaf, array)
        return arrays

    def act(self, action: Any) -> Any:
        """`action` with its shape checked; integers of any width become int32, reals float32."""
        array = jax.numpy.asarray(action)
        if array.dtype.name != self.action.dtype and array.dtype.kind == np.dtype(self.action.dtype).kind:
            array = array.astype(self.action.dtype)
        _expect(self.action, array)
        return array

    def fields(self) -> frozenset[str]:
        """Names that a program may use as attributes of a state."""
        found: set[str] = set()

        def walk(node: Any) -> None:
            kind, body = node
            if kind == "attr":
                found.update(name for name, _ in body)
            for child in body if kind == "tuple" else [c for _, c in body] if kind != "leaf" else ():
                walk(child)

        walk(self.tree)
        return frozenset(found)

    def labels(self) -> tuple[list[str], list[str]]:
        """Names of the inputs of an observation, and of a reward."""
        state = [_label("state", leaf) for leaf in self.leaves]
        return state, [*state, "action", *(_label("next_state", leaf) for leaf in self.leaves)]

    def structs(self) -> tuple[list[jax.ShapeDtypeStruct], list[jax.ShapeDtypeStruct]]:
        """Shapes of the inputs of an observation, and of a reward."""
        state = [leaf.struct() for leaf in self.leaves]
        return state, [*state, self.action.struct(), *state]

    def as_json(self) -> dict[str, Any]:
        return {
            "tree": self.tree,
            "leaves": [[leaf.name, list(leaf.shape), leaf.dtype] for leaf in self.leaves],
            "action": [list(self.action.shape), self.action.dtype],
            "actions": self.actions,
            "bounds": list(self.bounds),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Spec:
        leaves = tuple(Leaf(name, tuple(shape), dtype) for name, shape, dtype in data["leaves"])
        shape, dtype = data["action"]
        low, high = data["bounds"]
        return Spec(data["tree"], leaves, Leaf("action", tuple(shape), dtype), data["actions"], (low, high))


def _label(argument: str, leaf: Leaf) -> str:
    return argument if leaf.name == "state" else f"{argument}.{leaf.name}"


def _finite(bound: Any, default: float, pick: Any) -> float:
    values = [float(v) for v in np.ravel(np.asarray(bound)) if math.isfinite(v)]
    return pick(values) if values else default


def _expect(leaf: Leaf, array: Any) -> None:
    shape, dtype = np.shape(array), jax.dtypes.canonicalize_dtype(getattr(array, "dtype", type(array)))
    if tuple(shape) != leaf.shape or dtype_name(dtype) != leaf.dtype:
        message = f"{leaf.name} must be {leaf.dtype} {leaf.shape}, got {dtype_name(dtype)} {tuple(shape)}"
        raise InvalidView(message, leaf.name)


def _leaf(name: str, value: Any) -> Leaf:
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        raise InvalidView(f"{name} must be an array or a jax.ShapeDtypeStruct, got {type(value).__name__}", name)
    if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        raise InvalidView(f"{name} is a random key: leave it out of the view, programs may not see it", name)
    kind = dtype_name(dtype)
    if kind not in DTYPES:
        raise InvalidView(f"{name} has dtype {kind}: programs read {', '.join(DTYPES)}; convert it in the view", name)
    return Leaf(name, tuple(int(d) for d in value.shape), kind)


def _step(key: Any) -> tuple[str, Any]:
    """The kind of a node and the name below it."""
    if isinstance(key, tree_util.GetAttrKey):
        return "attr", key.name
    if isinstance(key, tree_util.DictKey):
        return "dict", key.key
    if isinstance(key, tree_util.SequenceKey):
        return "tuple", key.idx
    raise InvalidView(f"a view is made of dataclasses, named tuples, dictionaries, tuples and arrays, not of {key!r}")


def _grow(paths: list[tuple[list[tuple[str, Any]], int]]) -> Any:
    """The tree of nodes from the paths to its leaves."""
    if len(paths) == 1 and not paths[0][0]:
        return ["leaf", paths[0][1]]
    children: dict[Any, list[tuple[list[tuple[str, Any]], int]]] = {}
    for path, leaf in paths:
        children.setdefault(path[0][1], []).append((path[1:], leaf))
    kind = paths[0][0][0][0]
    if kind == "tuple":
        return ["tuple", [_grow(below) for below in children.values()]]
    for name in children:
        if not isinstance(name, str) or name.startswith("_"):
            message = f"a view's field is named {name!r}: names are strings that do not start with '_'"
            raise InvalidView(message, str(name))
    return [kind, [[name, _grow(below)] for name, below in children.items()]]
