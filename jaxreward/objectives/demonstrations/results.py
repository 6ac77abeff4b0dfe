"""The result of a program from how it tells an expert's states from others."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from jaxreward.objectives.demonstrations.scoring import Array, Separation
from jaxreward.records import ACCURACY, Candidate, Failure, Feedback, Measure, Result, Score

FITNESS = Measure(name="fitness", rate=False, worst=-100.0)
"""GRACE's equation 4.1, at most 0."""

OF_CONSTANT = -2.0 * math.log(2.0)
"""The highest fitness of a constant reward, which says nothing: that with D = 1/2."""

HELD_OUT_ACCURACY, HELD_OUT_FITNESS = "held_out_accuracy", "held_out_fitness"


def told_apart(result: Result) -> list[str]:
    """Lines on how well a reward tells an expert's states from others, for people."""
    extra, score = result.feedback.extra_metrics if result.feedback else {}, result.score
    if score is None or ACCURACY not in extra:
        return []
    held_out = f", {extra[HELD_OUT_ACCURACY]:.3f} held out" if HELD_OUT_ACCURACY in extra else ", none is held out"
    lines = [
        f"fitness {score.mean:.4g}, at most {OF_CONSTANT:.4g} for a constant reward and 0 at best; accuracy "
        f"{extra[ACCURACY]:.3f}{held_out}"
    ]
    fitness = min(score.mean, extra.get(HELD_OUT_FITNESS, score.mean))
    if fitness < OF_CONSTANT + 0.05 or min(extra[ACCURACY], extra.get(HELD_OUT_ACCURACY, 1.0)) < 0.7:
        lines.append(
            "this reward hardly tells the expert's states from others: search longer, with more episodes, or with a "
            "state that shows what they have"
        )
    return lines


def result_of(
    candidate: Candidate, row: int, found: Separation, held_out: Separation | None, episodes: int,
    told_apart: Mapping[str, Array],
) -> Result:  # fmt: skip
    """The fitness of a candidate, or why it has none.

    Args:
        row: which of the rewards are the candidate's.
        found, held_out: on the data of the search, and on others if there are any.
        episodes: how many the search has.
        told_apart: the fitness of all rewards (C,) on the episodes of each policy, for `Feedback`.
    """
    extra = {ACCURACY: float(found.accuracy[row])}
    if held_out is not None:
        extra[HELD_OUT_ACCURACY] = float(held_out.accuracy[row])
        if np.isfinite(held_out.fitness[row]):
            extra[HELD_OUT_FITNESS] = float(held_out.fitness[row])
    apart = {id: float(fitness[row]) for id, fitness in told_apart.items() if np.isfinite(fitness[row])}
    feedback = Feedback(measure=FITNESS, extra_metrics=extra, told_apart=apart)
    if not np.isfinite(found.fitness[row]):
        count = int((~np.isfinite(found.rewards[row])).sum())
        failure = Failure(
            stage="diverged",
            message=f"the reward of {count} of {found.rewards.shape[1]} states is not finite",
            hint="guard divisions, logarithms, square roots and powers; clip what can grow",
        )
        return Result(candidate=candidate, failure=failure, feedback=feedback)
    score = Score(mean=float(found.fitness[row]), se=float(found.error[row]), n=1, episodes=episodes, measure=FITNESS)
    return Result(candidate=candidate, score=score, feedback=feedback)
