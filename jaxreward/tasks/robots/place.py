"""Cube place: a gripper takes a cube and puts it down where it is to lie (after ManiSkill's PickCube and PlaceSphere,
in a vertical plane)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Subgoals, Vocabulary
from jaxreward.tasks.metrics import Both, Reached, WithExtraMetrics
from jaxreward.tasks.robots.gripper_base import (
    GRIPPER_NOTES,
    GRIPPER_WORDS,
    HALF,
    LOOSE,
    STILL,
    Carrying,
    GripperTask,
    carrying_reward,
    held,
    let_go,
)
from jaxreward.tasks.robots.manner_metrics import AtEnd, Most, Slow
from jaxreward.tasks.robots.physics import Data
from jaxreward.tasks.robots.state import RobotView

NEAR = 0.02
"""Metres from the goal, height included, within which the cube is on it."""


@dataclass(frozen=True)
class CubePlace(GripperTask):
    """A gripper that must bring a cube to a place on the table.

    Args:
        horizon: control steps (0.03 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 120

    name = "cube-place"
    bodies: ClassVar[str] = "place"
    state_notes = (
        "qpos is [gripper x, z, left and right finger, cube x, z (m) and tilt (rad)], qvel their velocities.\n"
    ) + GRIPPER_NOTES
    own_words: ClassVar[Mapping[str, str]] = {
        **GRIPPER_WORDS,
        "info.goal_pos": "where the middle of the cube is to be (m): x, z; constant within an episode",
        "info.cube_goal_dist": f"distance of cube and goal (m), height included; the goal is less than {NEAR}",
    }

    @property
    def description(self) -> str:
        return (
            "A gripper that moves in a vertical plane over a table brings a cube to a goal on the table that differs "
            f"from episode to episode. An episode lasts {0.03 * self.horizon:g} seconds and succeeds if the middle of "
            f"the cube is within {NEAR} m of the goal at some moment."
        )

    def start(self, key: jax.Array) -> Data:
        """Gripper, cube and goal drawn uniformly, cube and goal on different sides."""
        home = jax.tree.map(jnp.asarray, self.home)
        qpos, goal = self.drawn(key)
        return home.replace(qpos=qpos, mocap_pos=home.mocap_pos.at[0, 0].set(goal))

    def goal_of(self, data: Data) -> jax.Array:
        return jnp.stack([data.mocap_pos[0, 0], jnp.asarray(HALF)])

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics, in [0, 1], are whether the cube was held, the share of its way on which it was held
        and lifted, as far as it was made, the share of the way to the goal that was made, how slow it was while it was
        not held, and whether it rests on the goal in the end, let go. What was not carried cannot be put down: the
        last two count as far as it was."""
        cube = Carrying("cube", NEAR, lambda state: state.info["goal_pos"][0])
        carried = cube.carried()
        return WithExtraMetrics(
            Reached(cube.on_goal),
            {"grasped": Reached(lambda state: ~state.data.broken & held(state)),
             "carried": carried, "brought": Most(cube.brought),
             "gentle": Both(Slow(cube.loose, cube.away, LOOSE, STILL), carried),
             "left": Both(AtEnd(lambda state: cube.on_goal(state) & let_go(state)), carried)},
        )  # fmt: skip

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.place_fragments import SUBTASK_TERMS

        said = {
            "grasp": ("take the cube between the fingers", "grasped"),
            "carry": ("lift the cube off the table before it is moved, and carry it between the fingers", "carried"),
            "place": ("bring the cube onto the goal", "brought"),
            "gently": (f"put it down: while it is not held it never moves faster than {LOOSE} m/s", "gentle"),
            "release": ("let go of it: in the end it rests on the goal, and the fingers do not touch it", "left"),
        }
        return Instruction.of(
            "Pick the cube up, carry it over to the green goal, put it down there and let go of it. Do not push it "
            "over the table, and do not drop or throw it.",
            said,
            SUBTASK_TERMS,
        )

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the middle of the cube within 0.02 m of the goal."""
        return (next_view.info["cube_goal_dist"] < NEAR).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """The gripper at the cube; the cube held, lifted, carried to above the goal, put down there and let go; pushing
        it over the table and moving it fast while it is not held cost."""
        return carrying_reward(next_view, 0.0, 0.04, NEAR)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.place_fragments import vocabulary

        return vocabulary(self.horizon)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.robots.gripper_fragments import subgoals

        return subgoals(NEAR, "on the table")
