"""The vocabulary of the robot with a package: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import DONE, Stage, Template, make_subgoals, make_vocabulary
from jaxreward.tasks.robots import wheels_fragments as wheels
from jaxreward.tasks.robots.wheels_fragments import NEAR, SMALL, STEP, WAY

HELPERS = (
    wheels.HELPERS
    + '''

def to_package(state):
    """From the robot to the package, in the robot's frame (2,)."""
    return state.info["local_package"]


def to_goal(state):
    """From the package to the goal, in the robot's frame (2,)."""
    return state.info["local_goal"]


def left(state):
    return state.info["package_goal_dist"]


def course(state):
    """The direction from the package to the goal, in the robot's frame (2,)."""
    return to_goal(state) / jnp.maximum(left(state), 0.001)


def behind(state):
    """From the robot to where its hands are on the side of the package that is away from the goal (2,)."""
    return to_package(state) - 0.52 * course(state)


def held(state):
    """Whether both hands are within 2 cm of the package."""
    return (state.info["hand_gaps"].max() < 0.02).astype(jnp.float32)


def speed(state):
    return length(state.info["package_vel"])


def forward(state):
    """Velocity of the package towards the goal."""
    return jnp.dot(own(state, state.info["package_vel"]), course(state))
'''
)

SUBTASK_TERMS = {
    "touch": ("hands_near", "hands_near_wide", "hands_closer", "behind_near", "behind_closer", "hand_touching"),
    "hold": ("holding", "held_push", "held_way", "loose_cost", "trunk_cost", "uneven_cost"),
    "bring": ("goal_closer", "package_forward", "goal_near", "goal_near_wide", "goal_half", "goal_cost"),
    "gently": ("fast_cost", "speed_cost", "action_cost", "turning_cost"),
}
"""Terms that pay for each subtask of the instruction."""

FEATURES = (
    Template("package_metres", "position package basic", "From the robot to the package.", "to_package(state)", 2),
    Template("package_fine", "position package scales", "The same from 0.52 m ahead on, saturating at 20 cm.",
             "jnp.tanh(5.0 * (to_package(state) - jnp.array([0.52, 0.0])))", 2),
    Template("package_turned", "orientation package basic", "Sine and cosine of the package's turn from the robot's.",
             'jnp.stack([jnp.sin(state.info["package_turn"]), jnp.cos(state.info["package_turn"])])', 2),
    *wheels.hand_features("package"),
    Template("goal_metres", "position goal basic", "From the package to the goal.", "to_goal(state)", 2),
    Template("goal_fine", "position goal scales", "The same, saturating at about 20 cm.",
             "jnp.tanh(5.0 * to_goal(state))", 2),
    Template("goal_course", "position goal", "The direction from the package to the goal.", "course(state)", 2),
    Template("goal_left", "position goal scales", "How far the package is from the goal, at three scales.",
             "jnp.tanh(left(state) * jnp.array([0.5, 2.0, 8.0]))", 3),
    Template("behind_metres", "position package goal", "From the robot to behind the package, as seen from the goal.",
             "behind(state)", 2),
    *wheels.MOVEMENT,
    Template("package_velocity", "velocity package basic", "Velocity of the package, and how it turns.",
             'jnp.append(own(state, state.info["package_vel"]), state.data.qvel[5])', 3),
    Template("package_forwards", "velocity package goal", "Velocity of the package towards the goal.",
             "forward(state)[None]"),
    *wheels.ORIENTATION,
)  # fmt: skip

TERMS = (
    *wheels.hand_terms("package"),
    Template("holding", "shaping hands", "Whether both hands are within 2 cm of the package.", "held(next_state)", 1,
             NEAR),
    Template("behind_near", "shaping position", "A bell of 30 cm around behind the package, as seen from the goal.",
             "bell(length(behind(next_state)), 0.3)", 1, NEAR),
    Template("behind_closer", "shaping potential", "The way made towards behind the package.",
             "length(behind(state)) - length(behind(next_state))", 1, WAY),
    Template("held_push", "shaping hands goal",
             "Velocity of the package towards the goal, at most 0.4 m/s, while both hands touch it.",
             "held(next_state) * jnp.clip(forward(next_state), -0.4, 0.4)", 1, STEP),
    Template("held_way", "shaping farmable hands goal",
             "The way of the package towards the goal while both hands touch it.",
             "held(next_state) * (left(state) - left(next_state))", 1, WAY),
    Template("loose_cost", "penalty hands", "Minus the speed of the package while a hand does not touch it.",
             "-(1.0 - held(next_state)) * speed(next_state)", 1, STEP),
    wheels.trunk_cost("package"),
    Template("uneven_cost", "penalty hands", "Minus the difference of the hands' gaps, at most 0.5 m.",
             '-jnp.minimum(jnp.abs(next_state.info["hand_gaps"][0] - next_state.info["hand_gaps"][1]), 0.5)', 1, STEP),
    Template("goal_closer", "shaping potential goal", "The way of the package towards the goal.",
             "left(state) - left(next_state)", 1, WAY),
    Template("package_forward", "shaping velocity goal", "Velocity of the package towards the goal, at most 1 m/s.",
             "jnp.clip(forward(next_state), -1.0, 1.0)", 1, STEP),
    Template("goal_near", "shaping goal", "A bell of 20 cm around the goal.", "bell(left(next_state), 0.2)", 1, NEAR),
    Template("goal_near_wide", "shaping goal", "A bell of 70 cm around the goal.", "bell(left(next_state), 0.7)", 1,
             NEAR),
    Template("goal_half", "milestone goal", "Whether the package is within half a metre of the goal.",
             "(left(next_state) < 0.5).astype(jnp.float32)", 1, NEAR),
    Template("goal_cost", "shaping goal", "Minus the distance of package and goal.", "-left(next_state)", 1, NEAR),
    Template("package_moved", "milestone package", "Whether the package moves.",
             "(speed(next_state) > 0.05).astype(jnp.float32)", 1, NEAR),
    Template("fast_cost", "penalty velocity package", "Minus what the package moves faster than 0.4 m/s.",
             "-jnp.maximum(speed(next_state) - 0.4, 0.0)", 1, STEP),
    Template("speed_cost", "penalty velocity package", "Minus the squared speed of the package.",
             "-speed(next_state) ** 2", 1, NEAR),
    Template("facing", "shaping orientation", "Cosine of the robot's heading and the way from package to goal.",
             "course(next_state)[0]", 1, SMALL),
    Template("turning_cost", "penalty velocity", "Minus the squared turning of robot and package.",
             "-(next_state.data.qvel[2] ** 2 + next_state.data.qvel[5] ** 2)", 1, SMALL),
    wheels.ACTION_COST,
    Template("time_cost", "penalty time", "Minus one, until the package is within half a metre of the goal.",
             "-(left(next_state) >= 0.5).astype(jnp.float32)", 1, SMALL),
)  # fmt: skip


SUBGOALS = make_subgoals(
    (
        Stage("go behind the package, as seen from the goal", ("behind_metres", "package_metres", "package_fine"),
              ("behind_closer",), "placed", "the robot is within 30 cm of where it can push the package to the goal"),
        Stage("put both hands to it", ("hand_gaps", "package_fine"), ("hands_closer",), "held",
              "both hands are within 2 cm of the package"),
        Stage("push it to the goal", ("goal_metres", "goal_course", "goal_fine"), ("goal_closer",),
              "near_goal", "the package is within half a metre of the goal"),
    ),
    Template("on_goal", "milestone goal", "Whether the package is within 0.15 m of the goal.",
             "(left(next_state) < 0.15).astype(jnp.float32)", 1, DONE),
    '''
def placed(state):
    """Whether the robot is within 30 cm of where its hands are behind the package."""
    return (length(behind(state)) < 0.3).astype(jnp.float32)

''' + wheels.NEAR_GOAL,
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the robot with a package, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon))})
