"""Quadcopter hover: reach a fixed point in the air and stay there (RF-Agent's Quadcopter, appendix A; IsaacGymEnvs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Measure, Vocabulary
from jaxreward.tasks.metrics import Mean, WithExtraMetrics
from jaxreward.tasks.robots.mujoco_task import ATTITUDE_WORDS, MuJoCoTask, attitude, unit_quat
from jaxreward.tasks.robots.physics import Data, own_model, rotate_back
from jaxreward.tasks.robots.state import RobotState, RobotView

TARGET = (0.0, 0.0, 4.0)
FAR = 3.0
"""Metres from the target at which an episode ends; what a step after that counts as."""
NEAR = 0.1
SPREAD = 1.0
"""Half the side of the cube around the target in which episodes begin (m)."""
TILT = 0.4
"""The largest tilt at the beginning (rad)."""
DRIFT = 0.5
"""The largest of every velocity at the beginning (m/s and rad/s)."""


@dataclass(frozen=True)
class QuadcopterHover(MuJoCoTask):
    """A quadcopter that must fly to a point and hover there.

    Args:
        horizon: control steps (0.02 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    name = "quadcopter-hover"
    state_notes = (
        "The quadcopter has 0.5 kg and four rotors, 0.17 m from its middle: front left, front right, rear right, rear\n"
        "left; each pushes along the body's upward axis with 0 to 3.717 N (1.226 N each carries the weight) and turns\n"
        "the body by +0.02455, -0.02455, +0.02455, -0.02455 N m about that axis for every newton.\n"
        "qpos is [position x, y, z (m); orientation as a unit quaternion w, x, y, z]; qvel is [linear velocity in the\n"
        "world (m/s); angular velocity in the body (rad/s)]. x is forward, y left, z up. A control step lasts 0.02 s."
    )
    own_words: ClassVar[Mapping[str, str]] = {
        **ATTITUDE_WORDS,
        "data.qpos": "position and orientation: see below",
        "data.qvel": "velocities: see below",
        "data.ctrl": "thrusts asked of the rotors (N)",
        "data.actuator_force": "thrusts of the rotors (N)",
        "info.target_pos": "position of the target (m), the same in all episodes",
        "info.local_target": "from the quadcopter to the target in the body (m): forward, left, up",
        "info.target_dist": "distance from the target (m)",
        "info.last_act": "the action before, zeros at first",
        "action": "thrusts of the 4 rotors in [-1, 1]: from nothing to 3.717 N; -0.34 each carries the weight",
    }

    @property
    def description(self) -> str:
        return (
            "A quadcopter flies to a fixed point in the air and hovers there. It begins within 1 m of the point along "
            f"each axis, tilted and drifting. An episode lasts {0.02 * self.horizon:g} seconds and is measured by the "
            f"mean distance from the point (m), less being better. It ends when the quadcopter is more than {FAR:g} m "
            f"away, and the time missed counts as a distance of {FAR:g} m."
        )

    @property
    def xml(self) -> str:
        return own_model("quadcopter")

    def start(self, key: jax.Array) -> Data:
        """Anywhere in a cube around the target, with any heading, tilted, turning and drifting."""
        place, heading, side, lean, drift = jax.random.split(key, 5)
        home = jax.tree.map(jnp.asarray, self.home)
        at = jnp.array(TARGET) + jax.random.uniform(place, (3,), minval=-SPREAD, maxval=SPREAD)
        yaw = jax.random.uniform(heading, minval=-jnp.pi, maxval=jnp.pi)
        toward = jax.random.uniform(side, minval=-jnp.pi, maxval=jnp.pi)
        tilt = jax.random.uniform(lean, maxval=TILT)
        # The product of a turn about the vertical and one about a horizontal axis.
        cos, sin = jnp.cos(0.5 * tilt), jnp.sin(0.5 * tilt)
        half, axis = 0.5 * yaw, toward + 0.5 * yaw
        quat = jnp.stack([cos * jnp.cos(half), sin * jnp.cos(axis), sin * jnp.sin(axis), cos * jnp.sin(half)])
        return home.replace(
            qpos=jnp.concatenate([at, quat]), qvel=jax.random.uniform(drift, (6,), minval=-DRIFT, maxval=DRIFT)
        )

    def sensed(self, data: Data) -> dict[str, Any]:
        target = jnp.array(TARGET)
        away = target - data.qpos[:3]
        return attitude(data) | {
            "target_pos": target, "target_dist": jnp.linalg.norm(away),
            "local_target": rotate_back(unit_quat(data), away),
        }  # fmt: skip

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        return super().first_info(data, key) | {"last_act": jnp.zeros(4)}

    def next_info(self, state: RobotState, action: jax.Array, data: Data) -> dict[str, Any]:
        return super().next_info(state, action, data) | {"last_act": action}

    def terminated(self, state: RobotState) -> jax.Array:
        return state.data.broken | ~(state.info["target_dist"] <= FAR)

    def score(self) -> WithExtraMetrics:
        """The mean distance; extra metric `hover_rate`: the fraction of all steps within 0.1 m of the target."""
        measure = Measure(name="distance", unit="m", rate=False, higher_is_better=False, worst=FAR)
        distance = Mean(lambda _, action, state: _distance(state), self.horizon, measure, missing=FAR)
        near = Mean(lambda _, action, state: (_distance(state) < NEAR).astype(jnp.float32), self.horizon)
        return WithExtraMetrics(distance, {"hover_rate": near})

    def default_observation(self, view: RobotView) -> jax.Array:
        """The way to the target in the world, the attitude as a quaternion, and both velocities; (13,)."""
        data = view.data
        return jnp.concatenate([view.info["target_pos"] - data.qpos[:3], data.qpos[3:], data.qvel])

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends within 0.1 m of the target."""
        return (next_view.info["target_dist"] < NEAR).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """Near at two scales and level; turning, drifting near the target and changing thrusts cost a little."""
        info = next_view.info
        distance = info["target_dist"]
        near = jnp.exp(-distance) + jnp.exp(-((distance / 0.15) ** 2))
        level = 0.2 * info["upvector"][2]
        turning = 0.03 * jnp.sum(info["gyro"] ** 2)
        drifting = 0.1 * jnp.sum(info["local_linvel"] ** 2) * jnp.exp(-distance)
        jerk = 0.02 * jnp.sum((action - view.info["last_act"]) ** 2)
        return near + level - turning - drifting - jerk

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.quadcopter_fragments import vocabulary

        return vocabulary(self.horizon)


def _distance(state: RobotState) -> jax.Array:
    """Distance from the target (m), at most that at which an episode ends; that where the simulation failed."""
    return jnp.where(state.data.broken, FAR, jnp.minimum(state.info["target_dist"], FAR))
