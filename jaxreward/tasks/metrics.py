"""Metrics shared by tasks, as folds over the true states of an episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.records import SUCCESS, Measure
from jaxreward.tasks.task import ExtraMetrics, Metric, State, measure_of_metric

Figure = Callable[[State, jax.Array, State], jax.Array]
"""A scalar of one step, from state, action and next state."""


def episode_value(metric: Metric, acc: Any) -> jax.Array:
    """What an episode counts as: the metric's value, float32 (), but the measure's worst where that is not finite or
    falls short of it, or to diverge would be better than an honest failure."""
    measure, value = measure_of_metric(metric), metric.value(acc)
    bounded = jnp.maximum if measure.higher_is_better else jnp.minimum
    return bounded(measure.worst, jnp.where(jnp.isfinite(value), value, measure.worst))


@dataclass(frozen=True)
class Reached:
    """Success: `goal` holds of some state after the first."""

    goal: Callable[[State], jax.Array]

    def init(self) -> jax.Array:
        return jnp.zeros((), bool)

    def update(self, acc: jax.Array, state: State, action: jax.Array, next_state: State) -> jax.Array:
        return acc | self.goal(next_state)

    def value(self, acc: jax.Array) -> jax.Array:
        return acc.astype(jnp.float32)


@dataclass(frozen=True)
class Sum:
    """The sum of a figure over the steps of an episode."""

    figure: Figure
    measure: Measure

    def init(self) -> jax.Array:
        return jnp.zeros(())

    def update(self, acc: jax.Array, state: State, action: jax.Array, next_state: State) -> jax.Array:
        return acc + self.figure(state, action, next_state)

    def value(self, acc: jax.Array) -> jax.Array:
        return acc


@dataclass(frozen=True)
class Mean:
    """The mean of a figure over all `horizon` steps; a step after an early end counts as `missing`, by
    default as the worst of the measure."""

    figure: Figure
    horizon: int
    measure: Measure = SUCCESS
    missing: float | None = None

    @property
    def unseen(self) -> float:
        """The figure of a step after an early end."""
        return self.measure.worst if self.missing is None else self.missing

    def init(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(()), jnp.zeros(())  # the sum, and the steps seen

    def update(
        self, acc: tuple[jax.Array, jax.Array], state: State, action: jax.Array, next_state: State
    ) -> tuple[jax.Array, jax.Array]:
        total, seen = acc
        return total + self.figure(state, action, next_state), seen + 1.0

    def value(self, acc: tuple[jax.Array, jax.Array]) -> jax.Array:
        total, seen = acc
        return (total + self.unseen * (self.horizon - seen)) / self.horizon


class RunningMean(struct.PyTreeNode):
    """The sum of a figure, the steps taken, those with a small running mean, and whether all steps were valid."""

    total: jax.Array
    steps: jax.Array
    good: jax.Array
    valid: jax.Array


@dataclass(frozen=True)
class MeanBelow:
    """Success: all `horizon` steps are taken and `valid`, and their mean `figure` is below `limit`.

    Its extra metrics are `running_success`, the fraction of all steps on which the episode is valid and the mean so far
    is below `limit`, as LIMEN's reference implementation measures, and the mean itself, where `mean_name` names it.
    """

    figure: Callable[[State], jax.Array]
    valid: Callable[[State], jax.Array]
    horizon: int
    limit: float
    mean_name: str = ""

    progress: ClassVar[tuple[str, ...]] = ("running_success",)

    @property
    def names(self) -> tuple[str, ...]:
        return ("running_success", *filter(None, [self.mean_name]))

    def init(self) -> RunningMean:
        return RunningMean(total=jnp.zeros(()), steps=jnp.zeros(()), good=jnp.zeros(()), valid=jnp.ones((), bool))

    def update(self, acc: RunningMean, state: State, action: jax.Array, next_state: State) -> RunningMean:
        total, steps = acc.total + self.figure(next_state), acc.steps + 1.0
        valid = acc.valid & self.valid(next_state)
        return RunningMean(total, steps, acc.good + (valid & (total / steps < self.limit)), valid)

    def value(self, acc: RunningMean) -> jax.Array:
        success = acc.valid & (acc.steps >= self.horizon) & (acc.total / self.horizon < self.limit)
        return success.astype(jnp.float32)

    def also(self, acc: RunningMean) -> jax.Array:
        values = [acc.good / self.horizon, acc.total / jnp.maximum(acc.steps, 1.0)]
        return jnp.stack(values[: len(self.names)])


@dataclass(frozen=True)
class Both:
    """The product of two metrics: a manner counts as far as something comes of it."""

    first: Metric
    second: Metric

    def init(self) -> tuple[Any, Any]:
        return self.first.init(), self.second.init()

    def update(self, acc: tuple[Any, Any], state: State, action: jax.Array, next_state: State) -> tuple[Any, Any]:
        return (
            self.first.update(acc[0], state, action, next_state),
            self.second.update(acc[1], state, action, next_state),
        )

    def value(self, acc: tuple[Any, Any]) -> jax.Array:
        return self.first.value(acc[0]) * self.second.value(acc[1])


@dataclass(frozen=True)
class WithExtraMetrics:
    """`main` as the metric, and `others` as extra metrics that are only reported; `progress` are the names of those
    that say how far an episode came, the earliest stage first."""

    main: Metric
    others: Mapping[str, Metric] = field(default_factory=dict)
    progress: tuple[str, ...] = ()

    @property
    def measure(self) -> Measure:
        return measure_of_metric(self.main)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.others)

    def init(self) -> Any:
        return self.main.init(), tuple(metric.init() for metric in self.others.values())

    def update(self, acc: Any, state: State, action: jax.Array, next_state: State) -> Any:
        main, others = acc
        pairs = zip(self.others.values(), others, strict=True)
        others = tuple(metric.update(acc, state, action, next_state) for metric, acc in pairs)
        return self.main.update(main, state, action, next_state), others

    def value(self, acc: Any) -> jax.Array:
        return self.main.value(acc[0])

    def also(self, acc: Any) -> jax.Array:
        return jnp.stack([m.value(a) for m, a in zip(self.others.values(), acc[1], strict=True)])


def extra_values(metric: ExtraMetrics, acc: Any) -> jax.Array:
    """What an episode counts as by its extra metrics, float32 (B,): one that is not finite as the worst of its
    measure, 0 where that is not known."""
    values, worst = metric.also(acc), jnp.zeros(len(metric.names))
    if isinstance(metric, WithExtraMetrics):
        worst = jnp.array([measure_of_metric(m).worst for m in metric.others.values()])
    return jnp.where(jnp.isfinite(values), values, worst)


Beside = WithExtraMetrics
"""The name of earlier versions."""
