"""Panda tracking: follow a moving target with the gripper (LIMEN, arXiv 2605.03408, sections 5.1 and A.1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.records import Vocabulary
from jaxreward.tasks.metrics import MeanBelow
from jaxreward.tasks.option_checks import check_not_negative
from jaxreward.tasks.robots.panda_base import PANDA_WORDS, PandaTask
from jaxreward.tasks.robots.physics import Data
from jaxreward.tasks.robots.state import RobotState, RobotView

CONTROL_S = 0.02
NEAR = 0.02
CENTRE = (0.45, 0.0, 0.18)
RADIUS = (0.10, 0.10, 0.07)
BASE_RATE = 0.35
"""Radians of the slowest target a second."""
WIDEST, FASTEST = 2.0, 5.0
"""The largest `radius_scale`, with which the target stays above the ground and within reach of the arm, and the largest
`speed_scale`, with which it moves at up to 0.8 m/s on a path of the usual size; joints turn at up to 2 rad/s."""
RANGES = {"freq_x": (1.0, 3.0), "freq_y": (1.0, 3.0), "freq_z": (0.8, 2.0), "phase_x": (0.0, 2 * np.pi),
          "phase_y": (0.0, 2 * np.pi)}  # fmt: skip


@dataclass(frozen=True)
class PandaTracking(PandaTask):
    """A Panda-like arm whose gripper must follow a target along a smooth closed path.

    Args:
        speed_scale: by which the target's speed is multiplied, at most 5.
        radius_scale: by which the size of its path is multiplied, at most 2.
        horizon: control steps (0.02 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    speed_scale: float = 1.0
    radius_scale: float = 1.0

    name = "panda-tracking"
    own_words: ClassVar[Mapping[str, str]] = {
        **PANDA_WORDS,
        "info.target_pos": "position of the target (m)",
        "info.target_vel": "velocity of the target (m/s)",
        "info.gripper_target_dist": "distance of gripper and target (m)",
        **{f"info.traj_params.{name}": "parameter of the target's course" for name in RANGES},
        "info.tracking_steps": "steps so far on which the distance was below 0.02 m",
        "info.cumulative_tracking_error": "sum of the distances so far (m)",
    }

    def __post_init__(self) -> None:
        check_not_negative("speed_scale", self.speed_scale, FASTEST)
        check_not_negative("radius_scale", self.radius_scale, WIDEST)
        super().__post_init__()

    @property
    def state_notes(self) -> str:  # type: ignore[override]
        x, y, z = (f"{self.radius_scale * radius:g}" for radius in RADIUS)
        rate = f"{BASE_RATE * self.speed_scale:g}"
        return (
            "qpos is [7 joint angles (rad), 2 finger positions (m)], qvel their velocities; ctrl is [7 joint angles,\n"
            "finger position] that the motors are asked for. The target moves as\n"
            f"x = {CENTRE[0]:g} + {x} sin({rate} freq_x t + phase_x), y = {y} sin({rate} freq_y t + phase_y),\n"
            f"z = {CENTRE[2]:g} + {z} sin({rate} freq_z t), t being the seconds since the beginning;\n"
            "info['target_vel'] is its velocity.\n"
            "Lengths are in metres, in the frame of the arm's base: x forward, y left, z up.\n"
            "A control step lasts 0.02 s."
        )

    @property
    def description(self) -> str:
        return (
            "A robot arm with seven joints (Franka Emika Panda) follows a moving target with its gripper. The target "
            "moves in three dimensions on a smooth course that differs from episode to episode. An episode lasts "
            f"{CONTROL_S * self.horizon:g} seconds and succeeds if the distance between gripper and target is below "
            "0.02 m on average, the way to the target at the beginning included."
        )

    def reset(self, key: jax.Array) -> RobotState:
        key, draw = jax.random.split(key)
        params = {
            name: jax.random.uniform(k, (), minval=low, maxval=high)
            for (name, (low, high)), k in zip(RANGES.items(), jax.random.split(draw, len(RANGES)), strict=True)
        }
        target, velocity = self._target(params, jnp.zeros(()))
        data = jax.tree.map(jnp.asarray, self.home).replace(mocap_pos=target[None])
        info = self.first_info(data, key)
        info |= {
            "target_pos": target, "target_vel": velocity, "traj_params": params,
            "gripper_target_dist": jnp.linalg.norm(info["gripper_pos"] - target),
            "tracking_steps": jnp.zeros((), jnp.int32), "cumulative_tracking_error": jnp.zeros(()),
        }  # fmt: skip
        return RobotState(data, info)

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        # The gripper's first position is a constant, computed by MuJoCo in double precision.
        begin = self.physics.on_host(self.home).site("gripper").xpos.astype(np.float32)
        return super().first_info(data, key) | {"rng": jax.random.key_data(key), "gripper_pos": jnp.asarray(begin)}

    def step(self, state: RobotState, action: jax.Array) -> RobotState:
        moved = super().step(state, action)
        return moved.replace(data=moved.data.replace(mocap_pos=moved.info["target_pos"][None]))

    def next_info(self, state: RobotState, action: jax.Array, data: Data) -> dict[str, Any]:
        info = super().next_info(state, action, data)
        target, velocity = self._target(info["traj_params"], info["step_count"] * CONTROL_S)
        distance = jnp.linalg.norm(info["gripper_pos"] - target)
        return info | {
            "target_pos": target, "target_vel": velocity, "gripper_target_dist": distance,
            "tracking_steps": info["tracking_steps"] + (distance < NEAR),
            "cumulative_tracking_error": info["cumulative_tracking_error"] + distance,
        }  # fmt: skip

    def _target(self, params: Mapping[str, jax.Array], seconds: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Position (3,) and velocity (3,) of the target."""
        rate = BASE_RATE * self.speed_scale * jnp.stack([params["freq_x"], params["freq_y"], params["freq_z"]])
        phase = rate * seconds + jnp.stack([params["phase_x"], params["phase_y"], jnp.zeros(())])
        radius = self.radius_scale * jnp.array(RADIUS)
        return jnp.array(CENTRE) + radius * jnp.sin(phase), radius * rate * jnp.cos(phase)

    def score(self) -> MeanBelow:
        """Success: the mean distance of gripper and target is below 0.02 m, and the simulation has not failed."""
        distance = lambda state: state.info["gripper_target_dist"]  # noqa: E731
        return MeanBelow(distance, lambda state: ~state.data.broken, self.horizon, NEAR, "mean_distance")

    def default_observation(self, view: RobotView) -> jax.Array:
        """Joints, gripper, target and what the motors are asked for; (40,)."""
        info, data = view.info, view.data
        return jnp.concatenate(
            [data.qpos, data.qvel, data.ctrl, info["gripper_pos"], info["target_pos"], info["target_vel"],
             info["target_pos"] - info["gripper_pos"], info["gripper_target_dist"][None],
             info["step_count"][None] / self.horizon]
        )  # fmt: skip

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends within 0.02 m of the target."""
        return (next_view.info["gripper_target_dist"] < NEAR).astype(jnp.float32)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.panda_fragments import vocabulary

        return vocabulary(self.horizon)
