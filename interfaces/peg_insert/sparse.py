# Task: peg-insert (put a peg into a hole; 120 steps of 0.03 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score: success 0.841 +- 0.075, alignment 0.312 +- 0.037, over 5 seeds of 500,000 steps (mean and standard error).
# Again: scripts/train.py --task peg-insert --interfaces interfaces/peg_insert/*.py --seeds 5 --steps 500000
import jax.numpy as jnp


def get_observation(state):
    """Positions and velocities, what the motors are asked for, the way from the tip to the hole, and its velocity."""
    info, data = state.info, state.data
    return jnp.concatenate([data.qpos, data.qvel, data.ctrl, info["to_mouth"], info["tip_vel"]])


def compute_reward(state, action, next_state):
    """1 for every step that ends with the tip 0.09 m deep in the hole."""
    there = (next_state.info["depth"] >= 0.09).astype(jnp.float32)
    return there, {"there": there}
