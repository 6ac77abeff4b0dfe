# Task: gantry-place (pick a cube up, carry it to a goal and put it down; 150 steps of 0.03 s).
# What: gripper, cube, goal and the pads' gaps; a reward for the gripper at the cube, for the cube held and lifted, for
#   its place while it is, and for being down at the goal; moving loose costs.
# By: written by hand.
# Score:
# Again: scripts/train.py --task gantry-place --interfaces interfaces/gantry_place/*.py --seeds 3 --steps 1000000
import jax.numpy as jnp

NEAR, HALF, GRIP, LOOSE = 0.02, 0.025, 1.0, 0.15


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
    """The gripper at the cube, the cube held, lifted, near to above the goal, and down there; moving loose costs."""
    info = next_state.info
    held = (info["grip_force"] > GRIP).astype(jnp.float32)
    height = info["cube_pos"][2] - HALF
    across = jnp.linalg.norm((info["goal_pos"] - info["cube_pos"])[:2])
    there = (across < NEAR).astype(jnp.float32)
    lifted = held * jnp.clip(height / 0.06, 0.0, 1.0) * (1.0 - there) + there
    loose = jnp.maximum(jnp.linalg.norm(info["cube_vel"]) - LOOSE, 0.0) * (1.0 - held)
    terms = {
        "grasp": 0.1 * jnp.exp(-10.0 * jnp.maximum(info["gripper_cube_dist"], 0.0)) + 0.2 * held,
        "carry": lifted + 2.0 * lifted * jnp.exp(-8.0 * across),
        "place": 4.0 * jnp.exp(-((info["cube_goal_dist"] / 0.03) ** 2)),
        "gently": -0.5 * loose,
    }
    return sum(terms.values()), terms
