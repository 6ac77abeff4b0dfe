"""The vocabulary of the gripper with a peg: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import DONE, SHAPES, Stage, Template, make_subgoals, make_vocabulary

HELPERS = (
    SHAPES
    + '''

def aside(state):
    """How far the tip is beside the middle of the hole."""
    return jnp.abs(state.info["to_mouth"][0])


def height(state):
    """How high the tip is above the block's top; negative in the hole."""
    return -state.info["to_mouth"][1]


def lean(state):
    return jnp.abs(state.info["tilt"])


def lined_up(state):
    """Whether the tip is over the hole or in it, and the peg upright."""
    return ((aside(state) < 0.008) & (lean(state) < 0.08)).astype(jnp.float32)


def pressing(state):
    """Whether the peg touches the block outside of the hole."""
    return ((state.info["gap"] < 0.001) & (state.info["depth"] == 0.0)).astype(jnp.float32)


def speed(state):
    return length(state.info["tip_vel"])


def close(state):
    """Whether the tip is less than 1 cm above the block, or in the hole."""
    return (height(state) < 0.01).astype(jnp.float32)
'''
)

SUBTASK_TERMS = {
    "aim": ("aside_near", "aside_near_wide", "aside_closer", "is_lined_up", "aside_cost", "over_first"),
    "upright": ("tilt_near", "tilt_less", "tilt_cost", "tilt_rate_cost"),
    "insert": ("lower", "lower_lined_up", "mouth_near", "depth_share", "deeper", "inside", "sinking"),
    "clean": ("press_cost", "low_aside_cost", "gap_clear"),
    "gently": ("fast_cost", "near_speed_cost", "tip_speed_cost", "action_cost", "force_cost"),
}
"""Terms that pay for each subtask of the instruction."""

NEAR = (1.0, 2.0, 0.5)
WAY = (30.0, 100.0, 10.0)
STEP = (3.0, 10.0, 1.0)
SMALL = (0.1, 0.3, 0.03)

FEATURES = (
    Template("mouth_metres", "position basic", "From the tip to the mouth of the hole, in tens of centimetres.",
             '10.0 * state.info["to_mouth"]', 2),
    Template("mouth_fine", "position scales", "The same, saturating at about 2 cm.",
             'jnp.tanh(50.0 * state.info["to_mouth"])', 2),
    Template("place", "position basic", "Where the gripper is.", "state.data.qpos[:2]", 2),
    Template("hole_place", "position", "Middle of the hole, in tens of centimetres.",
             '10.0 * jnp.reshape(state.info["hole_x"], (1,))'),
    Template("tilt_now", "orientation basic", "The tilt, in radians and saturating at about 0.1.",
             'jnp.stack([state.info["tilt"], jnp.tanh(10.0 * state.info["tilt"])])', 2),
    Template("tip_velocity", "velocity basic", "Velocity of the tip, scaled.", '4.0 * state.info["tip_vel"]', 2),
    Template("turning", "velocity", "How fast the tilt changes, halved.", "0.5 * state.data.qvel[2:]"),
    Template("own_velocity", "velocity", "Velocity of the gripper, scaled.", "4.0 * state.data.qvel[:2]", 2),
    Template("asked", "action", "Velocities that are asked for, scaled.",
             "state.data.ctrl * jnp.array([4.0, 4.0, 1.25])", 3),
    Template("forces", "force", "Forces of the motors, saturating at about 10 N and 0.5 N m.",
             "jnp.tanh(state.data.actuator_force * jnp.array([0.1, 0.1, 2.0]))", 3),
    Template("depth_now", "depth", "How deep the tip is in the hole, in tens of centimetres.",
             '10.0 * jnp.reshape(state.info["depth"], (1,))'),
    Template("gap_scales", "contact scales", "The gap between peg and block, at two scales.",
             'jnp.tanh(state.info["gap"] * jnp.array([10.0, 100.0]))', 2),
    Template("line_up", "contact", "Whether the peg is lined up with the hole, and whether it touches the top.",
             "jnp.stack([lined_up(state), pressing(state)])", 2),
    Template("time_passed", "time", "The part of the episode that is over.",
             'jnp.reshape(state.info["step_count"] / HORIZON, (1,)).astype(jnp.float32)'),
)  # fmt: skip

TERMS = (
    Template("aside_near", "shaping position", "A bell of 1 cm around being over the hole.",
             "bell(aside(next_state), 0.01)", 1, NEAR),
    Template("aside_near_wide", "shaping position", "A bell of 8 cm around being over the hole.",
             "bell(aside(next_state), 0.08)", 1, NEAR),
    Template("aside_closer", "shaping potential position", "The way that the tip made sideways to the hole.",
             "aside(state) - aside(next_state)", 1, WAY),
    Template("aside_cost", "shaping position", "Minus how far beside the hole the tip is.", "-aside(next_state)", 1,
             (3.0, 10.0, 1.0)),
    Template("is_lined_up", "milestone position", "Whether the upright peg is over the hole or in it.",
             "lined_up(next_state)", 1, NEAR),
    Template("over_first", "shaping position", "A bell of 1 cm around being over the hole, above the block.",
             "(height(next_state) > 0.0) * bell(aside(next_state), 0.01)", 1, NEAR),
    Template("tilt_near", "shaping orientation", "A bell of 0.1 rad around being upright.",
             "bell(lean(next_state), 0.1)", 1, NEAR),
    Template("tilt_less", "shaping potential orientation", "How much the tilt was reduced.",
             "lean(state) - lean(next_state)", 1, STEP),
    Template("tilt_cost", "shaping orientation", "Minus the tilt.", "-lean(next_state)", 1, STEP),
    Template("tilt_rate_cost", "penalty orientation", "Minus the squared rate of the tilt.",
             "-next_state.data.qvel[2] ** 2", 1, SMALL),
    Template("lower", "shaping potential depth", "How much the tip was lowered.", "height(state) - height(next_state)",
             1, WAY),
    Template("lower_lined_up", "shaping farmable depth", "The same while the peg is lined up with the hole.",
             "lined_up(next_state) * (height(state) - height(next_state))", 1, WAY),
    Template("mouth_near", "shaping position", "A bell of 5 cm around the mouth of the hole.",
             'bell(length(next_state.info["to_mouth"]), 0.05)', 1, NEAR),
    Template("depth_share", "shaping depth", "How deep the tip is in the hole, 1 at its bottom.",
             'next_state.info["depth"] / 0.12', 1, NEAR),
    Template("deeper", "shaping potential depth", "How much deeper in the hole the tip is.",
             'next_state.info["depth"] - state.info["depth"]', 1, WAY),
    Template("inside", "milestone depth", "Whether the tip is more than 2 cm deep in the hole.",
             '(next_state.info["depth"] > 0.02).astype(jnp.float32)', 1, NEAR),
    Template("sinking", "shaping velocity depth", "How fast the tip sinks while it is lined up, at most 0.1 m/s.",
             'lined_up(next_state) * jnp.clip(-next_state.info["tip_vel"][1], -0.1, 0.1)', 1, STEP),
    Template("press_cost", "penalty contact", "Minus whether the peg touches the block outside of the hole.",
             "-pressing(next_state)", 1, NEAR),
    Template("low_aside_cost", "penalty contact", "Minus how far beside the hole the tip is, near the block.",
             "-close(next_state) * aside(next_state)", 1, (10.0, 30.0, 3.0)),
    Template("gap_clear", "shaping contact", "The gap between peg and block, as a part of 5 cm, at most 1.",
             'jnp.clip(20.0 * next_state.info["gap"], 0.0, 1.0)', 1, SMALL),
    Template("fast_cost", "penalty velocity", "Minus what the tip sinks faster than 0.1 m/s near the block.",
             '-close(next_state) * jnp.maximum(-next_state.info["tip_vel"][1] - 0.1, 0.0)', 1, STEP),
    Template("near_speed_cost", "penalty velocity", "Minus the squared speed of the tip near the block.",
             "-close(next_state) * speed(next_state) ** 2", 1, STEP),
    Template("tip_speed_cost", "penalty velocity", "Minus the squared speed of the tip.", "-speed(next_state) ** 2", 1,
             STEP),
    Template("force_cost", "penalty force", "Minus the squared forces along x and z, in tens of newtons.",
             "-jnp.sum((0.1 * next_state.data.actuator_force[:2]) ** 2)", 1, SMALL),
    Template("action_cost", "penalty action", "Minus the squared action.", "-jnp.sum(action**2)", 1, SMALL),
    Template("time_cost", "penalty time", "Minus one, until the tip is 6 cm deep in the hole.",
             '-(next_state.info["depth"] < 0.06).astype(jnp.float32)', 1, SMALL),
)  # fmt: skip


SUBGOALS = make_subgoals(
    (
        Stage("bring the peg over the hole, upright", ("mouth_metres", "mouth_fine", "tilt_now"),
              ("aside_closer", "tilt_less"), "lined_up", "the upright peg is over the hole or in it"),
        Stage("lower it into the hole", ("depth_now", "gap_scales"), ("lower", "deeper"), "begun",
              "the tip is more than 2 cm deep in the hole"),
    ),
    Template("is_in", "milestone goal", "Whether the tip is 0.09 m deep in the hole.",
             '(next_state.info["depth"] >= 0.09).astype(jnp.float32)', 1, DONE),
    '''
def begun(state):
    """Whether the tip is more than 2 cm deep in the hole."""
    return (state.info["depth"] > 0.02).astype(jnp.float32)
''',
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the gripper with the peg, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon))})
