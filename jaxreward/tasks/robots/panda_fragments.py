"""The vocabulary of the arm: what a genetic proposer may build observations and rewards from.

It has joints, gripper and target, errors at several scales, and predictions; the task's goal is not in it.
"""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import SHAPES, Template, functions_of, make_vocabulary

CONSTANTS = {"CONTROL_S": "0.02", "HOME": "(0.0, 0.3, 0.0, -1.57079, 0.0, 2.0, -0.7853)"}

HELPERS = (
    SHAPES
    + '''

def error(state):
    """From the gripper to the target (3,)."""
    return state.info["target_pos"] - state.info["gripper_pos"]


def ahead(state, seconds):
    """From the gripper to where the target will be (3,)."""
    return error(state) + seconds * state.info["target_vel"]


def gap(state):
    return state.info["gripper_target_dist"]


def gripper_velocity(state, next_state):
    """Velocity of the gripper over one step (3,), in m/s."""
    return (next_state.info["gripper_pos"] - state.info["gripper_pos"]) / CONTROL_S


def motor_steps(state):
    """What the motors are asked for, less what they were asked for a step before (8,)."""
    return state.data.ctrl - state.info["prev_ctrl"]
'''
)

NEAR = (1.0, 2.0, 0.5)
STEP = (10.0, 30.0, 3.0)
SMALL = (0.1, 0.2, 0.05)
PENALTY = (0.01, 0.03, 0.003)

FEATURES = (
    Template("arm_angles", "joints basic", "Angles of the seven joints.", "state.data.qpos[:7]", 7),
    Template("arm_from_home", "joints", "Angles of the joints less those at the start.",
             "state.data.qpos[:7] - jnp.array(HOME)", 7),
    Template("arm_speeds", "joints basic", "Velocities of the seven joints, scaled.", "0.5 * state.data.qvel[:7]", 7),
    Template("arm_sines", "joints", "Sines and cosines of the joints.",
             "jnp.concatenate([jnp.sin(state.data.qpos[:7]), jnp.cos(state.data.qpos[:7])])", 14),
    Template("motor_goals", "motors basic", "What the motors are asked for.", "state.data.ctrl[:7]", 7),
    Template("motor_lag", "motors basic", "What the motors are asked for less where the joints are.",
             "10.0 * (state.data.ctrl[:7] - state.data.qpos[:7])", 7),
    Template("motor_change", "motors", "The last change of what the motors are asked for.", "25.0 * motor_steps(state)",
             8),
    Template("motor_torques", "motors", "Torques of the motors, scaled.", "state.data.actuator_force[:7] / 40.0", 7),
    Template("gripper_place", "position basic", "Position of the gripper.", 'state.info["gripper_pos"]', 3),
    Template("target_place", "position basic", "Position of the target.", 'state.info["target_pos"]', 3),
    Template("target_velocity", "velocity basic", "Velocity of the target, scaled.", '5.0 * state.info["target_vel"]',
             3),
    Template("error_metres", "error basic", "From gripper to target, in tens of centimetres.", "10.0 * error(state)",
             3),
    Template("error_coarse", "error scales", "From gripper to target, saturating at about 20 cm.",
             "jnp.tanh(5.0 * error(state))", 3),
    Template("error_fine", "error scales", "From gripper to target, saturating at about 5 cm.",
             "jnp.tanh(20.0 * error(state))", 3),
    Template("error_finest", "error scales", "From gripper to target, saturating at about 1 cm.",
             "jnp.tanh(100.0 * error(state))", 3),
    Template("distance_scales", "error scales", "Distance at three scales.",
             "jnp.tanh(gap(state) * jnp.array([3.0, 20.0, 100.0]))", 3),
    Template("error_soon", "error predicted", "From the gripper to where the target is in 0.1 s.",
             "10.0 * ahead(state, 0.1)", 3),
    Template("error_later", "error predicted", "From the gripper to where the target is in 0.3 s.",
             "10.0 * ahead(state, 0.3)", 3),
    Template("course", "time trajectory", "Frequencies and phases of the target's course.",
             ('p = state.info["traj_params"]',
              'phases = jnp.stack([p["phase_x"], p["phase_y"]])',
              'rates = jnp.stack([p["freq_x"], p["freq_y"], p["freq_z"]])',
              "jnp.concatenate([rates, jnp.sin(phases), jnp.cos(phases)])"),
             7),
    Template("time_passed", "time", "The part of the episode that is over.",
             'jnp.reshape(state.info["step_count"] / HORIZON, (1,))'),
)  # fmt: skip

TERMS = (
    Template("distance_cost", "penalty error", "Minus the distance.", "-gap(next_state)", 1, (1.0, 3.0, 10.0)),
    Template("near_wide", "shaping error", "A bell of 20 cm around the target.", "bell(gap(next_state), 0.2)", 1, NEAR),
    Template("near", "shaping error", "A bell of 5 cm around the target.", "bell(gap(next_state), 0.05)", 1, NEAR),
    Template("near_fine", "shaping error", "A bell of 2 cm around the target.", "bell(gap(next_state), 0.02)", 1, NEAR),
    Template("near_sharp", "shaping error", "One over one plus the distance in centimetres.",
             "1.0 / (1.0 + 100.0 * gap(next_state))", 1, NEAR),
    Template("closer", "shaping potential", "The way made towards the target.", "gap(state) - gap(next_state)", 1,
             STEP),
    Template("closer_log", "shaping potential", "The way made towards the target, on a logarithmic scale.",
             "jnp.log(gap(state) + 0.01) - jnp.log(gap(next_state) + 0.01)", 1, (1.0, 3.0, 0.3)),
    Template("soon_near", "shaping predicted", "A bell of 5 cm around where the target is in 0.1 s.",
             "bell(length(ahead(next_state, 0.1)), 0.05)", 1, NEAR),
    Template("velocity_matched", "shaping velocity", "Minus the difference of the velocities of gripper and target.",
             'jnp.tanh(-length(gripper_velocity(state, next_state) - next_state.info["target_vel"]))', 1, SMALL),
    Template("towards", "shaping velocity", "Speed of the gripper towards the target, at most 1 m/s.",
             "jnp.clip(jnp.sum(gripper_velocity(state, next_state) * error(state)) / (gap(state) + 0.01), -1.0, 1.0)",
             1, NEAR),
    Template("action_cost", "penalty action", "Minus the squared action.", "-jnp.sum(action**2)", 1, PENALTY),
    Template("jerk_cost", "penalty smooth",
             "Minus the squared difference of two changes of the motors' goals, in actions.",
             "-jnp.sum((25.0 * (motor_steps(next_state) - motor_steps(state))) ** 2)", 1, PENALTY),
    Template("joint_speed_cost", "penalty energy", "Minus the squared joint velocities.",
             "-jnp.sum(next_state.data.qvel[:7] ** 2)", 1, PENALTY),
    Template("torque_cost", "penalty energy", "Minus the squared torques, in tens of N m.",
             "-jnp.sum((next_state.data.actuator_force[:7] / 10.0) ** 2)", 1, (0.001, 0.003, 0.0003)),
    Template("lag_cost", "penalty smooth", "Minus the squared distance of the joints from the motors' goals.",
             "-jnp.sum((next_state.data.ctrl[:7] - next_state.data.qpos[:7]) ** 2)", 1, NEAR),
    Template("pose_cost", "penalty joints", "Minus the squared distance of the joints from the start.",
             "-jnp.sum((next_state.data.qpos[:7] - jnp.array(HOME)) ** 2)", 1, PENALTY),
)  # fmt: skip

_ARM = {
    "arm_angles", "arm_from_home", "arm_speeds", "arm_sines", "motor_goals", "motor_lag", "motor_change",
    "motor_torques", "gripper_place", "error_metres", "error_coarse", "error_fine", "error_finest", "distance_scales",
    "time_passed",
}  # fmt: skip
_COMING = {
    "distance_cost", "near_wide", "near", "near_sharp", "closer", "closer_log", "towards", "action_cost", "jerk_cost",
    "joint_speed_cost", "torque_cost", "lag_cost", "pose_cost",
}  # fmt: skip

_FUNCTIONS = functions_of(HELPERS)
SHARED = "\n\n\n".join(_FUNCTIONS[name] for name in ("length", "bell", "gripper_velocity", "motor_steps"))
"""Helpers for the arm with another target, which defines `error` and `gap`."""


def features_about(target: str) -> list[Template]:
    """The features of the arm with a target of this name, which need not move."""
    return [_about(target, template) for template in FEATURES if template.name in _ARM]


def terms_about(target: str) -> list[Template]:
    """Terms for coming near a target of this name."""
    return [_about(target, template) for template in TERMS if template.name in _COMING]


def _about(target: str, template: Template) -> Template:
    return template._replace(doc=template.doc.replace("target", target))


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the arm that follows a target, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon)), **CONSTANTS})
