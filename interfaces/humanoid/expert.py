# Task: humanoid (run forward; 1000 steps of 0.015 s, springs).
# What: the torso's motion in its own frame, joints, shins and the last action; the environment's own reward.
# By: written by hand.
# Score: not measured yet.
# Again: scripts/train.py --task humanoid --interfaces interfaces/humanoid/expert.py
import jax.numpy as jnp

CONTROL_S = 0.015
MASSES = (8.907462, 2.261947, 6.616194, 4.751751, 4.522842, 4.751751, 4.522842, 1.66108, 1.22954, 1.66108, 1.22954)
CENTRES = (
    (-0.00253938, 0.0, 0.0346626), (0.0, 0.0, 0.0), (-0.02, 0.0, 0.0),
    (0.0, 0.005, -0.17), (0.0, 0.0, -0.228143), (0.0, -0.005, -0.17), (0.0, 0.0, -0.228143),
    (0.08, -0.08, -0.08), (0.109623, 0.109623, 0.109623), (0.08, 0.08, -0.08), (0.109623, -0.109623, 0.109623),
)


def centres_of_mass(state):
    """Where the centres of mass of the bodies are (bodies, 3)."""
    centre = jnp.array(CENTRES)
    w, axis = state.x.rot[:, :1], state.x.rot[:, 1:]
    return state.x.pos + centre + 2.0 * jnp.cross(axis, jnp.cross(axis, centre) + w * centre)


def centre_of_mass(state):
    """That of the whole body (3,)."""
    mass = jnp.array(MASSES)
    return jnp.sum(mass[:, None] * centres_of_mass(state), axis=0) / jnp.sum(mass)


def speed(state, next_state):
    """Forward speed of the centre of mass over one step, in m/s."""
    return (centre_of_mass(next_state)[0] - centre_of_mass(state)[0]) / CONTROL_S


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
            state.x.pos[4:7:2, 2],
            state.last_action,
        ]
    )


def compute_reward(state, action, next_state):
    """The environment's own reward."""
    forward = 1.25 * speed(state, next_state)
    alive = jnp.float32(5.0)
    effort = -0.1 * jnp.sum((0.4 * jnp.clip(action, -1.0, 1.0)) ** 2)
    return forward + alive + effort, {"forward": forward, "alive": alive, "effort": effort}
