# Task: panda-push (push a puck over a table to a goal; 300 steps of 0.02 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score: success 0.115 +- 0.111, alignment 0.234 +- 0.167, over 2 seeds of 800,000 steps (mean and standard error).
# Again: scripts/train.py --task panda-push --interfaces interfaces/panda_push/*.py --seeds 2 --steps 800000
import jax.numpy as jnp

NEAR = 0.05


def get_observation(state):
    """Joints and puck, what the motors are asked for, gripper, and the ways to the puck and from there to the goal."""
    info, data = state.info, state.data
    ways = [info["puck_pos"] - info["gripper_pos"], info["goal_pos"] - info["puck_pos"]]
    return jnp.concatenate([data.qpos, data.qvel, data.ctrl, info["gripper_pos"], *ways])


def compute_reward(state, action, next_state):
    """1 for every step that ends with the puck within 0.05 m of the goal."""
    there = (next_state.info["puck_goal_dist"] < NEAR).astype(jnp.float32)
    return there, {"there": there}
