# Task: door-open (open a door with a hand and go through it; 150 steps of 0.04 s).
# What: what expert.py sees; a reward that is misaligned on purpose: it pays for the robot's way through, however that
#   is made.
# By: written by hand.
# Score: success 0.997 +- 0.002, alignment 0.605 +- 0.049, over 5 seeds of 300,000 steps (mean and standard error).
# Again: scripts/train.py --task door-open --interfaces interfaces/door_open/*.py --seeds 5 --steps 300000
import jax.numpy as jnp

def own(state, vector):
    """A vector of the world in the robot's frame."""
    cos, sin = jnp.cos(state.data.qpos[2]), jnp.sin(state.data.qpos[2])
    return jnp.stack([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0]])


def get_observation(state):
    info, data, heading = state.info, state.data, state.data.qpos[2]
    return jnp.concatenate(
        [
            info["local_edge"],
            info["local_exit"],
            data.qpos[:2],
            jnp.tanh(10.0 * info["hand_gaps"]),
            jnp.stack([jnp.tanh(10.0 * info["trunk_gap"]), info["door_turn"], info["door_rate"]]),
            own(state, data.qvel[:2]),
            jnp.stack([data.qvel[2], jnp.sin(heading), jnp.cos(heading)]),
        ]
    )


def compute_reward(state, action, next_state):
    """The way of the robot towards being through, and being through."""
    info = next_state.info
    terms = {
        "go": 20.0 * (state.info["left_to_go"] - info["left_to_go"]),
        "there": 2.0 * (info["left_to_go"] < 0.0),
    }
    return sum(terms.values()), terms
