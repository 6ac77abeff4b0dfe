"""The vocabulary of the robot with a ball: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import DONE, Stage, Template, make_subgoals, make_vocabulary
from jaxreward.tasks.robots import wheels_fragments as wheels
from jaxreward.tasks.robots.wheels_fragments import NEAR, SMALL, STEP, WAY

HELPERS = (
    wheels.HELPERS
    + '''

def to_ball(state):
    """From the robot to the ball, in the robot's frame (2,)."""
    return state.info["local_ball"]


def to_goal(state):
    """From the ball to the goal, in the robot's frame (2,)."""
    return state.info["local_goal"]


def left(state):
    return state.info["ball_goal_dist"]


def course(state):
    """The direction from the ball to the goal, in the robot's frame (2,)."""
    return to_goal(state) / jnp.maximum(left(state), 0.001)


def behind(state):
    """From the robot to where the ball is between its hands, on the side that is away from the goal (2,)."""
    return to_ball(state) - 0.42 * course(state)


def speed(state):
    return length(state.info["ball_vel"])


def forward(state):
    """Velocity of the ball towards the goal."""
    return jnp.dot(own(state, state.info["ball_vel"]), course(state))


def rolling_to(state):
    """From where the ball will come to rest if nothing touches it to the goal, in the world (2,)."""
    return state.info["goal_pos"] - state.info["ball_pos"] - 1.25 * state.info["ball_vel"]


def before(state):
    """Whether the ball is before the line."""
    return (state.info["line_dist"] > 0.0).astype(jnp.float32)


def touched(state):
    """Whether hands or trunk are within 2 cm of the ball."""
    return (jnp.minimum(state.info["hand_gaps"].min(), state.info["trunk_gap"]) < 0.02).astype(jnp.float32)
'''
)

SUBTASK_TERMS = {
    "push": ("hands_near", "hands_near_wide", "hands_closer", "hand_touching", "behind_near", "behind_closer"),
    "roll": ("free_way", "follow_cost", "robot_over_cost", "trunk_cost", "over_line", "free_forward"),
    "bring": ("goal_closer", "ball_forward", "goal_near", "goal_near_wide", "goal_half", "goal_cost"),
    "rest": ("ends_near", "ends_near_wide", "ends_closer", "slow_near", "fast_cost", "action_cost"),
}
"""Terms that pay for each subtask of the instruction."""

FEATURES = (
    Template("ball_metres", "position ball basic", "From the robot to the ball.", "to_ball(state)", 2),
    Template("ball_fine", "position ball scales", "The same from 0.42 m ahead on, saturating at 20 cm.",
             "jnp.tanh(5.0 * (to_ball(state) - jnp.array([0.42, 0.0])))", 2),
    *wheels.hand_features("ball"),
    Template("goal_metres", "position goal basic", "From the ball to the goal.", "to_goal(state)", 2),
    Template("goal_course", "position goal", "The direction from the ball to the goal.", "course(state)", 2),
    Template("goal_left", "position goal scales", "How far the ball is from the goal, at three scales.",
             "jnp.tanh(left(state) * jnp.array([0.5, 2.0, 8.0]))", 3),
    Template("behind_metres", "position ball goal", "From the robot to behind the ball, as seen from the goal.",
             "behind(state)", 2),
    Template("line_metres", "position line basic", "From the ball to the line, also saturating at 20 cm.",
             'jnp.stack([state.info["line_dist"], jnp.tanh(5.0 * state.info["line_dist"])])', 2),
    Template("robot_line", "position line", "From the robot's hands to the line, if it looks ahead.",
             "(1.3 - state.data.qpos[0] - 0.37)[None]"),
    *wheels.MOVEMENT,
    Template("ball_velocity", "velocity ball basic", "Velocity of the ball.", 'own(state, state.info["ball_vel"])', 2),
    Template("ball_forwards", "velocity ball goal", "Velocity of the ball towards the goal.", "forward(state)[None]"),
    Template("ball_ends", "velocity ball goal", "From where the ball will come to rest to the goal.",
             "own(state, rolling_to(state))", 2),
    *wheels.ORIENTATION,
)  # fmt: skip

TERMS = (
    *wheels.hand_terms("ball"),
    Template("behind_near", "shaping position", "A bell of 30 cm around behind the ball, as seen from the goal.",
             "before(next_state) * bell(length(behind(next_state)), 0.3)", 1, NEAR),
    Template("behind_closer", "shaping potential", "The way made towards behind the ball, before the line.",
             "before(next_state) * (length(behind(state)) - length(behind(next_state)))", 1, WAY),
    Template("free_way", "shaping farmable goal", "The way of the ball towards the goal while nothing touches it.",
             "(1.0 - touched(next_state)) * (left(state) - left(next_state))", 1, WAY),
    Template("free_forward", "shaping velocity goal",
             "Velocity of the ball towards the goal, at most 1 m/s, while nothing touches it beyond the line.",
             "(1.0 - touched(next_state)) * (1.0 - before(next_state)) * jnp.clip(forward(next_state), -1.0, 1.0)", 1,
             STEP),
    Template("follow_cost", "penalty hands", "Minus whether something touches the ball beyond the line.",
             "-touched(next_state) * (1.0 - before(next_state))", 1, NEAR),
    Template("robot_over_cost", "penalty position", "Minus how far the robot is beyond half a metre before the line.",
             "-jnp.maximum(next_state.data.qpos[0] - 0.8, 0.0)", 1, STEP),
    wheels.trunk_cost("ball"),
    Template("over_line", "milestone ball", "Whether the ball is beyond the line.", "1.0 - before(next_state)", 1,
             NEAR),
    Template("goal_closer", "shaping potential goal", "The way of the ball towards the goal.",
             "left(state) - left(next_state)", 1, WAY),
    Template("ball_forward", "shaping velocity goal", "Velocity of the ball towards the goal, at most 1 m/s.",
             "jnp.clip(forward(next_state), -1.0, 1.0)", 1, STEP),
    Template("goal_near", "shaping goal", "A bell of 20 cm around the goal.", "bell(left(next_state), 0.2)", 1, NEAR),
    Template("goal_near_wide", "shaping goal", "A bell of 70 cm around the goal.", "bell(left(next_state), 0.7)", 1,
             NEAR),
    Template("goal_half", "milestone goal", "Whether the ball is within half a metre of the goal.",
             "(left(next_state) < 0.5).astype(jnp.float32)", 1, NEAR),
    Template("goal_cost", "shaping goal", "Minus the distance of ball and goal.", "-left(next_state)", 1, NEAR),
    Template("ends_near", "shaping goal", "A bell of 20 cm around the goal for where the ball will come to rest.",
             "bell(length(rolling_to(next_state)), 0.2)", 1, NEAR),
    Template("ends_near_wide", "shaping goal", "A bell of 70 cm, the same.",
             "bell(length(rolling_to(next_state)), 0.7)", 1, NEAR),
    Template("ends_closer", "shaping potential goal", "How much nearer to the goal the ball will come to rest.",
             "length(rolling_to(state)) - length(rolling_to(next_state))", 1, WAY),
    Template("slow_near", "shaping goal", "How slow the ball is within half a metre of the goal, 1 being at rest.",
             "(left(next_state) < 0.5) * bell(speed(next_state), 0.2)", 1, NEAR),
    Template("fast_cost", "penalty velocity ball", "Minus what the ball moves faster than 1 m/s.",
             "-jnp.maximum(speed(next_state) - 1.0, 0.0)", 1, STEP),
    Template("ball_moved", "milestone ball", "Whether the ball moves.",
             "(speed(next_state) > 0.05).astype(jnp.float32)", 1, NEAR),
    wheels.ACTION_COST,
    Template("time_cost", "penalty time", "Minus one, until the ball is within half a metre of the goal.",
             "-(left(next_state) >= 0.5).astype(jnp.float32)", 1, SMALL),
)  # fmt: skip


SUBGOALS = make_subgoals(
    (
        Stage("put the hands to the ball, from behind", ("behind_metres", "ball_metres", "ball_fine"),
              ("behind_closer", "hands_closer"), "touching", "a hand is within 2 cm of the ball"),
        Stage("push the ball over the line", ("line_metres", "robot_line"), ("goal_closer",), "over",
              "the ball is beyond the line"),
        Stage("have it roll to the goal, and rest there", ("goal_metres", "goal_course", "ball_ends"),
              ("ends_closer", "goal_closer"), "near_goal", "the ball is within half a metre of the goal"),
    ),
    Template("on_goal", "milestone goal", "Whether the ball is within 0.25 m of the goal.",
             "(left(next_state) < 0.25).astype(jnp.float32)", 1, DONE),
    wheels.TOUCHING + '''

def over(state):
    """Whether the ball is beyond the line."""
    return 1.0 - before(state)
''' + wheels.NEAR_GOAL,
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the robot with a ball, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon))})
