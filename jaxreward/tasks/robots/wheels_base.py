"""Base of the tasks of the robot on wheels with two hands: model, commands, hands and their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxreward.tasks.robots.mjcf import merged
from jaxreward.tasks.robots.mujoco_task import MuJoCoTask
from jaxreward.tasks.robots.physics import Data, own_model
from jaxreward.tasks.robots.planar import turned
from jaxreward.tasks.robots.state import RobotState

HAND = 0.05
"""Radius of a hand (m)."""
TRUNK = 0.18
"""Of its trunk (m)."""
HANDS = ((0.32, 0.13), (0.32, -0.13))
"""Where the hands are, from the robot's middle: forward and left (m)."""
TOUCHING = 0.02
"""Metres between a hand and something up to which it counts as touching it."""
TURNED = 0.3
"""The largest turn of the robot at the beginning (rad)."""

WHEELS_NOTES = (
    "x is about forward at the beginning, y left; headings are turns about the vertical. The robot moves over the\n"
    "floor in any direction and turns. Its hands are 0.32 m in front of its middle and 0.13 m to its left and\n"
    "right, each a ball of radius 0.05 m; its trunk is one of 0.18 m. A control step lasts 0.04 s."
)
WHEELS_WORDS = {
    "data.qpos": "positions and headings: see below",
    "data.qvel": "velocities: see below",
    "data.ctrl": "velocities asked of the robot in the world (m/s, m/s, rad/s)",
    "data.actuator_force": "forces (N) and torque (N m) that move the robot",
    "action": "velocities asked of the robot in its own frame, in [-1, 1]: forward and left in 1.5 m/s, and the turn "
    "in 2 rad/s",
}


@dataclass(frozen=True, kw_only=True)
class WheelsTask(MuJoCoTask):
    """A task of the robot on wheels; its x, y (m) and heading (rad) come first in `qpos`."""

    substeps: ClassVar[int] = 2
    own_words: ClassVar[Mapping[str, str]] = WHEELS_WORDS
    bodies: ClassVar[str] = ""
    """The model in this folder of what is beside the robot."""

    @property
    def xml(self) -> str:
        return merged(own_model("wheels"), own_model(self.bodies))

    def control(self, state: RobotState, action: jax.Array) -> jax.Array:
        """Velocities in the world: the speed over the floor is at most 1.5 m/s in each direction of the robot."""
        return jnp.append(turned(1.5 * action[:2], state.data.qpos[2]), 2.0 * action[2])


def hands(data: Data) -> list[jax.Array]:
    """Where the middles of the left and the right hand are (2,), in m."""
    return [data.qpos[:2] + turned(jnp.array(hand), data.qpos[2]) for hand in HANDS]
