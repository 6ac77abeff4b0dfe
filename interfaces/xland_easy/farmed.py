# Task: xland-easy (pick up the blue pyramid; 9x9 room, 80 steps).
# What: a reward that can be farmed, as an example for the diagnostics. It is LIMEN's published one (appendix D.1),
#   with a good observation: it pays 1 a step for facing the pyramid and 10 for picking it up, which
#   ends the episode, so that a strong learner keeps facing it.
# By: written by hand after the paper.
# Score: success 0.085 +- 0.083 over 10 seeds of 500,000 steps (mean and standard error).
# Again: scripts/train.py --task xland-easy --interfaces interfaces/xland_easy/farmed.py --seeds 10 --steps 500000
import jax.numpy as jnp

WALL = 2
BALL = 3
PYRAMID = 5
BLUE = 3
SPAN = 8.0
HORIZON = 80.0


def same(tiles, kind, colour):
    return (tiles[..., 0] == kind) & (tiles[..., 1] == colour)


def heading(state):
    """The step, in rows and columns, that the agent would take forward."""
    up, right, down, left = [state.agent.direction == k for k in range(4)]
    return jnp.stack([down * 1 - up * 1, right * 1 - left * 1])


def tile_in_front(state):
    cell = state.agent.position + heading(state)
    return state.grid[cell[0], cell[1]]


def pyramid_offset(state):
    """Rows and columns to the pyramid; (0, 0) once it is held."""
    here = same(state.grid, PYRAMID, BLUE)
    rows = jnp.arange(here.shape[0])[:, None]
    columns = jnp.arange(here.shape[1])[None, :]
    down = jnp.sum(jnp.where(here, rows - state.agent.position[0], 0))
    across = jnp.sum(jnp.where(here, columns - state.agent.position[1], 0))
    return down, across


def distance(state):
    down, across = pyramid_offset(state)
    return jnp.abs(down) + jnp.abs(across)


def get_observation(state):
    down, across = pyramid_offset(state)
    forward = heading(state)
    ahead = down * forward[0] + across * forward[1]
    right = across * -forward[0] + down * forward[1]
    place = jnp.stack([ahead, right])
    front = tile_in_front(state)
    facing = same(front, PYRAMID, BLUE)
    flags = [right == 0, ahead == 0, facing, front[0] == WALL, front[0] == BALL, state.agent.pocket[0] == BALL]
    time = jnp.stack([state.step_num / HORIZON])
    return jnp.concatenate([place / SPAN, jnp.sign(place), jnp.stack(flags), time]).astype(jnp.float32)


def compute_reward(state, action, next_state):
    held = same(next_state.agent.pocket, PYRAMID, BLUE)
    before, after = distance(state), distance(next_state)
    terms = {
        "picked_up": 10.0 * (held & ~same(state.agent.pocket, PYRAMID, BLUE)),
        "closer": 0.5 * (before - after),
        "became_adjacent": 0.5 * ((after <= 1) & (before > 1)),
        "facing": 1.0 * same(tile_in_front(next_state), PYRAMID, BLUE),
        "time": jnp.float32(-0.005),
    }
    return sum(terms.values()), terms
