"""Peg insert: a gripper puts a peg into a hole (after ManiSkill's PegInsertionSide, in a vertical plane)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Subgoals, Vocabulary
from jaxreward.tasks.metrics import Both, Reached, WithExtraMetrics
from jaxreward.tasks.robots.manner_metrics import KeptShare, Most, Never, Slow
from jaxreward.tasks.robots.mujoco_task import MuJoCoTask
from jaxreward.tasks.robots.physics import Data, own_model
from jaxreward.tasks.robots.planar import outside
from jaxreward.tasks.robots.state import RobotState, RobotView

PEG = 0.148
"""From the gripper's middle to the middle of the peg's round tip (m)."""
RADIUS = 0.012
"""Of the peg (m)."""
HALF_WIDTH = 0.02
"""Half the width of the hole (m)."""
TOP = 0.15
"""Height of the block (m)."""
DEEP = 0.09
"""How deep the tip is in the hole when the peg is in (m); the hole is 0.12 m deep."""
UPRIGHT = 0.08
"""Radians up to which the peg is upright; deep in the hole it can tilt twice as much."""
GENTLE = 0.1
"""Metres a second up to which the peg sinks gently."""
NEAR = 0.01
"""Metres above the block up to which it matters how fast the tip sinks."""
TOUCHING = 0.001
"""Metres between peg and block up to which they touch."""
STILL = 0.01
"""Metres up to which the peg is not in the hole."""
SPEED = 0.25
"""Of the gripper along each axis (m/s)."""
HOLE = 0.1
"""The hole begins up to so far to the left or right of the middle (m)."""
ASIDE = (0.05, 0.2)
"""How far beside the hole the gripper begins, at least and at most (m)."""
HEIGHT = (0.36, 0.44)
"""How high it begins, at least and at most (m)."""
TILTED = 0.3
"""The largest tilt of the peg at the beginning (rad)."""


@dataclass(frozen=True)
class PegInsert(MuJoCoTask):
    """A gripper that must put a peg into a hole.

    Args:
        horizon: control steps (0.03 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 120

    name = "peg-insert"
    substeps: ClassVar[int] = 3
    state_notes = (
        "qpos is [gripper x, z (m), tilt (rad)], qvel their velocities. All moves in a vertical plane: x is right, z\n"
        "up, and a positive tilt moves the peg's tip to the left of the gripper. The peg is fixed in the gripper and\n"
        "reaches 0.16 m below its middle; it is 0.024 m thick, with a round tip. The block is 0.44 m wide and 0.15 m\n"
        "high; the hole in the middle of its top is 0.04 m wide and 0.12 m deep, and its place differs from episode\n"
        "to episode. Peg and block touch without friction. A control step lasts 0.03 s."
    )
    own_words: ClassVar[Mapping[str, str]] = {
        "data.qpos": "positions: see below",
        "data.qvel": "velocities: see below",
        "data.ctrl": "velocities asked along x and z (m/s), and of the tilt (rad/s)",
        "data.actuator_force": "forces of the motors (N, N, N m)",
        "info.tip_pos": "lowest point of the upright peg's round tip: its middle less 0.012 m (m): x, z",
        "info.tip_vel": "velocity of the tip (m/s): x, z",
        "info.hole_x": "middle of the hole (m); constant within an episode",
        "info.to_mouth": "from the tip to the middle of the hole at the block's top (m): x, z",
        "info.depth": f"how deep the tip is in the hole (m), 0 outside of it; the peg is in at {DEEP}",
        "info.tilt": "tilt of the peg (rad); 0 is upright",
        "info.gap": "gap between peg and block (m); at most 0 when they touch",
        "action": f"in [-1, 1]: velocities asked along x and z, in {SPEED} m/s, and of the tilt, in 0.8 rad/s",
    }

    @property
    def description(self) -> str:
        return (
            "A gripper that moves in a vertical plane and tilts puts a peg into a hole whose place differs from "
            f"episode to episode. An episode lasts {0.03 * self.horizon:g} seconds and succeeds if the tip of the peg "
            f"is {DEEP} m deep in the hole at some moment."
        )

    @property
    def xml(self) -> str:
        return own_model("peg")

    def start(self, key: jax.Array) -> Data:
        """The hole drawn uniformly; the gripper above the block and to the left or right of it, the peg tilted."""
        home = jax.tree.map(jnp.asarray, self.home)
        hole, side, aside, height, tilt = jax.random.split(key, 5)
        x = jax.random.uniform(hole, minval=-HOLE, maxval=HOLE)
        way = jnp.where(jax.random.bernoulli(side), 1.0, -1.0) * jax.random.uniform(aside, (), jnp.float32, *ASIDE)
        z = jax.random.uniform(height, (), jnp.float32, *HEIGHT)
        qpos = jnp.stack([x + way, z, jax.random.uniform(tilt, minval=-TILTED, maxval=TILTED)])
        return home.replace(qpos=qpos, mocap_pos=home.mocap_pos.at[0, 0].set(x))

    def sensed(self, data: Data) -> dict[str, Any]:
        place, tilt, hole = data.qpos[:2], data.qpos[2], data.mocap_pos[0, 0]
        sin, cos = jnp.sin(tilt), jnp.cos(tilt)
        centre = place - PEG * jnp.stack([sin, cos])  # of the round tip
        tip = centre - jnp.array([0.0, RADIUS])
        turn = data.qvel[2] * PEG * jnp.stack([-cos, sin])
        away = centre - jnp.stack([hole, jnp.asarray(TOP)])
        inside = jnp.abs(away[0]) < HALF_WIDTH
        return {
            "tip_pos": tip, "tip_vel": data.qvel[:2] + turn, "hole_x": hole,
            "to_mouth": jnp.stack([hole, jnp.asarray(TOP)]) - tip, "tilt": tilt,
            "depth": jnp.where(inside, jnp.maximum(TOP - tip[1], 0.0), 0.0),
            "gap": _gap(place, centre, hole),
        }  # fmt: skip

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics, in [0, 1], are whether the tip was over the hole, upright and above the block, the
        share of its way into the hole on which the peg was upright, how deep it came, whether it never touched the top
        of the block, and how slowly its tip sank near the block and in it. The manners count as far as it went in."""
        inserted = Most(_depth, 1.0 / DEEP)
        return WithExtraMetrics(
            Reached(_inserted),
            {"aimed": Reached(_aimed), "upright": Both(KeptShare(_depth, kept=_upright, least=STILL), inserted),
             "inserted": inserted, "clean": Both(Never(_presses), inserted),
             "gentle": Both(Slow(_speed, _depth, GENTLE, STILL), inserted)},
        )  # fmt: skip

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.peg_fragments import SUBTASK_TERMS

        said = {
            "aim": ("bring the peg over the hole, upright, before it goes in", "aimed"),
            "upright": ("keep the peg upright while it goes in", "upright"),
            "insert": (f"put the peg into the hole, {DEEP} m deep", "inserted"),
            "clean": ("never touch the top of the block with the peg", "clean"),
            "gently": (f"put it in gently: near the block the tip never sinks faster than {GENTLE} m/s", "gentle"),
        }
        return Instruction.of(
            "Bring the peg over the hole, upright, and put it in gently. Do not press it onto the block to slide "
            "into the hole from there, and do not ram it in.",
            said,
            SUBTASK_TERMS,
        )

    def default_observation(self, view: RobotView) -> jax.Array:
        """Positions and velocities, what the motors are asked for, the way from the tip to the mouth of the hole, and
        the tip's velocity; (13,)."""
        info, data = view.info, view.data
        return jnp.concatenate([data.qpos, data.qvel, data.ctrl, info["to_mouth"], info["tip_vel"]])

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the tip 0.09 m deep in the hole."""
        return (next_view.info["depth"] >= DEEP).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """What a potential of being over the hole, upright, and low while it is both gained; low while it is both; near
        to 0.09 m deep in the hole, and how deep; touching the top of the block, sinking faster than 0.1 m/s near it and
        actions cost."""
        info = next_view.info
        near = info["tip_pos"][1] < TOP + NEAR
        fast = jnp.maximum(-info["tip_vel"][1] - GENTLE, 0.0) * near
        press = (info["gap"] < TOUCHING) & (info["depth"] == 0.0)
        deep = jnp.minimum(info["depth"] / DEEP, 1.0)
        near_bottom = jnp.exp(-10.0 * jnp.linalg.norm(info["to_mouth"] - jnp.array([0.0, DEEP])))
        good = _way(info) - _way(view.info) + 2.0 * _low(info) + near_bottom + 2.0 * deep
        return good - 0.3 * press - 40.0 * fast - 0.01 * jnp.sum(action**2)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.peg_fragments import vocabulary

        return vocabulary(self.horizon)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.robots.peg_fragments import SUBGOALS

        return SUBGOALS


def _gap(gripper: jax.Array, centre: jax.Array, hole: jax.Array) -> jax.Array:
    """Metres between the peg, whose middle line is from `gripper` to `centre` (2,), and the block with its hole."""
    sides = [
        outside(centre - jnp.stack([hole + side * (HALF_WIDTH + 0.1), jnp.asarray(0.075)]), (0.1, 0.075))
        for side in (-1.0, 1.0)
    ]
    floor = outside(centre - jnp.stack([hole, jnp.asarray(0.015)]), (HALF_WIDTH, 0.015))
    line = centre - gripper
    corners = []
    for x in (-HALF_WIDTH - 0.2, -HALF_WIDTH, HALF_WIDTH, HALF_WIDTH + 0.2):
        way = jnp.stack([hole + x, jnp.asarray(TOP)]) - gripper
        along = jnp.clip(jnp.dot(way, line) / jnp.dot(line, line), 0.0, 1.0)
        corners.append(jnp.linalg.norm(way - along * line))
    return jnp.stack([*sides, floor, *corners]).min() - RADIUS


def _low(info: Any) -> jax.Array:
    """How low the tip is (m) where the peg is upright and over the middle of the hole or in it; less the farther it is
    from that."""
    lined_up = jnp.exp(-((info["to_mouth"][0] / 0.025) ** 2) - (info["tilt"] / 0.15) ** 2)
    return lined_up * (0.3 - info["tip_pos"][1])


def _way(info: Any) -> jax.Array:
    """A potential of being over the hole, upright, and low while it is both."""
    return 60.0 * _low(info) - 8.0 * jnp.abs(info["to_mouth"][0]) - 2.0 * jnp.abs(info["tilt"])


def _depth(state: RobotState) -> jax.Array:
    """How deep the tip is in the hole (m); 0 where the simulation failed."""
    return jnp.where(state.data.broken, 0.0, state.info["depth"])


def _inserted(state: RobotState) -> jax.Array:
    return _depth(state) >= DEEP


def _upright(state: RobotState) -> jax.Array:
    return jnp.abs(state.info["tilt"]) < UPRIGHT


def _aimed(state: RobotState) -> jax.Array:
    """Whether the upright peg is over the hole and not in it; never where the simulation failed."""
    x, z = state.info["to_mouth"][0], state.info["to_mouth"][1]
    return ~state.data.broken & _upright(state) & (jnp.abs(x) < HALF_WIDTH - RADIUS) & (z <= 0.0)


def _presses(state: RobotState) -> jax.Array:
    """Whether the peg touches the block outside of the hole; always where the simulation failed."""
    return state.data.broken | ((state.info["gap"] < TOUCHING) & (state.info["depth"] == 0.0))


def _speed(state: RobotState) -> jax.Array:
    """How fast the tip sinks near the block and in it (m/s); infinite where the simulation failed."""
    near = state.info["tip_pos"][1] < TOP + NEAR
    return jnp.where(state.data.broken, jnp.inf, jnp.maximum(-state.info["tip_vel"][1], 0.0) * near)
