"""Door open: a robot with two hands opens a door and goes through it (after HumanoidBench's Door, in the plane)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Subgoals, Vocabulary
from jaxreward.tasks.metrics import Both, Reached, WithExtraMetrics
from jaxreward.tasks.robots.manner_metrics import KeptShare, Most, Never, Slow
from jaxreward.tasks.robots.physics import Data
from jaxreward.tasks.robots.planar import outside, turned
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

WALL = 1.3
"""Where wall and shut door are (x, in m)."""
THROUGH = 1.9
"""Beyond that the robot is through (x, in m)."""
HINGE = (WALL, 0.5)
"""Where the hinge is: x and y (m)."""
HALF = (0.02, 0.48)
"""Half the thickness and half the width of the door (m)."""
OPEN = 1.2
"""The turn from which on the door is open (rad)."""
GENTLE = 0.8
"""Radians a second up to which it is opened gently."""
STILL = 0.05
"""Radians up to which it has not moved."""
TRUNK_TOUCHING = 0.01
"""Metres between trunk and door up to which they touch."""
START = ((-0.2, -0.4), (0.2, 0.4))
"""Where the robot begins: lowest and highest x and y (m)."""


@dataclass(frozen=True)
class DoorOpen(WheelsTask):
    """A robot on wheels that must open a door and go through it.

    Args:
        horizon: control steps (0.04 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 150

    name = "door-open"
    bodies: ClassVar[str] = "door"
    state_notes = (
        "qpos is [robot x, y (m) and heading (rad), turn of the door (rad)], qvel their velocities. The wall is at\n"
        "x = 1.3; the doorway in it reaches from y = -0.5 to 0.5. The door is 0.96 m wide, has its hinge at y = 0.5\n"
        "and opens away from the robot, by up to 2 rad; let go, it turns on by 0.78 rad for each radian a second.\n"
        "The wall is 0.1 m thick. Hands and trunk touch door and wall.\n"
    ) + WHEELS_NOTES
    own_words: ClassVar[Mapping[str, str]] = {
        **WHEELS_WORDS,
        "info.door_turn": "how far the door is open (rad), about 0 to 2",
        "info.door_rate": "how fast it opens (rad/s)",
        "info.local_edge": "from the robot to the free edge of the door, in the robot's frame (m): forward, left",
        "info.local_exit": "from the robot to the place 0.6 m beyond the middle of the doorway, at x = 1.9, y = 0, in "
        "the robot's frame (m): forward, left",
        "info.hand_gaps": "gaps between the left and the right hand and the door (m); at most 0 when they touch",
        "info.trunk_gap": "gap between trunk and door (m); at most 0 when they touch",
        "info.left_to_go": f"how far the robot's middle is before x = {THROUGH} (m); negative when it is through",
    }

    @property
    def description(self) -> str:
        return (
            "A robot on wheels with two hands opens a door and goes through it. An episode lasts "
            f"{0.04 * self.horizon:g} seconds and succeeds if the robot is {THROUGH - WALL:g} m beyond the wall at "
            "some moment."
        )

    def start(self, key: jax.Array) -> Data:
        """The robot drawn uniformly and a little turned, the door shut."""
        home = jax.tree.map(jnp.asarray, self.home)
        turn, place = jax.random.split(key)
        heading = jax.random.uniform(turn, minval=-TURNED, maxval=TURNED)
        low, high = map(jnp.array, START)
        return home.replace(
            qpos=home.qpos.at[:2].set(jax.random.uniform(place, (2,), minval=low, maxval=high)).at[2].set(heading)
        )

    def sensed(self, data: Data) -> dict[str, Any]:
        place, heading, turn = data.qpos[:2], data.qpos[2], data.qpos[3]
        along = turned(jnp.array([0.0, -1.0]), turn)
        middle = jnp.array(HINGE) + HALF[1] * along
        gap = lambda point, radius: outside(turned(point - middle, -turn), HALF) - radius  # noqa: E731
        return {
            "door_turn": turn, "door_rate": data.qvel[3], "left_to_go": THROUGH - place[0],
            "local_edge": turned(middle + HALF[1] * along - place, -heading),
            "local_exit": turned(jnp.array([THROUGH, 0.0]) - place, -heading),
            "hand_gaps": jnp.stack([gap(hand, HAND) for hand in hands(data)]), "trunk_gap": gap(place, TRUNK),
        }  # fmt: skip

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics, in [0, 1], are the share of the door's turn on which a hand was on it, how far it was
        opened, how far the robot went through, whether its trunk never touched the door, and how slow the door stayed.
        Hand and slowness count as far as the door was opened, the trunk as far as the robot went through."""
        opened, passed = Most(_turn, 1.0 / OPEN), Most(_passed)
        return WithExtraMetrics(
            Reached(_through),
            {"handled": Both(KeptShare(_turn, kept=_touched, least=STILL), opened), "opened": opened, "passed": passed,
             "clear": Both(Never(_bumps), passed), "gentle": Both(Slow(_rate, _turn, GENTLE, STILL), opened)},
        )  # fmt: skip

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.door_fragments import SUBTASK_TERMS

        said = {
            "hand": ("keep a hand on the door while it opens", "handled"),
            "open": (f"push the door open, by {OPEN} rad", "opened"),
            "go": ("go through the doorway", "passed"),
            "clear": ("never touch the door with the trunk", "clear"),
            "gently": (f"open the door gently: it never turns faster than {GENTLE} rad/s", "gentle"),
        }
        return Instruction.of(
            "Push the door open with a hand on it, gently, and go through the doorway. Do not barge into the "
            "door, neither with your body nor with your hands, and do not bang it.",
            said,
            SUBTASK_TERMS,
        )

    def default_observation(self, view: RobotView) -> jax.Array:
        """In the robot's frame the ways to the door's edge and through the doorway, and its velocity and turning; its
        heading; the door's turn and how fast it opens; and the gaps of hands and trunk; (14,)."""
        info, qvel, heading = view.info, view.data.qvel, view.data.qpos[2]
        door = jnp.stack([info["door_turn"], info["door_rate"], jnp.sin(heading), jnp.cos(heading)])
        gaps = [info["hand_gaps"], info["trunk_gap"][None]]
        return jnp.concatenate(
            [info["local_edge"], info["local_exit"], turned(qvel[:2], -heading), qvel[2:3], door, *gaps]
        )

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the robot through, 0.6 m beyond the wall."""
        return (next_view.info["left_to_go"] < 0.0).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """A hand at the door until it is open, opening it, most with a hand on it, going through once it is half open,
        and being through; a trunk near the door, its turning faster than 0.8 rad/s, and actions cost."""
        info, before = next_view.info, view.info
        turn, turn_before = (jnp.minimum(s["door_turn"], 1.4) for s in (info, before))
        near = jnp.exp(-4.0 * jnp.maximum(info["hand_gaps"].min(), 0.0)) * (turn < OPEN)
        held = (info["hand_gaps"].min() < TOUCHING).astype(jnp.float32)
        go = 20.0 * (before["left_to_go"] - info["left_to_go"]) * (turn > 0.5 * OPEN) + 2.0 * (info["left_to_go"] < 0.0)
        bump = jnp.exp(-20.0 * jnp.maximum(info["trunk_gap"], 0.0))
        fast = jnp.maximum(info["door_rate"] - GENTLE, 0.0)
        opening = 15.0 * (turn - turn_before) * (0.2 + 0.8 * held)
        return 0.3 * near + opening + go - 3.0 * bump - 6.0 * fast - 0.01 * jnp.sum(action**2)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.door_fragments import vocabulary

        return vocabulary(self.horizon)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.robots.door_fragments import SUBGOALS

        return SUBGOALS


def _touched(state: RobotState) -> jax.Array:
    """Whether a hand touches the door; never where the simulation failed."""
    return ~state.data.broken & (state.info["hand_gaps"].min() < TOUCHING)


def _bumps(state: RobotState) -> jax.Array:
    """Whether the trunk touches the door; always where the simulation failed."""
    return state.data.broken | (state.info["trunk_gap"] < TRUNK_TOUCHING)


def _through(state: RobotState) -> jax.Array:
    return ~state.data.broken & (state.info["left_to_go"] < 0.0)


def _passed(state: RobotState) -> jax.Array:
    """Of the way from before the shut door to where the robot is through, the share that it made; 0 where the
    simulation failed."""
    whole = THROUGH - WALL + HALF[0] + TRUNK
    return jnp.where(state.data.broken, 0.0, jnp.clip(1.0 - state.info["left_to_go"] / whole, 0.0, 1.0))


def _turn(state: RobotState) -> jax.Array:
    return jnp.where(state.data.broken, 0.0, state.info["door_turn"])


def _rate(state: RobotState) -> jax.Array:
    """How fast the door turns, either way (rad/s); infinite where the simulation failed."""
    return jnp.where(state.data.broken, jnp.inf, jnp.abs(state.info["door_rate"]))
