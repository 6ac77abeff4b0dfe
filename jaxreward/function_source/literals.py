"""Constants as the text of an expression that gives the same value."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

MOST_NUMBERS = 1_024
"""Numbers of a constant that are written out."""

_INTEGERS = {"int8", "int16", "int32", "uint8", "uint16", "uint32"}
_NARROWED = {"float64": "float32", "int64": "int32", "uint64": "uint32"}
"""Dtypes of NumPy that JAX, with its 32 bits, turns into others."""


class NotLiteral(Exception):
    """A value that cannot be written out; the message ends the sentence `NAME ...`."""


def literal(value: Any) -> str:
    """The text of a number, a string, None, a small array, or a tuple, list or dictionary of these.

    Arrays of JAX and NumPy are written as `jnp.array([...], jnp.float32)`, each number so that it reads back as the
    same one. As JAX does with its default of 32 bits, float64 becomes float32 and int64 int32. Floats of Python
    and of NumPy's float64 are written as they are.

    Raises:
        NotLiteral: another value, one that is not finite, or more than `MOST_NUMBERS` numbers.
    """
    if value is None or value is Ellipsis or isinstance(value, str):
        return repr(value) if value is not Ellipsis else "..."
    if isinstance(value, bool):
        return repr(bool(value))
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return _finite(float(value))
    if type(value) in (tuple, list):
        if _numbers_in(value) > MOST_NUMBERS:
            raise NotLiteral(f"holds more than {MOST_NUMBERS:,} values")
        items = [literal(item) for item in value]
        inner = ", ".join(items) + ("," if len(items) == 1 and type(value) is tuple else "")
        return f"({inner})" if type(value) is tuple else f"[{inner}]"
    if type(value) is dict:
        if _numbers_in(value) > MOST_NUMBERS:
            raise NotLiteral(f"holds more than {MOST_NUMBERS:,} values")
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _array(value)
    raise NotLiteral(f"is a {type(value).__name__}")


def _finite(value: float) -> str:
    if not math.isfinite(value):
        raise NotLiteral(f"is {value}, which is not finite")
    return repr(value)


def _numbers_in(value: Any) -> int:
    todo, found = [value], 0
    while todo and found <= MOST_NUMBERS:
        item = todo.pop()
        if isinstance(item, tuple | list):
            todo += item
        elif isinstance(item, dict):
            todo += item.values()
        found += 1
    return found


def _array(value: Any) -> str:
    import numpy as np

    jax = sys.modules.get("jax")
    if not isinstance(value, np.ndarray | np.generic) and not (jax is not None and isinstance(value, jax.Array)):
        raise NotLiteral(f"is a {type(value).__name__}")
    if jax is not None and isinstance(value, jax.core.Tracer):
        raise NotLiteral("is an array of a function that is being traced")
    kind, shape = str(value.dtype), tuple(value.shape)
    if math.prod(shape) > MOST_NUMBERS:
        raise NotLiteral(f"is an array of {math.prod(shape):,} numbers, and at most {MOST_NUMBERS:,} are written out")
    if 0 in shape:
        raise NotLiteral("is an array without numbers")
    if kind not in {*_INTEGERS, *_NARROWED, "bool", "float16", "bfloat16", "float32"}:
        raise NotLiteral(f"is an array of {kind}")
    array = np.asarray(value)
    narrow = _NARROWED.get(kind, kind)
    if narrow in _INTEGERS:
        limits = np.iinfo(narrow)
        if array.min() < limits.min or array.max() > limits.max:
            raise NotLiteral(f"holds integers beyond {narrow}")
        if isinstance(value, np.integer):
            return repr(int(value))
        return f"jnp.array({_nested(array.tolist(), repr)}, jnp.{narrow})"
    if narrow == "bool":
        if isinstance(value, np.bool_):
            return repr(bool(value))
        return f"jnp.array({_nested(array.tolist(), repr)}, jnp.bool_)"
    with np.errstate(over="ignore"):
        singles = array.astype(np.float32)
    if not np.isfinite(singles).all():
        raise NotLiteral("holds numbers that are not finite")
    if isinstance(value, np.floating):
        return f"jnp.{narrow}({_single(float(singles))})"
    return f"jnp.array({_nested(singles.tolist(), _single)}, jnp.{narrow})"


def _single(value: float) -> str:
    """The shortest text that is this float32."""
    import numpy as np

    text = str(np.float32(value))
    return text if np.float32(float(text)) == np.float32(value) else repr(value)


def _nested(value: Any, form: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_each(value, form))}]"
    return form(value)


def _each(values: Iterable[Any], form: Any) -> list[str]:
    return [_nested(value, form) for value in values]
