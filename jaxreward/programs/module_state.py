"""Mutable module-level state of a program, which no call may change.

A tape records one call. A function that appends to a list of its module gives other values at its second call, and an
array stored there in one trace is an error in the next.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jaxreward.programs.entries import FILE, Refused
from jaxreward.programs.namespace import Fields, Keys

_MESSAGE = "the program changes a {} that outlives the call, so that the next call may give other values"
_HINT = "make it inside of the function, or return it"


@contextmanager
def require_unchanged(names: dict[str, Any], *states: Any) -> Iterator[None]:
    """Require that `states`, and what is reachable from the globals `names` of a module, do not change.

    Raises:
        Refused: a list, dictionary or set was changed, or a global is an iterator, which one call exhausts.
    """
    before = list(_mutable([*(value for name, value in names.items() if not name.startswith("__")), *states]))
    for value in before:
        if hasattr(value, "__next__"):
            message = f"a {type(value).__name__} is kept at module level, and the first call uses it up"
            raise Refused(message, hint="make a list or a tuple of it", stage="trace")
    contents = [_contents(value) for value in before]
    yield
    for value, content in zip(before, contents, strict=True):
        now = _contents(value)
        if len(now) != len(content) or any(a is not b for a, b in zip(now, content, strict=True)):
            what = "state" if isinstance(value, Keys) else type(value).__name__
            raise Refused(_MESSAGE.format(what), hint=_HINT, stage="trace")


def _contents(value: Any) -> list[Any]:
    return [x for item in value.items() for x in item] if isinstance(value, dict) else list(value)


def _mutable(todo: list[Any]) -> Iterator[Any]:
    """The lists, dictionaries, sets and iterators reachable from values, also by defaults, closures and methods."""
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        todo += _inside(value)
        if isinstance(value, list | dict | set) or (hasattr(value, "__next__") and not isinstance(value, type)):
            yield value


def _inside(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return _contents(value)
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, Fields):
        return value.tree_flatten()[0]
    if isinstance(value, types.BuiltinMethodType):
        return [value.__self__]
    if isinstance(value, types.FunctionType) and value.__code__.co_filename == FILE:
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
        return [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *cells]
    wrapped = getattr(value, "__wrapped__", None) if callable(value) else None  # jax.jit, jax.vmap, jax.grad
    return [] if wrapped is None else [wrapped]


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # the name has no value yet
        return False
