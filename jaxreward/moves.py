"""Operations of JAX that only move the entries of an array: entries, slices and views, computed with numpy.

A program that moves a constant holds a constant, with one tape and one digest, whether it wrote the entry as a number
or took it from a table. Where the entries are numbers of places, what is moved tells which place is where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

MOST = 4_096
"""Elements of an array that is moved; of larger ones nothing is said."""


def moved(op: str, params: Mapping[str, Any], arrays: Sequence[Array]) -> Array | None:
    """What an operation with these parameters of its equation makes of arrays; None where it is none of those that only
    move entries, or they are large."""
    if op not in _MOVES or params.get("sharding") is not None or any(array.size > MOST for array in arrays):
        return None
    found = _MOVES[op](params, *arrays)
    return found if found.size <= MOST else None


def _slice(params: Mapping[str, Any], array: Array) -> Array:
    ends, strides = (params["start_indices"], params["limit_indices"]), params["strides"] or [1] * array.ndim
    return array[tuple(map(slice, *ends, strides))]


def _dynamic_slice(params: Mapping[str, Any], array: Array, *starts: Array) -> Array:
    sizes = params["slice_sizes"]
    first = [min(max(int(s), 0), n - k) for s, n, k in zip(starts, array.shape, sizes, strict=True)]
    return array[tuple(slice(i, i + k) for i, k in zip(first, sizes, strict=True))]


def _broadcast(params: Mapping[str, Any], array: Array) -> Array:
    axes, shape = params["broadcast_dimensions"], [1] * len(params["shape"])
    for axis, size in zip(axes, array.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(array.reshape(shape), params["shape"])


_MOVES: dict[str, Callable[..., Array]] = {
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "squeeze": lambda params, array: np.squeeze(array, tuple(params["dimensions"])),
    "reshape": lambda params, array: np.transpose(array, params.get("dimensions")).reshape(params["new_sizes"]),
    "rev": lambda params, array: np.flip(array, tuple(params["dimensions"])),
    "transpose": lambda params, array: np.transpose(array, params["permutation"]),
    "broadcast_in_dim": _broadcast,
}
