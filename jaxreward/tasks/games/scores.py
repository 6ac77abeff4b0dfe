"""How games are scored: points, and how long they were played."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxreward.records import SUCCESS, Measure
from jaxreward.tasks.metrics import Figure, Mean, Sum, WithExtraMetrics
from jaxreward.tasks.task import State


def with_length(points: Figure, measure: Measure, horizon: int, *, tells: bool) -> WithExtraMetrics:
    """The sum of `points` over an episode, and as the extra metric `played` the part of its `horizon` steps that were
    taken, which is progress if it `tells` good agents from bad ones before there are points."""
    played = {"played": Mean(_one, horizon, SUCCESS, missing=0.0)}
    return WithExtraMetrics(Sum(points, measure), played, tuple(played) if tells else ())


def _one(state: State, action: jax.Array, next_state: State) -> jax.Array:
    return jnp.ones(())
