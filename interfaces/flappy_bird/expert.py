# Task: flappy-bird (pass the gaps between pipes; 1000 steps).
# What: where the bird is from the edges of the next two gaps, and how it falls; a reward for a pipe and for the height
#   of the gap, and a cost of dying.
# By: written by hand.
# Score: pipes 19.727 +- 0.441 over 5 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task flappy-bird --interfaces interfaces/flappy_bird/*.py --seeds 5 --steps 1000000
import jax.numpy as jnp

PIPE, HALF, HEIGHT = 52.0, 12.0, 512.0


def gaps(state):
    """The pipe that is not behind the bird, and the one after it: right edge, top and bottom of the gap."""
    s = state
    ahead = s.last_pipe_x + PIPE > s.player_x
    last = jnp.stack([s.last_pipe_x, s.last_top_pipe_y, s.last_bottom_pipe_y])
    following = jnp.stack([s.next_pipe_x, s.next_top_pipe_y, s.next_bottom_pipe_y])
    third = jnp.stack([s.next_next_pipe_x, s.next_next_top_pipe_y, s.next_next_bottom_pipe_y])
    return jnp.where(ahead, last, following), jnp.where(ahead, following, third)


def get_observation(state):
    first, second = gaps(state)
    middle = state.player_y + HALF
    edges = jnp.concatenate([first[1:], second[1:]]) - middle
    away = jnp.stack([first[0], second[0]]) + PIPE - state.player_x
    speed = state.player_y_velocity / 10.0
    return jnp.concatenate([edges / 100.0, jnp.tanh(edges[:2] / 20.0), away / 100.0, jnp.stack([speed, middle / HEIGHT])])


def compute_reward(state, action, next_state):
    """1 for a pipe, minus how far the bird is from the height of the next gap, and -1 for the end."""
    first, _ = gaps(next_state)
    off = jnp.abs(next_state.player_y + HALF - 0.5 * (first[1] + first[2])) / HEIGHT
    terms = {
        "pipe": next_state.pipe_passed.astype(jnp.float32),
        "height": 0.1 - off,
        "end": -1.0 * next_state.player_dead,
    }
    return sum(terms.values()), terms
