"""What the values of a task's metric mean, and scores."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from jaxreward.records.base import Record


class Measure(Record):
    """What the value of a task's metric means.

    A `rate` lies in [0, 1] and more of it is better; any other value may be negative and unbounded, in `unit`, and
    `higher_is_better` is its direction. `worst` is what an agent counts for that has no value, because it diverged,
    and no episode counts as worse.
    `sparse` and `human` are what the task's sparse reward and a person's dense one were measured to reach; between
    them the value is normalised as in RF-Agent's Table 1, (value - sparse) / (human - sparse).
    """

    name: str = "success"
    unit: str = ""
    rate: bool = True
    higher_is_better: bool = True
    worst: float = 0.0
    sparse: float | None = None
    human: float | None = None

    @model_validator(mode="after")
    def _can_be(self) -> Measure:
        known = [x for x in (self.worst, self.sparse, self.human) if x is not None]
        if not all(math.isfinite(x) for x in known):
            raise ValueError("worst, sparse and human must be finite: choose the worst that can honestly happen")
        if self.rate and not (self.higher_is_better and 0.0 <= self.worst <= 1.0):
            raise ValueError("more of a rate is better, and it lies in [0, 1]; with rate=False less may be better")
        return self

    @property
    def label(self) -> str:
        """Name, unit and, where it is not the usual one, direction."""
        unit = f" ({self.unit})" if self.unit else ""
        return f"{self.name}{unit}" + ("" if self.higher_is_better else ", less is better")

    def oriented(self, value: float) -> float:
        """`value` with the sign by which more is better."""
        return value if self.higher_is_better else -value

    def reaches(self, value: float, threshold: float) -> bool:
        """Whether `value` is as good as `threshold`, or better."""
        return self.oriented(value) >= self.oriented(threshold)

    def normalised(self, value: float) -> float | None:
        """0 for what the sparse reward reaches and 1 for a person's; None where one is unknown or they are equal."""
        if self.sparse is None or self.human is None:
            return None
        return normalised(self.oriented(value), self.oriented(self.sparse), self.oriented(self.human))

    def level(self, value: float) -> float | None:
        """How far the task is solved, about 0 to 1: of a rate the value, of others the normalised one."""
        return value if self.rate else self.normalised(value)


def normalised(value: float, sparse: float, human: float, error: float = 0.0) -> float | None:
    """The human-normalised score of RF-Agent's Table 1, of values of which more is better.

    None where `human` is not better than `sparse` by more than `error`: there is no scale then.
    """
    return (value - sparse) / (human - sparse) if human - sparse > error else None


SUCCESS = Measure()
"""The rate of success."""


ALIGNMENT = Measure(name="alignment")
"""How far agents do the subtasks of an instruction, 0 to 1."""

Z95 = 1.959963984540054
"""The two-sided 95 % quantile of the normal distribution."""


class Score(Record):
    """The metric over held-out episodes: mean over `n` seeds with the standard error of that mean.

    With one seed the standard error is that over `episodes` (the total of all seeds). `measure` is the metric,
    by default a rate of success.
    """

    mean: float
    se: float
    n: int
    episodes: int
    measure: Measure = Field(default=SUCCESS, exclude_if=lambda m: m == SUCCESS)

    def __str__(self) -> str:
        """The mean, its standard error and the unit: `0.987 ± 0.002`."""
        return f"{self.mean:.4g} ± {self.se:.2g} {self.measure.unit}".rstrip()

    @property
    def merit(self) -> float:
        """The mean with the sign by which more is better: what candidates are compared by."""
        return self.measure.oriented(self.mean)

    @property
    def level(self) -> float | None:
        """How far the task is solved, about 0 to 1; None where the metric has no scale."""
        return self.measure.level(self.mean)


def interval_95(score: Score) -> tuple[float, float]:
    """The merit of a score, less and more what its errors allow: those of its seeds, or of a rate those of its
    episodes, whichever are larger. Few seeds say little of their own errors, which are larger than this."""
    margin = Z95 * score.se if score.se == score.se else 0.0
    low, high = score.merit - margin, score.merit + margin
    if score.measure.rate:
        low, high = min(low, wilson(score)[0]), max(high, wilson(score)[1])
    return low, high


def episodes_interval(score: Score, error: float | None = None) -> tuple[float, float]:
    """The merit of a score, less and more what the errors of its episodes allow, 95 %: Wilson's of a rate, else by
    `error`, the standard error over episodes, which is the score's own of one seed. Two seeds may agree by chance, or
    one of them do well."""
    if score.measure.rate:
        return wilson(score)
    error = score.se if error is None else error
    margin = Z95 * error if error == error else math.inf
    return score.merit - margin, score.merit + margin


def wilson(score: Score) -> tuple[float, float]:
    """Wilson's 95 % interval for a proportion, over the episodes.

    As `scipy.stats.binomtest(...).proportion_ci(method="wilson")`, which takes whole numbers of successes only; the
    mean of several searches is not one.
    """
    n, p = max(score.episodes, 1), min(max(score.mean, 0.0), 1.0)
    centre = (p + Z95 * Z95 / (2 * n)) / (1 + Z95 * Z95 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + Z95 * Z95 / (4 * n * n)) / (1 + Z95 * Z95 / n)
    return centre - half, centre + half
