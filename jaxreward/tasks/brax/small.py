"""Brax's `inverted_pendulum` and `reacher`, under the names `inverted-pendulum` and `reacher`."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxreward.records import Measure, Vocabulary
from jaxreward.tasks.brax.base import BraxTask
from jaxreward.tasks.brax.environment import BraxView
from jaxreward.tasks.metrics import Sum
from jaxreward.tasks.simulation import ONLY_FAILURES

UPRIGHT = 0.2
"""Radians beyond which the pole has fallen."""
TOUCH = 0.02
"""Metres within which the fingertip is at the target."""


@dataclass(frozen=True)
class ReturnTask(BraxTask):
    """A task whose value is the environment's own undiscounted return."""

    @property
    def worst(self) -> float:
        """The value of an agent whose metric is not finite."""
        return 0.0

    def score(self) -> Sum:
        paid = self.figure(lambda s, a, after: after.reward, broken=jnp.nan)
        return Sum(paid, Measure(name="return", rate=False, worst=self.worst))

    def dense_reward(self, view: BraxView, action: jax.Array, next_view: BraxView) -> jax.Array:
        """The environment's own reward."""
        raise NotImplementedError

    def vocabulary(self) -> Vocabulary:
        return Vocabulary()  # there is none for these yet


@dataclass(frozen=True)
class InvertedPendulum(ReturnTask):
    """Keep a pole upright on a cart. Brax pays 1 for every step, the one in which it falls included."""

    name = "inverted-pendulum"  # type: ignore[assignment]
    env_name = "inverted_pendulum"  # type: ignore[assignment]

    @property
    def description(self) -> str:
        return (
            "A pole stands on a cart that a motor pushes along a rail. Keep it upright: an episode ends when its angle "
            f"exceeds {UPRIGHT} rad, at the latest after {self.horizon} steps, and the score is the steps it lasted."
        )

    def sparse_reward(self, view: BraxView, action: jax.Array, next_view: BraxView) -> jax.Array:
        """1 for every step after which the pole is upright."""
        return (jnp.abs(next_view.q[1]) <= UPRIGHT).astype(jnp.float32)

    def dense_reward(self, view: BraxView, action: jax.Array, next_view: BraxView) -> jax.Array:
        return jnp.ones(())


@dataclass(frozen=True)
class Reacher(ReturnTask):
    """Move the fingertip of a two-jointed arm to a target in the plane."""

    name = "reacher"  # type: ignore[assignment]
    ends_early = ONLY_FAILURES

    @property
    def description(self) -> str:
        return (
            "An arm with two joints moves in a plane. Bring its fingertip to the target, which lies elsewhere in every "
            f"episode, and keep it there. The score is the sum over {self.horizon} steps of minus the distance (m) and "
            "minus the squared actions."
        )

    @property
    def worst(self) -> float:
        return -2.5 * self.horizon  # 0.42 m away, and full torque of both motors all the time

    def gap(self, view: BraxView) -> jax.Array:
        """From target to fingertip (3,), in m."""
        return self.default_observation(view)[-3:]

    def sparse_reward(self, view: BraxView, action: jax.Array, next_view: BraxView) -> jax.Array:
        """1 for every step that ends within 2 cm of the target."""
        return (jnp.sum(self.gap(next_view) ** 2) < TOUCH**2).astype(jnp.float32)

    def dense_reward(self, view: BraxView, action: jax.Array, next_view: BraxView) -> jax.Array:
        effort = jnp.sum(jnp.clip(action, -1.0, 1.0) ** 2)
        return -jnp.sqrt(jnp.sum(self.gap(next_view) ** 2)) - effort
