# An interface found by jaxreward
# task: quadcopter-hover
# score: 0.2772 +- 0.0704 (3 seeds, 768 episodes)
# measure: distance (m), less is better
# lineage: g0000-01 (scratch)
# digest: 6a10f4b458237e34b156d840af212a92d9d2f4f30ff842d48268ead7a7f0681a
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward evolve --task quadcopter-hover --candidates 16

import jax.numpy as jnp


def way(state):
    """From the quadcopter to the target in the body (3,)."""
    return state.info["local_target"]


def gap(state):
    return state.info["target_dist"]


def body_velocity(state):
    """Velocity forward, left and up."""
    return state.info["local_linvel"]


def turning(state):
    """Angular velocity in the body."""
    return 0.3 * state.info["gyro"]


def gravity(state):
    """Direction of gravity in the body."""
    return state.info["gravity"]


def target_in_body(state):
    """The way to the target, halved."""
    return 0.5 * way(state)


def attitude(state):
    """The attitude as a quaternion."""
    return state.data.qpos[3:7]


def last_action(state):
    """The action before."""
    return state.info["last_act"]


def alive(state, action, next_state):
    """1 for every step."""
    return jnp.ones(())


def closer(state, action, next_state):
    """The way made towards the target."""
    return gap(state) - gap(next_state)


def get_observation(state):
    return jnp.concatenate(
        [
            body_velocity(state),
            turning(state),
            gravity(state),
            target_in_body(state),
            attitude(state),
            last_action(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "alive": 0.1 * alive(state, action, next_state),
        "closer": 10.0 * closer(state, action, next_state),
    }
    return sum(terms.values()), terms
