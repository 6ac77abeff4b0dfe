# Task: panda-tracking (a gripper follows a moving target; 500 steps of 0.02 s).
# What: the task's own observation and reward: 1 for every step that ends within 2 cm of the target.
# By: the task itself.
# Score: success 0.000 +- 0.000 over 3 seeds of 400,000 steps (mean and standard error).
# Again: scripts/train.py --task panda-tracking --interfaces interfaces/panda_tracking/sparse.py --seeds 3 --steps 400000
import jax.numpy as jnp


def get_observation(state):
    """Joints, gripper, target and what the motors are asked for (40,)."""
    info, data = state.info, state.data
    return jnp.concatenate(
        [
            data.qpos,
            data.qvel,
            data.ctrl,
            info["gripper_pos"],
            info["target_pos"],
            info["target_vel"],
            info["target_pos"] - info["gripper_pos"],
            info["gripper_target_dist"][None],
            info["step_count"][None] / 500.0,
        ]
    )


def compute_reward(state, action, next_state):
    near = (next_state.info["gripper_target_dist"] < 0.02).astype(jnp.float32)
    return near, {"sparse": near}
