# An interface found by jaxreward
# task: hopper
# score: 638.9742 +- 125.7988 (3 seeds, 768 episodes)
# measure: return
# lineage: g0000-03 (scratch)
# digest: 7986bc9129bba112e5d86768d411500502763c4b5f235e98e90c1ff6fe301dfa
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward evolve --task hopper --candidates 16

import jax.numpy as jnp

Q_ROOT = 3
QD_ROOT = 3
STANDING = 1.25


def joint_angles_of(state):
    return state.q[Q_ROOT:]


def joint_speeds_of(state):
    return state.qd[QD_ROOT:]


def turn(quat, vector):
    """Vectors (..., 3) turned by unit quaternions (..., 4)."""
    w, axis = quat[..., :1], quat[..., 1:]
    return vector + 2.0 * jnp.cross(axis, jnp.cross(axis, vector) + w * vector)


def in_body(state, vector):
    """A vector of the world (3,) in the frame of the torso."""
    return turn(state.x.rot[0] * jnp.array([1.0, -1.0, -1.0, -1.0]), vector)


def ahead_axis(state):
    """The torso's own forward axis in the world (3,)."""
    return turn(state.x.rot[0], jnp.array([1.0, 0.0, 0.0]))


def velocity(state):
    """Velocity of the torso in the world (3,), in m/s."""
    return state.xd.vel[0]


def height(state):
    return state.x.pos[0, 2]


def joint_angles(state):
    """Angles of the joints."""
    return joint_angles_of(state)


def joint_speeds(state):
    """Speeds of the joints, scaled and cut."""
    return 0.2 * jnp.clip(joint_speeds_of(state), -10.0, 10.0)


def gravity_in_body(state):
    """Which way is down, in the torso's frame."""
    return in_body(state, jnp.array([0.0, 0.0, -1.0]))


def spin_in_body(state):
    """Angular velocity of the torso in its own frame, scaled."""
    return 0.3 * in_body(state, state.xd.ang[0])


def ahead_in_world(state):
    """The torso's forward axis in the world."""
    return ahead_axis(state)


def sideways(state):
    """Distance to the left of the line ahead."""
    return jnp.reshape(jnp.tanh(state.x.pos[0, 1]), (1,))


def joint_speeds_squashed(state):
    """Speeds of the joints, squashed."""
    return jnp.tanh(0.3 * joint_speeds_of(state))


def alive(state, action, next_state):
    """1 for every step."""
    return jnp.float32(1.0)


def sideways_speed_cost(state, action, next_state):
    """Minus the squared sideways speed."""
    return -jnp.clip(velocity(next_state)[1], -5.0, 5.0) ** 2


def high(state, action, next_state):
    """Whether the torso is above 0.7 of its standing height."""
    return (height(next_state) > 0.7 * STANDING).astype(jnp.float32)


def get_observation(state):
    return jnp.concatenate(
        [
            joint_angles(state),
            joint_speeds(state),
            gravity_in_body(state),
            spin_in_body(state),
            ahead_in_world(state),
            sideways(state),
            joint_speeds_squashed(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "alive": 5.0 * alive(state, action, next_state),
        "sideways_speed_cost": 0.1 * sideways_speed_cost(state, action, next_state),
        "high": 2.0 * high(state, action, next_state),
    }
    return sum(terms.values()), terms
