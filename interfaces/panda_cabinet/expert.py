# Task: panda-cabinet (pull a drawer open by its handle; 400 steps of 0.02 s).
# What: the offset to the handle at three scales, both fingertips and the motors' lag; a reward for approaching the
#   handle with a finger on either side, and mostly for the drawer's position.
# By: written by hand.
# Score: success 0.763 +- 0.137 over 3 seeds of 500,000 steps (mean and standard error).
# Again: scripts/train.py --task panda-cabinet --interfaces interfaces/panda_cabinet/expert.py --seeds 3 --steps 500000
import jax.numpy as jnp

OPEN = 0.39


def get_observation(state):
    info, data = state.info, state.data
    way = info["handle_pos"] - info["gripper_pos"]
    return jnp.concatenate(
        [
            data.qpos[:7],
            0.5 * data.qvel[:7],
            10.0 * (data.ctrl[:7] - data.qpos[:7]),
            25.0 * data.qpos[7:9],
            3.0 * way,
            jnp.tanh(10.0 * way),
            jnp.tanh(50.0 * way),
            10.0 * (info["left_tip"] - info["handle_pos"]),
            10.0 * (info["right_tip"] - info["handle_pos"]),
            info["approach"],
            jnp.stack([info["drawer_pos"] / OPEN, 2.0 * info["drawer_vel"]]),
        ]
    )


def compute_reward(state, action, next_state):
    """The gripper at the handle at two scales, pointing down, a finger on either side, and the drawer out."""
    info = next_state.info
    away = info["gripper_handle_dist"]
    behind = info["left_tip"][0] > info["handle_pos"][0]
    before = info["right_tip"][0] < info["handle_pos"][0]
    terms = {
        "reach": 0.5 * jnp.exp(-3.0 * away) + 0.5 * jnp.exp(-((away / 0.06) ** 2)),
        "pointing": -0.2 * info["approach"][2],
        "around": 0.3 * (behind & before & (away < 0.06)),
        "out": 10.0 * info["drawer_pos"],
        "drawn": (info["drawer_pos"] > OPEN).astype(jnp.float32),
        "effort": -0.01 * jnp.sum(action**2),
    }
    return sum(terms.values()), terms
