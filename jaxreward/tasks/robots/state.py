"""The state of robots' tasks, `data` and `info`, and its view for programs."""

from __future__ import annotations

from typing import Any

import jax
from flax import struct

from jaxreward.tasks.random_keys import without_keys
from jaxreward.tasks.robots.physics import Data


class RobotState(struct.PyTreeNode):
    """The simulation, and arrays of the task by name in `info`."""

    data: Data
    info: dict[str, Any]


class DataView(struct.PyTreeNode):
    """`state.data` of a program."""

    qpos: jax.Array
    qvel: jax.Array
    ctrl: jax.Array
    actuator_force: jax.Array


class RobotView(struct.PyTreeNode):
    """`state` of a program."""

    data: DataView
    info: dict[str, Any]


def view_of(state: RobotState) -> RobotView:
    """The part of a state that programs may read: random keys would foretell what is drawn from them."""
    d = state.data
    return RobotView(DataView(d.qpos, d.qvel, d.ctrl, d.actuator_force), without_keys(state.info))
