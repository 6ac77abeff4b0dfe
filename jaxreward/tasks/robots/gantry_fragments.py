"""The vocabulary of the gantry with a cube: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import SHAPES, Template, make_vocabulary

HELPERS = (
    SHAPES
    + '''

def to_cube(state):
    """From the gripper to the cube (3,)."""
    return state.info["cube_pos"] - state.info["gripper_pos"]


def to_goal(state):
    """From the cube to the goal (3,)."""
    return state.info["goal_pos"] - state.info["cube_pos"]


def gap(state):
    return state.info["gripper_cube_dist"]


def left(state):
    return state.info["cube_goal_dist"]


def across(state):
    """How far the cube is from the goal, height left out."""
    return length(to_goal(state)[:2])


def height(state):
    """Of the cube above the table."""
    return state.info["cube_pos"][2] - 0.025


def held(state):
    """Whether both fingers hold the cube."""
    return (state.info["grip_force"] > 1.0).astype(jnp.float32)


def lifted(state):
    """Whether the cube is held more than 2 cm above the table."""
    return held(state) * (height(state) > 0.02)


def speed(state):
    return length(state.info["cube_vel"])
'''
)

NEAR = (1.0, 2.0, 0.5)
WAY = (30.0, 100.0, 10.0)
STEP = (3.0, 10.0, 1.0)
SMALL = (0.1, 0.3, 0.03)

SUBTASK_TERMS = {
    "grasp": ("at_cube", "at_cube_wide", "cube_closer", "holding", "pads_near", "open_above", "closing"),
    "carry": ("lifting", "lifted_high", "held_way", "lifted_near", "low_cost", "sliding_cost"),
    "place": ("goal_closer", "across_closer", "goal_near", "goal_near_wide", "over_goal", "goal_cost"),
    "gently": ("loose_cost", "falling_cost", "speed_cost", "action_cost", "fast_hand_cost"),
}
"""Terms that pay for each subtask of the instruction."""

FEATURES = (
    Template("gripper_place", "position basic gripper", "Where the gripper is, in tens of centimetres.",
             '10.0 * state.info["gripper_pos"]', 3),
    Template("gripper_velocity", "velocity basic gripper", "Velocity of the gripper, doubled.",
             "2.0 * state.data.qvel[:3]", 3),
    Template("fingers", "fingers basic", "How far the fingers are open, and asked to be, 1 being wide.",
             "20.0 * jnp.append(state.data.qpos[3:5], state.data.ctrl[3])", 3),
    Template("pad_gaps", "fingers basic", "Gaps between the pads and the cube, saturating at about 5 cm.",
             'jnp.tanh(20.0 * state.info["pad_gaps"])', 2),
    Template("pad_gaps_fine", "fingers scales", "The same, saturating at about 1 cm.",
             'jnp.tanh(100.0 * state.info["pad_gaps"])', 2),
    Template("cube_metres", "position cube basic", "From the gripper to the cube, in tens of centimetres.",
             "10.0 * to_cube(state)", 3),
    Template("cube_fine", "position cube scales", "The same, saturating at about 3 cm.",
             "jnp.tanh(30.0 * to_cube(state))", 3),
    Template("cube_height", "position cube", "Height of the cube above the table, saturating at about 5 cm.",
             "jnp.tanh(20.0 * height(state))[None]"),
    Template("cube_velocity", "velocity cube basic", "Velocity of the cube, doubled.",
             '2.0 * state.info["cube_vel"]', 3),
    Template("goal_metres", "position goal basic", "From the cube to the goal, in tens of centimetres.",
             "10.0 * to_goal(state)", 3),
    Template("goal_fine", "position goal scales", "The same, saturating at about 3 cm.",
             "jnp.tanh(30.0 * to_goal(state))", 3),
    Template("goal_from_gripper", "position goal gripper", "From the gripper to the goal, in tens of centimetres.",
             '10.0 * (state.info["goal_pos"] - state.info["gripper_pos"])', 3),
    Template("grip", "fingers", "Force of the fingers on the cube, saturating at about 4 N.",
             'jnp.tanh(0.25 * state.info["grip_force"])[None]'),
    Template("is_held", "fingers cube", "Whether the fingers hold the cube, and whether it is lifted.",
             "jnp.stack([held(state), lifted(state)])", 2),
    Template("distances", "position scales", "Distances of gripper and cube, and of cube and goal, saturating.",
             "jnp.tanh(10.0 * jnp.stack([gap(state), left(state)]))", 2),
    Template("asked", "action", "Velocities that are asked of the gripper, doubled.", "2.0 * state.data.ctrl[:3]", 3),
    Template("time_passed", "time", "The part of the episode that is over.",
             'jnp.reshape(state.info["step_count"] / HORIZON, (1,)).astype(jnp.float32)'),
)  # fmt: skip

TERMS = (
    Template("at_cube", "shaping gripper", "A bell of 3 cm around the cube.", "bell(gap(next_state), 0.03)", 1, NEAR),
    Template("at_cube_wide", "shaping gripper", "One at the cube, falling e-fold with every 10 cm.",
             "jnp.exp(-10.0 * gap(next_state))", 1, NEAR),
    Template("cube_closer", "shaping potential gripper", "The way that the gripper made towards the cube.",
             "gap(state) - gap(next_state)", 1, WAY),
    Template("pads_near", "shaping fingers", "Bells of 2 cm around the pads' touching the cube, on average.",
             'bell(jnp.maximum(next_state.info["pad_gaps"], 0.0), 0.02).mean()', 1, NEAR),
    Template("open_above", "shaping fingers", "Whether the fingers are open while the cube is not between them.",
             "(gap(next_state) > 0.03) * (next_state.data.qpos[3:5].min() > 0.03).astype(jnp.float32)", 1, SMALL),
    Template("closing", "shaping fingers", "Whether the fingers are asked to close around the cube.",
             "(gap(next_state) < 0.015) * (next_state.data.ctrl[3] < 0.01).astype(jnp.float32)", 1, NEAR),
    Template("holding", "shaping fingers cube", "Whether the fingers hold the cube.", "held(next_state)", 1, NEAR),
    Template("lifting", "shaping cube", "Height of the held cube, up to 5 cm, of these.",
             "held(next_state) * jnp.clip(height(next_state) / 0.05, 0.0, 1.0)", 1, NEAR),
    Template("lifted_high", "milestone cube", "Whether the cube is held more than 2 cm above the table.",
             "lifted(next_state)", 1, NEAR),
    Template("held_way", "shaping potential cube goal", "The way of the cube towards the goal while it is lifted.",
             "lifted(next_state) * (across(state) - across(next_state))", 1, WAY),
    Template("lifted_near", "shaping cube goal", "A bell of 15 cm around the goal for the lifted cube.",
             "lifted(next_state) * bell(across(next_state), 0.15)", 1, NEAR),
    Template("low_cost", "penalty cube", "Minus one while the cube is on the table and more than 6 cm from the goal.",
             "-((height(next_state) < 0.02) & (across(next_state) > 0.06)).astype(jnp.float32)", 1, SMALL),
    Template("sliding_cost", "penalty cube", "Minus the speed of the cube along the table.",
             "-speed(next_state) * (height(next_state) < 0.01)", 1, STEP),
    Template("goal_closer", "shaping potential goal", "The way of the cube towards the goal.",
             "left(state) - left(next_state)", 1, WAY),
    Template("across_closer", "shaping potential goal", "The same, height left out.",
             "across(state) - across(next_state)", 1, WAY),
    Template("goal_near", "shaping goal", "A bell of 3 cm around the goal.", "bell(left(next_state), 0.03)", 1, NEAR),
    Template("goal_near_wide", "shaping goal", "A bell of 15 cm around the goal.", "bell(left(next_state), 0.15)", 1,
             NEAR),
    Template("over_goal", "milestone goal", "Whether the cube is within 5 cm of the goal, height left out.",
             "(across(next_state) < 0.05).astype(jnp.float32)", 1, NEAR),
    Template("goal_cost", "shaping goal", "Minus the distance of cube and goal.", "-left(next_state)", 1, STEP),
    Template("loose_cost", "penalty cube", "Minus the speed of the cube while it is not held.",
             "-(1.0 - held(next_state)) * speed(next_state)", 1, STEP),
    Template("falling_cost", "penalty cube", "Minus how fast the cube comes down, beyond 0.15 m/s.",
             '-jnp.maximum(-next_state.info["cube_vel"][2] - 0.15, 0.0)', 1, STEP),
    Template("speed_cost", "penalty velocity cube", "Minus the squared speed of the cube.", "-speed(next_state) ** 2",
             1, NEAR),
    Template("fast_hand_cost", "penalty velocity gripper", "Minus the squared speed of the gripper.",
             "-jnp.sum(next_state.data.qvel[:3] ** 2)", 1, NEAR),
    Template("action_cost", "penalty action", "Minus the squared action.", "-jnp.sum(action**2)", 1, SMALL),
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the gantry with a cube, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon))})
