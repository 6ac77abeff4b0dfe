# Task: peg-insert (put a peg into a hole; 120 steps of 0.03 s).
# What: the way from the tip to the hole, at two scales, tilt, gap and velocities; a reward for being over the hole and
#   upright, for being lower while it is both, and for depth; touching the block's top and sinking fast cost.
# By: written by hand.
# Score: ?
# Again: scripts/train.py --task peg-insert --interfaces interfaces/peg_insert/*.py --seeds 5 --steps 300000
import jax.numpy as jnp

DEEP, TOP, GENTLE = 0.09, 0.15, 0.15


def get_observation(state):
    info, data = state.info, state.data
    return jnp.concatenate(
        [
            10.0 * info["to_mouth"],
            jnp.tanh(50.0 * info["to_mouth"]),
            4.0 * info["tip_vel"],
            jnp.stack([info["tilt"], jnp.tanh(10.0 * info["tilt"]), 0.5 * data.qvel[2]]),
            jnp.tanh(info["gap"] * jnp.array([10.0, 100.0])),
            data.ctrl * jnp.array([2.5, 2.5, 1.25]),
        ]
    )


def over(info):
    """1 where the tip is over the middle of the hole or in it, less the farther beside it is."""
    return jnp.exp(-((info["to_mouth"][0] / 0.01) ** 2))


def straight(info):
    return jnp.exp(-((info["tilt"] / 0.1) ** 2))


def compute_reward(state, action, next_state):
    """Over the hole, at two scales, and upright; a potential of being low while it is both; deep in the hole; touching the
    top of the block, sinking fast near it and actions cost."""
    info, before = next_state.info, state.info
    low, low_before = (over(s) * straight(s) * (0.35 - s["tip_pos"][1]) for s in (info, before))
    near = info["tip_pos"][1] < TOP + 0.01
    terms = {
        "over": 0.2 * (jnp.exp(-8.0 * jnp.abs(info["to_mouth"][0])) + over(info)),
        "upright": 0.2 * straight(info),
        "lower": 200.0 * (low - low_before),
        "deep": 0.5 * jnp.minimum(info["depth"] / DEEP, 1.0),
        "press": -0.3 * ((info["gap"] < 0.001) & (info["depth"] == 0.0)),
        "fast": -5.0 * jnp.maximum(-info["tip_vel"][1] - GENTLE, 0.0) * near,
        "effort": -0.01 * jnp.sum(action**2),
    }
    return sum(terms.values()), terms
