# Task: ant-lie-down (lie belly-up; 500 steps of 0.05 s, springs).
# What: the torso's motion in its own frame, joints, legs and the last action; a reward for turning over and lying
#   still.
# By: written by hand.
# Score: time belly-up 0.500 +- 0.023 over 3 seeds of 300,000 steps (mean and standard error).
# Again: scripts/train.py --task ant-lie-down --interfaces interfaces/ant_lie_down/expert.py --seeds 3 --steps 300000
import jax.numpy as jnp

BELLY_UP = 0.9


def in_body(state, vector):
    """A vector of the world (3,) in the frame of the torso."""
    w, axis = state.x.rot[0, 0], -state.x.rot[0, 1:]
    return vector + 2.0 * jnp.cross(axis, jnp.cross(axis, vector) + w * vector)


def get_observation(state):
    """What the torso feels (down, velocity, spin), joints, feet and the last action, each of order one."""
    down = in_body(state, jnp.array([0.0, 0.0, -1.0]))
    return jnp.concatenate(
        [
            state.x.pos[0, 2:],
            down,
            0.5 * in_body(state, state.xd.vel[0]),
            0.3 * in_body(state, state.xd.ang[0]),
            state.x.rot[0],
            state.q[7:],
            jnp.tanh(0.2 * state.qd[6:]),
            state.x.pos[2::2, 2],
            state.last_action,
            state.orientation[None],
        ]
    )


def compute_reward(state, action, next_state):
    """How far it is tipped over (0 to 1), lying still, first steps of a roll, and a price of the action once tipped."""
    tip = jnp.arccos(jnp.clip(-next_state.orientation, -1.0, 1.0)) / jnp.pi
    spin = next_state.xd.ang[0]
    lying = (next_state.orientation > BELLY_UP) * (1.0 + jnp.exp(-jnp.sum(spin**2)))
    rolling = 0.1 * jnp.maximum(0.5 - tip, 0.0) * jnp.minimum(jnp.sqrt(jnp.sum(spin[:2] ** 2) + 1e-12), 5.0)
    effort = -0.1 * tip * jnp.sum(jnp.clip(action, -1.0, 1.0) ** 2)
    return tip + lying + rolling + effort, {"tip": tip, "lying": lying, "rolling": rolling, "effort": effort}
