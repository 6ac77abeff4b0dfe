# Task: humanoid (run forward; 1000 steps of 0.015 s, springs).
# What: the baseline, Brax's own observation and the sparse reward of the task.
# By: written by hand.
# Score: not measured yet.
# Again: scripts/train.py --task humanoid --interfaces interfaces/humanoid/sparse.py
import jax.numpy as jnp

CONTROL_S = 0.015
FAST = 1.0
LOWEST = 1.0
HIGHEST = 2.0
MASSES = (8.907462, 2.261947, 6.616194, 4.751751, 4.522842, 4.751751, 4.522842, 1.66108, 1.22954, 1.66108, 1.22954)
CENTRES = (
    (-0.00253938, 0.0, 0.0346626), (0.0, 0.0, 0.0), (-0.02, 0.0, 0.0),
    (0.0, 0.005, -0.17), (0.0, 0.0, -0.228143), (0.0, -0.005, -0.17), (0.0, 0.0, -0.228143),
    (0.08, -0.08, -0.08), (0.109623, 0.109623, 0.109623), (0.08, 0.08, -0.08), (0.109623, -0.109623, 0.109623),
)
GEARS = (350.0,) * 11 + (100.0,) * 6


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


def inertias(offset, mass):
    """Of the bodies about the centre of mass, as Brax's springs have them: unit inertias, moved (bodies, 9)."""
    squares = jnp.sum(offset**2, axis=1)[:, None, None] * jnp.eye(3)
    moved = squares - offset[:, :, None] * offset[:, None, :]
    return (jnp.eye(3) + mass[:, None, None] * moved).reshape(-1, 9)


def torques(action):
    """Of the motors, in the order of qd (23,); the first two motors stand the other way round."""
    force = 0.4 * jnp.clip(action, -1.0, 1.0) * jnp.array(GEARS)
    return jnp.concatenate([jnp.zeros(6), force[1:2], force[0:1], force[2:]])


def get_observation(state):
    """Positions and speeds of all joints (x and y left out), inertias, masses, velocities and torques."""
    mass, centres = jnp.array(MASSES), centres_of_mass(state)
    inertia = inertias(centres - centre_of_mass(state), mass)
    velocity = state.xd.vel - jnp.cross(centres - state.x.pos, state.xd.ang)
    moving = jnp.concatenate([mass[:, None] * velocity / jnp.sum(mass), state.xd.ang], axis=1)
    return jnp.concatenate(
        [
            state.q[2:],
            state.qd,
            jnp.concatenate([inertia, mass[:, None]], axis=1).reshape(-1),
            moving.reshape(-1),
            torques(state.last_action),
        ]
    )


def compute_reward(state, action, next_state):
    """1 for every step at 1 m/s or more on which the robot is still up."""
    height = next_state.x.pos[0, 2]
    up = (height > LOWEST) & (height < HIGHEST)
    fast = (up & (speed(state, next_state) >= FAST)).astype(jnp.float32)
    return fast, {"fast": fast}
