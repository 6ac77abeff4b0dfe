"""The vocabulary of the arm at the drawer: that of the arm with the handle as target, and the drawer's own."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import DONE, Stage, Template, make_subgoals, make_vocabulary
from jaxreward.tasks.robots import panda_fragments as panda

CONSTANTS = {
    "CONTROL_S": "0.02",
    "OPEN": "0.39",
    "HOME": "(0.0, -0.3, 0.0, -2.2, 0.0, 1.9, -0.7853)",
}

_OWN = '''
def error(state):
    """From the gripper to the middle of the handle (3,)."""
    return state.info["handle_pos"] - state.info["gripper_pos"]


def gap(state):
    return state.info["gripper_handle_dist"]


def drawer(state):
    return state.info["drawer_pos"]


def above(state):
    """From the gripper to 10 cm above the handle (3,)."""
    return error(state) + jnp.array([0.0, 0.0, 0.1])


def astride(state):
    """Whether the fingers are on either side of the handle."""
    behind = state.info["left_tip"][0] > state.info["handle_pos"][0]
    return (behind & (state.info["right_tip"][0] < state.info["handle_pos"][0])).astype(jnp.float32)
'''

HELPERS = panda.SHARED + "\n\n" + _OWN

SUBTASK_TERMS = {
    "reach": ("near_wide", "near", "near_sharp", "closer", "closer_log", "towards", "distance_cost", "above_closer"),
    "hold": ("straddling", "behind", "pointing_down", "fingers_wide", "straddled_pull"),
    "pull": ("drawer_out", "drawer_pulled", "drawer_speed", "drawer_moved", "drawer_half"),
    "gently": ("drawer_fast_cost", "action_cost", "jerk_cost", "joint_speed_cost", "lag_cost"),
}
"""Terms that pay for each subtask of the instruction."""

NEAR = panda.NEAR
STEP = panda.STEP


FEATURES = (
    *panda.features_about("handle"),
    Template("handle_place", "position basic", "Middle of the handle.", 'state.info["handle_pos"]', 3),
    Template("fingers_open", "joints basic", "How far the fingers are open, and asked to be, 1 being wide.",
             "25.0 * jnp.concatenate([state.data.qpos[7:9], state.data.ctrl[7:]])", 3),
    Template("drawer_state", "drawer basic", "How far the drawer is out, by what is asked, and its velocity.",
             'jnp.stack([drawer(state) / OPEN, 2.0 * state.info["drawer_vel"]])', 2),
    Template("drawer_scales", "drawer scales", "How far the drawer is out at three scales.",
             "jnp.tanh(drawer(state) * jnp.array([3.0, 15.0, 100.0]))", 3),
    Template("left_from_handle", "error fingers", "From the handle to the left fingertip, in tens of centimetres.",
             '10.0 * (state.info["left_tip"] - state.info["handle_pos"])', 3),
    Template("right_from_handle", "error fingers", "From the handle to the right fingertip, in tens of centimetres.",
             '10.0 * (state.info["right_tip"] - state.info["handle_pos"])', 3),
    Template("straddled", "fingers", "Whether the handle is between the fingers.", "astride(state)[None]"),
    Template("approach", "orientation", "Where the fingers point.", 'state.info["approach"]', 3),
    Template("above_fine", "error scales", "From the gripper to 10 cm above the handle, saturating at about 10 cm.",
             "jnp.tanh(10.0 * above(state))", 3),
    Template("handle_soon", "error predicted",
             "From the gripper to where the handle is in 0.2 s, in tens of centimetres.",
             'jnp.concatenate([10.0 * (error(state)[:1] - 0.2 * state.info["drawer_vel"]), 10.0 * error(state)[1:]])',
             3),
)  # fmt: skip

TERMS = (
    *panda.terms_about("handle"),
    Template("drawer_out", "shaping drawer", "How far the drawer is out.", "drawer(next_state)", 1, (10.0, 3.0, 30.0)),
    Template("drawer_pulled", "shaping potential drawer", "How far the drawer came out in the step.",
             "drawer(next_state) - drawer(state)", 1, (100.0, 30.0, 300.0)),
    Template("drawer_speed", "shaping velocity drawer", "Velocity of the drawer, at most 0.5 m/s.",
             'jnp.clip(next_state.info["drawer_vel"], -0.5, 0.5)', 1, STEP),
    Template("drawer_fast_cost", "penalty velocity drawer", "Minus what the drawer moves faster than 0.3 m/s.",
             '-jnp.maximum(jnp.abs(next_state.info["drawer_vel"]) - 0.3, 0.0)', 1, STEP),
    Template("drawer_moved", "milestone drawer", "Whether the drawer is 1 cm out.",
             "(drawer(next_state) > 0.01).astype(jnp.float32)", 1, NEAR),
    Template("drawer_half", "milestone drawer", "Whether the drawer is 20 cm out.",
             "(drawer(next_state) > 0.2).astype(jnp.float32)", 1, NEAR),
    Template("straddling", "shaping fingers",
             "Whether the handle is between the fingers, times a bell of 10 cm around it.",
             "astride(next_state) * bell(gap(next_state), 0.1)", 1, NEAR),
    Template("straddled_pull", "shaping fingers drawer",
             "How far the drawer is out, if the handle is between the fingers.",
             "astride(next_state) * drawer(next_state)", 1, (10.0, 3.0, 30.0)),
    Template("pointing_down", "shaping orientation", "How much the fingers point down.",
             '-next_state.info["approach"][2]', 1, (0.2, 0.5, 0.1)),
    Template("above_closer", "shaping potential", "The way made towards 10 cm above the handle.",
             "length(above(state)) - length(above(next_state))", 1, STEP),
    Template("behind", "shaping error", "A bell of 5 cm around 3 cm behind the handle.",
             "bell(length(error(next_state) + jnp.array([0.03, 0.0, 0.0])), 0.05)", 1, NEAR),
    Template("fingers_wide", "shaping fingers", "How far the fingers are open, 1 being wide.",
             "12.5 * jnp.sum(next_state.data.qpos[7:9])", 1, (0.1, 0.2, 0.05)),
)  # fmt: skip


SUBGOALS = make_subgoals(
    (
        Stage("bring the gripper to the handle", ("error_metres", "error_fine", "above_fine"),
              ("closer", "above_closer"), "at_handle", "the gripper is within 8 cm of the handle"),
        Stage("put a finger on either side of it", ("left_from_handle", "right_from_handle"), ("closer",), "between",
              "the handle is between the fingers"),
        Stage("pull the drawer out", ("drawer_state", "drawer_scales"), ("drawer_pulled",), "out",
              "the drawer is 20 cm out"),
    ),
    Template("is_open", "milestone drawer", "Whether the drawer is more than 0.39 m out.",
             "(drawer(next_state) > OPEN).astype(jnp.float32)", 1, DONE),
    '''
def at_handle(state):
    """Whether the gripper is within 8 cm of the handle."""
    return (gap(state) < 0.08).astype(jnp.float32)


def between(state):
    """Whether the handle is between the fingers."""
    return astride(state) * at_handle(state)


def out(state):
    """Whether the drawer is 20 cm out."""
    return (drawer(state) > 0.2).astype(jnp.float32)
''',
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the arm at the drawer, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon)), **CONSTANTS})
