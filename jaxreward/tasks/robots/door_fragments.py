"""The vocabulary of the robot with a door: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import DONE, Stage, Template, make_subgoals, make_vocabulary
from jaxreward.tasks.robots import wheels_fragments as wheels
from jaxreward.tasks.robots.wheels_fragments import NEAR, SMALL, STEP, WAY

HELPERS = (
    wheels.HELPERS
    + '''

def turn(state):
    """How far the door is open, at most 1.4 rad."""
    return jnp.clip(state.info["door_turn"], 0.0, 1.4)


def ahead(state):
    """How far the robot is before being through; from -0.5 to 2.2 m."""
    return jnp.clip(state.info["left_to_go"], -0.5, 2.2)


def ajar(state):
    """Whether the door is open by more than 0.6 rad."""
    return (state.info["door_turn"] > 0.6).astype(jnp.float32)


def by_hand(state):
    """Whether a hand is within 2 cm of the door and the trunk is not."""
    return (state.info["hand_gaps"].min() < 0.02) * (state.info["trunk_gap"] > 0.02).astype(jnp.float32)
'''
)

SUBTASK_TERMS = {
    "hand": ("hands_near", "hands_near_wide", "hands_closer", "hand_touching", "hand_near", "opening_by_hand"),
    "open": ("opening", "is_ajar", "opened_share", "opening_rate"),
    "go": ("passing", "passing_open", "passed_share", "exit_near", "speed_ahead", "past_wall"),
    "clear": ("trunk_cost", "trunk_near_cost", "trunk_clear", "early_cost"),
    "gently": ("bang_cost", "rate_cost", "action_cost", "turning_cost"),
}
"""Terms that pay for each subtask of the instruction."""

FEATURES = (
    Template("edge_metres", "position door basic", "From the robot to the free edge of the door.",
             'state.info["local_edge"]', 2),
    Template("edge_fine", "position door scales", "The same, saturating at 20 cm.",
             'jnp.tanh(5.0 * state.info["local_edge"])', 2),
    Template("exit_metres", "position exit basic", "From the robot to 0.6 m beyond the doorway.",
             'state.info["local_exit"]', 2),
    Template("place", "position basic", "Where the robot is.", "state.data.qpos[:2]", 2),
    Template("to_wall", "position scales", "From the robot to the wall, saturating at 20 cm and at 1 m.",
             "jnp.tanh((1.3 - state.data.qpos[0]) * jnp.array([5.0, 1.0]))", 2),
    Template("door_turn", "door basic", "How far the door is open, and how fast it opens.",
             'jnp.stack([state.info["door_turn"], state.info["door_rate"]])', 2),
    Template("door_direction", "door orientation", "Sine and cosine of the door's turn from the robot's heading.",
             'jnp.stack([jnp.sin(state.info["door_turn"] - state.data.qpos[2]), '
             'jnp.cos(state.info["door_turn"] - state.data.qpos[2])])', 2),
    Template("door_ajar", "door", "Whether the door is open by more than 0.6 rad.", "ajar(state)[None]"),
    *wheels.hand_features("door"),
    *wheels.MOVEMENT,
    *wheels.ORIENTATION,
)  # fmt: skip

TERMS = (
    *wheels.hand_terms("door"),
    Template("hand_near", "shaping hands", "A bell of 10 cm around the nearer hand's touching the door.",
             "bell(gaps(next_state).min(), 0.1)", 1, NEAR),
    Template("opening", "shaping potential door", "How much wider the door was opened, up to 1.4 rad.",
             "turn(next_state) - turn(state)", 1, WAY),
    Template("opening_by_hand", "shaping farmable door", "The same while a hand touches it and the trunk does not.",
             "by_hand(next_state) * (turn(next_state) - turn(state))", 1, WAY),
    Template("opening_rate", "shaping velocity door", "How fast the door opens, at most 0.8 rad/s.",
             'jnp.clip(next_state.info["door_rate"], -0.8, 0.8)', 1, STEP),
    Template("is_ajar", "milestone door", "Whether the door is open by more than 0.6 rad.", "ajar(next_state)", 1,
             NEAR),
    Template("opened_share", "shaping door", "How far the door is open, 1 at 1.4 rad.", "turn(next_state) / 1.4", 1,
             NEAR),
    Template("passing", "shaping potential exit", "The way that the robot made towards being through.",
             "ahead(state) - ahead(next_state)", 1, WAY),
    Template("passing_open", "shaping farmable exit", "The same while the door is open by more than 0.6 rad.",
             "ajar(next_state) * (ahead(state) - ahead(next_state))", 1, WAY),
    Template("passed_share", "shaping exit", "How far the robot is, 1 where it is half a metre farther than through.",
             "1.0 - (ahead(next_state) + 0.5) / 2.7", 1, NEAR),
    Template("exit_near", "shaping exit", "A bell of 70 cm around the place 0.6 m beyond the doorway.",
             'bell(length(next_state.info["local_exit"]), 0.7)', 1, NEAR),
    Template("speed_ahead", "shaping velocity exit", "Velocity of the robot through the wall, at most 1 m/s.",
             "jnp.clip(next_state.data.qvel[0], -1.0, 1.0)", 1, STEP),
    Template("past_wall", "milestone exit", "Whether the robot's middle is beyond the wall.",
             "(next_state.data.qpos[0] > 1.3).astype(jnp.float32)", 1, NEAR),
    wheels.trunk_cost("door"),
    Template("trunk_near_cost", "penalty hands", "Minus a bell of 10 cm around the trunk's touching the door.",
             '-bell(jnp.maximum(next_state.info["trunk_gap"], 0.0), 0.1)', 1, NEAR),
    Template("trunk_clear", "shaping hands", "The gap between trunk and door, as a part of 20 cm, at most 1.",
             'jnp.clip(5.0 * next_state.info["trunk_gap"], 0.0, 1.0)', 1, SMALL),
    Template("early_cost", "penalty exit", "Minus how near to the shut door the robot is, until it is ajar.",
             "-(1.0 - ajar(next_state)) * bell(1.1 - next_state.data.qpos[0], 0.2)", 1, NEAR),
    Template("bang_cost", "penalty velocity door", "Minus what the door turns faster than 0.8 rad/s.",
             '-jnp.maximum(jnp.abs(next_state.info["door_rate"]) - 0.8, 0.0)', 1, STEP),
    Template("rate_cost", "penalty velocity door", "Minus the squared rate of the door.",
             '-next_state.info["door_rate"] ** 2', 1, NEAR),
    Template("turning_cost", "penalty velocity", "Minus the squared turning of the robot.",
             "-next_state.data.qvel[2] ** 2", 1, SMALL),
    wheels.ACTION_COST,
    Template("time_cost", "penalty time", "Minus one, until the robot is half a metre from being through.",
             '-(next_state.info["left_to_go"] >= 0.5).astype(jnp.float32)', 1, SMALL),
)  # fmt: skip


SUBGOALS = make_subgoals(
    (
        Stage("put a hand to the door", ("edge_metres", "edge_fine", "hand_gaps"), ("hands_closer",), "touching",
              "a hand is within 2 cm of the door"),
        Stage("push the door open", ("door_turn", "door_direction"), ("opening",), "ajar",
              "the door is open by more than 0.6 rad"),
        Stage("go through the doorway", ("exit_metres", "to_wall"), ("passing",), "beyond_wall",
              "the robot's middle is beyond the wall"),
    ),
    Template("through", "milestone exit", "Whether the robot is through, 0.6 m beyond the wall.",
             '(next_state.info["left_to_go"] < 0.0).astype(jnp.float32)', 1, DONE),
    wheels.TOUCHING + '''

def beyond_wall(state):
    """Whether the robot's middle is beyond the wall."""
    return (state.data.qpos[0] > 1.3).astype(jnp.float32)
''',
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the robot with a door, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon))})
