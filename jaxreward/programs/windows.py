"""Windows of an array at computed places: `lax.dynamic_slice`, on a TPU as a selection with the same values.

Under vmap XLA takes windows at different places one row after the other on a TPU, a turn of a loop for each. There
every axis is halved instead, for all rows at once, until the window is left: of an axis with n places of the window
that takes log2(n) selections.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax

from jaxreward.programs.primitives import primitives
from jaxreward.programs.unrolling import platform

SELECTED = 4_096
"""The most elements of an array of which a window is selected; of a larger one it is gathered. The selections move
about as many elements as the array has, for every row: 16 KB at this size, which takes a TPU of 0.8 TB/s some 0.04 us
where a turn of the loop takes 1 us. 32,768 rows hold 0.5 GB meanwhile, also of an array that they share."""


def window(array: Any, *starts: Any, sizes: Sequence[int]) -> Any:
    """The window of these sizes at `starts`, scalars of any integer dtype. As by `lax.dynamic_slice`, a window that
    would reach outside of `array` is moved inside."""
    if platform() != "tpu" or not _is_selected(array.shape, sizes):
        return primitives()["dynamic_slice"].bind(array, *starts, slice_sizes=sizes)
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        places = array.shape[axis] - size + 1
        start = _moved_inside(start, places)
        while places > 1:
            half, length = places // 2, array.shape[axis] - places // 2
            low, high = (lax.slice_in_dim(array, k, k + length, axis=axis) for k in (0, half))
            in_high = lax.ge(start, np.int32(half))
            array = lax.select(lax.broadcast(in_high, low.shape), high, low)
            start = lax.select(in_high, lax.sub(start, np.int32(half)), start)
            places -= half
    return array


def _is_selected(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether a window is neither all of an axis nor one entry of it somewhere, in an array that is not too large."""
    moves = any(1 < size < n for size, n in zip(sizes, shape, strict=True))
    return moves and math.prod(shape) <= SELECTED


def _moved_inside(start: Any, places: int) -> Any:
    """The nearest of `places`, int32. It is found in the dtype of `start`, which may not hold the last of them, and may
    hold what int32 does not."""
    last = min(places - 1, int(np.iinfo(start.dtype).max))
    inside = lax.clamp(start.dtype.type(0), start, start.dtype.type(last))
    return lax.convert_element_type(inside, np.int32)
