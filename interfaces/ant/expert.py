# Task: ant (run forward; 1000 steps of 0.05 s, springs).
# What: the torso's motion in its own frame, joints, feet and the last action; the environment's own reward.
# By: written by hand.
# Score: return 2068.3 +- 243.3 over 3 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task ant --interfaces interfaces/ant/expert.py --seeds 3 --steps 1000000
import jax.numpy as jnp

CONTROL_S = 0.05


def speed(state, next_state):
    """Forward speed of the torso over one step, in m/s."""
    return (next_state.x.pos[0, 0] - state.x.pos[0, 0]) / CONTROL_S


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
        ]
    )


def compute_reward(state, action, next_state):
    """The environment's own reward."""
    forward = speed(state, next_state)
    alive = jnp.float32(1.0)
    effort = -0.5 * jnp.sum(jnp.clip(action, -1.0, 1.0) ** 2)
    return forward + alive + effort, {"forward": forward, "alive": alive, "effort": effort}
