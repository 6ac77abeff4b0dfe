# Task: ant-patrol-return (to x = 3 m and back; 500 steps of 0.05 s, springs).
# What: the baseline, the observation of Brax's ant with position and phase, and the sparse reward of the task.
# By: written by hand.
# Score: success 0.001 +- 0.001 over 3 seeds of 500,000 steps (mean and standard error).
# Again: scripts/train.py --task ant-patrol-return --interfaces interfaces/ant_patrol_return/sparse.py --seeds 3 --steps 500000
import jax.numpy as jnp

NEAR = 0.5


def get_observation(state):
    """Positions and speeds of all joints, then x and y, the phase and the distance to the start."""
    trip = jnp.stack([state.task_phase.astype(jnp.float32), state.dist_to_start])
    return jnp.concatenate([state.q[2:], state.qd, state.x.pos[0, :2], trip])


def compute_reward(state, action, next_state):
    """1 at the step that completes the trip."""
    back = ((next_state.task_phase == 1) & (next_state.dist_to_start < NEAR)).astype(jnp.float32)
    return back, {"back": back}
