"""What training a candidate showed."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from jaxreward.records.base import Record
from jaxreward.records.measure import SUCCESS, Measure, Score
from jaxreward.records.program import Notice

ACCURACY = "accuracy"
"""The extra metric of a reward that is scored on demonstrations: the share of pairs of states that it tells apart."""


class TermCurve(Record):
    """One reward term through training, per step, at `Feedback.term_steps`; `share` is its part
    of the summed absolute reward over the last tenth of training, in [0, 1]."""

    name: str
    mean: tuple[float, ...]
    minimum: tuple[float, ...]
    maximum: tuple[float, ...]
    share: float


class Feedback(Record):
    """What training a candidate showed; curves are means over seeds at `steps`. `success` is the task's metric,
    `measure`.

    `return_solved` and `return_failed` are mean undiscounted returns of held-out episodes that
    reached, or did not reach, the goal (None where there was none); `by_seed` holds the success of every seed (S, P),
    empty in logs of earlier versions; `return_success_correlation` is
    the point-biserial correlation of an episode's return with its success over held-out episodes at
    the end (None where either was constant); `value_fit` is the explained variance of the value
    function at the end; `diverged` counts seeds; `extra_metrics` are further values of the task's metric by name, of
    the seeds that did not diverge if there are any, under the key `beside` in JSON. `told_apart` is of a search on
    whole episodes of an expert: the fitness on these and on the episodes of each policy that expanded the data, by the
    id of the request for it.
    `progress` has those of the extra metrics, by seed, that say how far an episode came, the earliest stage first;
    `untrained` is the score of random actions, where a search looks at progress, and `episode_error` the standard error
    over episodes, where the metric says progress and is no rate. `alignment` is how far agents do the
    subtasks of the task's instruction by its metrics, where each has one.
    """

    steps: tuple[int, ...] = ()
    success: tuple[float, ...] = ()
    episode_return: tuple[float, ...] = ()
    length: tuple[float, ...] = ()
    seed_success: tuple[float, ...] = ()
    by_seed: tuple[tuple[float, ...], ...] = Field(default=(), exclude_if=lambda curves: not curves)
    term_steps: tuple[int, ...] = ()
    terms: tuple[TermCurve, ...] = ()
    dead_features: tuple[int, ...] = ()
    entropy: float = 0.0
    value_fit: float = 0.0
    return_solved: float | None = None
    return_failed: float | None = None
    return_success_correlation: float | None = None
    return_success_interval: tuple[float, float] | None = Field(default=None, exclude_if=lambda x: x is None)
    diverged: int = 0
    extra_metrics: dict[str, float] = Field(
        default_factory=dict, validation_alias=AliasChoices("beside", "extra_metrics"), serialization_alias="beside"
    )
    progress: dict[str, tuple[float, ...]] = Field(default_factory=dict, exclude_if=lambda stages: not stages)
    episode_error: float | None = Field(default=None, exclude_if=lambda error: error is None)
    untrained: Score | None = Field(default=None, exclude_if=lambda score: score is None)
    alignment: Score | None = Field(default=None, exclude_if=lambda score: score is None)
    told_apart: dict[str, float] = Field(default_factory=dict, exclude_if=lambda told: not told)
    measure: Measure = Field(default=SUCCESS, exclude_if=lambda m: m == SUCCESS)
    notices: tuple[Notice, ...] = ()
