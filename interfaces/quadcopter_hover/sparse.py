# Task: quadcopter-hover (reach a fixed point in the air and hover there; 500 steps of 0.02 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score: distance 2.861 m +- 0.005 over 3 seeds of 1,000,000 steps (mean and standard error, less is better).
# Again: scripts/train.py --task quadcopter-hover --interfaces interfaces/quadcopter_hover/sparse.py --seeds 3 --steps 1000000
import jax.numpy as jnp

NEAR = 0.1


def get_observation(state):
    """The way to the target in the world, the attitude as a quaternion, and both velocities."""
    away = state.info["target_pos"] - state.data.qpos[:3]
    return jnp.concatenate([away, state.data.qpos[3:], state.data.qvel])


def compute_reward(state, action, next_state):
    """1 for every step that ends within 0.1 m of the target."""
    near = (next_state.info["target_dist"] < NEAR).astype(jnp.float32)
    return near, {"near": near}
