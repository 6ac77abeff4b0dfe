"""The vocabulary of the arm with a puck: that of the arm with the puck as target, and the puck's own."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import DONE, Stage, Template, make_subgoals, make_vocabulary
from jaxreward.tasks.robots import panda_fragments as panda

CONSTANTS = {
    "CONTROL_S": "0.02",
    "HOME": "(0.0, -0.192, 0.0, -2.851, 0.0, 2.659, 0.7853)",
}

_OWN = '''
def error(state):
    """From the gripper to the middle of the puck (3,)."""
    return state.info["puck_pos"] - state.info["gripper_pos"]


def gap(state):
    return state.info["gripper_puck_dist"]


def to_goal(state):
    """From the puck to the goal (3,)."""
    return state.info["goal_pos"] - state.info["puck_pos"]


def left(state):
    return state.info["puck_goal_dist"]


def course(state):
    """The direction from the puck to the goal (3,)."""
    return to_goal(state) / jnp.maximum(left(state), 0.001)


def behind(state):
    """From the gripper to the side of the puck that is away from the goal (3,)."""
    return error(state) - 0.04 * course(state)


def touching(state):
    """Whether a fingertip is within 2 cm of the puck's side."""
    return (state.info["touch_gap"] < 0.02).astype(jnp.float32)


def puck_speed(state):
    return length(state.info["puck_vel"])


def forward(state):
    """Velocity of the puck towards the goal."""
    return jnp.dot(state.info["puck_vel"], course(state)[:2])
'''

HELPERS = panda.SHARED + "\n\n" + _OWN

SUBTASK_TERMS = {
    "reach": ("near_wide", "near", "near_sharp", "closer", "closer_log", "towards", "distance_cost", "behind_near",
              "behind_closer"),
    "push": ("touching_puck", "touched_push", "touched_way", "behind_sharp", "loose_cost"),
    "bring": ("puck_forward", "goal_closer", "goal_near", "goal_near_wide", "goal_half", "goal_cost"),
    "gently": ("puck_fast_cost", "puck_speed_cost", "action_cost", "jerk_cost", "joint_speed_cost", "lag_cost"),
}  # fmt: skip
"""Terms that pay for each subtask of the instruction."""

NEAR = panda.NEAR
STEP = panda.STEP


FEATURES = (
    *panda.features_about("puck"),
    Template("fingers_open", "joints basic", "How far the fingers are open, and asked to be, 1 being wide.",
             "25.0 * jnp.concatenate([state.data.qpos[7:9], state.data.ctrl[7:]])", 3),
    Template("puck_place", "position basic puck", "Middle of the puck.", 'state.info["puck_pos"]', 3),
    Template("puck_velocity", "puck basic", "Velocity of the puck, scaled.", '4.0 * state.info["puck_vel"]', 2),
    Template("goal_place", "position basic goal", "Where the puck is to lie.", 'state.info["goal_pos"]', 3),
    Template("goal_metres", "error goal basic", "From the puck to the goal, in tens of centimetres.",
             "10.0 * to_goal(state)[:2]", 2),
    Template("goal_fine", "error goal scales", "From the puck to the goal, saturating at about 5 cm.",
             "jnp.tanh(20.0 * to_goal(state)[:2])", 2),
    Template("goal_course", "error goal", "The direction from the puck to the goal.", "course(state)[:2]", 2),
    Template("goal_left", "error goal scales", "How far the puck is from the goal, at three scales.",
             "jnp.tanh(left(state) * jnp.array([3.0, 10.0, 30.0]))", 3),
    Template("behind_metres", "error puck", "From the gripper to behind the puck, in tens of centimetres.",
             "10.0 * behind(state)", 3),
    Template("behind_fine", "error puck scales", "From the gripper to behind the puck, saturating at about 5 cm.",
             "jnp.tanh(20.0 * behind(state))", 3),
    Template("left_from_puck", "error fingers", "From the puck to the left fingertip, in tens of centimetres.",
             '10.0 * (state.info["left_tip"] - state.info["puck_pos"])', 3),
    Template("right_from_puck", "error fingers", "From the puck to the right fingertip, in tens of centimetres.",
             '10.0 * (state.info["right_tip"] - state.info["puck_pos"])', 3),
    Template("touch", "fingers puck", "Whether a fingertip touches the puck, and how far it is from that, saturating.",
             'jnp.stack([touching(state), jnp.tanh(20.0 * state.info["touch_gap"])])', 2),
    Template("approach", "orientation", "Where the fingers point.", 'state.info["approach"]', 3),
    Template("puck_forwards", "puck goal", "Velocity of the puck towards the goal, scaled.",
             "4.0 * forward(state)[None]"),
)  # fmt: skip

TERMS = (
    *panda.terms_about("puck"),
    Template("behind_near", "shaping error", "A bell of 10 cm around behind the puck.",
             "bell(length(behind(next_state)), 0.1)", 1, NEAR),
    Template("behind_sharp", "shaping error", "A bell of 4 cm around behind the puck.",
             "bell(length(behind(next_state)), 0.04)", 1, NEAR),
    Template("behind_closer", "shaping potential", "The way made towards behind the puck.",
             "length(behind(state)) - length(behind(next_state))", 1, STEP),
    Template("touching_puck", "shaping fingers", "Whether a fingertip touches the puck.", "touching(next_state)", 1,
             NEAR),
    Template("touched_push", "shaping fingers goal",
             "Velocity of the puck towards the goal, at most 0.25 m/s, while a fingertip touches it.",
             "touching(next_state) * jnp.clip(forward(next_state), -0.25, 0.25)", 1, STEP),
    Template("touched_way", "shaping farmable fingers goal",
             "The way of the puck towards the goal while a fingertip touches it.",
             "touching(next_state) * (left(state) - left(next_state))", 1, (100.0, 30.0, 300.0)),
    Template("loose_cost", "penalty fingers", "Minus the speed of the puck while nothing touches it.",
             "-(1.0 - touching(next_state)) * puck_speed(next_state)", 1, STEP),
    Template("puck_forward", "shaping velocity goal", "Velocity of the puck towards the goal, at most 1 m/s.",
             "jnp.clip(forward(next_state), -1.0, 1.0)", 1, STEP),
    Template("goal_closer", "shaping potential goal", "The way of the puck towards the goal.",
             "left(state) - left(next_state)", 1, (100.0, 30.0, 300.0)),
    Template("goal_near", "shaping goal", "A bell of 6 cm around the goal.", "bell(left(next_state), 0.06)", 1, NEAR),
    Template("goal_near_wide", "shaping goal", "A bell of 20 cm around the goal.", "bell(left(next_state), 0.2)", 1,
             NEAR),
    Template("puck_moved", "milestone puck", "Whether the puck moves.",
             "(puck_speed(next_state) > 0.02).astype(jnp.float32)", 1, NEAR),
    Template("goal_half", "milestone goal", "Whether the puck is within 12 cm of the goal.",
             "(left(next_state) < 0.12).astype(jnp.float32)", 1, NEAR),
    Template("goal_cost", "shaping goal", "Minus the distance of puck and goal.", "-left(next_state)", 1,
             (3.0, 1.0, 10.0)),
    Template("puck_fast_cost", "penalty velocity puck", "Minus what the puck moves faster than 0.25 m/s.",
             "-jnp.maximum(puck_speed(next_state) - 0.25, 0.0)", 1, STEP),
    Template("puck_speed_cost", "penalty velocity puck", "Minus the squared speed of the puck.",
             "-puck_speed(next_state) ** 2", 1, STEP),
    Template("pointing_down", "shaping orientation", "How much the fingers point down.",
             '-next_state.info["approach"][2]', 1, (0.2, 0.5, 0.1)),
)  # fmt: skip


SUBGOALS = make_subgoals(
    (
        Stage("bring the gripper behind the puck, as seen from the goal", ("behind_metres", "behind_fine"),
              ("behind_closer",), "placed", "the gripper is within 4 cm of behind the puck"),
        Stage("touch the puck", ("left_from_puck", "right_from_puck", "error_fine"), ("closer",), "touching",
              "a fingertip is within 2 cm of the puck's side"),
        Stage("push it to the goal", ("goal_metres", "goal_fine", "goal_course"), ("goal_closer",),
              "near_goal", "the puck is within 12 cm of the goal"),
    ),
    Template("on_goal", "milestone goal", "Whether the puck is within 0.05 m of the goal.",
             "(left(next_state) < 0.05).astype(jnp.float32)", 1, DONE),
    '''
def placed(state):
    """Whether the gripper is within 4 cm of behind the puck."""
    return (length(behind(state)) < 0.04).astype(jnp.float32)


def near_goal(state):
    """Whether the puck is within 12 cm of the goal."""
    return (left(state) < 0.12).astype(jnp.float32)
''',
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the arm with the puck, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon)), **CONSTANTS})
