"""The result of a program from how it tells an expert's states from others."""

from __future__ import annotations

import numpy as np

from jaxreward.objectives.demonstrations.scoring import Separation
from jaxreward.records import ACCURACY, Candidate, Failure, Feedback, Measure, Result, Score

FITNESS = Measure(name="fitness", rate=False, worst=-100.0)
"""GRACE's equation 4.1: at most 0, about -1.4 for a reward that says nothing where half of the probability is known."""


def result_of(candidate: Candidate, row: int, found: Separation, held_out: Separation | None, episodes: int) -> Result:
    """The fitness of a candidate, or why it has none.

    Args:
        row: which of the rewards are the candidate's.
        found, held_out: on the data of the search, and on others if there are any.
        episodes: how many the search has.
    """
    extra = {ACCURACY: float(found.accuracy[row])}
    if held_out is not None:
        extra["held_out_accuracy"] = float(held_out.accuracy[row])
        if np.isfinite(held_out.fitness[row]):
            extra["held_out_fitness"] = float(held_out.fitness[row])
    feedback = Feedback(measure=FITNESS, extra_metrics=extra)
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
