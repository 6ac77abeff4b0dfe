# An interface found by jaxreward
# task: xland-easy
# score: 0.9914 +- 0.0056 (5 seeds, 1280 episodes)
# lineage: g0001-03 (mutate) <- g0000-01 (scratch)
# digest: c6f579cce3ad91e20f15049455630b91bfe5247de6f2b540fb9ab52d0c49671a
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward evolve --task xland-easy --baselines sparse best-of-n

import jax
import jax.numpy as jnp

FLOOR = 1
GOAL = 6
DOOR_OPEN = 10
HEIGHT = 9
WIDTH = 9
BLUE_PYRAMID = (5, 3)
DOOR_LOCKED = 8
DOOR_CLOSED = 9
FLOOD = 22
PICK_UP = 3
RED_BALL = (3, 1)


def flag(condition):
    """A truth value as a vector of one float."""
    return jnp.reshape(condition, (1,)).astype(jnp.float32)


def is_walkable(kinds):
    return (kinds == FLOOR) | (kinds == GOAL) | (kinds == DOOR_OPEN)


def heading(state):
    """The step, in rows and columns, that the agent would take forward."""
    up, right, down, left = [state.agent.direction == k for k in range(4)]
    return jnp.stack([down * 1 - up * 1, right * 1 - left * 1])


def front_cell(state):
    return state.agent.position + heading(state)


def tile_in_front(state):
    """Tile and colour of the cell in front of the agent."""
    cell = front_cell(state)
    return state.grid[cell[0], cell[1]]


def same(tiles, thing):
    """Where tiles, (..., 2), are `thing`, a (tile, colour)."""
    return (tiles[..., 0] == thing[0]) & (tiles[..., 1] == thing[1])


def where_is(grid, thing):
    """Cell index of the first `thing` on the grid, and HEIGHT * WIDTH where there is none."""
    cells = jnp.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    return jnp.min(jnp.where(same(grid, thing), cells, HEIGHT * WIDTH))


def place_of(state, thing):
    """Row and column of `thing`, or of the agent if it is held or absent."""
    index = where_is(state.grid, thing)
    found = index < HEIGHT * WIDTH
    return jnp.where(found, jnp.stack([index // WIDTH, index % WIDTH]), state.agent.position)


def offset_to(state, thing):
    """Rows and columns from the agent to `thing`, 0 if it is held or absent."""
    return place_of(state, thing) - state.agent.position


def window(layer, state, radius):
    """The square of a (HEIGHT, WIDTH) layer around the agent, zeros beyond the edge."""
    row, column = state.agent.position
    return jax.lax.dynamic_slice(jnp.pad(layer, radius), (row, column), (2 * radius + 1, 2 * radius + 1))


def is_held(state, thing):
    return same(state.agent.pocket, thing)


def is_on_grid(state, thing):
    return where_is(state.grid, thing) < HEIGHT * WIDTH


def distance_to(state, thing):
    """Cells from the agent to `thing`, without regard to walls; 0 if it is held or absent."""
    return jnp.sum(jnp.abs(offset_to(state, thing)))


def gain_on(state, next_state, thing):
    """By how many cells the agent came closer to `thing`, 0 unless it lies on the grid throughout."""
    lies = is_on_grid(state, thing) & is_on_grid(next_state, thing)
    return jnp.where(lies, distance_to(state, thing) - distance_to(next_state, thing), 0).astype(jnp.float32)


def is_door(kinds):
    return (kinds == DOOR_LOCKED) | (kinds == DOOR_CLOSED) | (kinds == DOOR_OPEN)


def walks(state, thing, cells):
    """Steps on foot from each of `cells`, (k, 2), to `thing`: a flood from it over floor and doors.

    Bit c of an integer stands for column c of a row. Cells that are not reached within FLOOD steps
    count as FLOOD away.
    """
    kinds = state.grid[:, :, 0]
    columns = jnp.left_shift(1, jnp.arange(WIDTH))
    passable = jnp.sum(jnp.where(is_walkable(kinds) | is_door(kinds), columns, 0), axis=1)
    start = place_of(state, thing)
    reached = jnp.where(jnp.arange(HEIGHT) == start[0], jnp.left_shift(1, start[1]), 0)
    wanted = jnp.where(jnp.arange(HEIGHT) == cells[:, :1], jnp.left_shift(1, cells[:, 1:]), 0)

    def spread(step, carry):
        reached, distance = carry
        missed = ~jnp.any((reached & wanted) != 0, axis=1)
        sideways = jnp.left_shift(reached, 1) | jnp.right_shift(reached, 1)
        vertical = jnp.pad(reached[1:], (0, 1)) | jnp.pad(reached[:-1], (1, 0))
        return reached | ((sideways | vertical) & passable), distance + missed

    distance = jnp.zeros(cells.shape[0], jnp.int32)
    return jax.lax.fori_loop(0, FLOOD, spread, (reached, distance))[1]


def walk_to(state, thing):
    """Steps on foot from the agent to `thing`; 0 if it is held or absent."""
    return walks(state, thing, state.agent.position[None, :])[0]


def walk_gain_on(state, next_state, thing):
    """By how many steps on foot the agent came closer to `thing`, 0 unless it lies on the grid throughout."""
    lies = is_on_grid(state, thing) & is_on_grid(next_state, thing)
    return jnp.where(lies, walk_to(state, thing) - walk_to(next_state, thing), 0).astype(jnp.float32)


def agent_facing(state):
    """One-hot of the direction: up, right, down, left."""
    return jax.nn.one_hot(state.agent.direction, 4)


def front_open(state):
    """Whether the agent can step forward."""
    return flag(is_walkable(tile_in_front(state)[0]))


def blue_pyramid_side(state):
    """On which side the blue pyramid lies: signs of rows and columns."""
    return jnp.sign(offset_to(state, BLUE_PYRAMID)).astype(jnp.float32)


def blue_pyramid_in_front(state):
    """Whether the blue pyramid is right in front of the agent."""
    return flag(same(tile_in_front(state), BLUE_PYRAMID))


def pocket_kind(state):
    """One-hot of the kind of tile that is carried."""
    return jax.nn.one_hot(state.agent.pocket[0], 13)


def tiles_5x5(state):
    """Kinds of tile in the 5x5 window around the agent, scaled."""
    return window(state.grid[:, :, 0] / 12.0, state, 2).reshape(-1)


def got_blue_pyramid(state, action, next_state):
    """The blue pyramid came into the agent's hands."""
    return jnp.where(is_held(next_state, BLUE_PYRAMID) & ~is_held(state, BLUE_PYRAMID), 1.0, 0.0)


def closer_to_blue_pyramid_empty_handed(state, action, next_state):
    """Cells gained on the blue pyramid while nothing is held."""
    return jnp.where(state.agent.pocket[0] == 0, gain_on(state, next_state, BLUE_PYRAMID), 0.0)


def walk_to_blue_pyramid_empty_handed(state, action, next_state):
    """Steps gained on the blue pyramid, on foot, while nothing is held."""
    return jnp.where(state.agent.pocket[0] == 0, walk_gain_on(state, next_state, BLUE_PYRAMID), 0.0)


def vain_pick_up(state, action, next_state):
    """A cost for picking up without getting anything."""
    vain = state.agent.pocket[0] == next_state.agent.pocket[0]
    return jnp.where((action == PICK_UP) & vain, -1.0, 0.0)


def reached_red_ball(state, action, next_state):
    """The agent came to stand beside the red ball."""
    before, after = distance_to(state, RED_BALL), distance_to(next_state, RED_BALL)
    return jnp.where((before > 1) & (after == 1), 1.0, 0.0)


def get_observation(state):
    return jnp.concatenate(
        [
            agent_facing(state),
            front_open(state),
            blue_pyramid_side(state),
            blue_pyramid_in_front(state),
            pocket_kind(state),
            tiles_5x5(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "got_blue_pyramid": 2.0 * got_blue_pyramid(state, action, next_state),
        "closer_to_blue_pyramid_empty_handed": 0.099 * closer_to_blue_pyramid_empty_handed(state, action, next_state),
        "walk_to_blue_pyramid_empty_handed": 0.1 * walk_to_blue_pyramid_empty_handed(state, action, next_state),
        "vain_pick_up": 0.02 * vain_pick_up(state, action, next_state),
        "reached_red_ball": 0.19 * reached_red_ball(state, action, next_state),
    }
    return sum(terms.values()), terms
