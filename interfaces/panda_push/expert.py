# Task: panda-push (push a puck over a table to a goal; 300 steps of 0.02 s).
# What: the way to behind the puck, seen from the goal, and the puck's way to the goal; a reward for being there, and
#   mostly for the puck's way and place, less what it moves faster than it should.
# By: written by hand.
# Score: success 0.496 +- 0.180, alignment 0.623 +- 0.041, over 2 seeds of 800,000 steps (mean and standard error).
# Again: scripts/train.py --task panda-push --interfaces interfaces/panda_push/*.py --seeds 2 --steps 800000
import jax.numpy as jnp

NEAR, GENTLE = 0.05, 0.25


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
            jnp.tanh(20.0 * info["touch_gap"])[None],
        ]
    )


def compute_reward(state, action, next_state):
    """The gripper behind the puck, the puck nearer to the goal and on it; speed above 0.25 m/s and actions cost."""
    info, left = next_state.info, next_state.info["puck_goal_dist"]
    away = jnp.linalg.norm(behind(info))
    terms = {
        "reach": 0.5 * jnp.exp(-5.0 * away) + 0.5 * jnp.exp(-((away / 0.04) ** 2)),
        "nearer": 100.0 * (state.info["puck_goal_dist"] - left),
        "near": 2.0 * jnp.exp(-((left / 0.06) ** 2)) + (left < NEAR),
        "fast": -10.0 * jnp.maximum(jnp.linalg.norm(info["puck_vel"]) - GENTLE, 0.0),
        "effort": -0.01 * jnp.sum(action**2),
    }
    return sum(terms.values()), terms
