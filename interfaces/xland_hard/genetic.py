# An interface found by jaxreward
# task: xland-hard
# score: 0.0141 +- 0.0044 (5 seeds, 1280 episodes)
# lineage: g0002-06 (mutate) <- g0000-02 (scratch)
# digest: 11b404a435c1c413518208329eeb09e44a4c4c359682ff05d5ecfc42e16bfe88
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward evolve --task xland-hard --steps 600000 --filter-steps 200000 --filter-threshold 0.02

import jax
import jax.numpy as jnp

SPAN = 12.0
FLOOR = 1
GOAL = 6
DOOR_OPEN = 10
HEIGHT = 13
WIDTH = 13
YELLOW_HEX = (11, 5)
GREEN_BALL = (3, 2)
BLUE_PYRAMID = (5, 3)
PURPLE_BALL = (3, 4)
DOOR_LOCKED = 8
DOOR_CLOSED = 9
FLOOD = 32


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


def around(cell):
    """The cells above, right of, below and left of a cell, (4, 2)."""
    return cell + jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


def is_beside(state, cell, thing):
    """Whether `thing` lies on one of the four cells beside a cell."""
    cells = around(cell)
    return jnp.any(same(state.grid[cells[:, 0], cells[:, 1]], thing))


def is_held(state, thing):
    return same(state.agent.pocket, thing)


def was_put_down(state, next_state, thing):
    return is_held(state, thing) & (next_state.agent.pocket[0] == 0)


def is_on_grid(state, thing):
    return where_is(state.grid, thing) < HEIGHT * WIDTH


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


def agent_position(state):
    """Row and column of the agent, from 0 to 1."""
    return state.agent.position / SPAN


def agent_facing(state):
    """One-hot of the direction: up, right, down, left."""
    return jax.nn.one_hot(state.agent.direction, 4)


def hands_full(state):
    """Whether the agent carries anything."""
    return flag(state.agent.pocket[0] != 0)


def front_open(state):
    """Whether the agent can step forward."""
    return flag(is_walkable(tile_in_front(state)[0]))


def yellow_hex_offset(state):
    """Rows and columns from the agent to the yellow hex; 0 if held or absent."""
    return offset_to(state, YELLOW_HEX) / SPAN


def green_ball_offset_near(state):
    """Rows and columns to the green ball, to scale within three cells."""
    return jnp.clip(offset_to(state, GREEN_BALL) / 3.0, -1.0, 1.0)


def blue_pyramid_offset(state):
    """Rows and columns from the agent to the blue pyramid; 0 if held or absent."""
    return offset_to(state, BLUE_PYRAMID) / SPAN


def purple_ball_offset_near(state):
    """Rows and columns to the purple ball, to scale within three cells."""
    return jnp.clip(offset_to(state, PURPLE_BALL) / 3.0, -1.0, 1.0)


def put_yellow_hex_beside_green_ball(state, action, next_state):
    """The yellow hex was put down beside the green ball."""
    beside = is_beside(next_state, front_cell(state), GREEN_BALL)
    return jnp.where(was_put_down(state, next_state, YELLOW_HEX) & beside, 1.0, 0.0)


def walk_to_yellow_hex_empty_handed(state, action, next_state):
    """Steps gained on the yellow hex, on foot, while nothing is held."""
    return jnp.where(state.agent.pocket[0] == 0, walk_gain_on(state, next_state, YELLOW_HEX), 0.0)


def walk_to_green_ball_with_yellow_hex(state, action, next_state):
    """Steps gained on the green ball, on foot, while the yellow hex is held."""
    carried = is_held(state, YELLOW_HEX) & is_held(next_state, YELLOW_HEX)
    return jnp.where(carried, walk_gain_on(state, next_state, GREEN_BALL), 0.0)


def get_observation(state):
    return jnp.concatenate(
        [
            agent_position(state),
            agent_facing(state),
            hands_full(state),
            front_open(state),
            yellow_hex_offset(state),
            green_ball_offset_near(state),
            blue_pyramid_offset(state),
            purple_ball_offset_near(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "put_yellow_hex_beside_green_ball": 38.0 * put_yellow_hex_beside_green_ball(state, action, next_state),
        "walk_to_yellow_hex_empty_handed": 0.077 * walk_to_yellow_hex_empty_handed(state, action, next_state),
        "walk_to_green_ball_with_yellow_hex": 0.4 * walk_to_green_ball_with_yellow_hex(state, action, next_state),
    }
    return sum(terms.values()), terms
