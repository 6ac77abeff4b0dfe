# Task: walker2d (run forward; 1000 steps of 0.008 s, springs).
# What: the baseline, Brax's own observation and the sparse reward of the task.
# By: written by hand.
# Score: return 233.6 +- 27.9 over 3 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task walker2d --interfaces interfaces/walker2d/sparse.py --seeds 3 --steps 1000000
import jax.numpy as jnp

CONTROL_S = 0.008
FAST = 1.0
LOWEST = 0.8
HIGHEST = 2.0
TILT = 1.0


def speed(state, next_state):
    """Forward speed of the torso over one step, in m/s."""
    return (next_state.x.pos[0, 0] - state.x.pos[0, 0]) / CONTROL_S


def get_observation(state):
    """Height, angles and speeds of the joints; x is left out, speeds are cut."""
    height = state.x.pos[0, 2]
    return jnp.concatenate([height[None], state.q[2:], jnp.clip(state.qd, -10.0, 10.0)])


def compute_reward(state, action, next_state):
    """1 for every step at 1 m/s or more on which the robot is still up."""
    height = next_state.x.pos[0, 2]
    up = (height > LOWEST) & (height < HIGHEST) & (jnp.abs(next_state.q[2]) < TILT)
    fast = (up & (speed(state, next_state) >= FAST)).astype(jnp.float32)
    return fast, {"fast": fast}
