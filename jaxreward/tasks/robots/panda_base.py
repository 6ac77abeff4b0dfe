"""Base of the tasks of the Panda-like arm: model, motors, gripper position and their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from xml.etree import ElementTree

import jax
import jax.numpy as jnp

from jaxreward.tasks.robots.mjcf import child, merged
from jaxreward.tasks.robots.mujoco_task import MuJoCoTask
from jaxreward.tasks.robots.physics import Data, own_model
from jaxreward.tasks.robots.state import RobotState

ACTION_SCALE = 0.04
_TOUCHING = {"type": "capsule", "rgba": "0.5 0.5 0.5 1"}
"""Attributes of geometries that can touch other bodies."""

PANDA_WORDS = {
    "data.qpos": "positions of the joints: see below",
    "data.qvel": "velocities of the joints",
    "data.ctrl": "positions asked of the motors",
    "data.actuator_force": "torques of the motors (N m), and the gripper's force (N)",
    "info.gripper_pos": "position of the gripper (m)",
    "info.prev_ctrl": "ctrl one step before",
    "action": "increments in [-1, 1]: the motors are asked for ctrl + 0.04 * action, within the joints' ranges",
}


@dataclass(frozen=True, kw_only=True)
class PandaTask(MuJoCoTask):
    """A task of the arm."""

    own_words: ClassVar[Mapping[str, str]] = PANDA_WORDS

    @property
    def xml(self) -> str:
        return own_model("panda")

    def control(self, state: RobotState, action: jax.Array) -> jax.Array:
        low, high = self.ctrl_range
        return jnp.clip(state.data.ctrl + ACTION_SCALE * action, low, high)

    def site(self, frames: Any, name: str) -> jax.Array:
        """Where a site of the model is in `frames` (3,), in m."""
        return frames.site_xpos[self.physics.model.site(name).id]

    def sensed(self, data: Data) -> dict[str, Any]:
        return {"gripper_pos": self.site(self.physics.frames(data), "gripper")}

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        return super().first_info(data, key) | {"prev_ctrl": data.ctrl}

    def next_info(self, state: RobotState, action: jax.Array, data: Data) -> dict[str, Any]:
        return super().next_info(state, action, data) | {"prev_ctrl": state.data.ctrl}


def with_bodies(arm: str, bodies: str) -> str:
    """The MJCF of the arm with other bodies instead of its target, their camera, contacts and keyframe, and with
    fingers and a palm that can touch them: the geometries `left_pad`, `right_pad` and `palm`."""
    root = ElementTree.fromstring(arm)
    world = child(root, "worldbody")
    for replaced in ("body[@name='target']", "camera"):
        world.remove(child(world, replaced))
    root.remove(child(root, "keyframe"))
    del child(root, "option/flag").attrib["contact"]
    for side in ("left", "right"):
        finger = child(root, f".//body[@name='{side}_finger']")
        # Inside of the finger's box; it touches what the closed fingers would meet in the middle.
        pad = {"name": f"{side}_pad", "fromto": "0 0.009 0.01 0 0.009 0.046", "size": "0.009"}
        ElementTree.SubElement(finger, "geom", pad | _TOUCHING)
        ElementTree.SubElement(finger, "site", {"name": f"{side}_tip", "pos": "0 0.009 0.055"})
    palm = {"name": "palm", "fromto": "0 -0.08 0.04 0 0.08 0.04", "size": "0.02"}
    ElementTree.SubElement(child(root, ".//body[@name='hand']"), "geom", palm | _TOUCHING)
    return merged(ElementTree.tostring(root, encoding="unicode"), bodies)
