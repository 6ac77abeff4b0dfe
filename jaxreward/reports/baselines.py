"""The winner of a run beside its baselines: what it reached, by how much it is better, and whether that is noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxreward.records import Feedback, Score
from jaxreward.reports.facts import FINAL_BEST, RunFacts
from jaxreward.reports.tables import figure, interval

WINNER = "winner"

_ABOUT = {
    WINNER: "what the search found",
    "sparse": "the task's own observation and reward",
    "dense": "the task's own observation with a person's reward",
    "best-of-n": "the best of as many independent samples",
}


@dataclass(frozen=True)
class Contender:
    """One row of the headline.

    Attributes:
        name: `winner`, or that of a baseline.
        about: what it is, in a few words.
        score: None where it has none.
        feedback: its training, where the log holds it.
        fresh: whether it was trained on seeds that the search has not seen.
    """

    name: str
    about: str
    score: Score | None
    feedback: Feedback | None
    fresh: bool

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean."""
        return interval(self.score) if self.score else None


def contenders(facts: RunFacts) -> list[Contender]:
    """The winner, as it was measured last, and the baselines in the order in which they were trained."""
    found = []
    if facts.best is not None:
        final = facts.final
        # Logs of earlier versions do not hold the final training.
        trained = (facts.progress.baselines[FINAL_BEST].feedback if final else None) or facts.best.feedback
        found.append(Contender(WINNER, _ABOUT[WINNER], final or facts.best.score, trained, final is not None))
    for name, baseline in facts.rivals.items():
        found.append(Contender(name, _ABOUT.get(name, ""), baseline.score, baseline.feedback, facts.final is not None))
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
        if self.seeds < 2:  # episodes tell nothing of what another seed would have come to
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


def verdicts(found: list[Contender]) -> list[str]:
    """A sentence for each baseline: whether the winner is better, and by how much."""
    winner = next((c for c in found if c.name == WINNER), None)
    if winner is None or winner.score is None:
        return []
    return [_verdict(winner.score, rival, winner.fresh) for rival in found if rival is not winner]


def _verdict(mine: Score, rival: Contender, fresh: bool) -> str:
    if rival.score is None:
        return f"{rival.name} has no score to compare with."
    found, rate = gap(mine, rival.score), mine.measure.rate
    by, low, high = (figure(x, sign=True, rate=rate) for x in (found.mean, found.low, found.high))
    if found.seeds < 2:
        return f"Nothing can be said of {rival.name}: the difference is {by}, and one of the two has a single seed."
    if not fresh and found.mean > 0:
        return f"It is ahead of {rival.name} by {by}, by the score that it was chosen for: that proves nothing."
    told = f"is {found.verdict} than" if found.verdict != "unclear" else "cannot be told by these seeds from"
    return f"It {told} {rival.name}: the difference is {by}, 95 % interval {low} to {high}."
