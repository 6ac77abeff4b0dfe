"""Quadruped velocity: follow commanded linear and yaw velocities (RF-Agent's Anymal, appendix A; IsaacGymEnvs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Measure, Vocabulary
from jaxreward.tasks.metrics import Mean, WithExtraMetrics
from jaxreward.tasks.option_checks import check_not_negative, invalid_option
from jaxreward.tasks.robots.go1_base import GO1_WORDS, UPRIGHT, Go1Task, down
from jaxreward.tasks.robots.physics import Data
from jaxreward.tasks.robots.state import RobotState, RobotView

FASTEST = (1.0, 0.5, 1.0)
"""The largest commands forward and to the left (m/s) and in yaw (rad/s); IsaacGymEnvs' Anymal, whose legs are longer,
has 2, 1 and 1."""
SCALES = (0.1, 5.0)
"""What these may be multiplied by."""
NEAR = 0.25
"""m/s and rad/s."""
POSE_NOISE = 0.1
"""Half the width of the uniform noise on the joints at reset (rad), and on all velocities (m/s, rad/s)."""


@dataclass(frozen=True)
class QuadrupedVelocity(Go1Task):
    """A Go1-like robot that must move at a velocity drawn for every episode.

    Args:
        speed_scale: by which the commands are multiplied.
        horizon: control steps (0.02 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    speed_scale: float = 1.0

    name = "quadruped-velocity"
    own_words: ClassVar[Mapping[str, str]] = GO1_WORDS | {
        "info.command": "velocities asked for, the same for all of an episode: forward, left (m/s), yaw (rad/s)",
        "info.command_error": "those velocities in the body less the true ones: forward, left (m/s), yaw (rad/s)",
    }

    def __post_init__(self) -> None:
        check_not_negative("speed_scale", self.speed_scale, SCALES[1])
        if self.speed_scale < SCALES[0]:
            raise invalid_option("speed_scale", f"speed_scale must be at least {SCALES[0]:g}, not {self.speed_scale}")
        super().__post_init__()

    @property
    def fastest(self) -> tuple[float, float, float]:
        """The largest commands: forward, left (m/s), yaw (rad/s)."""
        forward, left, yaw = (self.speed_scale * speed for speed in FASTEST)
        return forward, left, yaw

    @property
    def worst(self) -> float:
        """What a step counts as on which the robot is down, and the least that any step can count as.

        That of moving at top speed the opposite way: as bad as a robot that is up can do at the speeds it is asked
        for, so that no agent gains by falling.
        """
        return -sum((2.0 * speed) ** 2 for speed in self.fastest)

    @property
    def description(self) -> str:
        forward, left, yaw = self.fastest
        return (
            "A quadruped robot (Unitree Go1) on flat ground follows velocities that are chosen at random for every "
            f"episode: forward (up to {forward:g} m/s either way), to the left (up to {left:g} m/s either way) and in "
            f"yaw (up to {yaw:g} rad/s either way), all in the frame of its body. An episode lasts "
            f"{0.02 * self.horizon:g} seconds and is measured by minus the mean of the squared error of the horizontal "
            "velocity plus the squared error of the yaw rate. It ends when the robot has tipped over, and each step "
            f"missed counts as {self.worst:g}."
        )

    def start(self, key: jax.Array) -> Data:
        """Standing, nearly as at home."""
        joints, speeds = jax.random.split(key)
        home = jax.tree.map(jnp.asarray, self.home)
        noise = jax.random.uniform(joints, (12,), minval=-POSE_NOISE, maxval=POSE_NOISE)
        speed = jax.random.uniform(speeds, home.qvel.shape, minval=-POSE_NOISE, maxval=POSE_NOISE)
        return home.replace(qpos=home.qpos.at[7:].add(noise), qvel=speed)

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        key, draw = jax.random.split(key)
        command = jnp.array(self.fastest) * jax.random.uniform(draw, (3,), minval=-1.0, maxval=1.0)
        info = super().first_info(data, key)
        return info | {"command": command, "command_error": _error(command, info)}

    def next_info(self, state: RobotState, action: jax.Array, data: Data) -> dict[str, Any]:
        info = super().next_info(state, action, data)
        return info | {"command_error": _error(info["command"], info)}

    def score(self) -> WithExtraMetrics:
        """Minus the squared errors, averaged over all steps; extra metrics: `up_rate`, the fraction of steps that end
        up, and `tracking_rate`, that of steps with both errors below 0.25."""
        measure = Measure(name="minus squared velocity error", rate=False, worst=self.worst)
        error = Mean(lambda _, action, state: self._score(state), self.horizon, measure, missing=self.worst)
        up = Mean(lambda _, action, state: (~down(state.data)).astype(jnp.float32), self.horizon)
        near = Mean(lambda _, action, state: (_near(state.info) & ~down(state.data)).astype(jnp.float32), self.horizon)
        return WithExtraMetrics(error, {"up_rate": up, "tracking_rate": near})

    def _score(self, state: RobotState) -> jax.Array:
        score = -jnp.sum(state.info["command_error"] ** 2)
        return jnp.where(down(state.data), self.worst, jnp.maximum(score, self.worst))

    def default_observation(self, view: RobotView) -> jax.Array:
        """That of the quadruped, and the command; (48,)."""
        return jnp.concatenate([super().default_observation(view), view.info["command"]])

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends up, within 0.25 m/s and 0.25 rad/s of the command."""
        up = next_view.info["upvector"][2] >= UPRIGHT
        return (_near(next_view.info) & up).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """Both velocities within half a metre and half a radian a second, as in IsaacGymEnvs; level, tall, and in a
        pose near home; bouncing, rolling, torques and changes of the action cost a little."""
        info, data = next_view.info, next_view.data
        error = info["command_error"]
        moving = jnp.exp(-jnp.sum(error[:2] ** 2) / 0.25)
        turning = 0.5 * jnp.exp(-(error[2] ** 2) / 0.25)
        level = -jnp.sum(info["gravity"][:2] ** 2)
        tall = 0.2 * jnp.exp(-(((info["height"] - 0.27) / 0.05) ** 2))
        pose = -0.02 * jnp.sum((data.qpos[7:] - jnp.asarray(self.home.qpos)[7:]) ** 2)
        bouncing = -0.2 * info["local_linvel"][2] ** 2 - 0.02 * jnp.sum(info["gyro"][:2] ** 2)
        effort = -0.0001 * jnp.sum(data.actuator_force**2) - 0.01 * jnp.sum((action - view.info["last_act"]) ** 2)
        return moving + turning + level + tall + pose + bouncing + effort

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.quadruped_fragments import vocabulary

        return vocabulary(self.horizon)


def _error(command: jax.Array, info: Mapping[str, jax.Array]) -> jax.Array:
    """The command less what the body does (3,)."""
    return command - jnp.concatenate([info["local_linvel"][:2], info["gyro"][2:]])


def _near(info: Mapping[str, jax.Array]) -> jax.Array:
    error = info["command_error"]
    return (jnp.linalg.norm(error[:2]) < NEAR) & (jnp.abs(error[2]) < NEAR)
