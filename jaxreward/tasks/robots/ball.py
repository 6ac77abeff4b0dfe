"""Ball roll: a robot with two hands rolls a ball over the floor to where it is to come to rest (after ManiSkill's
RollBall, in the plane)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Instruction, Subgoals, Vocabulary
from jaxreward.tasks.metrics import Both, Reached, WithExtraMetrics
from jaxreward.tasks.robots.bringing import Bringing
from jaxreward.tasks.robots.manner_metrics import AtEnd, KeptPath, Most
from jaxreward.tasks.robots.physics import Data
from jaxreward.tasks.robots.planar import turned
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

NEAR = 0.25
"""Metres from the goal within which the ball is on it."""
LINE = 1.3
"""Where the line is up to which the ball may be touched (x, in m)."""
RADIUS = 0.12
"""Of the ball (m)."""
ROLLS = 1.25
"""How far the ball rolls on (m) for each metre a second."""
BEHIND = 0.42
"""Metres from the robot's middle to the ball's when it lies between the hands."""
AT_REST = 0.1
"""Metres a second up to which the ball is at rest."""
MOVING = 0.1
"""Metres a second from which on it moves."""
STILL = 0.05
"""Metres beyond the line up to which the ball has not rolled."""
BALL = ((0.8, -0.25), (1.0, 0.25))
"""Where the ball begins: lowest and highest x and y (m)."""
GOAL = ((1.9, -0.5), (2.4, 0.5))
"""Where it is to come to rest."""


@dataclass(frozen=True)
class BallRoll(WheelsTask):
    """A robot on wheels that must roll a ball to a place on the floor.

    Args:
        horizon: control steps (0.04 s) of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    horizon: int = 150

    name = "ball-roll"
    bodies: ClassVar[str] = "ball"
    state_notes = (
        "qpos is [robot x, y (m) and heading (rad), ball x, y (m)], qvel their velocities. The ball has a radius of\n"
        "0.12 m and moves in the plane; let go, it rolls on by 1.25 m for each metre a second. Hands and trunk touch\n"
        "it. The line is at x = 1.3; at the beginning robot and ball are before it, the goal is 0.6 to 1.1 m beyond.\n"
    ) + WHEELS_NOTES
    own_words: ClassVar[Mapping[str, str]] = {
        **WHEELS_WORDS,
        "info.ball_pos": "middle of the ball (m): x, y",
        "info.ball_vel": "velocity of the ball (m/s): x, y",
        "info.goal_pos": "where the ball is to come to rest (m): x, y; constant within an episode",
        "info.start_pos": "where the ball was at the beginning (m): x, y",
        "info.local_ball": "from the robot to the middle of the ball, in the robot's frame (m): forward, left",
        "info.local_goal": "from the ball to the goal, in the robot's frame (m): forward, left",
        "info.line_dist": "from the middle of the ball to the line (m); negative beyond it",
        "info.hand_gaps": "gaps between the left and the right hand and the ball (m); at most 0 when they touch",
        "info.trunk_gap": "gap between trunk and ball (m); at most 0 when they touch",
        "info.ball_goal_dist": f"distance of ball and goal (m); the goal is less than {NEAR}",
    }

    @property
    def description(self) -> str:
        return (
            "A robot on wheels with two hands rolls a ball over the floor to a goal that differs from episode to "
            f"episode. An episode lasts {0.04 * self.horizon:g} seconds and succeeds if the ball is within {NEAR} m "
            "of the goal at some moment."
        )

    def start(self, key: jax.Array) -> Data:
        """The robot a little turned; ball and goal drawn uniformly."""
        home = jax.tree.map(jnp.asarray, self.home)
        turn, ball, goal = jax.random.split(key, 3)
        heading = jax.random.uniform(turn, minval=-TURNED, maxval=TURNED)
        place, aim = (
            jax.random.uniform(k, (2,), minval=jnp.array(low), maxval=jnp.array(high))
            for k, (low, high) in ((ball, BALL), (goal, GOAL))
        )
        qpos = home.qpos.at[2].set(heading).at[3:5].set(place)
        return home.replace(qpos=qpos, mocap_pos=home.mocap_pos.at[0, :2].set(aim))

    def sensed(self, data: Data) -> dict[str, Any]:
        heading, place, goal = data.qpos[2], data.qpos[3:5], data.mocap_pos[0, :2]
        gap = lambda point, radius: jnp.linalg.norm(point - place) - radius - RADIUS  # noqa: E731
        return {
            "ball_pos": place, "ball_vel": data.qvel[3:5], "goal_pos": goal, "line_dist": LINE - place[0],
            "local_ball": turned(place - data.qpos[:2], -heading), "local_goal": turned(goal - place, -heading),
            "hand_gaps": jnp.stack([gap(hand, HAND) for hand in hands(data)]),
            "trunk_gap": gap(data.qpos[:2], TRUNK), "ball_goal_dist": jnp.linalg.norm(goal - place),
        }  # fmt: skip

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        return super().first_info(data, key) | {"start_pos": data.qpos[3:5]}

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics, in [0, 1], are whether the ball moved with a hand on it, the share of its path beyond
        the line on which nothing touched it, the share of the way to the goal that was made, and whether it is at rest
        there, untouched, at the end. Rolling counts as far as the ball was brought."""
        ball = Bringing("ball", NEAR)
        brought = Most(ball.brought)
        return WithExtraMetrics(
            Reached(ball.on_goal),
            {"pushed": Reached(_pushed), "rolled": Both(KeptPath(_path_beyond, kept=_free, least=STILL), brought),
             "brought": brought, "rested": AtEnd(lambda state: ball.on_goal(state) & _rests(state))},
        )  # fmt: skip

    def instruction(self) -> Instruction:
        from jaxreward.tasks.robots.ball_fragments import SUBTASK_TERMS

        said = {
            "push": ("push the ball with a hand", "pushed"),
            "roll": ("let the ball roll by itself beyond the red line: nothing touches it there", "rolled"),
            "bring": ("bring the ball onto the goal", "brought"),
            "rest": ("the ball is at rest on the goal in the end", "rested"),
        }
        return Instruction.of(
            "Give the ball a push with your hands so that it rolls onto the green goal and comes to rest there. "
            "Let go of it before the red line; do not follow it to the goal, and do not shoot it past.",
            said,
            SUBTASK_TERMS,
        )

    def default_observation(self, view: RobotView) -> jax.Array:
        """In the robot's frame the ways to the ball and from there to the goal, the velocities of both and the robot's
        turning; its heading; and the gaps between hands and ball and between ball and line; (14,)."""
        info, qvel, heading = view.info, view.data.qvel, view.data.qpos[2]
        turn = jnp.stack([jnp.sin(heading), jnp.cos(heading)])
        moves = [turned(qvel[:2], -heading), qvel[2:3], turned(qvel[3:5], -heading)]
        gaps = [info["hand_gaps"], info["line_dist"][None]]
        return jnp.concatenate([info["local_ball"], info["local_goal"], turn, *moves, *gaps])

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends with the ball within 0.25 m of the goal."""
        return (next_view.info["ball_goal_dist"] < NEAR).astype(jnp.float32)

    def dense_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """The hands at the ball before the line, the place where the ball will come to rest near to the goal, touching
        it beyond the line, and being at rest on the goal."""
        info = next_view.info
        course = info["local_goal"] / jnp.maximum(info["ball_goal_dist"], 1e-3)
        behind = jnp.linalg.norm(info["local_ball"] - BEHIND * course)
        hands = jnp.exp(-4.0 * jnp.maximum(info["hand_gaps"], 0.0)).mean() + jnp.exp(-4.0 * behind)
        before, ends = _to_rest(view), _to_rest(next_view)
        aim = 20.0 * (before - ends) - 2.0 * ends + 3.0 * jnp.exp(-((ends / 0.2) ** 2))
        follow = ~_free(next_view) & (info["line_dist"] < 0.0)
        rest = (info["ball_goal_dist"] < NEAR) & _rests(next_view)
        push = 0.5 * hands * (info["line_dist"] > 0.0)
        return push + aim - 2.0 * follow + 4.0 * rest - 0.01 * jnp.sum(action**2)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.ball_fragments import vocabulary

        return vocabulary(self.horizon)

    def subgoals(self) -> Subgoals:
        from jaxreward.tasks.robots.ball_fragments import SUBGOALS

        return SUBGOALS


def _pushed(state: RobotState) -> jax.Array:
    """Whether the ball moves and a hand touches it; never where the simulation failed."""
    moves = jnp.linalg.norm(state.info["ball_vel"]) > MOVING
    return ~state.data.broken & moves & (state.info["hand_gaps"].min() < TOUCHING)


def _free(state: RobotState | RobotView) -> jax.Array:
    """Whether neither hands nor trunk touch the ball."""
    return jnp.minimum(state.info["hand_gaps"].min(), state.info["trunk_gap"]) >= TOUCHING


def _path_beyond(state: RobotState, after: RobotState) -> jax.Array:
    """The path of the ball in a step that ends beyond the line (m); 0 before it, and where the simulation failed."""
    path = jnp.linalg.norm(after.info["ball_pos"] - state.info["ball_pos"])
    return jnp.where(after.data.broken | (after.info["line_dist"] > 0.0), 0.0, path)


def _rests(state: RobotState | RobotView) -> jax.Array:
    return _free(state) & (jnp.linalg.norm(state.info["ball_vel"]) < AT_REST)


def _to_rest(state: RobotView) -> jax.Array:
    """How far from the goal the ball will come to rest if nothing touches it (m)."""
    info = state.info
    return jnp.linalg.norm(info["goal_pos"] - info["ball_pos"] - ROLLS * info["ball_vel"])
