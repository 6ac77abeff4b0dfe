"""The vocabulary of the quadcopter: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import SHAPES, Template, make_vocabulary
from jaxreward.tasks.robots import go1_fragments as go1

CONSTANTS = {"HOVER": "1.226"}

HELPERS = (
    SHAPES
    + '''

def way(state):
    """From the quadcopter to the target in the body (3,)."""
    return state.info["local_target"]


def way_ahead(state, seconds):
    """The same from where the quadcopter will be if it keeps its velocity (3,)."""
    return way(state) - seconds * state.info["local_linvel"]


def gap(state):
    return state.info["target_dist"]


def closing(state):
    """Speed towards the target, in m/s."""
    return jnp.sum(way(state) * state.info["local_linvel"]) / (gap(state) + 0.01)
'''
)

NEAR = (1.0, 2.0, 0.5)
STEP = (10.0, 30.0, 3.0)
SMALL = (0.1, 0.2, 0.05)
PENALTY = (0.01, 0.03, 0.003)

_BODY = {"body_velocity", "turning", "gravity", "heading", "time_passed"}
_QUIET = {"upright", "level", "alive", "turn_cost", "jerk_cost"}

FEATURES = (
    *(template for template in go1.FEATURES if template.name in _BODY),
    Template("target_in_body", "position body basic", "The way to the target, halved.", "0.5 * way(state)", 3),
    Template("target_coarse", "position body scales", "The way to the target, saturating at about 1 m.",
             "jnp.tanh(way(state))", 3),
    Template("target_fine", "position body scales", "The way to the target, saturating at about 20 cm.",
             "jnp.tanh(5.0 * way(state))", 3),
    Template("target_finest", "position body scales", "The way to the target, saturating at about 5 cm.",
             "jnp.tanh(20.0 * way(state))", 3),
    Template("target_in_world", "position", "The way to the target in the world.",
             'state.info["target_pos"] - state.data.qpos[:3]', 3),
    Template("distance_scales", "position scales", "Distance at three scales.",
             "jnp.tanh(gap(state) * jnp.array([0.5, 3.0, 15.0]))", 3),
    Template("target_soon", "position body predicted",
             "The way to the target from where the quadcopter is bound for in 0.2 s.", "way_ahead(state, 0.2)", 3),
    Template("target_later", "position body predicted",
             "The way to the target from where the quadcopter is bound for in 0.5 s.", "way_ahead(state, 0.5)", 3),
    Template("world_velocity", "velocity", "Velocity in the world, halved.", "0.5 * state.data.qvel[:3]", 3),
    Template("closing_speed", "velocity", "Speed towards the target.", "jnp.reshape(closing(state), (1,))"),
    Template("attitude", "orientation basic", "The attitude as a quaternion.", "state.data.qpos[3:7]", 4),
    Template("up_axis", "orientation", "The body's upward axis in the world.", 'state.info["upvector"]', 3),
    Template("last_action", "action basic", "The action before.", 'state.info["last_act"]', 4),
    Template("thrusts", "action", "Thrusts of the rotors less those that carry the weight, by these.",
             "state.data.actuator_force / HOVER - 1.0", 4),
)  # fmt: skip

TERMS = (
    *(template for template in go1.TERMS if template.name in _QUIET),
    Template("distance_cost", "penalty position", "Minus the distance.", "-gap(next_state)", 1, NEAR),
    Template("distance_squared", "penalty position", "Minus the squared distance.", "-gap(next_state) ** 2", 1, NEAR),
    Template("around", "shaping position", "One at the target, falling e-fold with every metre.",
             "jnp.exp(-gap(next_state))", 1, NEAR),
    Template("near_wide", "shaping position", "A bell of 50 cm around the target.", "bell(gap(next_state), 0.5)", 1,
             NEAR),
    Template("near", "shaping position", "A bell of 15 cm around the target.", "bell(gap(next_state), 0.15)", 1, NEAR),
    Template("near_fine", "shaping position", "A bell of 5 cm around the target.", "bell(gap(next_state), 0.05)", 1,
             NEAR),
    Template("closer", "shaping potential", "The way made towards the target.", "gap(state) - gap(next_state)", 1,
             STEP),
    Template("closer_log", "shaping potential", "The way made towards the target, on a logarithmic scale.",
             "jnp.log(gap(state) + 0.03) - jnp.log(gap(next_state) + 0.03)", 1, (1.0, 3.0, 0.3)),
    Template("soon_near", "shaping predicted", "A bell of 30 cm for where the quadcopter is bound for in 0.3 s.",
             "bell(length(way_ahead(next_state, 0.3)), 0.3)", 1, NEAR),
    Template("soon_closer", "shaping potential predicted", "How much nearer to the target the quadcopter is bound for.",
             "length(way_ahead(state, 0.3)) - length(way_ahead(next_state, 0.3))", 1, STEP),
    Template("towards", "shaping velocity", "Speed towards the target, at most 1 m/s.",
             "jnp.clip(closing(next_state), -1.0, 1.0)", 1, (0.3, 1.0, 0.1)),
    Template("still_near", "shaping velocity",
             "A bell of 30 cm around the target, times one of 50 cm/s around standing still.",
             'bell(gap(next_state), 0.3) * bell(length(next_state.info["local_linvel"]), 0.5)', 1, NEAR),
    Template("speed_cost", "penalty velocity", "Minus the squared speed.",
             '-jnp.sum(next_state.info["local_linvel"] ** 2)', 1, SMALL),
    Template("spin_cost", "penalty velocity", "Minus the squared yaw rate.", '-(next_state.info["gyro"][2] ** 2)', 1,
             SMALL),
    Template("height_cost", "penalty position", "Minus how far the quadcopter is above or below the target.",
             '-jnp.abs(next_state.info["target_pos"][2] - next_state.data.qpos[2])', 1, NEAR),
    Template("action_cost", "penalty action", "Minus the squared action.", "-jnp.sum(action**2)", 1, PENALTY),
    Template("thrust_cost", "penalty energy",
             "Minus the squared differences of thrusts from those that carry the weight, by these.",
             "-jnp.sum((next_state.data.actuator_force / HOVER - 1.0) ** 2)", 1, PENALTY),
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the quadcopter, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon)), **CONSTANTS})
