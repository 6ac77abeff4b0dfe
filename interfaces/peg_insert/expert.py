# Task: peg-insert (put a peg into a hole; 120 steps of 0.03 s).
# What: the way from the tip to the hole, at two scales, tilt, gap and velocities; a reward for coming over the hole,
#   upright, and lower while it is both, and for depth; touching the block's top and sinking fast near it cost.
# By: written by hand.
# Score: success 1.000 +- 0.000, alignment 0.649 +- 0.025, over 5 seeds of 500,000 steps (mean and standard error).
# Again: scripts/train.py --task peg-insert --interfaces interfaces/peg_insert/*.py --seeds 5 --steps 500000
import jax.numpy as jnp

DEEP, TOP, GENTLE = 0.09, 0.15, 0.1


def get_observation(state):
    info, data = state.info, state.data
    return jnp.concatenate(
        [
            10.0 * info["to_mouth"],
            jnp.tanh(30.0 * info["to_mouth"]),
            5.0 * info["tip_vel"],
            jnp.stack([3.0 * info["tilt"], jnp.tanh(10.0 * info["tilt"]), data.qvel[2]]),
            jnp.tanh(info["gap"] * jnp.array([10.0, 100.0])),
            data.ctrl * jnp.array([4.0, 4.0, 1.25]),
        ]
    )


def lined_up(info):
    """1 where the tip is over the middle of the hole or in it and the peg upright, and less the farther from that."""
    return jnp.exp(-((info["to_mouth"][0] / 0.025) ** 2) - (info["tilt"] / 0.15) ** 2)


def low(info):
    """How low the tip is (m) while the peg is lined up."""
    return lined_up(info) * (0.3 - info["tip_pos"][1])


def way(info):
    """A potential of being over the hole, upright, and low while it is both."""
    return 60.0 * low(info) - 8.0 * jnp.abs(info["to_mouth"][0]) - 2.0 * jnp.abs(info["tilt"])


def compute_reward(state, action, next_state):
    """What the potential of the way gained; low while lined up; near to the hole's bottom, and deep in the hole; touching
    the top of the block, sinking fast near it and actions cost."""
    info = next_state.info
    near = info["tip_pos"][1] < TOP + 0.01
    terms = {
        "way": way(info) - way(state.info),
        "low": 2.0 * low(info),
        "near": jnp.exp(-10.0 * jnp.linalg.norm(info["to_mouth"] - jnp.array([0.0, DEEP]))),
        "deep": 2.0 * jnp.minimum(info["depth"] / DEEP, 1.0),
        "press": -0.3 * ((info["gap"] < 0.001) & (info["depth"] == 0.0)),
        "fast": -40.0 * jnp.maximum(-info["tip_vel"][1] - GENTLE, 0.0) * near,
        "effort": -0.01 * jnp.sum(action**2),
    }
    return sum(terms.values()), terms
