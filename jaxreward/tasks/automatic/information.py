"""Mutual information of two samples, by counts in bins."""

from __future__ import annotations

import numpy as np

from jaxreward.tasks.automatic.play import Array

BINS = 8


def binned(values: Array) -> Array:
    """Values (N,) as numbers of bins: each its own where there are few, else quantiles, and a bin for a value that
    many have."""
    unique, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(unique) <= BINS:
        return index
    common = int(counts.argmax())
    others = index != common
    if counts[common] < len(values) / BINS:
        others = np.ones(len(values), bool)
    edges = np.unique(np.quantile(values[others], np.linspace(0, 1, BINS)[1:-1]))
    return np.where(others, 1 + np.searchsorted(edges, values, side="right"), 0)


class Signal:
    """Something that values may tell of, (N,)."""

    def __init__(self, values: Array) -> None:
        self.bins = binned(values)
        self.by_chance = self.bins[np.random.default_rng(0).permutation(len(values))]
        self.entropy = _entropy(np.bincount(self.bins))

    def told_by(self, values: Array, *, in_bins: bool = False) -> float:
        """Mutual information with values (N,) as a part of the signal's entropy, in [0, 1]; what chance gives is taken
        off. With `in_bins` the values are those of `binned`."""
        if self.entropy < 1e-9:
            return 0.0
        x = values if in_bins else binned(values)
        return max(0.0, _mutual(x, self.bins) - _mutual(x, self.by_chance)) / self.entropy


def information(values: Array, signal: Array) -> float:
    """What values (N,) tell of a signal (N,)."""
    return Signal(signal).told_by(values)


def _mutual(x: Array, y: Array) -> float:
    width = int(y.max()) + 1
    joint = np.bincount(x * width + y, minlength=(int(x.max()) + 1) * width).reshape(-1, width)
    return _entropy(joint.sum(0)) + _entropy(joint.sum(1)) - _entropy(joint.reshape(-1))


def _entropy(counts: Array) -> float:
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())
