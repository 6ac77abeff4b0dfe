"""The namespace of a program while it is executed: read-only modules, few builtins, and states."""

from __future__ import annotations

import builtins
import importlib
import types
import warnings
from functools import cache
from typing import Any

import jax

from jaxreward.programs.names import API, BUILTINS
from jaxreward.programs.read_only import Module


@cache
def modules() -> dict[str, Module]:
    """The stand-ins by name. Names that the installed JAX lacks are left out."""
    made: dict[str, Module] = {}
    for module, names in API.items():
        real, found = importlib.import_module(module), {}
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a deprecated name warns when it is looked up
            for name in names:
                try:
                    value = getattr(real, name)
                except (AttributeError, DeprecationWarning):
                    continue
                if not isinstance(value, types.ModuleType):
                    found[name] = value
        made[module] = Module(found)
    vars(made["jax.numpy"])["linalg"] = made["jax.numpy.linalg"]
    vars(made["jax"]).update(numpy=made["jax.numpy"], nn=made["jax.nn"], lax=made["jax.lax"])
    return made


def namespace() -> dict[str, Any]:
    """Globals for one execution of a program."""
    found = modules()

    def importer(name: str, _g: Any = None, _l: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if name == "__future__":
            return Module({"annotations": None})
        if level or name not in found:
            raise ImportError(f"import of {name!r} is not allowed")
        return found[name] if fromlist else found[name.split(".")[0]]

    allowed = {name: getattr(builtins, name) for name in BUILTINS}
    return {"__builtins__": {**allowed, "AssertionError": AssertionError, "__import__": importer},
            "__name__": "candidate", "__annotations__": {}}  # fmt: skip


@jax.tree_util.register_pytree_node_class
class Fields:
    """A node of a state with named attributes."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            return self._values[self._names.index(name)]
        raise AttributeError(f"the state has no field '{name}' here; its fields are {', '.join(self._names)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a state is read-only")

    def __bool__(self) -> bool:
        raise TypeError("a state has no truth value: compare its fields")

    def __eq__(self, other: object) -> bool:
        raise TypeError("states are not compared as a whole: compare their fields")

    __hash__ = None  # type: ignore[assignment]

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        return self._values, self._names

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], values: Any) -> Fields:
        return cls(names, tuple(values))


@jax.tree_util.register_pytree_node_class
class Keys(dict[str, Any]):
    """A node of a state with string keys."""

    def __missing__(self, name: Any) -> Any:
        raise KeyError(f"the state has no key {name!r} here; its keys are {', '.join(self)}")

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        return tuple(self.values()), tuple(self)

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], values: Any) -> Keys:
        return cls(zip(names, values, strict=True))


def build_state(node: Any, leaves: list[Any]) -> Any:
    """A state from a `Spec.tree` and its leaves."""
    kind, body = node
    if kind == "leaf":
        return leaves[body]
    if kind == "tuple":
        return tuple(build_state(child, leaves) for child in body)
    if kind == "dict":
        return Keys((name, build_state(child, leaves)) for name, child in body)
    return Fields(tuple(name for name, _ in body), tuple(build_state(child, leaves) for _, child in body))
