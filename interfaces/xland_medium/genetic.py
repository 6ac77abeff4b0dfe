# An interface found by jaxreward
# task: xland-medium
# score: 1.0000 +- 0.0000 (5 seeds, 1280 episodes)
# lineage: g0000-06 (scratch)
# digest: adacc368bb6b353e4eb49f45c999af17870331f4f1ad14fc5c957834669000ab
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward evolve --task xland-medium

import jax
import jax.numpy as jnp

SPAN = 8.0
FLOOR = 1
GOAL = 6
DOOR_OPEN = 10
HEIGHT = 9
WIDTH = 9
YELLOW_PYRAMID = (5, 5)
GREEN_SQUARE = (4, 2)
DOOR_LOCKED = 8
DOOR_CLOSED = 9
FLOOD = 22
GAMMA = 0.99


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


def ahead_and_right(state, offset):
    """An offset in rows and columns, as cells ahead of the agent and to its right."""
    rows, columns = heading(state)
    return jnp.stack([offset[0] * rows + offset[1] * columns, offset[1] * -rows + offset[0] * columns])


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


def distance_to(state, thing):
    """Cells from the agent to `thing`, without regard to walls; 0 if it is held or absent."""
    return jnp.sum(jnp.abs(offset_to(state, thing)))


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


def gap_between(state, thing, other):
    """Cells between two things, one in hand being where the agent is; the widest if one is absent."""
    exist = is_on_grid(state, thing) | is_held(state, thing)
    exist = exist & (is_on_grid(state, other) | is_held(state, other))
    gap = jnp.sum(jnp.abs(place_of(state, thing) - place_of(state, other)))
    return jnp.where(exist, gap, HEIGHT + WIDTH)


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


def yellow_pyramid_turn(state):
    """Signs: whether the yellow pyramid is ahead or behind, right or left."""
    return jnp.sign(ahead_and_right(state, offset_to(state, YELLOW_PYRAMID))).astype(jnp.float32)


def green_square_ahead_right(state):
    """Cells to the green square, ahead and to the right."""
    return ahead_and_right(state, offset_to(state, GREEN_SQUARE)) / SPAN


def agent_heading(state):
    """The direction as a step in rows and columns."""
    return heading(state).astype(jnp.float32)


def yellow_pyramid_adjacent(state):
    """Whether the agent stands beside the yellow pyramid."""
    return flag(distance_to(state, YELLOW_PYRAMID) == 1)


def yellow_pyramid_walk(state):
    """Steps to the yellow pyramid on foot, doors counted as open."""
    return jnp.reshape(walk_to(state, YELLOW_PYRAMID) / SPAN, (1,))


def green_square_adjacent(state):
    """Whether the agent stands beside the green square."""
    return flag(distance_to(state, GREEN_SQUARE) == 1)


def put_yellow_pyramid_beside_green_square(state, action, next_state):
    """The yellow pyramid was put down beside the green square."""
    beside = is_beside(next_state, front_cell(state), GREEN_SQUARE)
    return jnp.where(was_put_down(state, next_state, YELLOW_PYRAMID) & beside, 1.0, 0.0)


def walk_to_yellow_pyramid_potential(state, action, next_state):
    """Potential: minus the steps to the yellow pyramid on foot, 0 if held or gone."""
    return walk_to(state, YELLOW_PYRAMID) - GAMMA * walk_to(next_state, YELLOW_PYRAMID)


def gap_yellow_pyramid_green_square_potential(state, action, next_state):
    """Potential: minus the cells between yellow pyramid and green square, what is held being at the agent."""
    before = gap_between(state, YELLOW_PYRAMID, GREEN_SQUARE)
    after = gap_between(next_state, YELLOW_PYRAMID, GREEN_SQUARE)
    return before - GAMMA * after


def get_observation(state):
    return jnp.concatenate(
        [
            agent_position(state),
            agent_facing(state),
            hands_full(state),
            front_open(state),
            yellow_pyramid_turn(state),
            green_square_ahead_right(state),
            agent_heading(state),
            yellow_pyramid_adjacent(state),
            yellow_pyramid_walk(state),
            green_square_adjacent(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "put_yellow_pyramid_beside_green_square": 5.0 * put_yellow_pyramid_beside_green_square(state, action, next_state),
        "walk_to_yellow_pyramid_potential": 0.1 * walk_to_yellow_pyramid_potential(state, action, next_state),
        "gap_yellow_pyramid_green_square_potential": 0.2 * gap_yellow_pyramid_green_square_potential(state, action, next_state),
    }
    return sum(terms.values()), terms
