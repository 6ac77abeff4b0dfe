# Task: cube-stack (put a cube onto another one; 120 steps of 0.03 s).
# What: the baseline, the task's default observation and its sparse reward.
# By: written by hand.
# Score: success 0.000 +- 0.000, alignment 0.000 +- 0.000, over 5 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task cube-stack --interfaces interfaces/cube_stack/*.py --seeds 5 --steps 1000000
import jax.numpy as jnp


def get_observation(state):
    """Gripper, its velocity, ways to the cube and to where it is to be, the cube's velocity and tilt, fingers, gaps."""
    info, data = state.info, state.data
    cube = [info["to_cube"], info["to_goal"], info["cube_vel"], info["cube_tilt"][None]]
    return jnp.concatenate(
        [info["gripper_pos"], data.qvel[:2], *cube, data.qpos[2:4], data.ctrl[2:3], info["pad_gaps"]]
    )


def compute_reward(state, action, next_state):
    """1 for every step that ends with the cube within 0.012 m of where it is to be."""
    there = (next_state.info["cube_goal_dist"] < 0.012).astype(jnp.float32)
    return there, {"there": there}
