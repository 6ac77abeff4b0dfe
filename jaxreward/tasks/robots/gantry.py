"""Gantry place: a gripper takes a cube and puts it down where it is to lie (after ManiSkill's PickCube and PlaceSphere,
on a robot with three axes)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Subtask, Vocabulary
from jaxreward.tasks.metrics import Reached, WithExtraMetrics
from jaxreward.tasks.robots.manner_metrics import Both, KeptShare, Most, Slow
from jaxreward.tasks.robots.mujoco_task import MuJoCoTask
from jaxreward.tasks.robots.physics import Data, own_model, rotate_back
from jaxreward.tasks.robots.pushing import Pushing
from jaxreward.tasks.robots.state import RobotState, RobotView
from jaxreward.tasks.task import Box

NEAR = 0.02
"""Metres from the goal, height included, within which the cube is on it."""
HALF = 0.025
"""Half the side of the cube; the height of its middle when it stands on the table (m)."""
PAD = 0.008
"""Radius of a finger's pad (m)."""
TOUCHING = 0.002
"""Metres between a pad and the cube up to which it counts as touching it."""
GRIP = 1.0
"""Newtons of both fingers from which on the cube is held; its weight needs a third of that."""
LIFTED = 0.02
"""Metres above the table from which on the cube is lifted."""
LOOSE = 0.15
"""Metres a second up to which the cube may move while it is not held."""
STILL = 0.02
"""Metres up to which the cube has not moved."""
CUBE = ((-0.2, -0.1), (-0.05, 0.1))
"""Where the cube begins: lowest and highest x and y (m)."""
GOAL = ((0.05, -0.12), (0.22, 0.12))
"""Where it is to lie."""
TURNED = 0.15
"""The largest turn of the cube at the beginning (rad)."""
ABOVE = ((-0.1, -0.08, -0.05), (0.1, 0.08, 0.05))
"""Where the gripper begins, from its home 0.2 m above the table (m)."""
SPEED = 0.5
"""Of the gripper along each axis (m/s)."""
OPEN = 0.05
"""How far each finger opens (m)."""


@dataclass(frozen=True)
class GantryPlace(MuJoCoTask):
    """A gripper on a gantry that must take a cube to a place on the table.

    Args:
        horizon: control steps (0.03 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 150

    name = "gantry-place"
    substeps: ClassVar[int] = 3
    state_notes = (
        "qpos is [gripper x, y, z from (0, 0, 0.2) (m), left and right finger 0 (closed) to 0.05 m (open), cube x, y,\n"
        "z (m) and its orientation as a unit quaternion w, x, y, z], qvel [velocities of gripper and fingers, linear\n"
        "velocity of the cube in the world (m/s), angular velocity in the cube (rad/s)]. x is right, y away and z up;\n"
        "the table is at z = 0. The left finger is at smaller x; both are open by the distance of their pads from the\n"
        "gripper's middle along x, so that 0.025 m each are just around the cube. The pads reach from 0.016 m below\n"
        "the gripper's middle to 0.028 m above it. The cube has sides of 0.05 m and weighs 0.1 kg; fingers and table\n"
        "touch it, with friction. A control step lasts 0.03 s."
    )
    own_words: ClassVar[Mapping[str, str]] = {
        "data.qpos": "positions: see below",
        "data.qvel": "velocities: see below",
        "data.ctrl": "velocities asked along x, y, z (m/s) and positions asked of the fingers (m)",
        "data.actuator_force": "forces of the motors (N)",
        "info.gripper_pos": "middle of the gripper (m)",
        "info.cube_pos": "middle of the cube (m)",
        "info.cube_vel": "velocity of the cube (m/s)",
        "info.goal_pos": "where the middle of the cube is to be (m); constant within an episode",
        "info.start_pos": "where the cube was at the beginning (m)",
        "info.pad_gaps": "gaps between the left and the right pad and the cube (m); at most 0 when they touch",
        "info.grip_force": "the smaller of the forces with which the fingers close, while both pads are within 0.002 m "
        f"of the cube, otherwise 0 (N); it is held from {GRIP:g} N on",
        "info.gripper_cube_dist": "distance of gripper and cube (m)",
        "info.cube_goal_dist": f"distance of cube and goal (m), height included; the goal is less than {NEAR}",
        "action": "in [-1, 1]: velocities asked along x, y, z, in 0.5 m/s, and how far the fingers are to be open, "
        "from closed to 0.05 m each",
    }

    @property
    def description(self) -> str:
        return (
            "A gripper that moves along three axes over a table brings a cube to a goal that differs from episode to "
            f"episode. An episode lasts {0.03 * self.horizon:g} seconds and succeeds if the middle of the cube is "
            f"within {NEAR} m of the goal at some moment."
        )

    @property
    def action_space(self) -> Box:
        return Box((4,))

    @property
    def xml(self) -> str:
        return own_model("gantry")

    def start(self, key: jax.Array) -> Data:
        """Gripper, cube and goal drawn uniformly, the cube a little turned."""
        home = jax.tree.map(jnp.asarray, self.home)
        hand, cube, turn, goal = jax.random.split(key, 4)
        gripper, place, aim = (
            jax.random.uniform(k, (len(low),), minval=jnp.array(low), maxval=jnp.array(high))
            for k, (low, high) in ((hand, ABOVE), (cube, CUBE), (goal, GOAL))
        )
        half = 0.5 * jax.random.uniform(turn, minval=-TURNED, maxval=TURNED)
        qpos = home.qpos.at[:3].set(gripper).at[5:7].set(place)
        qpos = qpos.at[8:].set(jnp.stack([jnp.cos(half), 0.0, 0.0, jnp.sin(half)]))
        return home.replace(qpos=qpos, mocap_pos=home.mocap_pos.at[0, :2].set(aim))

    def control(self, state: RobotState, action: jax.Array) -> jax.Array:
        """Both fingers are asked for the same position."""
        return jnp.concatenate([SPEED * action[:3], jnp.repeat(0.5 * OPEN * (action[3:] + 1.0), 2)])

    def sensed(self, data: Data) -> dict[str, Any]:
        gripper = data.qpos[:3] + jnp.array([0.0, 0.0, 0.2])
        cube, goal = data.qpos[5:8], jnp.append(data.mocap_pos[0, :2], HALF)
        height = jnp.clip(
            cube[2] - gripper[2], -0.008, 0.02
        )  # of the point of a pad that is nearest to the cube's middle
        sides = jnp.stack([-PAD - data.qpos[3], PAD + data.qpos[4]])
        pads = gripper + jnp.stack([sides, jnp.zeros(2), jnp.full(2, height)], axis=1)
        gaps = jnp.stack([_outside(rotate_back(_unit(data.qpos[8:]), pad - cube)) - PAD for pad in pads])
        force = jnp.where((gaps < TOUCHING).all(), jnp.maximum(-data.actuator_force[3:5], 0.0).min(), 0.0)
        return {
            "gripper_pos": gripper, "cube_pos": cube, "cube_vel": data.qvel[5:8], "goal_pos": goal,
            "pad_gaps": gaps, "grip_force": force,
            "gripper_cube_dist": jnp.linalg.norm(gripper - cube), "cube_goal_dist": jnp.linalg.norm(cube - goal),
        }  # fmt: skip

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        return super().first_info(data, key) | {"start_pos": data.qpos[5:8]}

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics, in [0, 1], are whether the cube was held, the share of its way on which it was held
        and lifted, the share of the way to the goal that was made, and how slow it was while it was not held. The
        manners count as far as it was brought."""
        cube = Pushing("cube", _carried, NEAR, LOOSE, STILL)
        brought = Most(cube.brought)
        return WithExtraMetrics(
            Reached(cube.on_goal),
            {"grasped": Reached(lambda state: ~state.data.broken & _held(state)),
             "carried": Both(KeptShare(cube.way, cube.touches, STILL), brought), "brought": brought,
             "gentle": Both(Slow(_loose, cube.away, LOOSE, STILL), brought)},
        )  # fmt: skip

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.gantry_fragments import SUBTASK_TERMS

        said = {
            "grasp": ("take the cube between the fingers", "grasped"),
            "carry": ("lift the cube off the table before moving it, and carry it between the fingers", "carried"),
            "place": ("bring the cube onto the goal", "brought"),
            "gently": ("put it down: while it is not held it never moves faster than 0.15 m/s", "gentle"),
        }
        return Instruction(
            words="Pick the cube up, carry it over to the green goal and put it down there. Do not push it over the "
            "table, and do not drop or throw it.",
            subtasks=tuple(
                Subtask(name=name, words=words, metric=metric, terms=SUBTASK_TERMS[name])
                for name, (words, metric) in said.items()
            ),
        )

    def default_observation(self, view: RobotView) -> jax.Array:
        """Where the gripper is and how it moves, the ways from it to the cube and from there to the goal, the cube's
        velocity, the fingers, and the pads' gaps; (20,)."""
        info, data = view.info, view.data
        ways = info["cube_pos"] - info["gripper_pos"], info["goal_pos"] - info["cube_pos"]
        fingers = data.qpos[3:5], data.ctrl[3:4]
        return jnp.concatenate(
            [info["gripper_pos"], data.qvel[:3], *ways, info["cube_vel"], *fingers, info["pad_gaps"]]
        )

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the middle of the cube within 0.02 m of the goal."""
        return (next_view.info["cube_goal_dist"] < NEAR).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """The gripper at the cube, the cube held, lifted, near to above the goal, and down there; moving loose
        costs."""
        info = next_view.info
        held = _held(next_view).astype(jnp.float32)
        height = info["cube_pos"][2] - HALF
        across = jnp.linalg.norm((info["goal_pos"] - info["cube_pos"])[:2])
        there = (across < NEAR).astype(jnp.float32)
        lifted = held * jnp.clip(height / 0.06, 0.0, 1.0) * (1.0 - there) + there
        grasp = 0.1 * jnp.exp(-10.0 * info["gripper_cube_dist"]) + 0.2 * held
        place = 4.0 * jnp.exp(-((info["cube_goal_dist"] / 0.03) ** 2))
        loose = jnp.maximum(jnp.linalg.norm(info["cube_vel"]) - LOOSE, 0.0) * (1.0 - held)
        return grasp + lifted * (1.0 + 2.0 * jnp.exp(-8.0 * across)) + place - 0.5 * loose

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.gantry_fragments import vocabulary

        return vocabulary(self.horizon)


def _unit(quat: jax.Array) -> jax.Array:
    return quat / jnp.maximum(jnp.linalg.norm(quat), 1e-6)


def _outside(point: jax.Array) -> jax.Array:
    """How far a point of the cube's frame (3,) is from its sides (m); negative inside."""
    over = jnp.abs(point) - HALF
    return jnp.linalg.norm(jnp.maximum(over, 0.0)) + jnp.minimum(over.max(), 0.0)


def _held(state: RobotState | RobotView) -> jax.Array:
    return state.info["grip_force"] > GRIP


def _carried(state: RobotState) -> jax.Array:
    return _held(state) & (state.info["cube_pos"][2] - HALF > LIFTED)


def _loose(state: RobotState) -> jax.Array:
    """The speed of the cube while it is not held (m/s); infinite where the simulation failed."""
    speed = jnp.linalg.norm(state.info["cube_vel"]) * ~_held(state)
    return jnp.where(state.data.broken, jnp.inf, speed)
