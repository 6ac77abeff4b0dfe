"""Package push: a robot with two hands pushes a package over the floor to where it is to lie (after HumanoidBench's
Package, in the plane)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Subgoals, Vocabulary
from jaxreward.tasks.metrics import WithExtraMetrics
from jaxreward.tasks.robots.physics import Data
from jaxreward.tasks.robots.planar import outside, turned
from jaxreward.tasks.robots.pushing import Pushing
from jaxreward.tasks.robots.state import RobotState, RobotView
from jaxreward.tasks.robots.wheels_base import (
    HAND,
    TOUCHING,
    TRUNK,
    TURNED,
    WHEELS_NOTES,
    WHEELS_WORDS,
    WheelsTask,
    hands,
)

NEAR = 0.15
"""Metres from the goal within which the package is on it."""
GENTLE = 0.4
"""Metres a second up to which the package is pushed gently."""
STILL = 0.05
"""Metres up to which the package has not moved."""
PACKAGE = ((0.8, -0.3), (1.0, 0.3))
"""Where the package begins: lowest and highest x and y (m)."""
GOAL = ((1.8, -0.6), (2.2, 0.6))
"""Where it is to lie."""
HALF = (0.15, 0.22)
"""Half the sides of the package (m)."""
REACH = 0.52
"""Metres from the robot's middle to the package's when both hands are on its near side."""


@dataclass(frozen=True)
class PackagePush(WheelsTask):
    """A robot on wheels that must push a package to a place on the floor.

    Args:
        horizon: control steps (0.04 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 150

    name = "package-push"
    bodies: ClassVar[str] = "package"
    state_notes = (
        "qpos is [robot x, y (m) and heading (rad), package x, y (m) and heading (rad)], qvel their velocities. The\n"
        "package is 0.3 m deep (along its own x) and 0.44 m wide; it never tips over, and glides when it is hit: by a\n"
        "third of a metre for each metre a second. Hands and trunk touch it, the hands with friction. At the\n"
        "beginning the robot stands before it, and the goal is beyond it, 0.8 to 1.7 m from the package.\n"
    ) + WHEELS_NOTES
    own_words: ClassVar[Mapping[str, str]] = {
        **WHEELS_WORDS,
        "info.package_pos": "middle of the package (m): x, y",
        "info.package_vel": "velocity of the package (m/s): x, y",
        "info.goal_pos": "where the package is to lie (m): x, y; constant within an episode",
        "info.start_pos": "where the package was at the beginning (m): x, y",
        "info.local_package": "from the robot to the middle of the package, in the robot's frame (m): forward, left",
        "info.local_goal": "from the package to the goal, in the robot's frame (m): forward, left",
        "info.package_turn": "heading of the package less the robot's (rad)",
        "info.hand_gaps": "gaps between the left and the right hand and the package (m); at most 0 when they touch",
        "info.trunk_gap": "gap between trunk and package (m); at most 0 when they touch",
        "info.package_goal_dist": f"distance of package and goal (m); the goal is less than {NEAR}",
    }

    @property
    def description(self) -> str:
        return (
            "A robot on wheels with two hands pushes a package over the floor to a goal that differs from episode to "
            f"episode. An episode lasts {0.04 * self.horizon:g} seconds and succeeds if the package is within {NEAR} "
            "m of the goal at some moment."
        )

    def start(self, key: jax.Array) -> Data:
        """Robot and package a little turned; package and goal drawn uniformly."""
        home = jax.tree.map(jnp.asarray, self.home)
        turns, package, goal = jax.random.split(key, 3)
        robot_turn, package_turn = jax.random.uniform(turns, (2,), minval=-TURNED, maxval=TURNED)
        place, aim = (
            jax.random.uniform(k, (2,), minval=jnp.array(low), maxval=jnp.array(high))
            for k, (low, high) in ((package, PACKAGE), (goal, GOAL))
        )
        qpos = home.qpos.at[2].set(robot_turn).at[3:5].set(place).at[5].set(package_turn)
        return home.replace(qpos=qpos, mocap_pos=home.mocap_pos.at[0, :2].set(aim))

    def sensed(self, data: Data) -> dict[str, Any]:
        heading, place, turn = data.qpos[2], data.qpos[3:5], data.qpos[5]
        goal = data.mocap_pos[0, :2]
        gap = lambda point, radius: outside(turned(point - place, -turn), HALF) - radius  # noqa: E731
        return {
            "package_pos": place, "package_vel": data.qvel[3:5], "goal_pos": goal,
            "local_package": turned(place - data.qpos[:2], -heading), "local_goal": turned(goal - place, -heading),
            "package_turn": turn - heading, "hand_gaps": jnp.stack([gap(hand, HAND) for hand in hands(data)]),
            "trunk_gap": gap(data.qpos[:2], TRUNK), "package_goal_dist": jnp.linalg.norm(goal - place),
        }  # fmt: skip

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        return super().first_info(data, key) | {"start_pos": data.qpos[3:5]}

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics are how well each subtask of the instruction was done (`Pushing.score`)."""
        return Pushing("package", NEAR, _both_touch, GENTLE, STILL).score()

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.package_fragments import SUBTASK_TERMS

        said = {
            "touch": ("put both hands on the package", "touched"),
            "hold": ("keep both hands on the package while it moves", "pushed"),
            "bring": ("bring the package onto the goal", "brought"),
            "gently": (f"push gently: the package never moves faster than {GENTLE} m/s", "gentle"),
        }
        return Instruction.of(
            "Push the package onto the green goal with both hands. Keep both hands on it all the way and push "
            "gently; do not ram it, and do not push it with one hand or with the trunk.",
            said,
            SUBTASK_TERMS,
        )

    def default_observation(self, view: RobotView) -> jax.Array:
        """In the robot's frame the ways to the package and from there to the goal, the package's turn, and the
        velocities and turning of robot and package; and the gaps between hands and package; (14,)."""
        info, qvel, heading = view.info, view.data.qvel, view.data.qpos[2]
        turn = jnp.stack([jnp.sin(info["package_turn"]), jnp.cos(info["package_turn"])])
        moves = [turned(qvel[:2], -heading), qvel[2:3], turned(qvel[3:5], -heading), qvel[5:]]
        return jnp.concatenate([info["local_package"], info["local_goal"], turn, *moves, info["hand_gaps"]])

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the package within 0.15 m of the goal."""
        return (next_view.info["package_goal_dist"] < NEAR).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """The robot behind the package, as seen from the goal, both hands on it, and its way to the goal while they
        are; being there; speed above 0.4 m/s and actions cost."""
        info, left = next_view.info, next_view.info["package_goal_dist"]
        course = info["local_goal"] / jnp.maximum(left, 1e-3)
        behind = jnp.linalg.norm(info["local_package"] - REACH * course)
        held = (info["hand_gaps"] < TOUCHING).all()
        near = jnp.exp(-4.0 * jnp.maximum(info["hand_gaps"], 0.0)).mean()
        touch = 0.3 * near + 0.2 * jnp.exp(-4.0 * behind) + 0.5 * held
        bring = 30.0 * (view.info["package_goal_dist"] - left) * (0.3 + 0.7 * held) + 2.0 * (left < NEAR)
        fast = jnp.maximum(jnp.linalg.norm(info["package_vel"]) - GENTLE, 0.0)
        return touch + bring - 5.0 * fast - 0.01 * jnp.sum(action**2)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.package_fragments import vocabulary

        return vocabulary(self.horizon)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.robots.package_fragments import SUBGOALS

        return SUBGOALS


def _both_touch(state: RobotState) -> jax.Array:
    return (state.info["hand_gaps"] < TOUCHING).all()
