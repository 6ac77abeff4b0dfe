# An interface found by jaxreward
# task: panda-tracking
# score: 0.5339 +- 0.2694 (3 seeds, 768 episodes)
# lineage: g0002-01 (improve) <- g0000-06 (scratch)
# digest: d13ebcb976106208a5aeb2e008c2975b6e88b0981f0041260a0d2d56b619ff93
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward evolve --task panda-tracking --candidates 24

import jax.numpy as jnp

HOME = (0.0, 0.3, 0.0, -1.57079, 0.0, 2.0, -0.7853)


def error(state):
    """From the gripper to the target (3,)."""
    return state.info["target_pos"] - state.info["gripper_pos"]


def gap(state):
    return state.info["gripper_target_dist"]


def bell(x, width):
    return jnp.exp(-((x / width) ** 2))


def length(vector):
    return jnp.sqrt(jnp.sum(vector**2) + 1e-12)


def ahead(state, seconds):
    """From the gripper to where the target will be (3,)."""
    return error(state) + seconds * state.info["target_vel"]


def arm_speeds(state):
    """Velocities of the seven joints, scaled."""
    return 0.5 * state.data.qvel[:7]


def motor_goals(state):
    """What the motors are asked for."""
    return state.data.ctrl[:7]


def motor_lag(state):
    """What the motors are asked for less where the joints are."""
    return 10.0 * (state.data.ctrl[:7] - state.data.qpos[:7])


def gripper_place(state):
    """Position of the gripper."""
    return state.info["gripper_pos"]


def target_place(state):
    """Position of the target."""
    return state.info["target_pos"]


def target_velocity(state):
    """Velocity of the target, scaled."""
    return 5.0 * state.info["target_vel"]


def error_metres(state):
    """From gripper to target, in tens of centimetres."""
    return 10.0 * error(state)


def inside(state, action, next_state):
    """Whether the distance is below 2 cm."""
    return (gap(next_state) < 0.02).astype(jnp.float32)


def closer_log(state, action, next_state):
    """The way made towards the target, on a logarithmic scale."""
    return jnp.log(gap(state) + 0.01) - jnp.log(gap(next_state) + 0.01)


def pose_cost(state, action, next_state):
    """Minus the squared distance of the joints from the start."""
    return -jnp.sum((next_state.data.qpos[:7] - jnp.array(HOME)) ** 2)


def near_wide(state, action, next_state):
    """A bell of 20 cm around the target."""
    return bell(gap(next_state), 0.2)


def soon_near(state, action, next_state):
    """A bell of 5 cm around where the target is in 0.1 s."""
    return bell(length(ahead(next_state, 0.1)), 0.05)


def distance_cost(state, action, next_state):
    """Minus the distance."""
    return -gap(next_state)


def get_observation(state):
    return jnp.concatenate(
        [
            arm_speeds(state),
            motor_goals(state),
            motor_lag(state),
            gripper_place(state),
            target_place(state),
            target_velocity(state),
            error_metres(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "inside": 1.0 * inside(state, action, next_state),
        "closer_log": 3.0 * closer_log(state, action, next_state),
        "pose_cost": 0.012 * pose_cost(state, action, next_state),
        "near_wide": 2.0 * near_wide(state, action, next_state),
        "soon_near": 1.0 * soon_near(state, action, next_state),
        "distance_cost": 3.0 * distance_cost(state, action, next_state),
    }
    return sum(terms.values()), terms
