# Task: flappy-bird (pass the gaps between pipes; 1000 steps).
# What: the baseline, flappy-bird-gymnasium's own observation and reward.
# By: written by hand.
# Score: pipes 8.976 +- 1.613 over 5 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task flappy-bird --interfaces interfaces/flappy_bird/*.py --seeds 5 --steps 1000000
import jax.numpy as jnp

WIDTH, HEIGHT = 288.0, 512.0


def get_observation(state):
    """Three pipes and the bird."""
    s = state
    pipes = [
        (s.last_pipe_x, s.last_top_pipe_y, s.last_bottom_pipe_y),
        (s.next_pipe_x, s.next_top_pipe_y, s.next_bottom_pipe_y),
        (s.next_next_pipe_x, s.next_next_top_pipe_y, s.next_next_bottom_pipe_y),
    ]
    numbers = [n for x, top, bottom in pipes for n in (x / WIDTH, top / HEIGHT, bottom / HEIGHT)]
    return jnp.stack([*numbers, s.player_y / HEIGHT, s.player_y_velocity / 10.0, s.player_rotation / 90.0])


def compute_reward(state, action, next_state):
    """1 for a pipe, 0.1 for any other step, -0.5 for one that ends above the screen, and -1 for the end."""
    alive = jnp.where(next_state.pipe_passed, 1.0, 0.1)
    paid = jnp.where(next_state.player_y < 0.0, -0.5, alive)
    paid = jnp.where(next_state.player_dead, -1.0, paid)
    return paid, {"paid": paid}
