# Task: walker2d (run forward; 1000 steps of 0.008 s, springs).
# What: joints, tilt, speeds, the height of the feet and the last action; the environment's own reward.
# By: written by hand.
# Score: return 273.4 +- 24.6 over 3 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task walker2d --interfaces interfaces/walker2d/expert.py --seeds 3 --steps 1000000
import jax.numpy as jnp

CONTROL_S = 0.008


def speed(state, next_state):
    """Forward speed of the torso over one step, in m/s."""
    return (next_state.x.pos[0, 0] - state.x.pos[0, 0]) / CONTROL_S


def get_observation(state):
    """Height, tilt and joints, their speeds and the last action, each of order one."""
    return jnp.concatenate(
        [
            state.x.pos[0, 2:],
            jnp.stack([jnp.sin(state.q[2]), jnp.cos(state.q[2])]),
            state.q[3:],
            0.5 * state.xd.vel[0, 0::2],
            jnp.tanh(0.2 * state.qd[2:]),
            state.x.pos[3::3, 2],
            state.last_action,
        ]
    )


def compute_reward(state, action, next_state):
    """The environment's own reward."""
    forward = speed(state, next_state)
    alive = jnp.float32(1.0)
    effort = -1e-3 * jnp.sum(jnp.clip(action, -1.0, 1.0) ** 2)
    return forward + alive + effort, {"forward": forward, "alive": alive, "effort": effort}
