"""What the vocabularies of the gripper with a cube have in common: features, terms and the stages of carrying."""

from __future__ import annotations

from jaxreward.records import Subgoals, Vocabulary
from jaxreward.tasks.fragment_template import DONE, SHAPES, Stage, Template, make_subgoals, make_vocabulary

HELPERS = (
    SHAPES
    + '''

def left(state):
    """How far the cube is from where it is to be."""
    return state.info["cube_goal_dist"]


def aside(state):
    """The same, sideways alone."""
    return jnp.abs(state.info["to_goal"][0])


def reach(state):
    """How far the gripper is from the cube."""
    return length(state.info["to_cube"])


def height(state):
    """How high the cube is above the table."""
    return state.info["cube_pos"][1] - 0.025


def held(state):
    """Whether the cube is held between the fingers."""
    return (state.info["grip_force"] > 1.0).astype(jnp.float32)


def carried(state):
    """Whether the cube is held and lifted."""
    return held(state) * (height(state) > 0.015)


def free(state):
    """Whether no finger touches the cube."""
    return (state.info["pad_gaps"].min() >= 0.002).astype(jnp.float32)


def speed(state):
    return length(state.info["cube_vel"])
'''
)

NEAR = (1.0, 2.0, 0.5)
WAY = (30.0, 100.0, 10.0)
STEP = (3.0, 10.0, 1.0)
SMALL = (0.1, 0.3, 0.03)

FEATURES = (
    Template("cube_metres", "position cube basic", "From the gripper to the cube, in tens of centimetres.",
             '10.0 * state.info["to_cube"]', 2),
    Template("cube_fine", "position cube scales", "The same, saturating at about 3 cm.",
             'jnp.tanh(40.0 * state.info["to_cube"])', 2),
    Template("goal_metres", "position goal basic", "From the cube to where it is to be, in fifths of a metre.",
             '5.0 * state.info["to_goal"]', 2),
    Template("goal_fine", "position goal scales", "The same, saturating at about 3 cm.",
             'jnp.tanh(40.0 * state.info["to_goal"])', 2),
    Template("place", "position", "Where the gripper is.", '5.0 * state.info["gripper_pos"]', 2),
    Template("cube_height", "position cube", "How high the cube is, in tens of centimetres, and at about 2 cm.",
             "jnp.stack([10.0 * height(state), jnp.tanh(50.0 * height(state))])", 2),
    Template("fingers", "fingers basic", "How far the fingers are open.", "20.0 * state.data.qpos[2:4]", 2),
    Template("fingers_asked", "fingers action", "What the fingers are asked for.", "20.0 * state.data.ctrl[2:3]"),
    Template("pad_gaps", "fingers scales", "Gaps between pads and cube, saturating at about 2 cm.",
             'jnp.tanh(50.0 * state.info["pad_gaps"])', 2),
    Template("grip", "fingers force", "Whether the cube is held, and how firmly.",
             'jnp.stack([held(state), state.info["grip_force"] / 8.0])', 2),
    Template("own_velocity", "velocity basic", "Velocity of the gripper, doubled.", "2.0 * state.data.qvel[:2]", 2),
    Template("cube_velocity", "velocity cube", "Velocity of the cube, doubled.", '2.0 * state.info["cube_vel"]', 2),
    Template("cube_tilt", "orientation cube", "The tilt of the cube, and how fast it changes.",
             'jnp.stack([3.0 * state.info["cube_tilt"], 0.3 * state.data.qvel[6]])', 2),
    Template("asked", "action", "Velocities that are asked for, doubled.", "2.0 * state.data.ctrl[:2]", 2),
    Template("time_passed", "time", "The part of the episode that is over.",
             'jnp.reshape(state.info["step_count"] / HORIZON, (1,)).astype(jnp.float32)'),
)  # fmt: skip

SUBTASK_TERMS = {
    "grasp": ("reach_near", "reach_near_wide", "reach_closer", "is_held", "grip_firm"),
    "gently": ("loose_cost", "fall_cost", "fast_cost", "action_cost"),
    "release": ("is_free_there", "open_there", "rest_there"),
}
"""Terms that pay for subtasks of the instruction, those that the tasks have in common."""

TERMS = (
    Template("reach_near", "shaping position", "A bell of 3 cm around the gripper's being at the cube.",
             "bell(reach(next_state), 0.03)", 1, NEAR),
    Template("reach_near_wide", "shaping position", "A bell of 15 cm, the same.", "bell(reach(next_state), 0.15)", 1,
             NEAR),
    Template("reach_closer", "shaping potential position", "The way that the gripper made to the cube.",
             "reach(state) - reach(next_state)", 1, WAY),
    Template("is_held", "milestone fingers", "Whether the cube is held.", "held(next_state)", 1, NEAR),
    Template("grip_firm", "shaping force", "How firmly the cube is held, 1 at 8 N.",
             'next_state.info["grip_force"] / 8.0', 1, NEAR),
    Template("lift_height", "shaping position cube", "How high the held cube is, as a part of 8 cm, at most 1.",
             "held(next_state) * jnp.clip(height(next_state) / 0.08, 0.0, 1.0)", 1, NEAR),
    Template("is_carried", "milestone cube", "Whether the cube is held and lifted.", "carried(next_state)", 1, NEAR),
    Template("higher", "shaping potential cube", "How much higher the held cube is; one that is not held counts as 0.",
             "held(next_state) * height(next_state) - held(state) * height(state)", 1, WAY),
    Template("carried_closer", "shaping farmable goal", "The way sideways of the lifted cube to where it is to be.",
             "carried(next_state) * (aside(state) - aside(next_state))", 1, WAY),
    Template("carried_over", "shaping goal", "A bell of 10 cm around the lifted cube's being above where it is to be.",
             "carried(next_state) * bell(aside(next_state), 0.1)", 1, NEAR),
    Template("low_cost", "penalty cube", "Minus the speed of the cube sideways while it is not lifted.",
             '-1.0 * (height(next_state) < 0.005) * jnp.abs(next_state.info["cube_vel"][0])', 1, STEP),
    Template("goal_closer", "shaping potential goal", "The way of the cube to where it is to be.",
             "left(state) - left(next_state)", 1, WAY),
    Template("goal_near", "shaping goal", "A bell of 3 cm around where the cube is to be.",
             "bell(left(next_state), 0.03)", 1, NEAR),
    Template("goal_near_wide", "shaping goal", "A bell of 15 cm, the same.", "bell(left(next_state), 0.15)", 1, NEAR),
    Template("goal_cost", "shaping goal", "Minus how far the cube is from where it is to be.", "-left(next_state)", 1,
             STEP),
    Template("is_free_there", "milestone goal", "Whether no finger touches the cube within 5 cm of where it is to be.",
             "free(next_state) * (left(next_state) < 0.05)", 1, NEAR),
    Template("open_there", "shaping fingers", "How far the fingers are open within 5 cm of where the cube is to be.",
             "(left(next_state) < 0.05) * 10.0 * next_state.data.qpos[2:4].sum()", 1, NEAR),
    Template("rest_there", "shaping goal", "How slow the cube is within 5 cm of where it is to be, 1 being at rest.",
             "(left(next_state) < 0.05) * bell(speed(next_state), 0.05)", 1, NEAR),
    Template("loose_cost", "penalty velocity", "Minus what the cube moves faster than 0.2 m/s while it is not held.",
             "-(1.0 - held(next_state)) * jnp.maximum(speed(next_state) - 0.2, 0.0)", 1, STEP),
    Template("fall_cost", "penalty velocity", "Minus how fast the cube sinks while it is not held.",
             '-(1.0 - held(next_state)) * jnp.maximum(-next_state.info["cube_vel"][1], 0.0)', 1, STEP),
    Template("fast_cost", "penalty velocity", "Minus the squared speed of the cube.", "-speed(next_state) ** 2", 1,
             STEP),
    Template("tilt_cost", "penalty orientation", "Minus the tilt of the cube.",
             '-jnp.abs(next_state.info["cube_tilt"])', 1, STEP),
    Template("action_cost", "penalty action", "Minus the squared action.", "-jnp.sum(action**2)", 1, SMALL),
    Template("time_cost", "penalty time", "Minus one, until the cube is within 5 cm of where it is to be.",
             "-(left(next_state) >= 0.05).astype(jnp.float32)", 1, SMALL),
)  # fmt: skip


def subgoals(near: float, where: str) -> Subgoals:
    """What comes before the cube is within `near` (m) of its place `where`, in words."""
    over = f"the cube is less than 5 cm beside its place {where}"
    return make_subgoals(
        (
            Stage("take the cube between the fingers", ("cube_metres", "cube_fine", "fingers", "pad_gaps"),
                  ("reach_closer",), "held", "the cube is held between the fingers"),
            Stage(f"carry it to above its place {where}", ("goal_metres", "cube_height"), ("higher", "goal_closer"),
                  "over", over),
            Stage("put it down and let go", ("goal_fine", "grip"), ("goal_closer",)),
        ),
        Template("is_there", "milestone goal", f"Whether the cube is within {near} m of its place {where}.",
                 f"(left(next_state) < {near}).astype(jnp.float32)", 1, DONE),
        f'''
def over(state):
    """Whether {over}."""
    return (aside(state) < 0.05).astype(jnp.float32)
''',
    )  # fmt: skip


def gripper_vocabulary(horizon: int, features: tuple[Template, ...], terms: tuple[Template, ...]) -> Vocabulary:
    """Features and terms for the gripper with a cube, and further ones, in episodes of `horizon` steps."""
    constants = {"HORIZON": repr(float(horizon))}
    return make_vocabulary((*FEATURES, *features), (*TERMS, *terms), HELPERS, constants)
