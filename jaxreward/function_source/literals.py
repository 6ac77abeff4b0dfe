"""Constants as the text of an expression that gives the same value."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

from jaxreward.function_source.outside import is_usable

MOST_NUMBERS = 1_024
"""Numbers of a constant that are written out."""

_INTEGERS = {"int8", "int16", "int32", "uint8", "uint16", "uint32"}
_NARROWED = {"float64": "float32", "int64": "int32", "uint64": "uint32"}
"""Dtypes of NumPy that JAX, with its 32 bits, turns into others."""


class NotLiteral(Exception):
    """A value that cannot be written out; the message ends the sentence `NAME ...`.

    Attributes:
        usable: whether a function that is called as it is can compute with it.
    """

    def __init__(self, message: str, *, usable: bool = True) -> None:
        super().__init__(message)
        self.usable = usable


def literal(value: Any, *, plain: bool = False) -> str:
    """The text of a number, a string, None, a small array, or a tuple, list or dictionary of these.

    Arrays and numbers of NumPy and arrays of JAX are written so that JAX gives what is computed with them the same
    dtype: as `jnp.array([...], jnp.float32)`, each number so that it reads back as the same one; weakly typed ones
    without a dtype. As JAX does with its default of 32 bits, float64 becomes float32 and int64 int32.

    Args:
        plain: write numbers of NumPy as those of Python, for where no array can stand. Keys always are.

    Raises:
        NotLiteral: another value, one that is not finite, or more than `MOST_NUMBERS` numbers.
    """
    import numpy as np

    if value is None or value is Ellipsis or isinstance(value, str):
        return "..." if value is Ellipsis else repr(value if value is None else str.__str__(value))
    if isinstance(value, np.generic):
        number = value.item() if plain and value.dtype.kind in "biuf" else None
        return literal(number) if type(number) in (bool, int, float) else _array(value)
    if isinstance(value, bool | int):
        return repr(bool(value) if isinstance(value, bool) else int(value))
    if isinstance(value, float):
        return _finite(float(value))
    if type(value) in (tuple, list, dict) and _numbers_in(value) > MOST_NUMBERS:
        raise NotLiteral(f"holds more than {MOST_NUMBERS:,} values")
    if type(value) in (tuple, list):
        items = [literal(item, plain=plain) for item in value]
        inner = ", ".join(items) + ("," if len(items) == 1 and type(value) is tuple else "")
        return f"({inner})" if type(value) is tuple else f"[{inner}]"
    if type(value) is dict:
        items = (f"{literal(k, plain=True)}: {literal(v, plain=plain)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _array(value)
    raise NotLiteral(f"is a {type(value).__name__}", usable=is_usable(value))


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
        raise NotLiteral(f"is a {type(value).__name__}", usable=is_usable(value))
    if jax is not None and isinstance(value, jax.core.Tracer):
        raise NotLiteral("is an array of a function that is being traced", usable=False)
    kind, shape = str(value.dtype), tuple(value.shape)
    if math.prod(shape) > MOST_NUMBERS:
        raise NotLiteral(f"is an array of {math.prod(shape):,} numbers, and at most {MOST_NUMBERS:,} are written out")
    if 0 in shape:
        raise NotLiteral("is an array without numbers")
    if kind not in {*_INTEGERS, *_NARROWED, "bool", "float16", "bfloat16", "float32"}:
        raise NotLiteral(f"is an array of {kind}", usable=False)
    array = np.asarray(value)
    narrow = _NARROWED.get(kind, kind)
    if narrow in _INTEGERS:
        limits = np.iinfo(narrow)
        if array.min() < limits.min or array.max() > limits.max:
            raise NotLiteral(f"holds integers beyond {narrow}", usable=False)
        numbers, form = array.tolist(), repr
    elif narrow == "bool":
        numbers, form, narrow = array.tolist(), repr, "bool_"
    else:
        with np.errstate(over="ignore"):
            singles = array.astype(np.float32)
        if not np.isfinite(singles).all():
            raise NotLiteral("holds numbers that are not finite")
        numbers, form = singles.tolist(), _single
    if getattr(value, "weak_type", False):
        return _weak(numbers, shape, form)
    if isinstance(value, np.generic):
        return f"jnp.{narrow}({form(numbers)})"
    return f"jnp.array({_nested(numbers, form)}, jnp.{narrow})"


def _weak(numbers: Any, shape: tuple[int, ...], form: Any) -> str:
    """An array that takes the dtype of what it meets, as one made of numbers of Python does."""
    texts = _each(_flat(numbers), form)
    if not shape:
        return f"jnp.asarray({texts[0]})"
    if len(set(texts)) == 1:
        return f"jnp.full({shape}, {texts[0]})"
    return f"jnp.stack([{', '.join(texts)}])" + (f".reshape({shape})" if len(shape) > 1 else "")


def _flat(numbers: Any) -> list[Any]:
    return [n for part in numbers for n in _flat(part)] if isinstance(numbers, list) else [numbers]


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
