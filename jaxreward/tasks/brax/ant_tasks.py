"""Two tasks of RF-Agent (appendix F.4) that no training text is likely to hold, on Brax's ant: `ant-lie-down` and
`ant-patrol-return`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Measure, Subgoals
from jaxreward.tasks.brax.base import BraxTask
from jaxreward.tasks.brax.environment import BraxState, BraxView, view_fields
from jaxreward.tasks.metrics import Mean, Reached
from jaxreward.tasks.option_checks import check_not_negative, invalid_option
from jaxreward.tasks.simulation import ONLY_FAILURES

BELLY_UP = 0.9
"""Orientation from which the ant lies on its back."""
NEAR = 0.5
"""Metres from the start within which the ant is back."""
FARTHEST = 100.0
"""Metres to the checkpoint, at most."""


class LieDownView(BraxView):
    """What programs see of the ant that lies down."""

    orientation: jax.Array


class PatrolView(BraxView):
    """What programs see of the ant on patrol."""

    task_phase: jax.Array
    dist_to_start: jax.Array
    checkpoint: jax.Array


@dataclass(frozen=True)
class AntTask(BraxTask):
    """A task on Brax's ant, of 25 seconds."""

    horizon: int = 500

    @property
    def env_name(self) -> str:
        return "ant"


def orientation(rot: jax.Array) -> jax.Array:
    """The downward component of the torso's up axis, -1 upright and 1 belly-up, from quaternions (bodies, 4)."""
    return 2.0 * jnp.sum(rot[0, 1:3] ** 2) - 1.0


@dataclass(frozen=True)
class AntLieDown(AntTask):
    """Lie down belly-up and stay so.

    The ant's torso touches the floor here. In Brax's ant it does not, which would let an ant on its back sink until it
    hangs below the floor from its feet: belly-up without any skill. No height ends an episode. The sparse
    reward is the indicator that the metric averages.
    """

    solid: ClassVar[tuple[str, ...]] = ("torso_geom",)
    own_words: ClassVar[Mapping[str, str]] = {
        "orientation": "downward component of the torso's own up axis: -1 upright, 1 belly-up"
    }
    ends_early: ClassVar[str] = ONLY_FAILURES

    @property
    def name(self) -> str:
        return "ant-lie-down"

    @property
    def description(self) -> str:
        return (
            "A four-legged robot turns onto its back (belly-up, its feet towards the sky), soon and for good. The "
            f"score is the fraction of the {self.horizon} steps of an episode on which the orientation, the downward "
            f"component of its torso's up axis, is above {BELLY_UP}. Unlike in Brax's ant the torso touches the floor, "
            "and no height of it ends the episode."
        )

    def ended(self, state: BraxState) -> jax.Array:
        return jnp.zeros((), bool)

    def view(self, state: BraxState) -> LieDownView:
        return LieDownView(**view_fields(state), orientation=orientation(state.pipeline.x.rot))

    def score(self) -> Mean:
        lying = self.figure(lambda s, a, after: orientation(after.pipeline.x.rot) > BELLY_UP, broken=nan)
        return Mean(lying, self.horizon, Measure(name="time belly-up"))

    def sparse_reward(self, view: LieDownView, action: jax.Array, next_view: LieDownView) -> jax.Array:
        """1 for every step that ends belly-up."""
        return (next_view.orientation > BELLY_UP).astype(jnp.float32)

    def dense_reward(self, view: LieDownView, action: jax.Array, next_view: LieDownView) -> jax.Array:
        """How far it is tipped over (0 to 1 in the angle), lying still, and an action cost once it is tipped.

        To get an upright ant started, turning about horizontal axes is rewarded until it is on its side.
        """
        tip = jnp.arccos(jnp.clip(-next_view.orientation, -1.0, 1.0)) / jnp.pi
        spin = next_view.xd.ang[0]
        rolling = jnp.maximum(0.5 - tip, 0.0) * jnp.minimum(jnp.sqrt(jnp.sum(spin[:2] ** 2) + 1e-12), 5.0)
        lying = (next_view.orientation > BELLY_UP).astype(jnp.float32)
        effort = jnp.sum(jnp.clip(action, -1.0, 1.0) ** 2)
        return tip + lying * (1.0 + jnp.exp(-jnp.sum(spin**2))) + 0.1 * rolling - 0.1 * tip * effort


@dataclass(frozen=True)
class AntPatrolReturn(AntTask):
    """Run forward past a checkpoint, then turn round and come back to the start.

    An episode ends when the ant is back, and like Brax's when its torso leaves the heights from 0.2 to 1 m. The sparse
    reward is the success, once.

    Args:
        checkpoint: x of the checkpoint in m; it is passed at any y.
    """

    checkpoint: float = 3.0

    own_words: ClassVar[Mapping[str, str]] = {
        "task_phase": "0 on the way out, 1 from the step that passes the checkpoint on",
        "dist_to_start": "horizontal distance of the torso from the origin (m)",
        "checkpoint": "x of the checkpoint (m)",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("checkpoint", self.checkpoint, FARTHEST)
        if self.checkpoint <= NEAR:
            message = f"checkpoint must lie more than {NEAR} m ahead of the start, not at {self.checkpoint}"
            raise invalid_option("checkpoint", message)

    @property
    def name(self) -> str:
        return "ant-patrol-return"

    @property
    def description(self) -> str:
        return (
            f"A four-legged robot runs ahead until its torso has passed a checkpoint at x = {self.checkpoint:g} m, "
            "then turns round and returns to the origin, its start. An episode succeeds, and ends, when after the "
            f"checkpoint (task_phase 1) the torso comes within {NEAR} m of the origin. It fails after {self.horizon} "
            "steps, or if the torso leaves the heights from 0.2 to 1 m."
        )

    def own_fields(self, pipeline: Any) -> dict[str, jax.Array]:
        return {"task_phase": jnp.zeros((), jnp.int32)}

    def next_own(self, state: BraxState, pipeline: Any) -> dict[str, jax.Array]:
        passed = pipeline.x.pos[0, 0] >= self.checkpoint
        return {"task_phase": state.own["task_phase"] | passed.astype(jnp.int32)}

    def ended(self, state: BraxState) -> jax.Array:
        return state.done | self.back(state)

    def view(self, state: BraxState) -> PatrolView:
        return PatrolView(
            **view_fields(state), task_phase=state.own["task_phase"], dist_to_start=self._away(state),
            checkpoint=jnp.float32(self.checkpoint),
        )  # fmt: skip

    def _away(self, state: BraxState) -> jax.Array:
        return jnp.sqrt(jnp.sum(state.pipeline.x.pos[0, :2] ** 2))

    def back(self, state: BraxState) -> jax.Array:
        """Whether the whole trip is done (bool scalar)."""
        return (state.own["task_phase"] == 1) & (self._away(state) < NEAR) & ~state.broken

    def score(self) -> Reached:
        return Reached(self.back)

    def default_observation(self, view: PatrolView) -> jax.Array:  # type: ignore[override]
        """Brax's own, then x and y of the torso, the phase and the distance to the start; (31,)."""
        trip = jnp.stack([view.task_phase.astype(jnp.float32), view.dist_to_start])
        return jnp.concatenate([super().default_observation(view), view.x.pos[0, :2], trip])

    def sparse_reward(self, view: PatrolView, action: jax.Array, next_view: PatrolView) -> jax.Array:
        """1 at the step that completes the trip."""
        return ((next_view.task_phase == 1) & (next_view.dist_to_start < NEAR)).astype(jnp.float32)

    def dense_reward(self, view: PatrolView, action: jax.Array, next_view: PatrolView) -> jax.Array:
        """The way made (m) towards the checkpoint or, once it is passed, the start; 5 for the trip; an action
        cost."""
        out = next_view.x.pos[0, 0] - view.x.pos[0, 0]
        home = view.dist_to_start - next_view.dist_to_start
        way = jnp.where(view.task_phase == 1, home, out)
        done = self.sparse_reward(view, action, next_view)
        return 2.0 * way + 5.0 * done - 0.005 * jnp.sum(jnp.clip(action, -1.0, 1.0) ** 2)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.brax.fragments import PATROL_SUBGOALS

        return PATROL_SUBGOALS
