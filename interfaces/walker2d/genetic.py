# An interface found by jaxreward
# task: walker2d
# score: 510.4975 +- 137.9377 (3 seeds, 768 episodes)
# measure: return
# lineage: g0000-06 (scratch)
# digest: addbd5a2f31f405a2072c142ab501aec44f7321b36ee6d1791434a04bb1f278f
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward evolve --task walker2d --candidates 16

import jax.numpy as jnp

QD_ROOT = 3
STANDING = 1.25


def joint_speeds_of(state):
    return state.qd[QD_ROOT:]


def turn(quat, vector):
    """Vectors (..., 3) turned by unit quaternions (..., 4)."""
    w, axis = quat[..., :1], quat[..., 1:]
    return vector + 2.0 * jnp.cross(axis, jnp.cross(axis, vector) + w * vector)


def in_body(state, vector):
    """A vector of the world (3,) in the frame of the torso."""
    return turn(state.x.rot[0] * jnp.array([1.0, -1.0, -1.0, -1.0]), vector)


def height(state):
    return state.x.pos[0, 2]


def velocity(state):
    """Velocity of the torso in the world (3,), in m/s."""
    return state.xd.vel[0]


def bell(x, width):
    return jnp.exp(-((x / width) ** 2))


def up_axis(state):
    """The torso's own up axis in the world (3,)."""
    return turn(state.x.rot[0], jnp.array([0.0, 0.0, 1.0]))


def ahead_axis(state):
    """The torso's own forward axis in the world (3,)."""
    return turn(state.x.rot[0], jnp.array([1.0, 0.0, 0.0]))


def length(vector):
    return jnp.sqrt(jnp.sum(vector**2) + 1e-12)


def joint_speeds(state):
    """Speeds of the joints, scaled and cut."""
    return 0.2 * jnp.clip(joint_speeds_of(state), -10.0, 10.0)


def gravity_in_body(state):
    """Which way is down, in the torso's frame."""
    return in_body(state, jnp.array([0.0, 0.0, -1.0]))


def torso_height(state):
    """Height of the torso."""
    return jnp.reshape(height(state), (1,))


def velocity_in_body(state):
    """Velocity of the torso in its own frame."""
    return in_body(state, velocity(state))


def spin_in_body(state):
    """Angular velocity of the torso in its own frame, scaled."""
    return 0.3 * in_body(state, state.xd.ang[0])


def spin_in_world(state):
    """Angular velocity of the torso in the world, scaled."""
    return 0.3 * state.xd.ang[0]


def last_action(state):
    """The action of the step before."""
    return 1.0 * state.last_action


def high(state, action, next_state):
    """Whether the torso is above 0.7 of its standing height."""
    return (height(next_state) > 0.7 * STANDING).astype(jnp.float32)


def sideways_cost(state, action, next_state):
    """Minus the distance from the line ahead, squashed."""
    return -jnp.tanh(jnp.abs(next_state.x.pos[0, 1]))


def upright_near(state, action, next_state):
    """A bell around the upright torso."""
    return bell(1.0 - up_axis(next_state)[2], 0.2)


def alive(state, action, next_state):
    """1 for every step."""
    return jnp.float32(1.0)


def heading(state, action, next_state):
    """Forward part of the torso's forward axis."""
    return ahead_axis(next_state)[0]


def stillness(state, action, next_state):
    """A bell around a torso at rest."""
    return bell(length(velocity(next_state)), 0.5) * bell(length(next_state.xd.ang[0]), 1.0)


def get_observation(state):
    return jnp.concatenate(
        [
            joint_speeds(state),
            gravity_in_body(state),
            torso_height(state),
            velocity_in_body(state),
            spin_in_body(state),
            spin_in_world(state),
            last_action(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "high": 1.0 * high(state, action, next_state),
        "sideways_cost": 0.1 * sideways_cost(state, action, next_state),
        "upright_near": 1.0 * upright_near(state, action, next_state),
        "alive": 1.0 * alive(state, action, next_state),
        "heading": 1.0 * heading(state, action, next_state),
        "stillness": 2.0 * stillness(state, action, next_state),
    }
    return sum(terms.values()), terms
