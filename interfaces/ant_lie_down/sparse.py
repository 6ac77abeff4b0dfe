# Task: ant-lie-down (lie belly-up; 500 steps of 0.05 s, springs).
# What: the baseline, the observation of Brax's ant and the sparse reward of the task.
# By: written by hand.
# Score: time belly-up 0.133 +- 0.017 over 3 seeds of 300,000 steps (mean and standard error).
# Again: scripts/train.py --task ant-lie-down --interfaces interfaces/ant_lie_down/sparse.py --seeds 3 --steps 300000
import jax.numpy as jnp

BELLY_UP = 0.9


def get_observation(state):
    """Positions and speeds of all joints; x and y are left out."""
    return jnp.concatenate([state.q[2:], state.qd])


def compute_reward(state, action, next_state):
    """1 for every step that ends belly-up."""
    lying = (next_state.orientation > BELLY_UP).astype(jnp.float32)
    return lying, {"lying": lying}
