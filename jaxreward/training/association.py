"""How the return of an episode goes with the metric of the task, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxreward.records import SUCCESS, Measure
from jaxreward.training.history import History
from jaxreward.training.rungs import SURE

FEW = 5
"""Episodes below which a mean return says nothing."""


class Association(NamedTuple):
    """A correlation with its 95 % interval."""

    correlation: float
    low: float
    high: float


def association(history: History, point: int, measure: Measure = SUCCESS) -> Association | None:
    """Correlation of return with the metric over the held-out episodes of all seeds (of success: point-biserial),
    positive where more return goes with a better value.

    Its interval is that of Tate (1954, "Correlation between a discrete and a continuous variable") where episodes are
    won or lost, which is wide where one of the two is rare, and Fisher's z otherwise. None where all episodes have the
    same value or the same return, or where fewer than five succeed or fail.
    """
    held = _Held.of(history, point)
    n, won = held.episodes, held.solved
    if n < 2 * FEW or (measure.rate and held.decided and min(won, n - won) < FEW):
        return None
    # float32 knows them no better
    if held.ret_variance <= 1e-10 * held.ret**2 or held.variance <= 1e-10 * held.value**2:
        return None
    found = held.covariance / np.sqrt(held.ret_variance * held.variance)
    r = float(np.clip(measure.oriented(found), -1.0, 1.0))
    if measure.rate and held.decided:
        share = held.value * (1.0 - held.value)
        error = (1.0 - r**2) * np.sqrt(max(1.0 - 1.5 * r**2 + r**2 / (4.0 * share), 0.0) / n)
        low, high = r - SURE * error, r + SURE * error
    else:
        z, error = np.arctanh(np.clip(r, -1 + 1e-9, 1 - 1e-9)), 1.0 / np.sqrt(n - 3.0)
        low, high = np.tanh(z - SURE * error), np.tanh(z + SURE * error)
    return Association(r, max(float(low), -1.0), min(float(high), 1.0))


def won_or_lost(history: History, point: int, measure: Measure) -> bool:
    """Whether every held-out episode was won or lost: the metric is a rate, and its values lie near 0 or 1."""
    return measure.rate and _Held.of(history, point).decided


@dataclass(frozen=True)
class _Held:
    """The held-out episodes of all seeds of the first candidate together, without those that diverged: how many they
    are and how many have a value above a half, means and variances of value and return, and their covariance."""

    episodes: float
    solved: float
    value: float
    ret: float
    variance: float
    ret_variance: float
    covariance: float

    @classmethod
    def of(cls, history: History, point: int) -> _Held:
        names = ("episodes", "solved", "success", "success_se", "ret", "ret_var", "covariance")
        rows = {name: getattr(history, name)[point, 0].astype(np.float64) for name in names}
        known = np.isfinite(rows["ret_var"]) & ~(history.diverged[point, 0] > 0)
        rows = {name: row[known] for name, row in rows.items()}
        episodes = rows["episodes"]
        n = float(episodes.sum())
        over = lambda row: float((row * episodes).sum()) / max(n, 1.0)  # noqa: E731
        value, ret = over(rows["success"]), over(rows["ret"])
        off, ret_off = rows["success"] - value, rows["ret"] - ret
        # within the seeds and between them; the error of a seed's mean is the spread of its episodes
        return cls(
            n, float(rows["solved"].sum()), value, ret,
            over(rows["success_se"] ** 2 * np.maximum(episodes - 1, 1) + off**2),
            over(rows["ret_var"] + ret_off**2), over(rows["covariance"] + off * ret_off),
        )  # fmt: skip

    @property
    def decided(self) -> bool:
        """Whether the values of a rate lie near 0 or 1: no others with the same mean have so large a variance."""
        return self.variance >= 0.8 * self.value * (1.0 - self.value)
