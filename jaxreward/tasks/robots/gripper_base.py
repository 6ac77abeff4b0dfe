"""Base of the tasks of the gripper over a table with a cube: model, commands, what is felt, and how the cube moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.tasks.metrics import Both
from jaxreward.tasks.robots.bringing import Bringing
from jaxreward.tasks.robots.manner_metrics import KeptShare, Most, OfState
from jaxreward.tasks.robots.mjcf import merged
from jaxreward.tasks.robots.mujoco_task import MuJoCoTask
from jaxreward.tasks.robots.physics import Data, own_model
from jaxreward.tasks.robots.planar import outside, turned
from jaxreward.tasks.robots.state import RobotState, RobotView
from jaxreward.tasks.task import Box

HALF = 0.025
"""Half the side of the cube; the height of its middle when it stands on the table (m)."""
PAD = 0.008
"""Radius of a finger's pad (m)."""
TOUCHING = 0.002
"""Metres between a pad and the cube up to which it counts as touching it."""
GRIP = 1.0
"""Newtons of each finger from which on the cube is held; 0.4 bear its weight."""
LIFTED = 0.015
"""Metres above the table from which on the cube is lifted."""
LOOSE = 0.2
"""Metres a second up to which the cube moves gently while it is not held; it falls so fast from 2 mm."""
REST = 0.03
"""Metres a second up to which the cube is at rest."""
STILL = 0.02
"""Metres up to which the cube has not moved."""
SPEED = 0.3
"""Of the gripper along each axis (m/s)."""
OPEN = (-0.02, 0.05)
"""What the fingers can be asked for (m)."""
OPENING = 0.01
"""How much that changes in a step, at most (m)."""
CUBE = (0.06, 0.2)
"""How far from the middle the cube begins (m), on either side; where it is to be brought is as far on the other."""
ABOVE = ((-0.15, 0.1), (0.15, 0.15))
"""Where the gripper begins: lowest and highest x and z (m)."""

GRIPPER_NOTES = (
    "All moves in a vertical plane: x is right, z up, and the table is at z = 0. A finger's position is the distance\n"
    "of its pad from the gripper's middle; the left one is at smaller x, and both open alike. The pads are round, of\n"
    "radius 0.008 m, at the height of the gripper's middle. The cube has sides of 0.05 m and weighs 0.1 kg; a\n"
    "positive tilt turns its top to the right. Each finger closes with 8 N at most; pads and what the cube stands on\n"
    "touch it with friction.\n"
    "A control step lasts 0.03 s."
)
GRIPPER_WORDS = {
    "data.qpos": "positions: see below",
    "data.qvel": "velocities: see below",
    "data.ctrl": "velocities asked along x and z (m/s), and positions asked of the fingers (m)",
    "data.actuator_force": "forces of the motors (N): along x and z, and of the fingers, positive opens them",
    "info.gripper_pos": "middle between the fingers' pads (m): x, z",
    "info.cube_pos": "middle of the cube (m): x, z",
    "info.cube_vel": "velocity of the cube (m/s): x, z",
    "info.cube_tilt": "tilt of the cube (rad)",
    "info.to_cube": "from the gripper to the middle of the cube (m): x, z",
    "info.to_goal": "from the middle of the cube to where it is to be (m): x, z",
    "info.start_pos": "where the cube was at the beginning (m): x, z",
    "info.pad_gaps": "gaps between the left and the right pad and the cube (m); at most 0 when they touch",
    "info.grip_force": "the smaller of the forces with which the fingers close, while the cube is between the pads and "
    f"both are within {TOUCHING} m of it, otherwise 0 (N); it is held from {GRIP:g} N on",
    "action": f"in [-1, 1]: velocities asked along x and z, in {SPEED:g} m/s, and by how much what is asked of both "
    f"fingers grows, in {OPENING:g} m a step; that stays from {OPEN[0]} m, which closes them on the cube with 8 N, to "
    f"{OPEN[1]} m, open",
}


@dataclass(frozen=True, kw_only=True)
class GripperTask(MuJoCoTask):
    """A task of the gripper with a cube. `qpos` begins with [gripper x, z, left and right finger, cube x, z (m) and
    tilt (rad)]."""

    substeps: ClassVar[int] = 3
    own_words: ClassVar[Mapping[str, str]] = GRIPPER_WORDS
    bodies: ClassVar[str] = ""
    """The model in this folder of what is beside gripper and cube."""

    @property
    def xml(self) -> str:
        return merged(own_model("gripper"), own_model(self.bodies))

    @property
    def action_space(self) -> Box:
        return Box((3,))

    def drawn(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Positions at a reset, (nq,), gripper and cube drawn uniformly, and the x of where the cube is to be."""
        hand, side, cube, aim = jax.random.split(key, 4)
        sign = jnp.where(jax.random.bernoulli(side), 1.0, -1.0)
        start, goal = (jax.random.uniform(k, (), jnp.float32, *CUBE) for k in (cube, aim))
        low, high = jnp.array(ABOVE)
        qpos = jnp.asarray(self.home.qpos).at[:2].set(jax.random.uniform(hand, (2,), minval=low, maxval=high))
        return qpos.at[4].set(sign * start), -sign * goal

    def control(self, state: RobotState, action: jax.Array) -> jax.Array:
        """Both fingers are asked for the same position, which actions change; so noise hardly opens closed fingers."""
        asked = jnp.clip(state.data.ctrl[2:3] + OPENING * action[2:], *OPEN)
        return jnp.concatenate([SPEED * action[:2], jnp.repeat(asked, 2)])

    def goal_of(self, data: Data) -> jax.Array:
        """Where the middle of the cube is to be (m): x, z."""
        raise NotImplementedError

    def sensed(self, data: Data) -> dict[str, Any]:
        gripper, cube, goal = data.qpos[:2], data.qpos[4:6], self.goal_of(data)
        sides = jnp.stack([-PAD - data.qpos[2], PAD + data.qpos[3]])
        pads = gripper + jnp.stack([sides, jnp.zeros(2)], axis=1)
        seen = [turned(pad - cube, data.qpos[6]) for pad in pads]  # from the cube, in its frame
        gaps = jnp.stack([outside(pad, (HALF, HALF)) - PAD for pad in seen])
        between = (seen[0][0] < -HALF) & (seen[1][0] > HALF)
        closing = jnp.maximum(-data.actuator_force[2:4], 0.0).min()
        return {
            "gripper_pos": gripper, "cube_pos": cube, "cube_vel": data.qvel[4:6], "cube_tilt": data.qpos[6],
            "goal_pos": goal, "to_cube": cube - gripper, "to_goal": goal - cube,
            "pad_gaps": gaps, "grip_force": jnp.where((gaps < TOUCHING).all() & between, closing, 0.0),
            "cube_goal_dist": jnp.linalg.norm(goal - cube),
        }  # fmt: skip

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        return super().first_info(data, key) | {"start_pos": data.qpos[4:6]}

    def default_observation(self, view: RobotView) -> jax.Array:
        """Where the gripper is and how it moves, the ways from it to the cube and from there to where it is to be, the
        cube's velocity and tilt, the fingers and what they are asked for, and the pads' gaps; (16,)."""
        info, data = view.info, view.data
        cube = info["to_cube"], info["to_goal"], info["cube_vel"], info["cube_tilt"][None]
        return jnp.concatenate(
            [info["gripper_pos"], data.qvel[:2], *cube, data.qpos[2:4], data.ctrl[2:3], info["pad_gaps"]]
        )


@dataclass(frozen=True)
class Carrying(Bringing):
    """A cube that is to be carried.

    Args:
        aim: where the goal was at the beginning (m): x, of a state.
    """

    aim: OfState

    def carried(self) -> Both:
        """The share of the way sideways to there on which the cube was held and lifted, as far as it was made."""
        return Both(KeptShare(self.across, kept=carried, least=STILL), Most(self._crossed))

    def across(self, state: RobotState) -> jax.Array:
        """How much nearer to there the cube is than where it began, sideways (m); 0 where the simulation failed."""
        left = jnp.abs(self.aim(state) - state.info["cube_pos"][0])
        return jnp.where(state.data.broken, 0.0, self._sideways(state) - left)

    def _crossed(self, state: RobotState) -> jax.Array:
        """Of the way sideways to within `near` of there, the share that is made."""
        return jnp.clip(self.across(state) / jnp.maximum(self._sideways(state) - self.near, 1e-3), 0.0, 1.0)

    def _sideways(self, state: RobotState) -> jax.Array:
        return jnp.abs(self.aim(state) - state.info["start_pos"][0])

    def loose(self, state: RobotState) -> jax.Array:
        """The speed of the cube while it is not held (m/s); infinite where the simulation failed."""
        return jnp.where(state.data.broken, jnp.inf, self.speed(state) * ~held(state))


def held(state: RobotState | RobotView) -> jax.Array:
    """Whether the cube is held between the fingers."""
    return state.info["grip_force"] > GRIP


def carried(state: RobotState | RobotView) -> jax.Array:
    """Whether the cube is held and lifted off the table."""
    return held(state) & (state.info["cube_pos"][1] - HALF > LIFTED)


def let_go(state: RobotState | RobotView) -> jax.Array:
    """Whether no pad touches the cube, and it is at rest."""
    rests = jnp.linalg.norm(state.info["cube_vel"]) < REST
    return rests & (state.info["pad_gaps"] >= TOUCHING).all()


def carrying_reward(view: RobotView, ground: float, high: float, near: float) -> jax.Array:
    """A hand-written reward: for the gripper at the cube, the fingers open above it, the cube held, lifted to `high`
    (m), carried to above where it is to be, put down there, on something of the height `ground` (m), and let go within
    `near` (m) of it, where a free cube is paid like a held one, so that letting go costs nothing. Pushing it over the
    table costs, and moving it fast while it is not held."""
    info, speed = view.info, jnp.linalg.norm(view.info["cube_vel"])
    there = info["cube_goal_dist"] < near
    grip = (held(view) | there).astype(jnp.float32)
    aside, height = jnp.abs(info["to_goal"][0]), info["cube_pos"][1] - HALF
    over = jnp.exp(-((aside / 0.03) ** 2))
    lifted = 0.5 * (jnp.clip(height / 0.02, 0.0, 1.0) + jnp.clip(height / high, 0.0, 1.0))
    lifted = lifted * jnp.exp(-((jnp.maximum(height - high - 0.01, 0.0) / 0.04) ** 2))
    opened = jnp.where(info["to_cube"][1] < -0.02, view.data.qpos[2] / OPEN[1], 1.0)
    grasp = 1.5 * (1.0 - jnp.tanh(8.0 * jnp.linalg.norm(info["to_cube"]))) + 0.3 * opened + grip
    ready = jnp.maximum(lifted, jnp.exp(-((aside / 0.045) ** 2)) * (height > ground - 0.005))
    carry = grip * ready * (4.0 - 2.0 * jnp.tanh(5.0 * aside))
    down = 8.0 * over * jnp.clip(1.0 - jnp.abs(height - ground) / 0.08, 0.0, 1.0)
    opening = (view.data.ctrl[2] - OPEN[0]) / (OPEN[1] - OPEN[0])
    done = there * (6.0 * opening + 10.0 * let_go(view))
    shove = (height < 0.005) * jnp.abs(info["cube_vel"][0])
    loose = jnp.maximum(speed - LOOSE, 0.0) * ~held(view)
    return grasp + carry + down + done - 3.0 * shove - 0.5 * loose
