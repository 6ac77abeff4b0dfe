# Task: panda-cabinet (pull a drawer open by its handle; 400 steps of 0.02 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score: success 0.000 +- 0.000 over 3 seeds of 500,000 steps (mean and standard error).
# Again: scripts/train.py --task panda-cabinet --interfaces interfaces/panda_cabinet/sparse.py --seeds 3 --steps 500000
import jax.numpy as jnp

OPEN = 0.39


def get_observation(state):
    """Joints and drawer, what the motors are asked for, gripper, handle and the way between them."""
    info, data = state.info, state.data
    way = info["handle_pos"] - info["gripper_pos"]
    return jnp.concatenate([data.qpos, data.qvel, data.ctrl, info["gripper_pos"], info["handle_pos"], way])


def compute_reward(state, action, next_state):
    """1 for every step that ends with the drawer more than 0.39 m out."""
    drawn = (next_state.info["drawer_pos"] > OPEN).astype(jnp.float32)
    return drawn, {"drawn": drawn}
