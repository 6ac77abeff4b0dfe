"""Panda tracking: follow a moving target with the gripper (LIMEN, arXiv 2605.03408, sections 5.1 and A.1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxreward.errors import UserError
from jaxreward.records import Vocabulary
from jaxreward.tasks.robots.physics import Data, Impl, Physics, own_model
from jaxreward.tasks.robots.state import PLATFORM_OPTIONS, RobotState, RobotView, view_of
from jaxreward.tasks.task import Box

SUBSTEPS = 4
CONTROL_S = 0.02
ACTION_SCALE = 0.04
NEAR = 0.02
CENTRE = (0.45, 0.0, 0.18)
RADIUS = (0.10, 0.10, 0.07)
BASE_RATE = 0.35
"""Radians of the slowest target a second."""
RANGES = {"freq_x": (1.0, 3.0), "freq_y": (1.0, 3.0), "freq_z": (0.8, 2.0), "phase_x": (0.0, 2 * np.pi),
          "phase_y": (0.0, 2 * np.pi)}  # fmt: skip


class _Course(struct.PyTreeNode):
    """The sum of distances (m), the steps taken, and those with a small running mean."""

    total: jax.Array
    steps: jax.Array
    good: jax.Array


@dataclass(frozen=True)
class TrackingMetric:
    """Success: the mean distance of gripper and target over the whole episode is below 0.02 m.

    Reported beside, `running_success`: the fraction of all steps on which the mean so far is below 0.02 m, which is
    what LIMEN's reference implementation measures; and `mean_distance` (m).
    """

    horizon: int
    names: tuple[str, ...] = ("running_success", "mean_distance")

    def init(self) -> _Course:
        return _Course(total=jnp.zeros(()), steps=jnp.zeros(()), good=jnp.zeros(()))

    def update(self, acc: _Course, state: RobotState, action: jax.Array, next_state: RobotState) -> _Course:
        total, steps = acc.total + next_state.info["gripper_target_dist"], acc.steps + 1.0
        return _Course(total=total, steps=steps, good=acc.good + (total / steps < NEAR))

    def value(self, acc: _Course) -> jax.Array:
        return ((acc.steps >= self.horizon) & (acc.total / self.horizon < NEAR)).astype(jnp.float32)

    def also(self, acc: _Course) -> jax.Array:
        return jnp.stack([acc.good / self.horizon, acc.total / jnp.maximum(acc.steps, 1.0)])


@dataclass(frozen=True)
class PandaTracking:
    """A Panda-like arm whose gripper must follow a target on a smooth closed course.

    Args:
        speed_scale: by which the target's speed is multiplied.
        radius_scale: by which the size of its course is multiplied.
        horizon: control steps (0.02 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    speed_scale: float = 1.0
    radius_scale: float = 1.0
    horizon: int = 500
    impl: Impl = "jax"

    name = "panda-tracking"
    state_notes = (
        "qpos is [7 joint angles (rad), 2 finger positions (m)], qvel their velocities; ctrl is [7 joint angles,\n"
        "finger position] that the motors are asked for. The target moves as x = 0.45 + rx sin(w freq_x t + phase_x),\n"
        "y = ry sin(w freq_y t + phase_y), z = 0.18 + rz sin(w freq_z t); info['target_vel'] is its velocity.\n"
        "Lengths are in metres, in the frame of the arm's base: x forward, y left, z up.\n"
        "A control step lasts 0.02 s."
    )

    def __post_init__(self) -> None:
        for name in ("speed_scale", "radius_scale"):
            if not 0 <= getattr(self, name) < np.inf:
                raise UserError(f"{name} must be a number that is not negative, not {getattr(self, name)}")
        if self.horizon < 1:
            raise UserError(f"horizon must be at least 1 step, not {self.horizon}")

    @property
    def description(self) -> str:
        return (
            "A robot arm with seven joints (Franka Emika Panda) follows a moving target with its gripper. The target "
            "moves in three dimensions on a smooth course that differs from episode to episode. An episode lasts "
            f"{CONTROL_S * self.horizon:g} seconds and succeeds if the distance between gripper and target is below "
            "0.02 m on average, the way to the target at the beginning included."
        )

    @property
    def state_words(self) -> Mapping[str, str]:
        return {
            "data.qpos": "positions of the joints: see below",
            "data.qvel": "velocities of the joints",
            "data.ctrl": "positions asked of the motors",
            "data.actuator_force": "torques of the motors (N m), and the gripper's force (N)",
            "info.target_pos": "position of the target (m)",
            "info.target_vel": "velocity of the target (m/s)",
            "info.gripper_pos": "position of the gripper (m)",
            "info.gripper_target_dist": "distance of gripper and target (m)",
            **{f"info.traj_params.{name}": "parameter of the target's course" for name in RANGES},
            "info.prev_ctrl": "ctrl one step before",
            "info.step_count": "control steps taken",
            "info.tracking_steps": "steps so far on which the distance was below 0.02 m",
            "info.cumulative_tracking_error": "sum of the distances so far (m)",
            "info.rng": "the state of the simulator's random numbers",
            "action": "increments in [-1, 1]: the motors are asked for ctrl + 0.04 * action, within the joints' ranges",
        }

    @property
    def action_space(self) -> Box:
        return Box((8,))

    @cached_property
    def physics(self) -> Physics:
        """The simulation."""
        return Physics(own_model("panda"), self.impl)

    @cached_property
    def _start(self) -> tuple[Data, np.ndarray]:
        """The state at reset and where the gripper is then."""
        home = self.physics.key("home")
        return home, self.physics.on_host(home).site("gripper").xpos.astype(np.float32)

    def compiler_options(self, platform: str) -> Mapping[str, Any]:
        return PLATFORM_OPTIONS.get(platform, {})

    def reset(self, key: jax.Array) -> RobotState:
        home, gripper = self._start
        key, draw = jax.random.split(key)
        params = {
            name: jax.random.uniform(k, (), minval=low, maxval=high)
            for (name, (low, high)), k in zip(RANGES.items(), jax.random.split(draw, len(RANGES)), strict=True)
        }
        target, velocity = self._target(params, jnp.zeros(()))
        data = jax.tree.map(jnp.asarray, home).replace(mocap_pos=target[None])
        gripper = jnp.asarray(gripper)
        info = {
            "target_pos": target, "target_vel": velocity, "gripper_pos": gripper,
            "gripper_target_dist": jnp.linalg.norm(gripper - target), "traj_params": params, "prev_ctrl": data.ctrl,
            "step_count": jnp.zeros((), jnp.int32), "tracking_steps": jnp.zeros((), jnp.int32),
            "cumulative_tracking_error": jnp.zeros(()), "rng": jax.random.key_data(key),
        }  # fmt: skip
        return RobotState(data, info)

    def step(self, state: RobotState, action: jax.Array) -> RobotState:
        info, before = state.info, state.data
        low, high = jnp.asarray(self.physics.model.actuator_ctrlrange.T, jnp.float32)
        ctrl = jnp.clip(before.ctrl + ACTION_SCALE * jnp.clip(action, -1.0, 1.0), low, high)
        data = self.physics.step(before, ctrl, SUBSTEPS)
        count = info["step_count"] + 1
        target, velocity = self._target(info["traj_params"], count * CONTROL_S)
        gripper = self.physics.frames(data).site_xpos[self.physics.model.site("gripper").id]
        distance = jnp.linalg.norm(gripper - target)
        following = {
            "target_pos": target, "target_vel": velocity, "gripper_pos": gripper, "gripper_target_dist": distance,
            "traj_params": info["traj_params"], "prev_ctrl": before.ctrl, "step_count": count,
            "tracking_steps": info["tracking_steps"] + (distance < NEAR),
            "cumulative_tracking_error": info["cumulative_tracking_error"] + distance, "rng": info["rng"],
        }  # fmt: skip
        return RobotState(data.replace(mocap_pos=target[None]), following)

    def _target(self, params: Mapping[str, jax.Array], seconds: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Position (3,) and velocity (3,) of the target."""
        rate = BASE_RATE * self.speed_scale * jnp.stack([params["freq_x"], params["freq_y"], params["freq_z"]])
        phase = rate * seconds + jnp.stack([params["phase_x"], params["phase_y"], jnp.zeros(())])
        radius = self.radius_scale * jnp.array(RADIUS)
        return jnp.array(CENTRE) + radius * jnp.sin(phase), radius * rate * jnp.cos(phase)

    def terminated(self, state: RobotState) -> jax.Array:
        return state.data.broken

    def view(self, state: RobotState) -> RobotView:
        return view_of(state)

    def score(self) -> TrackingMetric:
        return TrackingMetric(self.horizon)

    def default_observation(self, view: RobotView) -> jax.Array:
        """Joints, gripper, target and what the motors are asked for; (40,)."""
        info, data = view.info, view.data
        return jnp.concatenate(
            [data.qpos, data.qvel, data.ctrl, info["gripper_pos"], info["target_pos"], info["target_vel"],
             info["target_pos"] - info["gripper_pos"], info["gripper_target_dist"][None],
             info["step_count"][None] / 500.0]
        )  # fmt: skip

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends within 0.02 m of the target."""
        return (next_view.info["gripper_target_dist"] < NEAR).astype(jnp.float32)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.panda_fragments import vocabulary

        return vocabulary()

    def draw(self, state: RobotState) -> np.ndarray:
        return self.physics.draw(state.data, "beside")
