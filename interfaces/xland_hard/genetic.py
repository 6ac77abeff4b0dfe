# An interface found by jaxreward
# task: xland-hard
# score: 0.9508 +- 0.0032 (10 seeds, 2560 episodes)
# lineage: g0003-01 (crossover) <- g0002-11 (improve) <- g0002-04 (crossover) <- g0000-11 (scratch) <- g0001-11 (improve) <- g0001-09 (improve) <- g0000-12 (scratch)
# digest: 28be2cf6d966d3be459aa90a7245da76907b8bd6eaf98a331ff090551027c3f8
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward compare --tasks xland-hard --strategies limen --search-seeds 5 --candidates 64 --generation 16 --seeds 1 --steps 150_000 --final-seeds 10 --evolve both

import jax
import jax.numpy as jnp

GREEN_BALL = (3, 2)
WIDTH = 13
FLOOR = 1
GOAL = 6
DOOR_OPEN = 10
DOOR_LOCKED = 8
DOOR_CLOSED = 9
HEIGHT = 13
FLOOD = 32
YELLOW_HEX = (11, 5)
SPAN = 12.0
BLUE_PYRAMID = (5, 3)
GREY_STAR = (12, 6)
GAMMA = 0.99
PUT_DOWN = 4


def flag(condition):
    """A truth value as a vector of one float."""
    return jnp.reshape(condition, (1,)).astype(jnp.float32)


def same(tiles, thing):
    """Where tiles, (..., 2), are `thing`, a (tile, colour)."""
    return (tiles[..., 0] == thing[0]) & (tiles[..., 1] == thing[1])


def is_held(state, thing):
    return same(state.agent.pocket, thing)


def is_walkable(kinds):
    return (kinds == FLOOR) | (kinds == GOAL) | (kinds == DOOR_OPEN)


def is_door(kinds):
    return (kinds == DOOR_LOCKED) | (kinds == DOOR_CLOSED) | (kinds == DOOR_OPEN)


def where_is(grid, thing):
    """Cell index of the first `thing` on the grid, and HEIGHT * WIDTH where there is none."""
    cells = jnp.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    return jnp.min(jnp.where(same(grid, thing), cells, HEIGHT * WIDTH))


def place_of(state, thing):
    """Row and column of `thing`, or of the agent if it is held or absent."""
    index = where_is(state.grid, thing)
    found = index < HEIGHT * WIDTH
    return jnp.where(found, jnp.stack([index // WIDTH, index % WIDTH]), state.agent.position)


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


def way_to(state, thing, cells):
    """Which of `cells`, neighbours of the agent's, are nearer to `thing` on foot than it is."""
    steps = walks(state, thing, jnp.concatenate([cells, state.agent.position[None, :]]))
    return (steps[:-1] < steps[-1]).astype(jnp.float32)


def heading(state):
    """The step, in rows and columns, that the agent would take forward."""
    up, right, down, left = [state.agent.direction == k for k in range(4)]
    return jnp.stack([down * 1 - up * 1, right * 1 - left * 1])


def around_turned(state):
    """The cells ahead of the agent, to its right, behind it and to its left, (4, 2)."""
    ahead = heading(state)
    right = jnp.stack([ahead[1], -ahead[0]])
    return state.agent.position + jnp.stack([ahead, right, -ahead, -right])


def around(cell):
    """The cells above, right of, below and left of a cell, (4, 2)."""
    return cell + jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


def is_beside(state, cell, thing):
    """Whether `thing` lies on one of the four cells beside a cell."""
    cells = around(cell)
    return jnp.any(same(state.grid[cells[:, 0], cells[:, 1]], thing))


def free_beside(state, cell, thing):
    """Whether a cell is free to put something down on, and beside `thing`."""
    return (state.grid[cell[0], cell[1], 0] == FLOOR) & is_beside(state, cell, thing)


def front_cell(state):
    return state.agent.position + heading(state)


def ahead_and_right(state, offset):
    """An offset in rows and columns, as cells ahead of the agent and to its right."""
    rows, columns = heading(state)
    return jnp.stack([offset[0] * rows + offset[1] * columns, offset[1] * -rows + offset[0] * columns])


def offset_to(state, thing):
    """Rows and columns from the agent to `thing`, 0 if it is held or absent."""
    return place_of(state, thing) - state.agent.position


def tile_in_front(state):
    """Tile and colour of the cell in front of the agent."""
    cell = front_cell(state)
    return state.grid[cell[0], cell[1]]


def distance_to(state, thing):
    """Cells from the agent to `thing`, without regard to walls; 0 if it is held or absent."""
    return jnp.sum(jnp.abs(offset_to(state, thing)))


def agent_facing(state):
    """One-hot of the direction: up, right, down, left."""
    return jax.nn.one_hot(state.agent.direction, 4)


def hands_full(state):
    """Whether the agent carries anything."""
    return flag(state.agent.pocket[0] != 0)


def green_ball_held(state):
    """Whether the agent holds the green ball."""
    return flag(is_held(state, GREEN_BALL))


def yellow_hex_way_turned(state):
    """Which of the cells ahead, right, behind, left are nearer to the yellow hex on foot."""
    return way_to(state, YELLOW_HEX, around_turned(state))


def yellow_hex_front_free_beside(state):
    """Whether the cell in front is free and beside the yellow hex."""
    return flag(free_beside(state, front_cell(state), YELLOW_HEX))


def green_ball_ahead_right(state):
    """Cells to the green ball, ahead and to the right."""
    return ahead_and_right(state, offset_to(state, GREEN_BALL)) / SPAN


def blue_pyramid_held(state):
    """Whether the agent holds the blue pyramid."""
    return flag(is_held(state, BLUE_PYRAMID))


def blue_pyramid_way_turned(state):
    """Which of the cells ahead, right, behind, left are nearer to the blue pyramid on foot."""
    return way_to(state, BLUE_PYRAMID, around_turned(state))


def front_kind(state):
    """One-hot of the kind of tile in front of the agent."""
    return jax.nn.one_hot(tile_in_front(state)[0], 13)


def grey_star_offset_near(state):
    """Rows and columns to the grey star, to scale within three cells."""
    return jnp.clip(offset_to(state, GREY_STAR) / 3.0, -1.0, 1.0)


def near_blue_pyramid_potential(state, action, next_state):
    """Potential: minus the cells to the blue pyramid, 0 if held or gone."""
    return distance_to(state, BLUE_PYRAMID) - GAMMA * distance_to(next_state, BLUE_PYRAMID)


def holding_green_ball_potential(state, action, next_state):
    """Potential 1 while the green ball is held: pays for taking, charges for dropping."""
    return GAMMA * is_held(next_state, GREEN_BALL) - is_held(state, GREEN_BALL)


def goal_reached(state, action, next_state):
    """The task's goal is reached."""
    cell = front_cell(state)
    there = next_state.grid[cell[0], cell[1]]
    one = same(there, (3, 2)) & is_beside(next_state, cell, (11, 5))
    other = same(there, (11, 5)) & is_beside(next_state, cell, (3, 2))
    reached = (action == PUT_DOWN) & (one | other)
    return jnp.where(reached, 1.0, 0.0)


def get_observation(state):
    return jnp.concatenate(
        [
            agent_facing(state),
            hands_full(state),
            green_ball_held(state),
            yellow_hex_way_turned(state),
            yellow_hex_front_free_beside(state),
            green_ball_ahead_right(state),
            blue_pyramid_held(state),
            blue_pyramid_way_turned(state),
            front_kind(state),
            grey_star_offset_near(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "near_blue_pyramid_potential": 0.1 * near_blue_pyramid_potential(state, action, next_state),
        "holding_green_ball_potential": 0.75 * holding_green_ball_potential(state, action, next_state),
        "goal_reached": 5.0 * goal_reached(state, action, next_state),
    }
    return sum(terms.values()), terms
