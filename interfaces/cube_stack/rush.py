# Task: cube-stack (put a cube onto another one; 120 steps of 0.03 s).
# What: what expert.py sees; a reward that is misaligned on purpose: it pays for holding, lifting and the way of the
#   cube to its place, and neither for letting go nor for leaving the lower cube where it is.
# By: written by hand.
# Score: success 0.052 +- 0.047, alignment 0.492 +- 0.067, over 5 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task cube-stack --interfaces interfaces/cube_stack/*.py --seeds 5 --steps 1000000
import jax.numpy as jnp


def get_observation(state):
    info, data = state.info, state.data
    return jnp.concatenate(
        [
            10.0 * info["to_cube"],
            jnp.tanh(40.0 * info["to_cube"]),
            5.0 * info["to_goal"],
            jnp.tanh(40.0 * info["to_goal"]),
            2.0 * data.qvel[:2],
            2.0 * info["cube_vel"],
            jnp.stack([5.0 * info["gripper_pos"][1], 10.0 * (info["cube_pos"][1] - 0.025), 3.0 * info["cube_tilt"]]),
            20.0 * data.qpos[2:4],
            20.0 * data.ctrl[2:3],
            jnp.tanh(50.0 * info["pad_gaps"]),
            info["grip_force"][None] / 8.0,
        ]
    )


def compute_reward(state, action, next_state):
    """The gripper at the cube, the cube held and lifted, the way that it made to its place, and its being there."""
    info = next_state.info
    held = (info["grip_force"] > 1.0).astype(jnp.float32)
    aside = jnp.abs(info["to_goal"][0])
    high = jnp.clip((info["cube_pos"][1] - 0.025) / 0.08, 0.0, 1.0)
    terms = {
        "reach": 0.5 * (1.0 - jnp.tanh(5.0 * jnp.linalg.norm(info["to_cube"]))),
        "hold": 0.5 * held,
        "carry": held * jnp.maximum(high, (aside < 0.03).astype(jnp.float32)) * (2.0 - jnp.tanh(5.0 * aside)),
        "closer": 30.0 * (state.info["cube_goal_dist"] - info["cube_goal_dist"]),
        "there": 5.0 * (info["cube_goal_dist"] < 0.012),
    }
    return sum(terms.values()), terms
