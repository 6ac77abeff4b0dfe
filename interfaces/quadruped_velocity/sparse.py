# Task: quadruped-velocity (walk and turn at velocities drawn for every episode; 500 steps of 0.02 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score: minus squared velocity error -0.591 +- 0.323 over 2 seeds of 1,500,000 steps (mean and standard error).
# Again: scripts/train.py --task quadruped-velocity --interfaces interfaces/quadruped_velocity/sparse.py --seeds 2 --steps 1500000
import jax.numpy as jnp

HOME = (0.1, 0.9, -1.8, -0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, 0.9, -1.8)
NEAR = 0.25
UPRIGHT = 0.3


def get_observation(state):
    """What an inertial sensor knows, joint angles from home, joint velocities, the last action, and the command."""
    info, data = state.info, state.data
    offsets = data.qpos[7:] - jnp.array(HOME)
    sensed = [info["local_linvel"], info["gyro"], info["gravity"]]
    return jnp.concatenate([*sensed, offsets, data.qvel[6:], info["last_act"], info["command"]])


def compute_reward(state, action, next_state):
    """1 for every step that ends up, within 0.25 m/s and 0.25 rad/s of the command."""
    error = next_state.info["command_error"]
    near = (jnp.linalg.norm(error[:2]) < NEAR) & (jnp.abs(error[2]) < NEAR)
    near = (near & (next_state.info["upvector"][2] >= UPRIGHT)).astype(jnp.float32)
    return near, {"near": near}
