"""Go1 push recovery: stand where you are, whatever pushes you (LIMEN, arXiv 2605.03408, sections 5.1 and A.1.2)."""

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
from jaxreward.tasks.robots.physics import Data, Impl, Physics, own_model, rotate, rotate_back
from jaxreward.tasks.robots.state import PLATFORM_OPTIONS, RobotState, RobotView, view_of
from jaxreward.tasks.task import Box

SUBSTEPS = 5
ACTION_SCALE = 0.5
PUSH_STEPS = 5
PUSH_RANGE = (150.0, 400.0)
UPRIGHT = 0.3
NEAR = 0.10


class _Course(struct.PyTreeNode):
    """The sum of displacements (m), the steps taken, those with a small running mean, and whether it is up still."""

    total: jax.Array
    steps: jax.Array
    good: jax.Array
    up: jax.Array


@dataclass(frozen=True)
class PushRecoveryMetric:
    """Success: up to the last step, with a mean horizontal displacement from the origin below 0.10 m.

    Reported beside, `running_success`: the fraction of all steps on which the robot is up and the mean so far is
    below 0.10 m, which is what LIMEN's reference implementation measures.
    """

    horizon: int
    names: tuple[str, ...] = ("running_success",)

    def init(self) -> _Course:
        return _Course(total=jnp.zeros(()), steps=jnp.zeros(()), good=jnp.zeros(()), up=jnp.ones((), bool))

    def update(self, acc: _Course, state: RobotState, action: jax.Array, next_state: RobotState) -> _Course:
        total = acc.total + jnp.linalg.norm(next_state.data.qpos[:2])
        steps, up = acc.steps + 1.0, acc.up & ~_down(next_state.data)
        good = acc.good + (up & (total / steps < NEAR))
        return _Course(total=total, steps=steps, good=good, up=up)

    def value(self, acc: _Course) -> jax.Array:
        return (acc.up & (acc.steps >= self.horizon) & (acc.total / self.horizon < NEAR)).astype(jnp.float32)

    def also(self, acc: _Course) -> jax.Array:
        return jnp.stack([acc.good / self.horizon])


@dataclass(frozen=True)
class Go1PushRecovery:
    """A Go1-like robot that must keep standing at the origin while it is pushed.

    Args:
        push_force_scale: by which the force of pushes is multiplied.
        push_interval: control steps (0.02 s) from one push to the next.
        horizon: control steps of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    push_force_scale: float = 1.0
    push_interval: int = 75
    horizon: int = 500
    impl: Impl = "jax"

    name = "go1-push-recovery"
    state_notes = (
        "The robot is a quadruped of 12.7 kg. Its joints are, for each of the legs FR, FL, RR, RL (front right, ...):\n"
        "abduction, hip, knee. The home pose is (0.1, 0.9, -1.8) for FR and RR and (-0.1, 0.9, -1.8) for FL and RL,\n"
        "with the trunk 0.278 m above the ground.\n"
        "qpos is [position x, y, z (m); orientation as a unit quaternion w, x, y, z; 12 joint angles (rad)]; qvel is\n"
        "[linear velocity in the world (m/s); angular velocity in the body (rad/s); 12 joint velocities (rad/s)].\n"
        "A control step lasts 0.02 s."
    )

    def __post_init__(self) -> None:
        if not 0 <= self.push_force_scale < np.inf:
            raise UserError(f"push_force_scale must be a number that is not negative, not {self.push_force_scale}")
        if self.push_interval <= PUSH_STEPS:
            raise UserError(
                f"push_interval must be more than the {PUSH_STEPS} steps of a push, not {self.push_interval}"
            )
        if self.horizon < 1:
            raise UserError(f"horizon must be at least 1 step, not {self.horizon}")

    @property
    def description(self) -> str:
        low, high = (force * self.push_force_scale for force in PUSH_RANGE)
        seconds = 0.02 * self.push_interval
        return (
            "A quadruped robot (Unitree Go1) stands on flat ground and is pushed from random sides, with "
            f"{low:.0f} to {high:.0f} N for 0.1 s every {seconds:g} s. It must not fall, and must stay where it "
            f"began: an episode succeeds if the robot is up for all of its {0.02 * self.horizon:g} seconds and its "
            "horizontal distance from the origin is below 0.10 m on average. An episode ends when the robot has "
            "tipped over."
        )

    @property
    def state_words(self) -> Mapping[str, str]:
        return {
            "data.qpos": "positions: see below",
            "data.qvel": "velocities: see below",
            "data.ctrl": "joint angles asked of the motors (rad)",
            "data.actuator_force": "torques of the motors (N m)",
            "info.gyro": "angular velocity in the body (rad/s)",
            "info.gravity": "direction of gravity in the body; (0, 0, -1) when upright",
            "info.local_linvel": "linear velocity in the body (m/s): forward, left, up",
            "info.upvector": "the body's upward axis in the world; (0, 0, 1) when upright",
            "info.pos_xy": "horizontal position, the origin being (0, 0) (m)",
            "info.height": "height of the trunk (m)",
            "info.heading": "direction of the body's forward axis in the world (rad)",
            "info.last_act": "the action before, zeros at first",
            "info.push_force": "the push in the world that acts in this step (N), zero between pushes",
            "info.step_count": "control steps taken",
            "info.push_count": "pushes begun",
            "info.cum_pos_error": "sum of the horizontal distances from the origin so far (m)",
            "info.rng": "the state of the simulator's random numbers",
            "action": "offsets of the 12 joints in [-1, 1]: the motors aim at the home pose + 0.5 * action (rad)",
        }

    @property
    def action_space(self) -> Box:
        return Box((12,))

    @cached_property
    def physics(self) -> Physics:
        """The simulation."""
        return Physics(own_model("go1"), self.impl)

    @cached_property
    def _home(self) -> Data:
        return self.physics.key("home")

    def compiler_options(self, platform: str) -> Mapping[str, Any]:
        return PLATFORM_OPTIONS.get(platform, {})

    def reset(self, key: jax.Array) -> RobotState:
        data = jax.tree.map(jnp.asarray, self._home)
        info = {
            "last_act": jnp.zeros(12), "push_force": jnp.zeros(3), "step_count": jnp.zeros((), jnp.int32),
            "push_count": jnp.zeros((), jnp.int32), "cum_pos_error": jnp.zeros(()), "rng": jax.random.key_data(key),
        }  # fmt: skip
        return RobotState(data, info | _sensed(data))

    def step(self, state: RobotState, action: jax.Array) -> RobotState:
        info = state.info
        count = info["step_count"]
        into = count % self.push_interval
        begins = (count >= self.push_interval) & (into == 0)
        key, draw = jax.random.split(jax.random.wrap_key_data(info["rng"]))
        force = jnp.where(begins, self._push(draw), info["push_force"])
        force = jnp.where((count >= self.push_interval) & (into < PUSH_STEPS), force, 0.0)
        action = jnp.clip(action, -1.0, 1.0)
        low, high = jnp.asarray(self.physics.model.actuator_ctrlrange.T, jnp.float32)
        ctrl = jnp.clip(jnp.asarray(self._home.ctrl) + ACTION_SCALE * action, low, high)
        data = self.physics.step(state.data, ctrl, SUBSTEPS, force, "trunk")
        following = {
            "last_act": action, "push_force": force, "step_count": count + 1, "push_count": info["push_count"] + begins,
            "cum_pos_error": info["cum_pos_error"] + jnp.linalg.norm(data.qpos[:2]),
            "rng": jnp.where(begins, jax.random.key_data(key), info["rng"]),
        }  # fmt: skip
        return RobotState(data, following | _sensed(data))

    def _push(self, key: jax.Array) -> jax.Array:
        """A force in a random horizontal direction, a tenth of it upwards too (N)."""
        strength, side = jax.random.uniform(key, (2,))
        force = self.push_force_scale * (PUSH_RANGE[0] + (PUSH_RANGE[1] - PUSH_RANGE[0]) * strength)
        angle = 2.0 * jnp.pi * side
        return force * jnp.stack([jnp.cos(angle), jnp.sin(angle), jnp.full((), 0.1)])

    def terminated(self, state: RobotState) -> jax.Array:
        return _down(state.data)

    def view(self, state: RobotState) -> RobotView:
        return view_of(state)

    def score(self) -> PushRecoveryMetric:
        return PushRecoveryMetric(self.horizon)

    def default_observation(self, view: RobotView) -> jax.Array:
        """Joint angles from home, joint velocities, the last action, and what an inertial sensor knows; (45,)."""
        info, data = view.info, view.data
        home = jnp.asarray(self._home.qpos)[7:]
        return jnp.concatenate(
            [info["local_linvel"], info["gyro"], info["gravity"], data.qpos[7:] - home, data.qvel[6:], info["last_act"]]
        )

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends up and within 0.10 m of the origin."""
        near = jnp.linalg.norm(next_view.info["pos_xy"]) < NEAR
        return (near & (next_view.info["upvector"][2] >= UPRIGHT)).astype(jnp.float32)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.go1_fragments import vocabulary

        return vocabulary()

    def draw(self, state: RobotState) -> np.ndarray:
        return self.physics.draw(state.data, "beside")


def _sensed(data: Data) -> dict[str, jax.Array]:
    """What sensors tell of a state."""
    quat = data.qpos[3:7] / jnp.maximum(jnp.linalg.norm(data.qpos[3:7]), 1e-6)
    forward = rotate(quat, jnp.array([1.0, 0.0, 0.0]))
    return {
        "gyro": data.qvel[3:6], "gravity": rotate_back(quat, jnp.array([0.0, 0.0, -1.0])),
        "local_linvel": rotate_back(quat, data.qvel[:3]), "upvector": rotate(quat, jnp.array([0.0, 0.0, 1.0])),
        "pos_xy": data.qpos[:2], "height": data.qpos[2], "heading": jnp.arctan2(forward[1], forward[0]),
    }  # fmt: skip


def _down(data: Data) -> jax.Array:
    """Whether the robot has tipped over, or the simulation failed."""
    return data.broken | ~(_sensed(data)["upvector"][2] >= UPRIGHT)
