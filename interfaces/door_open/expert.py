# Task: door-open (open a door with a hand and go through it; 150 steps of 0.04 s).
# What: where the door's edge and the doorway are from the robot, how both move, and the gaps between; a reward for a
#   hand at the door, for opening it by hand, and for going through then; a trunk near the door and a fast door cost.
# By: written by hand.
# Score: success 0.967 +- 0.019, alignment 0.789 +- 0.020, over 5 seeds of 300,000 steps (mean and standard error).
# Again: scripts/train.py --task door-open --interfaces interfaces/door_open/*.py --seeds 5 --steps 300000
import jax.numpy as jnp

OPEN, GENTLE, TOUCHING = 1.2, 0.8, 0.02

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
    """A hand at the door until it is open, opening it, most with a hand on it, going through once it is half open, and
    being through; a trunk near the door, its turning faster than 0.8 rad/s, and actions cost."""
    info, before = next_state.info, state.info
    turn, turn_before = (jnp.minimum(s["door_turn"], 1.4) for s in (info, before))
    held = (info["hand_gaps"].min() < TOUCHING).astype(jnp.float32)
    way = before["left_to_go"] - info["left_to_go"]
    terms = {
        "touch": 0.3 * jnp.exp(-4.0 * jnp.maximum(info["hand_gaps"].min(), 0.0)) * (turn < OPEN),
        "open": 15.0 * (turn - turn_before) * (0.2 + 0.8 * held),
        "go": 20.0 * way * (turn > 0.5 * OPEN) + 2.0 * (info["left_to_go"] < 0.0),
        "bump": -3.0 * jnp.exp(-20.0 * jnp.maximum(info["trunk_gap"], 0.0)),
        "bang": -6.0 * jnp.maximum(info["door_rate"] - GENTLE, 0.0),
        "effort": -0.01 * jnp.sum(action**2),
    }
    return sum(terms.values()), terms
