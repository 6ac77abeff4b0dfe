# Task: quadruped-velocity (walk and turn at velocities drawn for every episode; 500 steps of 0.02 s).
# What: the raw observation in comparable units with the errors of the velocities; a reward for both velocities, and for
#   walking level, tall and smoothly.
# By: written by hand.
# Score: minus squared velocity error -0.409 +- 0.022 over 2 seeds of 1,500,000 steps (mean and standard error).
# Again: scripts/train.py --task quadruped-velocity --interfaces interfaces/quadruped_velocity/expert.py --seeds 2 --steps 1500000
import jax.numpy as jnp

HOME = (0.1, 0.9, -1.8, -0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, 0.9, -1.8)
STANDING = 0.27


def from_home(state):
    return state.data.qpos[7:] - jnp.array(HOME)


def get_observation(state):
    info, data = state.info, state.data
    return jnp.concatenate(
        [
            info["command"],
            info["command_error"],
            info["gravity"],
            info["local_linvel"],
            0.3 * info["gyro"],
            jnp.stack([10.0 * (info["height"] - STANDING)]),
            from_home(state),
            0.05 * data.qvel[6:],
            info["last_act"],
        ]
    )


def compute_reward(state, action, next_state):
    """Both velocities within half a metre and half a radian a second; level, tall, near home; quiet."""
    info, data = next_state.info, next_state.data
    error = info["command_error"]
    bouncing = 0.2 * info["local_linvel"][2] ** 2 + 0.02 * jnp.sum(info["gyro"][:2] ** 2)
    torques = 0.0001 * jnp.sum(data.actuator_force**2)
    terms = {
        "moving": jnp.exp(-jnp.sum(error[:2] ** 2) / 0.25),
        "turning": 0.5 * jnp.exp(-(error[2] ** 2) / 0.25),
        "level": -jnp.sum(info["gravity"][:2] ** 2),
        "tall": 0.2 * jnp.exp(-(((info["height"] - STANDING) / 0.05) ** 2)),
        "pose": -0.02 * jnp.sum(from_home(next_state) ** 2),
        "bouncing": -bouncing,
        "effort": -torques - 0.01 * jnp.sum((action - state.info["last_act"]) ** 2),
    }
    return sum(terms.values()), terms
