"""Cube stack: a gripper puts a cube onto another one (after ManiSkill's StackCube, in a vertical plane)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

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
from jaxreward.tasks.robots.state import RobotState, RobotView

NEAR = 0.012
"""Metres from its place on the lower cube within which the cube is on it."""
MOVED = 0.005
"""Metres up to which the lower cube has stayed where it is."""


@dataclass(frozen=True)
class CubeStack(GripperTask):
    """A gripper that must put a cube onto another one.

    Args:
        horizon: control steps (0.03 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 120

    name = "cube-stack"
    bodies: ClassVar[str] = "stack"
    state_notes = (
        "qpos is [gripper x, z, left and right finger, cube x, z (m) and tilt (rad), lower cube x (m)], qvel their\n"
        "velocities. The lower cube is as large and as heavy as the one that is to be put onto it; it slides on the\n"
        "table, with friction, and does not tilt. The pads push it without friction.\n"
    ) + GRIPPER_NOTES
    own_words: ClassVar[Mapping[str, str]] = {
        **GRIPPER_WORDS,
        "info.goal_pos": "where the middle of the cube is to be: 0.05 m above the middle of the lower cube (m): x, z",
        "info.cube_goal_dist": f"distance of cube and goal (m); the cube is on the lower one from {NEAR} on",
        "info.lower_start": "where the lower cube was at the beginning (m): x",
        "info.lower_moved": "how far the lower cube is from where it was at the beginning (m)",
        "info.lower_vel": "velocity of the lower cube along x (m/s)",
    }

    @property
    def description(self) -> str:
        return (
            "A gripper that moves in a vertical plane over a table puts a cube onto another cube. An episode lasts "
            f"{0.03 * self.horizon:g} seconds and succeeds if the middle of the cube is within {NEAR} m of its place "
            "on the lower cube at some moment."
        )

    def start(self, key: jax.Array) -> Data:
        """Gripper and cubes drawn uniformly, the cubes on different sides."""
        home = jax.tree.map(jnp.asarray, self.home)
        qpos, lower = self.drawn(key)
        return home.replace(qpos=qpos.at[7].set(lower))

    def goal_of(self, data: Data) -> jax.Array:
        return jnp.stack([data.qpos[7], jnp.asarray(3.0 * HALF)])

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        still = {"lower_start": data.qpos[7], "lower_moved": jnp.zeros(()), "lower_vel": data.qvel[7]}
        return super().first_info(data, key) | still

    def next_info(self, state: RobotState, action: jax.Array, data: Data) -> dict[str, Any]:
        moved = jnp.abs(data.qpos[7] - state.info["lower_start"])
        return super().next_info(state, action, data) | {"lower_moved": moved, "lower_vel": data.qvel[7]}

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics, in [0, 1], are whether the cube was held, the share of the way sideways to where the
        lower cube was on which it was held and lifted, as far as it was made, how near it came to its place on the
        lower cube, 0 from 5 cm on, which is at its side, whether that stayed where it was, how slow the cube was while
        it was not held, and whether it rests on the lower cube in the end, let go. The last three count as far as it
        was carried."""
        cube = Carrying("cube", NEAR, lambda state: state.info["lower_start"])
        carried = cube.carried()
        return WithExtraMetrics(
            Reached(cube.on_goal),
            {"grasped": Reached(lambda state: ~state.data.broken & held(state)), "carried": carried,
             "stacked": Most(_on_top), "stayed": Both(Slow(_moved, cube.away, MOVED, STILL), carried),
             "gentle": Both(Slow(cube.loose, cube.away, LOOSE, STILL), carried),
             "left": Both(AtEnd(lambda state: cube.on_goal(state) & let_go(state)), carried)},
        )  # fmt: skip

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.stack_fragments import SUBTASK_TERMS

        said = {
            "grasp": ("take the red cube between the fingers", "grasped"),
            "carry": ("lift it off the table before it is moved, and carry it between the fingers", "carried"),
            "stack": ("bring it onto the green cube", "stacked"),
            "still": ("leave the green cube where it is: it never moves by more than 5 mm", "stayed"),
            "gently": (f"put it down: while it is not held it never moves faster than {LOOSE} m/s", "gentle"),
            "release": ("let go of it: in the end it rests on the green one, and the fingers do not touch it", "left"),
        }
        return Instruction.of(
            "Pick the red cube up, put it onto the green cube and let go of it. Do not move the green cube, and do not "
            "drop or throw the red one.",
            said,
            SUBTASK_TERMS,
        )

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the cube within 0.012 m of its place on the lower one."""
        return (next_view.info["cube_goal_dist"] < NEAR).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """The gripper at the cube; the cube held, lifted, carried to above the lower one, put down there and let go;
        pushing either over the table and moving the one fast while it is not held cost."""
        pushed = jnp.abs(next_view.info["lower_vel"])
        return carrying_reward(next_view, 2.0 * HALF, 0.07, NEAR) - 3.0 * pushed

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.stack_fragments import vocabulary

        return vocabulary(self.horizon)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.robots.gripper_fragments import subgoals

        return subgoals(NEAR, "on the lower cube")


def _on_top(state: RobotState) -> jax.Array:
    """How near the cube is to its place on the lower one: 1 within `NEAR`, 0 from the side of a cube on."""
    side = 2.0 * HALF
    near = jnp.clip((side - state.info["cube_goal_dist"]) / (side - NEAR), 0.0, 1.0)
    return jnp.where(state.data.broken, 0.0, near)


def _moved(state: RobotState) -> jax.Array:
    """How far the lower cube was moved (m); infinite where the simulation failed."""
    return jnp.where(state.data.broken, jnp.inf, state.info["lower_moved"])
