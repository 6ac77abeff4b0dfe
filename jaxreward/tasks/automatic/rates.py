"""Which quantities are the velocities of others: the steps of one are a multiple of the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from jaxreward.tasks.automatic.play import Array

VELOCITIES = frozenset({"vel", "velocity", "velocities", "speed", "speeds", "qvel", "qd", "xd"})
"""Words for a velocity, whatever the values are."""
_MAYBE = frozenset({"v", "vx", "vy", "vz", "dot", "omega", "yd", "xdot", "thdot"})
"""Words that make a velocity likelier."""
AGREES = {True: 0.4, False: 0.85}
"""Share of the steps that a velocity accounts for, at least: of one that is called a velocity, and of another."""
_CLOSEST = 4
"""Quantities that are compared closely with the steps of one."""
_LEAST = 20
"""Steps from which it is judged."""
_RELATED = 0.3
"""Correlation of steps and velocity below which they are not compared closely."""


class Series(NamedTuple):
    """A quantity in play: the words of its name, and its values before and after each step (N,)."""

    words: frozenset[str]
    before: Array
    after: Array


def is_called_rate(words: Collection[str]) -> bool:
    """Whether a name of these words says that it is a velocity."""
    return not VELOCITIES.isdisjoint(words)


def rate_pairs(series: Sequence[Series]) -> dict[tuple[int, int], float]:
    """The pairs of a quantity and its velocity, by index, with the share of the steps that the velocity accounts for.

    Of two that would be the velocities of each other, as near an unstable point, the one is taken that is called a
    velocity, else the one that accounts for more.
    """
    found: dict[tuple[int, int], float] = {}
    for i, j in _related(series):
        hint = not (VELOCITIES | _MAYBE).isdisjoint(series[j].words)
        share = accounted(series[i], series[j])
        if share >= AGREES[hint]:
            found[i, j] = share

    def claim(i: int, j: int) -> tuple[bool, float]:
        return is_called_rate(series[j].words) and not is_called_rate(series[i].words), found[i, j]

    return {(i, j): share for (i, j), share in found.items() if (j, i) not in found or claim(i, j) >= claim(j, i)}


def _related(series: Sequence[Series]) -> list[tuple[int, int]]:
    """The pairs whose steps and values rise and fall together at all: comparing closely takes longer."""
    if not series:
        return []
    steps = _standard([_clipped(s.after - s.before) for s in series])
    levels = (_standard([s.after for s in series]), _standard([s.before for s in series]))
    near = np.maximum(*(steps @ v.T for v in levels))
    np.fill_diagonal(near, 0.0)
    best = np.argsort(-near, axis=1, kind="stable")[:, :_CLOSEST]
    return [(i, int(j)) for i, row in enumerate(best) for j in row if near[i, j] > _RELATED]


def _clipped(steps: Array) -> Array:
    """Steps without leaps: the one that ends a turn, or a place that is drawn anew."""
    moved = np.abs(steps[steps != 0.0])
    most = 3.0 * float(np.median(moved)) if moved.size else 0.0
    return np.where(np.abs(steps) > most, 0.0, steps)


def _standard(columns: Sequence[Array]) -> Array:
    x = np.stack(columns).astype(np.float64)
    x -= x.mean(1, keepdims=True)
    size = np.sqrt((x**2).sum(1, keepdims=True))
    return x / np.where(size > 1e-12, size, np.inf)


def accounted(one: Series, rate: Series) -> float:
    """The share of the steps of `one` that are `rate` by a time, the same for all, between 0 and 1.

    Steps that end or begin at a bound do not count: what is clamped there does not move as its velocity says.
    """
    step = one.after - one.before
    rates = (rate.after, rate.before, (rate.after + rate.before) / 2)
    inside = _inside(one) & _inside(rate)
    if inside.sum() < max(_LEAST, 0.1 * len(step)):  # a velocity of two values is always at a bound
        inside = _inside(one)
    if inside.sum() < _LEAST:
        return 0.0
    return max(_share(step[inside], v[inside]) for v in rates)


def _inside(x: Series) -> Array:
    low, high = min(x.before.min(), x.after.min()), max(x.before.max(), x.after.max())
    return (x.before > low) & (x.before < high) & (x.after > low) & (x.after < high)


def _share(step: Array, rate: Array) -> float:
    size, speed = (float(np.sqrt((x**2).mean())) for x in (step, rate))
    if size < 1e-9 or speed < 1e-9:
        return 0.0
    clear = (np.abs(rate) > 0.3 * speed) & (step != 0.0)
    if clear.sum() < _LEAST / 2:
        return 0.0
    time = float(np.median(step[clear] / rate[clear]))
    if time <= 0.0:
        return 0.0
    # Robust to leaps: a turn that ends at pi, or a place that is drawn anew, is a step among many.
    usual = float(np.median(np.abs(step[clear])))
    near = np.abs(step - time * rate) <= 0.15 * np.abs(time * rate) + 0.05 * usual
    moving = (np.abs(step) > 0.01 * usual) | (np.abs(time * rate) > 0.01 * usual)
    return float(near[moving].mean()) if moving.any() else 0.0
