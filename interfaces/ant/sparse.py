# Task: ant (run forward; 1000 steps of 0.05 s, springs).
# What: the baseline, Brax's own observation and the sparse reward of the task.
# By: written by hand.
# Score: return 377.2 +- 198.0 over 3 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task ant --interfaces interfaces/ant/sparse.py --seeds 3 --steps 1000000
import jax.numpy as jnp

CONTROL_S = 0.05
FAST = 1.0
LOWEST = 0.2
HIGHEST = 1.0


def speed(state, next_state):
    """Forward speed of the torso over one step, in m/s."""
    return (next_state.x.pos[0, 0] - state.x.pos[0, 0]) / CONTROL_S


def get_observation(state):
    """Positions and speeds of all joints; x and y are left out."""
    return jnp.concatenate([state.q[2:], state.qd])


def compute_reward(state, action, next_state):
    """1 for every step at 1 m/s or more on which the robot is still up."""
    height = next_state.x.pos[0, 2]
    up = (height > LOWEST) & (height < HIGHEST)
    fast = (up & (speed(state, next_state) >= FAST)).astype(jnp.float32)
    return fast, {"fast": fast}
