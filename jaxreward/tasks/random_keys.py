"""Random keys among the arrays of a state, recognised by dtype, shape and values."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_LEAST = 8
"""Different keys from which it is judged whether they are random."""


def is_typed_key(dtype: Any) -> bool:
    """Whether it is the dtype of `jax.random.key`."""
    return bool(jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key))


def may_be_random_key(shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether an array may hold random keys, those of `jax.random.PRNGKey` included: uint32 (..., 2) or (..., 4)."""
    return is_typed_key(dtype) or (dtype == jnp.uint32 and shape[-1:] in ((2,), (4,)))


def are_random_keys(values: np.ndarray[Any, Any]) -> bool:
    """Whether arrays that may hold random keys do: every bit is set in about half of those that differ.

    Args:
        values: uint32 (N, ..., 2 or 4), of several states.
    """
    if is_typed_key(values.dtype):
        return True
    words = np.unique(values.reshape(-1, values.shape[-1]), axis=0)
    if len(words) < _LEAST:
        return False
    bits = np.unpackbits(np.ascontiguousarray(words, "<u4").view(np.uint8), axis=1)
    # Five standard errors, so that none of the 64 or 128 bits of a key is off by chance.
    return bool(np.abs(bits.mean(0) - 0.5).max() <= min(0.49, 2.5 / np.sqrt(len(words))))


def without_keys(tree: Any) -> Any:
    """A tree whose random keys are None, and so no part of it.

    Keys are arrays of `jax.random.key`, and those of `jax.random.PRNGKey`, uint32 (2,), in tuples, lists and fields
    whose names end with one of `KEY_NAMES`.
    """
    return jax.tree_util.tree_map_with_path(lambda path, leaf: None if _is_key(path, leaf) else leaf, tree)


KEY_NAMES = ("key", "keys", "rng", "rngs", "rng_state", "seed")
"""What names of fields with random keys end with."""


def _is_key(path: Any, leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return False
    if is_typed_key(dtype):
        return True
    name = jax.tree_util.keystr(path[-1:], simple=True).lower()
    return dtype == jnp.uint32 and leaf.shape[-1:] == (2,) and (name.isdigit() or not name or name.endswith(KEY_NAMES))
