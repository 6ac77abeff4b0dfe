"""Panda cabinet: pull a drawer open by its handle (RF-Agent's FrankaCabinet, appendix A; IsaacGymEnvs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Measure, Subgoals, Vocabulary
from jaxreward.tasks.metrics import Mean, Reached, WithExtraMetrics
from jaxreward.tasks.robots.manner_metrics import KeptShare, Most, Slow
from jaxreward.tasks.robots.panda_base import PANDA_WORDS, PandaTask, with_bodies
from jaxreward.tasks.robots.physics import Data, own_model
from jaxreward.tasks.robots.state import RobotState, RobotView

OPEN = 0.39
"""Metres that the drawer must be out, as in IsaacGymEnvs."""
GENTLE = 0.3
"""Metres a second up to which the drawer is pulled gently."""
AT_HANDLE = 0.08
"""Metres from the gripper to the middle of the handle within which it is at it."""
STILL = 0.02
"""Metres up to which the drawer has not moved."""
POSE_NOISE = 0.125
"""Half the width of the uniform noise on the seven joints at reset (rad), as in IsaacGymEnvs."""


@dataclass(frozen=True)
class PandaCabinet(PandaTask):
    """A Panda-like arm that must open a drawer.

    Args:
        horizon: control steps (0.02 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 400

    name = "panda-cabinet"
    state_notes = (
        "qpos is [7 joint angles (rad), 2 finger positions (m), drawer position (m)], qvel their velocities; ctrl is\n"
        "[7 joint angles, finger position] that the motors are asked for. Each finger is 0 (closed) to 0.04 m (open)\n"
        "from the middle. Lengths are in metres, in the frame of the arm's base: x forward, y left, z up. The handle\n"
        "is a bar of radius 0.01 m along y, from 0.09 m right to 0.09 m left, 0.22 m above the ground and, with the\n"
        "drawer shut, at x = 0.72; the drawer's front is 0.07 m behind it. The drawer opens towards the arm (-x), by\n"
        "up to 0.45 m. Fingers and palm touch the handle, without friction; nothing else collides. At the beginning\n"
        "the gripper is open and points down, one finger behind the other along x. A control step lasts 0.02 s."
    )
    own_words: ClassVar[Mapping[str, str]] = {
        **PANDA_WORDS,
        "info.drawer_pos": f"how far the drawer is out (m), 0 to 0.45; the goal is more than {OPEN}",
        "info.drawer_vel": "velocity of the drawer (m/s), positive when it opens",
        "info.handle_pos": "middle of the handle (m)",
        "info.left_tip": "tip of the left finger, at the beginning the one farther from the arm (m)",
        "info.right_tip": "tip of the right finger, at the beginning the one nearer to the arm (m)",
        "info.approach": "direction in which the fingers point; (0, 0, -1) is down",
        "info.gripper_handle_dist": "distance of gripper and middle of the handle (m)",
    }

    @property
    def description(self) -> str:
        return (
            "A robot arm with seven joints and a gripper (Franka Emika Panda) opens a drawer by its handle, a bar in "
            f"front of it. An episode lasts {0.02 * self.horizon:g} seconds and succeeds if the drawer is more than "
            f"{OPEN} m out at some moment."
        )

    @property
    def xml(self) -> str:
        return with_bodies(own_model("panda"), own_model("cabinet"))

    def start(self, key: jax.Array) -> Data:
        """The joints of the arm near home, the motors asked for just that; the drawer shut."""
        home = jax.tree.map(jnp.asarray, self.home)
        noise = jax.random.uniform(key, (7,), minval=-POSE_NOISE, maxval=POSE_NOISE)
        return home.replace(qpos=home.qpos.at[:7].add(noise), ctrl=home.ctrl.at[:7].add(noise))

    def sensed(self, data: Data) -> dict[str, Any]:
        frames = self.physics.frames(data)
        gripper, handle = self.site(frames, "gripper"), self.site(frames, "handle")
        return {
            "drawer_pos": data.qpos[9], "drawer_vel": data.qvel[9], "gripper_pos": gripper, "handle_pos": handle,
            "left_tip": self.site(frames, "left_tip"), "right_tip": self.site(frames, "right_tip"),
            "approach": frames.xmat[self.physics.model.body("hand").id].reshape(3, 3)[:, 2],
            "gripper_handle_dist": jnp.linalg.norm(gripper - handle),
        }  # fmt: skip

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics are the farthest and the mean position of the drawer (m), and how well each subtask of
        the instruction was done, in [0, 1]."""
        length = Measure(name="drawer position", unit="m", rate=False)
        mean = Mean(lambda _, action, state: _out(state), self.horizon, length)
        return WithExtraMetrics(
            Reached(lambda state: _out(state) > OPEN),
            {"farthest": Most(_out), "mean_position": mean, "reached": Reached(_at_handle),
             "held": KeptShare(_out, kept=_between, least=STILL),
             "pulled": Most(_out, 1.0 / OPEN), "gentle": Slow(_speed, _out, GENTLE, STILL)},
        )  # fmt: skip

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.cabinet_fragments import SUBTASK_TERMS

        said = {
            "reach": ("bring the gripper to the handle", "reached"),
            "hold": ("keep the handle between the two fingers while the drawer moves", "held"),
            "pull": (f"pull the drawer {OPEN} m out", "pulled"),
            "gently": (f"pull gently: the drawer never moves faster than {GENTLE} m/s", "gentle"),
        }
        return Instruction.of(
            "Reach for the handle, put a finger on either side of it, and pull the drawer open with the handle "
            "between the fingers, gently, without flinging it open.",
            said,
            SUBTASK_TERMS,
        )

    def default_observation(self, view: RobotView) -> jax.Array:
        """Joints and drawer, what the motors are asked for, gripper, handle and the way between them; (37,)."""
        info, data = view.info, view.data
        way = info["handle_pos"] - info["gripper_pos"]
        return jnp.concatenate([data.qpos, data.qvel, data.ctrl, info["gripper_pos"], info["handle_pos"], way])

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the drawer more than 0.39 m out."""
        return (next_view.info["drawer_pos"] > OPEN).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """The gripper at the handle at two scales, pointing down, a finger on either side, and the drawer out; actions
        cost a little."""
        info = next_view.info
        away = info["gripper_handle_dist"]
        reach = 0.5 * jnp.exp(-3.0 * away) + 0.5 * jnp.exp(-((away / 0.06) ** 2))
        pointing = -0.2 * info["approach"][2]
        across = (info["left_tip"] - info["handle_pos"])[0] > 0.0
        across &= (info["handle_pos"] - info["right_tip"])[0] > 0.0
        around = 0.3 * across * (away < 0.06)
        out = 10.0 * info["drawer_pos"] + (info["drawer_pos"] > OPEN)
        return reach + pointing + around + out - 0.01 * jnp.sum(action**2)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.cabinet_fragments import vocabulary

        return vocabulary(self.horizon)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.robots.cabinet_fragments import SUBGOALS

        return SUBGOALS


def _at_handle(state: RobotState) -> jax.Array:
    return ~state.data.broken & (state.info["gripper_handle_dist"] < AT_HANDLE)


def _between(state: RobotState) -> jax.Array:
    """Whether the handle is between the fingers, and the gripper at it."""
    info = state.info
    astride = (info["left_tip"] - info["handle_pos"])[0] > 0.0
    astride &= (info["handle_pos"] - info["right_tip"])[0] > 0.0
    return _at_handle(state) & astride


def _speed(state: RobotState) -> jax.Array:
    """Of the drawer, either way (m/s); infinite where the simulation failed."""
    return jnp.where(state.data.broken, jnp.inf, jnp.abs(state.info["drawer_vel"]))


def _out(state: RobotState) -> jax.Array:
    """How far the drawer is out (m); 0 where the simulation failed."""
    return jnp.where(state.data.broken, 0.0, state.info["drawer_pos"])
