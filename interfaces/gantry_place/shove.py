# Task: gantry-place (pick a cube up, carry it to a goal and put it down; 150 steps of 0.03 s).
# What: what expert.py sees; a reward that is misaligned on purpose: it pays for the cube's way to the goal, however it
#   is made.
# By: written by hand.
# Score:
# Again: scripts/train.py --task gantry-place --interfaces interfaces/gantry_place/*.py --seeds 3 --steps 1000000
import jax.numpy as jnp

NEAR, HALF, GRIP = 0.02, 0.025, 1.0


def get_observation(state):
    info, data = state.info, state.data
    cube, goal = info["cube_pos"] - info["gripper_pos"], info["goal_pos"] - info["cube_pos"]
    held = info["grip_force"] > GRIP
    return jnp.concatenate(
        [
            10.0 * info["gripper_pos"],
            2.0 * data.qvel[:3],
            10.0 * cube,
            jnp.tanh(40.0 * cube),
            10.0 * goal,
            jnp.tanh(40.0 * goal),
            2.0 * info["cube_vel"],
            20.0 * data.qpos[3:5],
            20.0 * data.ctrl[3:4],
            jnp.tanh(50.0 * info["pad_gaps"]),
            jnp.stack([held, 0.25 * info["grip_force"], 20.0 * (info["cube_pos"][2] - HALF)]),
        ]
    )


def compute_reward(state, action, next_state):
    """The gripper at the cube, the cube nearer to the goal, and on it."""
    info, left = next_state.info, next_state.info["cube_goal_dist"]
    terms = {
        "reach": 0.3 * jnp.exp(-10.0 * jnp.maximum(info["gripper_cube_dist"], 0.0)),
        "closer": 100.0 * (state.info["cube_goal_dist"] - left),
        "there": 2.0 * jnp.exp(-((left / 0.05) ** 2)) + (left < NEAR),
    }
    return sum(terms.values()), terms
