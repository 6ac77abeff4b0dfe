"""Base of the tasks in MuJoCo XLA; a subclass adds its description, reset and metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.records import Vocabulary
from jaxreward.tasks.option_checks import check_choice, check_horizon
from jaxreward.tasks.robots.physics import IMPLS, Data, Impl, InvalidModel, Physics, rotate, rotate_back
from jaxreward.tasks.robots.state import RobotState, RobotView, view_of
from jaxreward.tasks.simulation import ONLY_FAILURES, UNFUSED, max_envs_per_step
from jaxreward.tasks.task import Box

WORDS = {
    "data.qpos": "positions of the joints",
    "data.qvel": "velocities of the joints",
    "data.ctrl": "last commands to the actuators",
    "data.actuator_force": "forces of the actuators",
    "info.step_count": "control steps taken",
}
"""Descriptions of the arrays that every such task has."""

ATTITUDE_WORDS = {
    "info.gyro": "angular velocity in the body (rad/s)",
    "info.gravity": "direction of gravity in the body; (0, 0, -1) when upright",
    "info.local_linvel": "linear velocity in the body (m/s): forward, left, up",
    "info.upvector": "the body's upward axis in the world; (0, 0, 1) when upright",
    "info.heading": "direction of the body's forward axis in the world (rad)",
}
"""Descriptions of what `attitude` returns."""


@dataclass(frozen=True, kw_only=True)
class MuJoCoTask:
    """A task on a MuJoCo model.

    A subclass has `name`, `description`, `xml`, `score`, `default_observation` and `sparse_reward`, describes its
    arrays in `own_words`, and overrides the methods below where it differs.

    Args:
        horizon: control steps of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 500
    impl: Impl = "jax"

    substeps: ClassVar[int] = 4
    """Simulation steps of a control step."""
    reset_noise: ClassVar[float] = 0.01
    """Half the width of the uniform noise on positions and velocities at reset."""
    camera: ClassVar[str] = "beside"
    """The camera that renders pictures; where the model lacks it, they show the whole model."""
    pushed: ClassVar[str] = ""
    """The body that `outside_force` acts on."""
    state_notes = ""
    own_words: ClassVar[Mapping[str, str]] = {}
    """Descriptions of arrays of the view by path, and of `action`, added to `WORDS` or replacing its entries."""

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        check_choice("impl", self.impl, IMPLS)

    @property
    def xml(self) -> str:
        """The MJCF."""
        raise NotImplementedError

    @cached_property
    def physics(self) -> Physics:
        """The simulation."""
        made = Physics(self.xml, self.impl)
        if type(self).control is MuJoCoTask.control:  # raises before anything is compiled
            _ctrl_range(made.model)
        return made

    @property
    def control_s(self) -> float:
        """Seconds of a control step."""
        return self.physics.timestep * self.substeps

    @property
    def action_space(self) -> Box:
        return Box((self.physics.model.nu,))

    @property
    def state_words(self) -> Mapping[str, str]:
        return {**WORDS, **self.own_words}

    def compiler_options(self, platform: str) -> Mapping[str, Any]:
        return UNFUSED if platform == "cpu" else {}

    def max_envs_per_step(self, platform: str) -> int:
        return max_envs_per_step(platform) if self.impl == "jax" else 0  # in Warp, environments share contact buffers

    @property
    def ends_early(self) -> str:
        """When an episode ends before the horizon, in words; none where `terminated` is a subclass's own."""
        return ONLY_FAILURES if type(self).terminated is MuJoCoTask.terminated else ""

    @property
    def ctrl_range(self) -> tuple[jax.Array, jax.Array]:
        """The control ranges of the actuators: lows (nu,) and highs (nu,).

        Raises:
            InvalidModel: an actuator without limits.
        """
        low, high = jnp.asarray(_ctrl_range(self.physics.model), jnp.float32)
        return low, high

    @cached_property
    def home(self) -> Data:
        """The keyframe `home` of the model, or its own zero, as numpy arrays."""
        return self.physics.home()

    def start(self, key: jax.Array) -> Data:
        """The simulation at a reset: `home` with noise on every position and velocity; quaternions stay of length 1."""
        home = jax.tree.map(jnp.asarray, self.home)
        at, speed = jax.random.split(key)
        noise = lambda k, x: x + jax.random.uniform(k, x.shape, minval=-1.0) * self.reset_noise  # noqa: E731
        qpos = noise(at, home.qpos)
        for first in self.physics.quaternions:
            quat = qpos[first : first + 4]
            qpos = qpos.at[first : first + 4].set(quat / jnp.linalg.norm(quat))
        return home.replace(qpos=qpos, qvel=noise(speed, home.qvel))

    def control(self, state: RobotState, action: jax.Array) -> jax.Array:
        """Commands to the actuators: -1 and 1 of `action` are the ends of their ranges."""
        low, high = self.ctrl_range
        return low + 0.5 * (action + 1.0) * (high - low)

    def outside_force(self, state: RobotState) -> jax.Array | None:
        """The force on the body `pushed` all through the step from `state`, (3,) in N."""
        return None

    def sensed(self, data: Data) -> dict[str, Any]:
        """The entries of `info` that follow from the simulation alone."""
        return {}

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        """`info` at a reset; `key` is for random draws, at the reset or, stored, later."""
        return {"step_count": jnp.zeros((), jnp.int32)} | self.sensed(data)

    def next_info(self, state: RobotState, action: jax.Array, data: Data) -> dict[str, Any]:
        """`info` after a step that led from `state` to `data`."""
        return state.info | {"step_count": state.info["step_count"] + 1} | self.sensed(data)

    def reset(self, key: jax.Array) -> RobotState:
        start, info = jax.random.split(key)
        data = self.start(start)
        return RobotState(data, self.first_info(data, info))

    def step(self, state: RobotState, action: jax.Array) -> RobotState:
        action = jnp.clip(action, -1.0, 1.0)
        ctrl, force = self.control(state, action), self.outside_force(state)
        data = self.physics.step(state.data, ctrl, self.substeps, force, self.pushed)
        return RobotState(data, self.next_info(state, action, data))

    def terminated(self, state: RobotState) -> jax.Array:
        return state.data.broken

    def view(self, state: RobotState) -> RobotView:
        return view_of(state)

    def vocabulary(self) -> Vocabulary:
        return Vocabulary()

    def draw(self, state: RobotState) -> np.ndarray:
        return self.physics.draw(state.data, self.camera)


def _ctrl_range(model: Any) -> np.ndarray[Any, Any]:
    """Lower and upper limits of the actuators' controls (2, nu)."""
    for number in range(model.nu):
        if not model.actuator_ctrllimited[number]:
            what = f"actuator '{model.actuator(number).name}'" if model.actuator(number).name else f"actuator {number}"
            raise InvalidModel(
                f"{what} has no ctrlrange, so actions from -1 to 1 cannot be mapped onto it: give it one, or replace "
                "`control`",
                actuator=number,
            )
    return model.actuator_ctrlrange.T


def attitude(data: Data) -> dict[str, jax.Array]:
    """Readings of an inertial sensor and a compass on a body whose free joint comes first in the model."""
    quat = unit_quat(data)
    forward = rotate(quat, jnp.array([1.0, 0.0, 0.0]))
    return {
        "gyro": data.qvel[3:6], "gravity": rotate_back(quat, jnp.array([0.0, 0.0, -1.0])),
        "local_linvel": rotate_back(quat, data.qvel[:3]), "upvector": rotate(quat, jnp.array([0.0, 0.0, 1.0])),
        "heading": jnp.arctan2(forward[1], forward[0]),
    }  # fmt: skip


def unit_quat(data: Data) -> jax.Array:
    """The attitude of such a body as a unit quaternion (4,), real part first."""
    return data.qpos[3:7] / jnp.maximum(jnp.linalg.norm(data.qpos[3:7]), 1e-6)
