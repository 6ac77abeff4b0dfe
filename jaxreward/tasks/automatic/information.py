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


def information(values: Array, signal: Array) -> float:
    """Mutual information as a part of the signal's entropy, in [0, 1]; what chance gives is taken off.

    Args:
        values, signal: (N,).
    """
    x, y = binned(values), binned(signal)
    entropy = _entropy(np.bincount(y))
    if entropy < 1e-9:
        return 0.0
    order = np.random.default_rng(0).permutation(len(y))
    return max(0.0, _mutual(x, y) - _mutual(x, y[order])) / entropy


def _mutual(x: Array, y: Array) -> float:
    width = int(y.max()) + 1
    joint = np.bincount(x * width + y, minlength=(int(x.max()) + 1) * width).reshape(-1, width)
    return _entropy(joint.sum(0)) + _entropy(joint.sum(1)) - _entropy(joint.reshape(-1))


def _entropy(counts: Array) -> float:
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())
