"""Inputs to validate a program on: transitions of its task, or random arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxreward.programs.spec import Spec, dtype_of

Array = np.ndarray[Any, Any]

BATCH = 64


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

    def joined(self, others: Samples) -> Samples:
        """These, then others of the same shapes."""
        pairs = zip(self.transition(), others.transition(), strict=True)
        arrays, n = [np.concatenate(pair) for pair in pairs], len(self.states)
        return Samples(arrays[:n], arrays[n], arrays[n + 1 :])

    def bounded(self, magnitude: float) -> Samples:
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
        action, shape = spec.action, (n, *spec.action.shape)
        real = np.dtype(action.dtype).kind == "f"
        actions = rng.uniform(*spec.bounds, shape) if real else rng.integers(0, spec.actions or 7, shape)
        return Samples(states, actions.astype(action.dtype), nexts)
