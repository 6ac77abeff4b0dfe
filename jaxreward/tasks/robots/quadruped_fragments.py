"""The vocabulary of the quadruped that follows velocity commands: that of the Go1, and commands, errors and legs."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import Template, functions_of, make_vocabulary
from jaxreward.tasks.robots import go1_fragments as go1

CONSTANTS = {name: go1.CONSTANTS[name] for name in ("HOME", "STANDING")} | {
    "LINK": "0.213",
    "CONTROL_S": "0.02",
    "STEPS_A_SECOND": "2.0",
}

_HELPERS = functions_of(go1.HELPERS)
_SHARED = "\n\n\n".join(_HELPERS[name] for name in ("joints_from_home", "length", "bell"))
_OWN = '''
def error(state):
    """Velocities asked for less the true ones: forward, left, yaw (3,)."""
    return state.info["command_error"]


def slip(state):
    """Error of the horizontal velocity, in m/s."""
    return length(error(state)[:2])


def foot_places(state):
    """How far each foot is ahead of its hip, and how far below it (2, 4), in m, legs FR, FL, RR, RL."""
    joints = state.data.qpos[7:].reshape(4, 3)
    thigh, calf = joints[:, 1], joints[:, 1] + joints[:, 2]
    return -LINK * jnp.stack([jnp.sin(thigh) + jnp.sin(calf), -jnp.cos(thigh) - jnp.cos(calf)])


def phase(state):
    """Angle of a clock that goes round for every step of a leg."""
    return 2.0 * jnp.pi * STEPS_A_SECOND * CONTROL_S * state.info["step_count"].astype(jnp.float32)
'''

HELPERS = _SHARED + "\n\n" + _OWN

NEAR = go1.NEAR
STEP = go1.STEP
SMALL = go1.SMALL

_BODY = {
    "body_velocity", "turning", "gravity", "joint_offsets", "joint_speeds", "last_action", "motor_torques", "motor_lag",
    "height", "time_passed",
}  # fmt: skip
_QUIET = {
    "upright", "level", "alive", "tall", "bounce_cost", "pose_cost", "pose_kept", "joint_speed_cost", "torque_cost",
    "power_cost", "action_cost", "jerk_cost",
}  # fmt: skip

FEATURES = (
    *(template for template in go1.FEATURES if template.name in _BODY),
    Template("command", "command basic", "Velocities asked for: forward, left, yaw.", 'state.info["command"]', 3),
    Template("command_error", "command body basic", "Velocities asked for less the true ones.", "error(state)", 3),
    Template("error_coarse", "command body scales", "Errors of the velocities, saturating at about 0.5.",
             "jnp.tanh(2.0 * error(state))", 3),
    Template("error_fine", "command body scales", "Errors of the velocities, saturating at about 0.1.",
             "jnp.tanh(10.0 * error(state))", 3),
    Template("error_scales", "command scales", "Size of the error of the horizontal velocity at three scales.",
             "jnp.tanh(slip(state) * jnp.array([1.0, 4.0, 15.0]))", 3),
    Template("command_speed", "command", "Size of the horizontal velocity asked for.",
             'jnp.reshape(length(state.info["command"][:2]), (1,))'),
    Template("feet", "joints body",
             "How far each foot is ahead of its hip, and how far below it, in tens of centimetres.",
             "10.0 * jnp.reshape(foot_places(state), (8,))", 8),
    Template("feet_apart", "joints body",
             "How much farther ahead and higher one foot is than the other, of the diagonal pairs, in tens of "
             "centimetres.",
             ("f = jnp.array([[10.0], [-10.0]]) * foot_places(state)",
              "jnp.concatenate([f[:, 0] - f[:, 3], f[:, 1] - f[:, 2]])"),
             4),
    Template("clock", "time gait", "Sine and cosine of a clock that goes round twice a second.",
             "jnp.stack([jnp.sin(phase(state)), jnp.cos(phase(state))])", 2),
    Template("roll_soon", "orientation body predicted",
             "Where gravity will point in the body in 0.1 s, forward and left.",
             ('g, w = state.info["gravity"], state.info["gyro"]', "g[:2] - 0.1 * jnp.cross(w, g)[:2]"), 2),
)  # fmt: skip

TERMS = (
    *(template for template in go1.TERMS if template.name in _QUIET),
    Template("moving", "shaping command", "A bell of 50 cm/s around the horizontal velocity asked for.",
             "bell(slip(next_state), 0.5)", 1, NEAR),
    Template("moving_fine", "shaping command", "A bell of 20 cm/s around the horizontal velocity asked for.",
             "bell(slip(next_state), 0.2)", 1, NEAR),
    Template("turning_right", "shaping command", "A bell of 0.5 rad/s around the yaw rate asked for.",
             "bell(error(next_state)[2], 0.5)", 1, (0.5, 1.0, 0.2)),
    Template("turning_fine", "shaping command", "A bell of 0.2 rad/s around the yaw rate asked for.",
             "bell(error(next_state)[2], 0.2)", 1, (0.5, 1.0, 0.2)),
    Template("error_cost", "penalty command", "Minus the size of the errors of all three velocities.",
             "-length(error(next_state))", 1, NEAR),
    Template("error_squared", "penalty command", "Minus the squared errors of all three velocities.",
             "-jnp.sum(error(next_state) ** 2)", 1, NEAR),
    Template("error_shrinks", "shaping potential command", "By how much the errors of the velocities became smaller.",
             "length(error(state)) - length(error(next_state))", 1, (1.0, 3.0, 0.3)),
    Template("along", "shaping velocity command",
             "Velocity along the horizontal command, at most as much as asked for.",
             ('asked, made = next_state.info["command"][:2], next_state.info["local_linvel"][:2]',
              "speed = length(asked)",
              "jnp.clip(jnp.sum(asked * made) / (speed + 0.01), -speed, speed)"),
             1, NEAR),
    Template("tilt_cost", "penalty orientation", "Minus the squared tilt.",
             '-jnp.sum(next_state.info["gravity"][:2] ** 2)', 1, NEAR),
    Template("roll_cost", "penalty velocity", "Minus the squared roll and pitch rates.",
             '-jnp.sum(next_state.info["gyro"][:2] ** 2)', 1, (0.02, 0.05, 0.01)),
    Template("trot", "shaping gait", "A bell of 5 cm around feet of the diagonal pairs moving alike.",
             ("f = foot_places(next_state)",
              "bell(length(f[:, 0] - f[:, 3]), 0.05) + bell(length(f[:, 1] - f[:, 2]), 0.05)"),
             1, SMALL),
    Template("stepping", "shaping gait", "Feet of the diagonal pairs lifted in turn, to a clock, by at most 5 cm.",
             ("f = foot_places(next_state)[1]",
              "lifted = jnp.clip(f[1] + f[2] - f[0] - f[3], -0.1, 0.1)",
              "10.0 * lifted * jnp.sin(phase(next_state))"),
             1, SMALL),
    Template("speed_kept", "penalty smooth", "Minus the squared change of the body's velocity in a step.",
             '-jnp.sum((next_state.info["local_linvel"] - state.info["local_linvel"]) ** 2)', 1, STEP),
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for a quadruped that follows velocities, in episodes of `horizon` steps."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"HORIZON": repr(float(horizon)), **CONSTANTS})
