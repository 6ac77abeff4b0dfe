# Task: gantry-place (pick a cube up, carry it to a goal and put it down; 150 steps of 0.03 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score:
# Again: scripts/train.py --task gantry-place --interfaces interfaces/gantry_place/*.py --seeds 3 --steps 1000000
import jax.numpy as jnp

NEAR = 0.02


def get_observation(state):
    """Gripper, the ways to the cube and from there to the goal, the cube's velocity, the fingers and the pads' gaps."""
    info, data = state.info, state.data
    ways = [info["cube_pos"] - info["gripper_pos"], info["goal_pos"] - info["cube_pos"]]
    fingers = [data.qpos[3:5], data.ctrl[3:4]]
    return jnp.concatenate([info["gripper_pos"], data.qvel[:3], *ways, info["cube_vel"], *fingers, info["pad_gaps"]])


def compute_reward(state, action, next_state):
    """1 for every step that ends with the middle of the cube within 0.02 m of the goal."""
    there = (next_state.info["cube_goal_dist"] < NEAR).astype(jnp.float32)
    return there, {"there": there}
