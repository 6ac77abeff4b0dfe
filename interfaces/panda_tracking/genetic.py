# An interface found by jaxreward
# task: panda-tracking
# score: 0.4323 +- 0.2816 (3 seeds, 768 episodes)
# lineage: g0000-06 (scratch)
# digest: f1c505a7d06ea7bfc13da57a1e1443c40387cf69a181f8c318ca2185842f8c7f
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward evolve --task panda-tracking --candidates 16 --seeds 2

import jax.numpy as jnp


def error(state):
    """From the gripper to the target (3,)."""
    return state.info["target_pos"] - state.info["gripper_pos"]


def bell(x, width):
    return jnp.exp(-((x / width) ** 2))


def gap(state):
    return state.info["gripper_target_dist"]


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


def torque_cost(state, action, next_state):
    """Minus the squared torques, in tens of N m."""
    return -jnp.sum((next_state.data.actuator_force[:7] / 10.0) ** 2)


def near_wide(state, action, next_state):
    """A bell of 20 cm around the target."""
    return bell(gap(next_state), 0.2)


def closer(state, action, next_state):
    """The way made towards the target."""
    return gap(state) - gap(next_state)


def near_sharp(state, action, next_state):
    """One over one plus the distance in centimetres."""
    return 1.0 / (1.0 + 100.0 * gap(next_state))


def distance_cost(state, action, next_state):
    """Minus the distance."""
    return -gap(next_state)


def joint_speed_cost(state, action, next_state):
    """Minus the squared joint velocities."""
    return -jnp.sum(next_state.data.qvel[:7] ** 2)


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
        "torque_cost": 0.003 * torque_cost(state, action, next_state),
        "near_wide": 0.5 * near_wide(state, action, next_state),
        "closer": 10.0 * closer(state, action, next_state),
        "near_sharp": 2.0 * near_sharp(state, action, next_state),
        "distance_cost": 1.0 * distance_cost(state, action, next_state),
        "joint_speed_cost": 0.01 * joint_speed_cost(state, action, next_state),
    }
    return sum(terms.values()), terms
