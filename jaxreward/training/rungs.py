"""Cuts within a training: which candidates go on, and why the others stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.records import Measure, Score
from jaxreward.records.measure import episodes_interval
from jaxreward.training.history import History

SURE = 1.96
"""Standard errors to either side that make an interval of 95 %."""


@dataclass(frozen=True)
class Rung:
    """A cut after `steps` environment steps a seed: candidates that do not pass stop there, the others go on as if
    nothing had happened. Values are means over seeds, in the task's metric.

    Attributes:
        steps: environment steps of a seed.
        threshold: what a value must reach, if anything.
        keep: the share of the candidates, rounded up, that go on: the best of them (successive halving, Jamieson and
            Talwalkar 2016, keeps 1/2).
        prune: stop a candidate that can no longer win: whose value would stay behind that of the best, each at the end
            of its 95 % interval that favours going on, even if it rose by as much as any candidate's curve ever
            did in as many steps as are left.
        incumbent: with `prune`, what has to be beaten as well, e.g. the lower end of an earlier winner's interval; a
            merit, of which more is better: the negative of a value that should be small.
        untrained: with `keep`, a merit that says nothing, such as the upper end of that of random actions. Of
            candidates whose 95 % interval does not lie above it those are the best whose episodes came the farthest, by
            the mean over the metric's `progress`, and success where it is a rate; they come after all others. The
            task's metric must say progress.
    """

    steps: int
    threshold: float | None = None
    keep: float = 1.0
    prune: bool = False
    incumbent: float | None = None
    untrained: float | None = None

    def check(self) -> None:
        """Raise an InvalidSetting for the first invalid field; `make_schedule` checks `steps` against the budget."""
        for name in ("threshold", "incumbent", "untrained"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise InvalidSetting(f"{name} of a rung is a finite number, not {value}", f"rung.{name}")
        if not 0 < self.keep <= 1:
            message = f"a rung keeps a share of the candidates, above 0 and at most 1, not {self.keep}"
            raise InvalidSetting(message, "rung.keep")
        if self.incumbent is not None and not self.prune:
            raise InvalidSetting("the incumbent of a rung is for prune=True", "rung.incumbent", "rung.prune")
        if self.untrained is not None and self.keep == 1:
            raise InvalidSetting("the `untrained` of a rung is for keep below 1", "rung.untrained", "rung.keep")


@dataclass(frozen=True)
class Standing:
    """Candidates at a rung: `curves` (C, P) of their values at `steps` (P,), the last of which is now, and the standard
    errors (C,) of the last values; `left` steps of a seed are to come. `lowest` (C,) are the lower ends of the 95 %
    intervals of the last values, as merits and over episodes, and `progress` (C,) is how far episodes came, 0 where
    nothing says and of agents that have diverged."""

    measure: Measure
    steps: np.ndarray
    curves: np.ndarray
    errors: np.ndarray
    left: int
    lowest: np.ndarray
    progress: np.ndarray

    @classmethod
    def of(
        cls, measure: Measure, histories: Sequence[History], steps: np.ndarray, left: int, stages: Sequence[int] = ()
    ) -> Standing:
        """By the histories of single candidates. The errors are those between seeds or those of a seed's episodes,
        whichever are larger: two seeds may agree by chance. `stages` are the positions of the extra metrics that say
        how far episodes came."""
        seeds = np.stack([h.success[: len(steps), 0] for h in histories]).astype(float)  # (C, P, S)
        n = seeds.shape[-1]
        spread = seeds[:, -1].std(-1, ddof=1) if n > 1 else 0.0
        episodes = np.stack([h.success_se[len(steps) - 1, 0] for h in histories]).astype(float)
        of_episodes = np.sqrt((episodes**2).mean(-1))
        errors = np.maximum(spread, of_episodes) / np.sqrt(n)
        values, last = seeds.mean(-1), len(steps) - 1
        counts = np.nan_to_num([h.episodes[last, 0].sum() for h in histories])
        scores = [
            Score(mean=float(v), se=float(se), n=n, episodes=int(e), measure=measure)
            for v, se, e in zip(values[:, -1], of_episodes / np.sqrt(n), counts, strict=True)
        ]
        lowest = np.array([episodes_interval(score)[0] for score in scores])
        reached = np.stack([h.extra[last, 0][:, list(stages)].sum(-1) * ~(h.diverged[last, 0] > 0) for h in histories])
        come = np.nan_to_num(reached).mean(-1) + (values[:, -1] if measure.rate else 0.0)
        progress = come / (len(stages) + measure.rate) if stages else np.zeros(len(histories))
        return cls(measure, steps, values, errors, left, lowest, progress)

    @property
    def values(self) -> np.ndarray:
        return self.curves[:, -1]

    def only(self, rows: Sequence[int]) -> Standing:
        own = {name: getattr(self, name)[list(rows)] for name in ("curves", "errors", "lowest", "progress")}
        return replace(self, **own)

    def merits(self, untrained: float | None = None) -> list[tuple[float, ...]]:
        """Sort keys of the rows, larger is better: the value in the direction of its measure. With `untrained` see
        `Rung.untrained`."""
        merits = self.measure.oriented(1.0) * self.values
        values = np.where(np.isnan(merits), -np.inf, merits).tolist()
        if untrained is None:
            return [(value,) for value in values]
        rows = zip(values, (self.lowest > untrained).tolist(), self.progress.tolist(), strict=True)
        return [(value,) if tells else (untrained, progress, value) for value, tells, progress in rows]


def verdicts(rungs: Sequence[Rung], standing: Standing) -> list[str]:
    """Why each candidate stops here, by the first of `rungs` that it does not pass; empty if it goes on."""
    found = [""] * len(standing.values)
    for rung in rungs:
        left = [k for k, reason in enumerate(found) if not reason]
        if left:
            for k, reason in zip(left, _verdicts(rung, standing.only(left)), strict=True):
                found[k] = reason
    return found


def _verdicts(rung: Rung, at: Standing) -> list[str]:
    reasons = [""] * len(at.values)
    measure = at.measure
    if rung.threshold is not None:
        for k, value in enumerate(at.values):
            if not measure.reaches(float(value), rung.threshold):
                reasons[k] = f"is short of the threshold of {rung.threshold:g}"
    if rung.keep < 1:
        n = math.ceil(rung.keep * len(reasons) - 1e-9)
        merits = at.merits(rung.untrained)
        for k in sorted(range(len(merits)), key=merits.__getitem__, reverse=True)[n:]:
            by = " by how far episodes came" if len(merits[k]) > 1 else ""
            reasons[k] = reasons[k] or f"is not among the best {n} of {len(reasons)}{by}"
    if rung.prune:
        sign = measure.oriented(1.0)
        merit, margin = sign * at.values, SURE * at.errors
        bar = float((merit - margin).max())
        if rung.incumbent is not None:
            bar = max(bar, rung.incumbent)
        rise = largest_rise(at.steps, sign * at.curves, at.left)
        for k in np.flatnonzero(merit + margin + rise < bar):
            reasons[k] = reasons[k] or (
                f"cannot win any more: {sign * bar:.3g} is to be beaten, and no curve changed by more than {rise:.3g} "
                f"in the {at.left:,} steps that are left"
            )
    return reasons


def largest_rise(steps: np.ndarray, curves: np.ndarray, window: int) -> float:
    """By how much a curve (P,) of any row rose, at most, within `window` steps; what it rose by within fewer, where
    fewer have been taken, is carried on at the same pace. Curves begin wherever they are first known.
    """
    best = 0.0
    for i in range(len(steps)):
        for j in range(i + 1, len(steps)):
            if steps[j] - steps[i] <= window:
                best = max(best, float((curves[:, j] - curves[:, i]).max()))
    seen = int(steps[-1] - steps[0])
    return best * max(1.0, window / seen) if seen else math.inf


def possible_winners(standing: Standing, bar: float | None = None) -> list[int]:
    """Candidates that may be the best, by 95 % intervals: the upper end reaches the largest lower end, and `bar` if
    there is one; candidates at the worst value are excluded. `bar` is a merit, more is better."""
    sign = standing.measure.oriented(1.0)
    merit, margin = sign * standing.values, SURE * standing.errors
    highest = max(float((merit - margin).max()), -math.inf if bar is None else bar)
    return [int(k) for k in np.flatnonzero((merit + margin >= highest) & (merit > sign * standing.measure.worst))]
