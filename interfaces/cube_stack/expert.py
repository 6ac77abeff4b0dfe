# Task: cube-stack (put a cube onto another one; 120 steps of 0.03 s).
# What: ways at two scales, velocities, fingers and their grip; a reward for holding, lifting, carrying, putting down
#   and letting go.
# By: written by hand.
# Score: success 0.596 +- 0.181, alignment 0.443 +- 0.118, over 5 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task cube-stack --interfaces interfaces/cube_stack/*.py --seeds 5 --steps 1000000
import jax.numpy as jnp

NEAR = 0.012


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


def let_go(info):
    """Whether the cube is at rest where it is to be, and no finger touches it."""
    rests = (jnp.linalg.norm(info["cube_vel"]) < 0.03) & (info["pad_gaps"] >= 0.002).all()
    return rests & (info["cube_goal_dist"] < NEAR)


def compute_reward(state, action, next_state):
    """The gripper at the cube, the fingers open above it; the cube held, lifted, carried to above the lower one, put
    down there and let go; pushing either over the table and moving it fast while it is not held cost."""
    info, wide = next_state.info, next_state.data.qpos[2] / 0.05
    held = info["grip_force"] > 1.0
    there = info["cube_goal_dist"] < NEAR
    grip = (held | there).astype(jnp.float32)  # so letting go costs nothing there
    above = info["to_cube"][1] < -0.02
    aside, height = jnp.abs(info["to_goal"][0]), info["cube_pos"][1] - 0.025
    over = jnp.exp(-((aside / 0.03) ** 2))
    lifted = 0.5 * (jnp.clip(height / 0.02, 0.0, 1.0) + jnp.clip(height / 0.07, 0.0, 1.0))
    lifted = lifted * jnp.exp(-((jnp.maximum(height - 0.08, 0.0) / 0.04) ** 2))
    ready = jnp.maximum(lifted, jnp.exp(-((aside / 0.045) ** 2)) * (height > 0.045))
    terms = {
        "reach": 1.5 * (1.0 - jnp.tanh(8.0 * jnp.linalg.norm(info["to_cube"]))),
        "open": 0.3 * jnp.where(above, wide, 1.0),
        "hold": grip,
        "carry": grip * ready * (4.0 - 2.0 * jnp.tanh(5.0 * aside)),
        "down": 8.0 * over * jnp.clip(1.0 - jnp.abs(height - 0.05) / 0.08, 0.0, 1.0),
        "loosen": 6.0 * there * (next_state.data.ctrl[2] + 0.02) / 0.07,
        "release": 10.0 * let_go(info),
        "shove": -3.0 * (height < 0.005) * jnp.abs(info["cube_vel"][0]),
        "loose": -0.5 * jnp.maximum(jnp.linalg.norm(info["cube_vel"]) - 0.2, 0.0) * ~held,
        "push": -3.0 * jnp.abs(info["lower_vel"]),
    }
    return sum(terms.values()), terms
