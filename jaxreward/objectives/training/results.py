"""Results of trained candidates."""

from __future__ import annotations

from jaxreward.records import Candidate, Failure, Measure, Result
from jaxreward.training import TrainResult

_FOUND = 0.2
"""A success rate above this is more than chance."""


def result_of(candidate: Candidate, trained: TrainResult, row: int, env_steps: int) -> Result:
    """The result of candidate `row` of a training."""
    if trained.stopped[row]:
        return filtered(candidate, trained, row, trained.reasons[row], env_steps)
    feedback = trained.feedback(row)
    if trained.diverged[row].all():
        failure = Failure(
            stage="diverged",
            message="every seed computed something that is not finite while training",
            hint="guard divisions, logarithms, square roots and powers; clip what can grow",
        )
        return Result(candidate=candidate, failure=failure, feedback=feedback, env_steps=env_steps)
    return Result(candidate=candidate, score=trained.score(row), feedback=feedback, env_steps=env_steps)


def filtered(candidate: Candidate, trained: TrainResult, row: int, reason: str, env_steps: int) -> Result:
    """The result of a candidate that a rung, or a separate short training, stopped for this reason."""
    at = int(trained.stopped[row]) or int(trained.steps[-1])
    value, name = float(trained.success[row].mean()), trained.measure.name
    failure = Failure(
        stage="filtered",
        message=f"{name} {value:.3f} after {at:,} steps {reason}",
        hint=_hint(value, trained.measure, name),
    )
    return Result(candidate=candidate, failure=failure, feedback=trained.feedback(row), env_steps=env_steps)


def _hint(value: float, measure: Measure, name: str) -> str:
    if measure.rate and value < _FOUND:
        return "make the goal easier to find: show where it is and reward coming closer to it"
    if measure.rate:
        return "it can be done with this; look for what makes it surer or sooner, others were better at this point"
    return f"show what the {name} depends on, and reward what makes it better from the first steps on"
