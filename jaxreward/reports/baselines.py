"""The winner of a run against its baselines: scores, differences and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxreward.records import Feedback, Score
from jaxreward.reports.run_view import FINAL_BEST, RunView
from jaxreward.reports.tables import figure, interval

WINNER = "winner"


@dataclass(frozen=True)
class ScoredProgram:
    """The winner or a baseline.

    Attributes:
        name: `winner`, or that of a baseline.
        score: None if it failed.
        feedback: of its training, if logged.
        fresh: whether it was trained on seeds that the search did not use.
    """

    name: str
    score: Score | None
    feedback: Feedback | None
    fresh: bool

    @property
    def alignment(self) -> Score | None:
        """How far its agents do the subtasks of the instruction, where that is measured."""
        return self.feedback.alignment if self.feedback is not None else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean."""
        return interval(self.score) if self.score else None


def scored_programs(view: RunView) -> list[ScoredProgram]:
    """The winner with its latest score, and the baselines in the order in which they were trained."""
    found = []
    if view.best is not None:
        final = view.final
        # Logs of earlier versions lack the feedback of the final training.
        trained = (view.progress.baselines[FINAL_BEST].feedback if final else None) or view.best.feedback
        found.append(ScoredProgram(WINNER, final or view.best.score, trained, final is not None))
    for name, baseline in view.baselines.items():
        found.append(ScoredProgram(name, baseline.score, baseline.feedback, view.final is not None))
    return found


@dataclass(frozen=True)
class Gap:
    """By how much one score is better than another, in the metric's unit: `mean` with a 95 % interval.

    Attributes:
        seeds: of the score with fewer.
        verdict: `better`, `worse`, or `unclear` where the interval holds 0 or one of the scores is of a single seed.
    """

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def verdict(self) -> str:
        if self.seeds < 2:  # the spread over episodes says nothing about other seeds
            return "unclear"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "unclear"


def gap(mine: Score, other: Score) -> Gap:
    """The difference of two independent means, its interval recovered from theirs (Newcombe, 1998, method 10; for any
    interval: Zou and Donner, 2008)."""
    delta = mine.merit - other.merit
    (low, high), (other_low, other_high) = interval(mine), interval(other)
    below, above = mine.mean - low, high - mine.mean
    other_below, other_above = other.mean - other_low, other_high - other.mean
    if not mine.measure.higher_is_better:
        below, above, other_below, other_above = above, below, other_above, other_below
    low, high = delta - math.hypot(below, other_above), delta + math.hypot(above, other_below)
    return Gap(delta, low, high, min(mine.n, other.n))


def verdicts(programs: list[ScoredProgram]) -> list[str]:
    """A sentence for each baseline: whether the winner is better, and by how much."""
    winner = next((p for p in programs if p.name == WINNER), None)
    if winner is None or winner.score is None:
        return []
    return [_verdict(winner.score, baseline, winner.fresh) for baseline in programs if baseline is not winner]


def _verdict(mine: Score, baseline: ScoredProgram, fresh: bool) -> str:
    if baseline.score is None:
        return f"{baseline.name} has no score to compare with."
    if mine.measure.name != baseline.score.measure.name:
        return (
            f"{baseline.name} has another measure, {baseline.score.measure.label}: train the winner too (final seeds)."
        )
    found, rate = gap(mine, baseline.score), mine.measure.rate
    by, low, high = (figure(x, sign=True, rate=rate) for x in (found.mean, found.low, found.high))
    if found.seeds < 2:
        return f"No conclusion about {baseline.name}: the difference is {by}, and one of the two has a single seed."
    if not fresh and found.mean > 0:
        return f"It is ahead of {baseline.name} by {by}, by the score that it was selected by: that is biased."
    text = f"It is {found.verdict} than" if found.verdict != "unclear" else "No significant difference from"
    return f"{text} {baseline.name}: the difference is {by}, 95 % interval {low} to {high}."
