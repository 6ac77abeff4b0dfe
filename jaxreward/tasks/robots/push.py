"""Panda push: push a puck over a table to where it is to lie, without hitting it (after ManiSkill's PushCube)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Subgoals, Vocabulary
from jaxreward.tasks.metrics import WithExtraMetrics
from jaxreward.tasks.robots.panda_base import PANDA_WORDS, PandaTask, with_bodies
from jaxreward.tasks.robots.physics import Data, own_model
from jaxreward.tasks.robots.pushing import Pushing
from jaxreward.tasks.robots.state import RobotState, RobotView

NEAR = 0.05
"""Metres from the goal within which the puck is on it."""
GENTLE = 0.25
"""Metres a second up to which the puck is pushed gently."""
TOUCHING = 0.02
"""Metres between fingers and puck up to which they count as touching it."""
STILL = 0.02
"""Metres up to which the puck has not moved."""
TABLE = 0.14
"""Height of the puck's middle (m)."""
PUCK = ((0.44, -0.05), (0.5, 0.05))
"""Where the puck begins: lowest and highest x and y (m)."""
GOAL = ((0.6, -0.1), (0.7, 0.1))
"""Where it is to lie."""
RADII = 0.04 + 0.009
"""Of the puck and of a finger together (m)."""
POSE_NOISE = 0.02
"""Half the width of the uniform noise on the seven joints at reset (rad)."""


@dataclass(frozen=True)
class PandaPush(PandaTask):
    """A Panda-like arm that must push a puck to a place on a table.

    Args:
        horizon: control steps (0.02 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 300

    name = "panda-push"
    state_notes = (
        "qpos is [7 joint angles (rad), 2 finger positions (m), puck x and y (m)], qvel their velocities; ctrl is\n"
        "[7 joint angles, finger position] that the motors are asked for. Each finger is 0 (closed) to 0.04 m (open)\n"
        "from the middle. Lengths are in metres, in the frame of the arm's base: x forward, y left, z up. The puck is\n"
        "upright, of radius 0.04 and height 0.08 m; it keeps upright and on the table, whose top is 0.1 m above the\n"
        "ground, and glides when it is hit: by a fifth of a metre for each metre a second. Fingers and palm touch it,\n"
        "as a capsule of that radius and 0.12 m high, without friction; nothing else collides. At the beginning the\n"
        "gripper is half open, points down, one finger beside the other along y, and is behind the puck, on the arm's\n"
        "side. A control step lasts 0.02 s."
    )
    own_words: ClassVar[Mapping[str, str]] = {
        **PANDA_WORDS,
        "info.puck_pos": "middle of the puck (m)",
        "info.puck_vel": "velocity of the puck (m/s): x, y",
        "info.goal_pos": "where the puck is to lie (m), at the height of its middle; constant within an episode",
        "info.start_pos": "where the puck was at the beginning (m)",
        "info.left_tip": "tip of the left finger (m)",
        "info.right_tip": "tip of the right finger (m)",
        "info.approach": "direction in which the fingers point; (0, 0, -1) is down",
        "info.gripper_puck_dist": "distance of gripper and middle of the puck (m)",
        "info.puck_goal_dist": f"distance of puck and goal (m); the goal is less than {NEAR}",
        "info.touch_gap": "gap between the nearer fingertip and the side of the puck (m); at most 0 when they touch",
    }

    @property
    def description(self) -> str:
        return (
            "A robot arm with seven joints and a gripper (Franka Emika Panda) pushes a puck over a table to a "
            "goal that differs from episode to episode, 0.1 to 0.3 m away. An episode lasts "
            f"{0.02 * self.horizon:g} seconds and succeeds if the puck is within {NEAR} m of the goal at some moment."
        )

    @property
    def xml(self) -> str:
        return with_bodies(own_model("panda"), own_model("push"))

    def start(self, key: jax.Array) -> Data:
        """The joints of the arm near home, the motors asked for just that; puck and goal drawn uniformly."""
        home = jax.tree.map(jnp.asarray, self.home)
        pose, puck, goal = jax.random.split(key, 3)
        noise = jax.random.uniform(pose, (7,), minval=-POSE_NOISE, maxval=POSE_NOISE)
        place, aim = (
            jax.random.uniform(k, (2,), minval=jnp.array(low), maxval=jnp.array(high))
            for k, (low, high) in ((puck, PUCK), (goal, GOAL))
        )
        return home.replace(
            qpos=home.qpos.at[:7].add(noise).at[9:11].set(place), ctrl=home.ctrl.at[:7].add(noise),
            mocap_pos=home.mocap_pos.at[0, :2].set(aim),
        )  # fmt: skip

    def sensed(self, data: Data) -> dict[str, Any]:
        frames = self.physics.frames(data)
        gripper, puck = self.site(frames, "gripper"), self.site(frames, "puck")
        tips = [self.site(frames, "left_tip"), self.site(frames, "right_tip")]
        goal = jnp.append(data.mocap_pos[0, :2], TABLE)
        gaps = jnp.stack([_gap(tip - puck) for tip in tips])
        return {
            "gripper_pos": gripper, "puck_pos": puck, "puck_vel": data.qvel[9:11], "goal_pos": goal,
            "left_tip": tips[0], "right_tip": tips[1],
            "approach": frames.xmat[self.physics.model.body("hand").id].reshape(3, 3)[:, 2],
            "gripper_puck_dist": jnp.linalg.norm(gripper - puck), "puck_goal_dist": jnp.linalg.norm(puck - goal),
            "touch_gap": gaps.min(),
        }  # fmt: skip

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        info = super().first_info(data, key)
        return info | {"start_pos": info["puck_pos"]}

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics are how well each subtask of the instruction was done (`Pushing.score`)."""
        return Pushing("puck", NEAR, _touches, GENTLE, STILL).score()

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.push_fragments import SUBTASK_TERMS

        said = {
            "reach": ("bring the gripper to the puck", "touched"),
            "push": ("stay in touch with the puck while it moves: push it, and do not hit it", "pushed"),
            "bring": ("bring the puck onto the goal", "brought"),
            "gently": (f"push gently: the puck never moves faster than {GENTLE} m/s", "gentle"),
        }
        return Instruction.of(
            "Push the puck over the table onto the green goal. Stay in touch with it all the way and push "
            "gently; do not hit it so that it glides there.",
            said,
            SUBTASK_TERMS,
        )

    def default_observation(self, view: RobotView) -> jax.Array:
        """Joints and puck, what the motors are asked for, gripper, and the ways from it to the puck and from there to
        the goal; (39,)."""
        info, data = view.info, view.data
        ways = info["puck_pos"] - info["gripper_pos"], info["goal_pos"] - info["puck_pos"]
        return jnp.concatenate([data.qpos, data.qvel, data.ctrl, info["gripper_pos"], *ways])

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the puck within 0.05 m of the goal."""
        return (next_view.info["puck_goal_dist"] < NEAR).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """The gripper behind the puck, as seen from the goal, and at its height; the puck nearer to the goal, at two
        scales; speed above 0.25 m/s and actions cost."""
        info, before = next_view.info, view.info
        way = info["goal_pos"] - info["puck_pos"]
        left = info["puck_goal_dist"]
        behind = info["puck_pos"] - 0.04 * way / jnp.maximum(left, 1e-3) - info["gripper_pos"]
        away = jnp.linalg.norm(behind)
        reach = 0.5 * jnp.exp(-5.0 * away) + 0.5 * jnp.exp(-((away / 0.04) ** 2))
        nearer = 100.0 * (before["puck_goal_dist"] - left)
        near = 2.0 * jnp.exp(-((left / 0.06) ** 2)) + (left < NEAR)
        fast = jnp.maximum(jnp.linalg.norm(info["puck_vel"]) - GENTLE, 0.0)
        return reach + nearer + near - 10.0 * fast - 0.01 * jnp.sum(action**2)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.push_fragments import vocabulary

        return vocabulary(self.horizon)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.robots.push_fragments import SUBGOALS

        return SUBGOALS


def _gap(away: jax.Array) -> jax.Array:
    """Metres between a finger, whose tip is `away` (3,) from the middle of the puck, and its side; a tip above or below
    the puck does not touch it."""
    beside, over = jnp.linalg.norm(away[:2]) - RADII, jnp.abs(away[2]) - 0.04
    return jnp.where(over > 0.0, jnp.maximum(beside, over + TOUCHING), beside)


def _touches(state: RobotState) -> jax.Array:
    return state.info["touch_gap"] < TOUCHING
