# Task: go1-push-recovery (stay up and near the origin under pushes; 500 steps of 0.02 s).
# What: the task's own observation and reward: 1 for every step that ends up and within 0.10 m of the origin.
# By: the task itself.
# Score: success 0.000, running_success 0.183, with 1 seed of 8,000,000 steps.
# Again: scripts/train.py --task go1-push-recovery --interfaces interfaces/go1_push_recovery/sparse.py --seeds 1 --steps 8000000
import jax.numpy as jnp

HOME = (0.1, 0.9, -1.8, -0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, 0.9, -1.8)


def get_observation(state):
    """What an inertial sensor knows, the joints, and the last action (45,)."""
    info, data = state.info, state.data
    return jnp.concatenate(
        [
            info["local_linvel"],
            info["gyro"],
            info["gravity"],
            data.qpos[7:] - jnp.array(HOME),
            data.qvel[6:],
            info["last_act"],
        ]
    )


def compute_reward(state, action, next_state):
    near = jnp.sqrt(jnp.sum(next_state.info["pos_xy"] ** 2)) < 0.10
    up = next_state.info["upvector"][2] >= 0.3
    good = (near & up).astype(jnp.float32)
    return good, {"sparse": good}
