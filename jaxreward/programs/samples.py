"""Inputs to judge a program on: transitions of its task, random arrays, distortions of transitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxreward.programs.spec import Spec, dtype_of

Array = np.ndarray[Any, Any]

BATCH = 64
_POOL = 4096
_PALETTE = 3
_KINDS = ((0, 0.0, 0.0), (1, 0.05, 0.0), (0, 0.3, 0.0), (0, 0.8, 0.0), (0, 0.0, 0.5), (0, 0.8, 0.8))
"""Of distortions: whether its arrays come from one transition, the share of vectors replaced, of wild numbers."""


@dataclass(frozen=True)
class Samples:
    """Stacked inputs of a reward: leaves of states, an action, leaves of next states."""

    states: list[Array]
    actions: Array
    next_states: list[Array]

    def __len__(self) -> int:
        return len(self.actions)

    def transition(self) -> list[Array]:
        return [*self.states, self.actions, *self.next_states]

    def first(self, n: int) -> Samples:
        return Samples([x[:n] for x in self.states], self.actions[:n], [x[:n] for x in self.next_states])

    def tame(self, magnitude: float) -> Samples:
        """Those whose real numbers are all finite and at most `magnitude` in size."""
        kept = np.ones(len(self), bool)
        for array in self.transition():
            if array.dtype.kind not in "biu":
                size = np.abs(array.astype(np.float32)).reshape(len(self), -1)
                kept &= (size <= magnitude).all(1)
        return Samples([x[kept] for x in self.states], self.actions[kept], [x[kept] for x in self.next_states])

    @staticmethod
    def random(spec: Spec, n: int = BATCH) -> Samples:
        """Normal reals and integers from 0 to 6: shapes of states, not states of the task."""
        rng = np.random.default_rng(0)

        def draw(shape: tuple[int, ...], dtype: str) -> Array:
            if dtype == "bool":
                return rng.integers(0, 2, (n, *shape)).astype(bool)
            if dtype_of(dtype).kind in "iu":
                return rng.integers(0, 7, (n, *shape)).astype(dtype)
            return rng.normal(size=(n, *shape)).astype(dtype_of(dtype))

        states, nexts = ([draw(leaf.shape, leaf.dtype) for leaf in spec.leaves] for _ in range(2))
        return Samples(states, _actions(spec, n, rng), nexts)

    def with_distortions(self, spec: Spec, n: int) -> Samples:
        """These transitions, followed by distortions of them, `n` in all.

        A distortion takes each array from a transition of its own, or stays with one; then it
        replaces some vectors (along the last axis) by a few others that occurred anywhere in that array,
        or some numbers by numbers somewhat outside the range seen. Impossible states, then, made of
        possible parts: they fire the rare conditions of a program, and rare combinations of them.
        """
        # RandomState, whose streams never change: what is derived from these is kept in logs.
        rng = np.random.RandomState(0)
        more = n - len(self)
        base = rng.randint(0, len(self), more)
        kind = np.arange(more) % len(_KINDS)
        stay, replaced, wild = np.array(_KINDS)[kind].T
        pools = [_pool(np.concatenate(pair), rng) for pair in zip(self.states, self.next_states, strict=True)]
        sides = []
        for arrays in (self.states, self.next_states):
            side = []
            for array, pool in zip(arrays, pools, strict=True):
                if not array.size:
                    side.append(np.zeros((n, *array.shape[1:]), array.dtype))
                    continue
                rows = np.where(stay > 0, base, rng.randint(0, len(self), more))
                drawn = _replace(array[rows], pool, replaced, rng)
                drawn = _wild(drawn, array, wild, rng)
                side.append(np.concatenate([array, drawn]))
            sides.append(side)
        actions = np.concatenate([self.actions, _actions(spec, more, rng)])
        return Samples(sides[0], actions, sides[1])


def _actions(spec: Spec, n: int, rng: Any) -> Array:
    if np.dtype(spec.action.dtype).kind == "f":
        return rng.uniform(*spec.bounds, (n, *spec.action.shape)).astype(np.float32)
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    return draw(0, spec.actions or 7, (n, *spec.action.shape)).astype(spec.action.dtype)


def _pool(array: Array, rng: np.random.RandomState) -> Array:
    """The different vectors along the last axis that occur in a stacked array; its different numbers if it has none."""
    units = array.reshape(-1, array.shape[-1] if array.ndim > 1 and array.size else 1)
    different = np.unique(units[rng.permutation(len(units))[: 64 * _POOL]], axis=0)
    return different[rng.permutation(len(different))[:_POOL]]


def _replace(array: Array, pool: Array, share: Array, rng: np.random.RandomState) -> Array:
    units = array.reshape(len(array), -1, pool.shape[1])
    hit = rng.uniform(size=units.shape[:2]) < share[:, None]
    # few different ones at a time, so that much is absent too
    palette = pool[rng.randint(0, len(pool), (len(array), _PALETTE))]
    drawn = palette[np.arange(len(array))[:, None], rng.randint(0, _PALETTE, units.shape[:2])]
    return np.where(hit[..., None], drawn, units).reshape(array.shape)


def _wild(array: Array, seen: Array, share: Array, rng: np.random.RandomState) -> Array:
    flat = array.reshape(len(array), -1)
    hit = rng.uniform(size=flat.shape) < share[:, None]
    if array.dtype == bool:
        drawn = rng.randint(0, 2, flat.shape).astype(bool)
    elif array.dtype.kind in "iu":
        low, high, limits = int(seen.min()), int(seen.max()), np.iinfo(array.dtype)
        low, high = max(low - 1, limits.min), min(high + 8, limits.max)
        drawn = rng.randint(low, high + 1, flat.shape, dtype=np.int64).astype(array.dtype)
    else:
        real = flat.astype(np.float32)
        spread = np.abs(real).mean() + real.std() + 1e-3
        factor = np.array([-1.0, 0.0, 0.5, 2.0, 5.0])[rng.randint(0, 5, flat.shape)]
        drawn = np.where(factor == 0, 0, factor * real + spread * rng.normal(size=flat.shape)).astype(array.dtype)
    return np.where(hit, drawn, flat).reshape(array.shape)
