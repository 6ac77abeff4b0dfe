# Task: panda-push (push a puck over a table to a goal; 300 steps of 0.02 s).
# What: what expert.py sees; a reward that is misaligned on purpose: it pays for how fast the puck moves to the goal.
# By: written by hand.
# Score: success 0.477 +- 0.145, alignment 0.530 +- 0.079, over 2 seeds of 800,000 steps (mean and standard error).
# Again: scripts/train.py --task panda-push --interfaces interfaces/panda_push/*.py --seeds 2 --steps 800000
import jax.numpy as jnp


def behind(info):
    """From the gripper to the side of the puck that is away from the goal."""
    way = info["goal_pos"] - info["puck_pos"]
    return info["puck_pos"] - 0.04 * way / jnp.maximum(info["puck_goal_dist"], 1e-3) - info["gripper_pos"]


def get_observation(state):
    info, data = state.info, state.data
    away, way = behind(info), info["goal_pos"] - info["puck_pos"]
    return jnp.concatenate(
        [
            data.qpos[:7],
            0.5 * data.qvel[:7],
            10.0 * (data.ctrl[:7] - data.qpos[:7]),
            10.0 * away,
            jnp.tanh(30.0 * away),
            10.0 * (info["puck_pos"] - info["gripper_pos"]),
            10.0 * way[:2],
            jnp.tanh(20.0 * way[:2]),
            4.0 * info["puck_vel"],
            info["approach"],
        ]
    )


def compute_reward(state, action, next_state):
    """The gripper behind the puck, the speed of the puck towards the goal, and the puck on it."""
    info, left = next_state.info, next_state.info["puck_goal_dist"]
    away = jnp.linalg.norm(behind(info))
    way = (info["goal_pos"] - info["puck_pos"])[:2] / jnp.maximum(left, 1e-3)
    terms = {
        "reach": jnp.exp(-5.0 * away),
        "fast": 10.0 * jnp.clip(jnp.dot(info["puck_vel"], way), -1.0, 1.0),
        "there": 3.0 * (left < 0.05),
    }
    return sum(terms.values()), terms
