# Task: panda-tracking (a gripper follows a moving target; 500 steps of 0.02 s).
# What: joints, and the present and predicted offset to the target at several scales; a reward for nearness at three
#   scales.
# By: written by hand.
# Score: success 0.665 +- 0.333 over 3 seeds of 400,000 steps (mean and standard error).
# Again: scripts/train.py --task panda-tracking --interfaces interfaces/panda_tracking/expert.py --seeds 3 --steps 400000
import jax.numpy as jnp


def get_observation(state):
    """Joints, how far the motors lag, and the way to the target now and soon (48,)."""
    info = state.info
    arm, speed, goals = state.data.qpos[:7], state.data.qvel[:7], state.data.ctrl[:7]
    error = info["target_pos"] - info["gripper_pos"]
    return jnp.concatenate(
        [
            arm,
            0.5 * speed,
            10.0 * (goals - arm),
            info["gripper_pos"],
            info["target_pos"],
            5.0 * info["target_vel"],
            5.0 * error,
            jnp.tanh(10.0 * error),
            jnp.tanh(50.0 * error),
            10.0 * (error + 0.1 * info["target_vel"]),
            10.0 * (error + 0.3 * info["target_vel"]),
        ]
    )


def compute_reward(state, action, next_state):
    """Nearness at three scales, coming nearer while far, and quiet motors."""
    before, after = state.info["gripper_target_dist"], next_state.info["gripper_target_dist"]
    terms = {
        "near": 1.0 * jnp.exp(-((after / 0.1) ** 2)),
        "very_near": 1.0 * jnp.exp(-((after / 0.03) ** 2)),
        "exact": 1.0 * jnp.exp(-((after / 0.01) ** 2)),
        "closer": 10.0 * (before - after),
        "effort": -0.01 * jnp.sum(action**2),
    }
    return sum(terms.values()), terms
