"""Base of the tasks of the Go1-like quadruped: model, motors, sensors and their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.tasks.robots.mujoco_task import ATTITUDE_WORDS, MuJoCoTask, attitude
from jaxreward.tasks.robots.physics import Data, own_model
from jaxreward.tasks.robots.state import RobotState, RobotView

ACTION_SCALE = 0.5
UPRIGHT = 0.3

GO1_WORDS = ATTITUDE_WORDS | {
    "data.qpos": "positions: see below",
    "data.qvel": "velocities: see below",
    "data.ctrl": "joint angles asked of the motors (rad)",
    "data.actuator_force": "torques of the motors (N m)",
    "info.pos_xy": "horizontal position, the origin being (0, 0) (m)",
    "info.height": "height of the trunk (m)",
    "info.last_act": "the action before, zeros at first",
    "action": "offsets of the 12 joints in [-1, 1]: the motors aim at the home pose + 0.5 * action (rad)",
}


@dataclass(frozen=True, kw_only=True)
class Go1Task(MuJoCoTask):
    """A task of the quadruped."""

    substeps: ClassVar[int] = 5
    own_words: ClassVar[Mapping[str, str]] = GO1_WORDS
    state_notes = (
        "The robot is a quadruped of 12.7 kg. Its joints are, for each of the legs FR, FL, RR, RL (front right, ...):\n"
        "abduction, hip, knee. The home pose is (0.1, 0.9, -1.8) for FR and RR and (-0.1, 0.9, -1.8) for FL and RL,\n"
        "with the trunk 0.278 m above the ground at a reset; at rest in that pose it stands at 0.26 m.\n"
        "qpos is [position x, y, z (m); orientation as a unit quaternion w, x, y, z; 12 joint angles (rad)]; qvel is\n"
        "[linear velocity in the world (m/s); angular velocity in the body (rad/s); 12 joint velocities (rad/s)].\n"
        "A control step lasts 0.02 s."
    )

    @property
    def xml(self) -> str:
        return own_model("go1")

    def control(self, state: RobotState, action: jax.Array) -> jax.Array:
        low, high = self.ctrl_range
        return jnp.clip(jnp.asarray(self.home.ctrl) + ACTION_SCALE * action, low, high)

    def sensed(self, data: Data) -> dict[str, Any]:
        return sensed(data)

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        return super().first_info(data, key) | {"last_act": jnp.zeros(12)}

    def next_info(self, state: RobotState, action: jax.Array, data: Data) -> dict[str, Any]:
        return super().next_info(state, action, data) | {"last_act": action}

    def terminated(self, state: RobotState) -> jax.Array:
        return down(state.data)

    def default_observation(self, view: RobotView) -> jax.Array:
        """Joint angles from home, joint velocities, the last action, and the inertial sensor's readings; (45,)."""
        info, data = view.info, view.data
        home = jnp.asarray(self.home.qpos)[7:]
        return jnp.concatenate(
            [info["local_linvel"], info["gyro"], info["gravity"], data.qpos[7:] - home, data.qvel[6:], info["last_act"]]
        )


def sensed(data: Data) -> dict[str, jax.Array]:
    """Sensor readings of the trunk."""
    return attitude(data) | {"pos_xy": data.qpos[:2], "height": data.qpos[2]}


def down(data: Data) -> jax.Array:
    """Whether the robot has tipped over, or the simulation failed."""
    return data.broken | ~(sensed(data)["upvector"][2] >= UPRIGHT)
