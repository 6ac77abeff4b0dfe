# Task: quadcopter-hover (reach a fixed point in the air and hover there; 500 steps of 0.02 s).
# What: velocities and the offset to the target, at three scales, in the body's frame; a reward for being near, at two
#   scales, and level.
# By: written by hand.
# Score: distance 0.090 m +- 0.006 over 3 seeds of 1,000,000 steps (mean and standard error, less is better).
# Again: scripts/train.py --task quadcopter-hover --interfaces interfaces/quadcopter_hover/expert.py --seeds 3 --steps 1000000
import jax.numpy as jnp

NEAR = 0.15
HOVER = -0.34


def get_observation(state):
    info = state.info
    way = info["local_target"]
    return jnp.concatenate(
        [
            0.5 * way,
            jnp.tanh(3.0 * way),
            jnp.tanh(15.0 * way),
            info["gravity"],
            0.5 * info["local_linvel"],
            0.3 * info["gyro"],
            info["last_act"] - HOVER,
        ]
    )


def compute_reward(state, action, next_state):
    """Near at two scales and level; turning, drifting near the target and changing thrusts cost a little."""
    info = next_state.info
    distance = info["target_dist"]
    around = jnp.exp(-distance)
    terms = {
        "around": around,
        "near": jnp.exp(-((distance / NEAR) ** 2)),
        "level": 0.2 * info["upvector"][2],
        "turning": -0.03 * jnp.sum(info["gyro"] ** 2),
        "drifting": -0.1 * jnp.sum(info["local_linvel"] ** 2) * around,
        "jerk": -0.02 * jnp.sum((action - state.info["last_act"]) ** 2),
    }
    return sum(terms.values()), terms
