"""The vocabulary of the quadruped: what a genetic proposer may build observations and rewards from.

It has positions, velocities, orientation, joints and pushes; the task's goal is not in it.
"""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import SHAPES, Template, make_vocabulary

CONSTANTS = {
    "HOME": "(0.1, 0.9, -1.8, -0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, 0.9, -1.8)",
    "STANDING": "0.26",
    "REACH": "0.18",
}

HELPERS = (
    SHAPES
    + '''

def joints_from_home(state):
    """Joint angles less those of the home pose (12,)."""
    return state.data.qpos[7:] - jnp.array(HOME)


def in_body(state, vector):
    """A horizontal vector of the world, (2,), as forward and left of the robot."""
    c, s = jnp.cos(state.info["heading"]), jnp.sin(state.info["heading"])
    return jnp.stack([c * vector[0] + s * vector[1], c * vector[1] - s * vector[0]])


def away(state):
    """Horizontal distance from the origin."""
    return length(state.info["pos_xy"])


def bound_for(state):
    """Where the robot would come to stand if it stopped stepping: its position and a while of its velocity (2,)."""
    return state.info["pos_xy"] + REACH * state.data.qvel[:2]
'''
)

NEAR = (1.0, 2.0, 0.5)
STEP = (5.0, 10.0, 20.0)
SMALL = (0.1, 0.2, 0.05)
PENALTY = (0.01, 0.03, 0.003)
FINE = (0.001, 0.003, 0.0003)

FEATURES = (
    Template("body_velocity", "velocity body basic", "Velocity forward, left and up.", 'state.info["local_linvel"]', 3),
    Template("turning", "velocity body basic", "Angular velocity in the body.", '0.3 * state.info["gyro"]', 3),
    Template("gravity", "orientation body basic", "Direction of gravity in the body.", 'state.info["gravity"]', 3),
    Template("joint_offsets", "joints basic", "Joint angles from the home pose.", "joints_from_home(state)", 12),
    Template("joint_speeds", "joints basic", "Joint velocities, scaled.", "0.05 * state.data.qvel[6:]", 12),
    Template("last_action", "action basic", "The action before.", 'state.info["last_act"]', 12),
    Template("motor_torques", "joints", "Torques of the motors, by their limit.", "state.data.actuator_force / 23.7",
             12),
    Template("motor_lag", "joints", "What the motors are asked for less where the joints are.",
             "state.data.ctrl - state.data.qpos[7:]", 12),
    Template("origin_in_body", "position body", "The way to the origin, forward and left.",
             'in_body(state, -state.info["pos_xy"])', 2),
    Template("origin_coarse", "position body scales", "The way to the origin, saturating at about half a metre.",
             'jnp.tanh(2.0 * in_body(state, -state.info["pos_xy"]))', 2),
    Template("origin_fine", "position body scales", "The way to the origin, saturating at about 10 cm.",
             'jnp.tanh(10.0 * in_body(state, -state.info["pos_xy"]))', 2),
    Template("origin_finest", "position body scales", "The way to the origin, saturating at about 3 cm.",
             'jnp.tanh(30.0 * in_body(state, -state.info["pos_xy"]))', 2),
    Template("distance", "position", "Distance from the origin at three scales.",
             "jnp.tanh(away(state) * jnp.array([1.0, 5.0, 20.0]))", 3),
    Template("landing_in_body", "position body predicted", "The way from where the robot is bound for to the origin.",
             "5.0 * in_body(state, -bound_for(state))", 2),
    Template("heading", "orientation", "Sine and cosine of the heading.",
             'jnp.stack([jnp.sin(state.info["heading"]), jnp.cos(state.info["heading"])])', 2),
    Template("height", "position", "Height of the trunk above its standing height, in tens of centimetres.",
             'jnp.reshape(10.0 * (state.info["height"] - STANDING), (1,))'),
    Template("push_in_body", "push body", "The push of the step that led here, forward and left, by the strongest.",
             'in_body(state, state.info["push_force"][:2]) / STRONG', 2),
    Template("pushed", "push", "Whether a push acted in the step that led here.",
             'jnp.reshape(length(state.info["push_force"]) > 1.0, (1,)).astype(jnp.float32)'),
    Template("time_passed", "time", "The part of the episode that is over.",
             'jnp.reshape(state.info["step_count"] / HORIZON, (1,))'),
    Template("mean_distance", "position time", "Mean distance from the origin so far, in tens of centimetres.",
             'jnp.reshape(10.0 * state.info["cum_pos_error"] / jnp.maximum(state.info["step_count"], 1), (1,))'),
)  # fmt: skip

TERMS = (
    Template("stay_near", "shaping position", "A bell of 10 cm around the origin.", "bell(away(next_state), 0.1)", 1,
             NEAR),
    Template("stay_near_wide", "shaping position", "A bell of 30 cm around the origin.", "bell(away(next_state), 0.3)",
             1, NEAR),
    Template("distance_cost", "penalty position", "Minus the distance from the origin.", "-away(next_state)", 1, NEAR),
    Template("closer", "shaping potential position", "The way made towards the origin.",
             "away(state) - away(next_state)", 1, STEP),
    Template("bound_near", "shaping predicted", "A bell of 15 cm for where the robot is bound for.",
             "bell(length(bound_for(next_state)), 0.15)", 1, NEAR),
    Template("bound_closer", "shaping potential predicted", "How much nearer to the origin the robot is bound for.",
             "length(bound_for(state)) - length(bound_for(next_state))", 1, STEP),
    Template("upright", "shaping orientation", "Uprightness of the body.", 'next_state.info["upvector"][2]', 1, NEAR),
    Template("level", "shaping orientation", "A bell around level.",
             'bell(length(next_state.info["gravity"][:2]), 0.3)', 1, NEAR),
    Template("alive", "milestone", "1 for every step.", "jnp.ones(())", 1, SMALL),
    Template("tall", "shaping position", "A bell of 5 cm around the standing height.",
             'bell(next_state.info["height"] - STANDING, 0.05)', 1, (0.5, 1.0, 0.2)),
    Template("still", "shaping velocity", "A bell around standing still.",
             'bell(length(next_state.info["local_linvel"][:2]), 0.3)', 1, (0.5, 1.0, 0.2)),
    Template("speed_cost", "penalty velocity", "Minus the squared horizontal speed.",
             '-jnp.sum(next_state.info["local_linvel"][:2] ** 2)', 1, SMALL),
    Template("bounce_cost", "penalty velocity", "Minus the squared vertical speed.",
             '-next_state.info["local_linvel"][2] ** 2', 1, SMALL),
    Template("turn_cost", "penalty velocity", "Minus the squared angular velocity.",
             '-jnp.sum(next_state.info["gyro"] ** 2)', 1, PENALTY),
    Template("heading_kept", "shaping orientation", "Cosine of the heading.", 'jnp.cos(next_state.info["heading"])', 1,
             SMALL),
    Template("pose_cost", "penalty joints", "Minus the squared distance of the joints from home.",
             "-jnp.sum(joints_from_home(next_state) ** 2)", 1, SMALL),
    Template("pose_kept", "shaping joints", "A bell around the home pose.",
             "bell(length(joints_from_home(next_state)), 1.0)", 1, (0.5, 1.0, 0.2)),
    Template("joint_speed_cost", "penalty joints energy", "Minus the squared joint velocities.",
             "-jnp.sum(next_state.data.qvel[6:] ** 2)", 1, FINE),
    Template("torque_cost", "penalty energy", "Minus the squared torques.",
             "-jnp.sum(next_state.data.actuator_force**2)", 1, (0.0001, 0.0003, 0.00003)),
    Template("power_cost", "penalty energy", "Minus the mechanical power.",
             "-jnp.sum(jnp.abs(next_state.data.actuator_force * next_state.data.qvel[6:]))", 1, FINE),
    Template("action_cost", "penalty action", "Minus the squared action.", "-jnp.sum(action**2)", 1, PENALTY),
    Template("jerk_cost", "penalty action smooth", "Minus the squared change of the action.",
             '-jnp.sum((action - state.info["last_act"]) ** 2)', 1, PENALTY),
    Template("homeward", "shaping velocity", "Speed towards the origin, more the farther away.",
             '-jnp.sum(next_state.info["pos_xy"] * next_state.data.qvel[:2])', 1, NEAR),
)  # fmt: skip


def vocabulary(horizon: int, strongest: float) -> Vocabulary:
    """Features and terms for the quadruped that is pushed with up to `strongest` N, in episodes of `horizon` steps."""
    # Without pushes, zero is divided by one.
    constants = {"HORIZON": repr(float(horizon)), "STRONG": repr(float(strongest) or 1.0)}
    return make_vocabulary(FEATURES, TERMS, HELPERS, constants | CONSTANTS)
