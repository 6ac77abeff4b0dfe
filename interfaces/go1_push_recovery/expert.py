# Task: go1-push-recovery (stay up and near the origin under pushes; 500 steps of 0.02 s).
# What: balance, joints, and the origin in the body's frame; a reward for staying near it, up and at rest.
# By: written by hand.
# Score: success 0.000, running_success 0.256, with 1 seed of 8,000,000 steps.
# Again: scripts/train.py --task go1-push-recovery --interfaces interfaces/go1_push_recovery/expert.py --seeds 1 --steps 8000000
import jax.numpy as jnp

HOME = (0.1, 0.9, -1.8, -0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, 0.9, -1.8)
REACH = 0.2  # seconds of the present velocity that a recovery takes


def in_body(state, vector):
    """A horizontal vector of the world as forward and left of the robot (2,)."""
    c, s = jnp.cos(state.info["heading"]), jnp.sin(state.info["heading"])
    return jnp.stack([c * vector[0] + s * vector[1], c * vector[1] - s * vector[0]])


def length(vector):
    return jnp.sqrt(jnp.sum(vector**2) + 1e-12)


def get_observation(state):
    """Balance, joints, and the way to the origin (59,)."""
    info, data = state.info, state.data
    bound_for = info["pos_xy"] + REACH * data.qvel[:2]
    return jnp.concatenate(
        [
            info["local_linvel"],
            0.3 * info["gyro"],
            info["gravity"],
            10.0 * (info["height"][None] - 0.27),
            data.qpos[7:] - jnp.array(HOME),
            0.05 * data.qvel[6:],
            info["last_act"],
            jnp.tanh(2.0 * in_body(state, -info["pos_xy"])),
            jnp.tanh(10.0 * in_body(state, -info["pos_xy"])),
            3.0 * in_body(state, -bound_for),
            in_body(state, info["push_force"][:2]) / 400.0,
            jnp.stack([jnp.sin(info["heading"]), jnp.cos(info["heading"])]),
        ]
    )


def compute_reward(state, action, next_state):
    """Stay up, stay near, come to rest, and move no more than that takes."""
    info, data = next_state.info, next_state.data
    away = length(info["pos_xy"])
    terms = {
        "near": 1.0 * jnp.exp(-((away / 0.3) ** 2)),
        "very_near": 1.0 * jnp.exp(-((away / 0.08) ** 2)),
        "upright": 0.5 * info["upvector"][2],
        "height": 0.5 * jnp.exp(-(((info["height"] - 0.27) / 0.05) ** 2)),
        "pose": -0.1 * jnp.sum((data.qpos[7:] - jnp.array(HOME)) ** 2),
        "turning": -0.02 * jnp.sum(info["gyro"] ** 2),
        "heading": 0.2 * jnp.cos(info["heading"]),
        "smooth": -0.01 * jnp.sum((action - state.info["last_act"]) ** 2),
        "joint_speed": -0.0003 * jnp.sum(data.qvel[6:] ** 2),
    }
    return sum(terms.values()), terms
