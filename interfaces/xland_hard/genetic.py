# An interface found by jaxreward
# task: xland-hard
# score: 0.9543 +- 0.0032 (10 seeds, 2560 episodes)
# lineage: g0002-13 (improve) <- g0000-13 (scratch)
# digest: 0aeb9476c8c04cadf926e79e4b35532df924c5b1a37fee4c037420f97457c2f7
# versions: jaxreward 0.1.0, jax 0.10.2, numpy 2.4.6, python 3.11.7
# command: jaxreward compare --tasks xland-hard --strategies limen --search-seeds 10 --candidates 64 --generation 16 --seeds 1 --steps 150_000 --final-seeds 10 --evolve both --blocks on

import jax
import jax.numpy as jnp

SPAN = 12.0
FLOOR = 1
GOAL = 6
DOOR_OPEN = 10
WIDTH = 13
DOOR_LOCKED = 8
DOOR_CLOSED = 9
HEIGHT = 13
FLOOD = 32
YELLOW_HEX = (11, 5)
HORIZON = 400.0
BLUE_PYRAMID = (5, 3)
GREEN_BALL = (3, 2)
GAMMA = 0.99
PUT_DOWN = 4


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


def is_door(kinds):
    return (kinds == DOOR_LOCKED) | (kinds == DOOR_CLOSED) | (kinds == DOOR_OPEN)


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


def is_held(state, thing):
    return same(state.agent.pocket, thing)


def walk_to(state, thing):
    """Steps on foot from the agent to `thing`; 0 if it is held or absent."""
    return walks(state, thing, state.agent.position[None, :])[0]


def carrying_near_on_foot(state, thing, other):
    """The same by steps on foot."""
    return is_held(state, thing) * (1.0 - walk_to(state, other) / FLOOD)


def is_on_grid(state, thing):
    return where_is(state.grid, thing) < HEIGHT * WIDTH


def offset_to(state, thing):
    """Rows and columns from the agent to `thing`, 0 if it is held or absent."""
    return place_of(state, thing) - state.agent.position


def distance_to(state, thing):
    """Cells from the agent to `thing`, without regard to walls; 0 if it is held or absent."""
    return jnp.sum(jnp.abs(offset_to(state, thing)))


def gain_on(state, next_state, thing):
    """By how many cells the agent came closer to `thing`, 0 unless it lies on the grid throughout."""
    lies = is_on_grid(state, thing) & is_on_grid(next_state, thing)
    return jnp.where(lies, distance_to(state, thing) - distance_to(next_state, thing), 0).astype(jnp.float32)


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


def yellow_hex_way_turned(state):
    """Which of the cells ahead, right, behind, left are nearer to the yellow hex on foot."""
    return way_to(state, YELLOW_HEX, around_turned(state))


def yellow_hex_front_free_beside(state):
    """Whether the cell in front is free and beside the yellow hex."""
    return flag(free_beside(state, front_cell(state), YELLOW_HEX))


def time_passed(state):
    """The part of the episode that is over."""
    return jnp.reshape(state.step_num / HORIZON, (1,))


def blue_pyramid_way_turned(state):
    """Which of the cells ahead, right, behind, left are nearer to the blue pyramid on foot."""
    return way_to(state, BLUE_PYRAMID, around_turned(state))


def green_ball_held(state):
    """Whether the agent holds the green ball."""
    return flag(is_held(state, GREEN_BALL))


def walk_green_ball_to_yellow_hex_potential(state, action, next_state):
    """The same by steps on foot."""
    return GAMMA * carrying_near_on_foot(next_state, GREEN_BALL, YELLOW_HEX) - carrying_near_on_foot(state, GREEN_BALL, YELLOW_HEX)


def closer_to_yellow_hex_carrying(state, action, next_state):
    """Cells gained on the yellow hex while something is held."""
    return jnp.where(state.agent.pocket[0] != 0, gain_on(state, next_state, YELLOW_HEX), 0.0)


def goal_reached(state, action, next_state):
    """The task's goal is reached."""
    cell = front_cell(state)
    there = next_state.grid[cell[0], cell[1]]
    one = same(there, (3, 2)) & is_beside(next_state, cell, (11, 5))
    other = same(there, (11, 5)) & is_beside(next_state, cell, (3, 2))
    reached = (action == PUT_DOWN) & (one | other)
    return jnp.where(reached, 1.0, 0.0)


def walk_to_blue_pyramid_potential(state, action, next_state):
    """Potential: minus the steps to the blue pyramid on foot, 0 if held or gone."""
    return walk_to(state, BLUE_PYRAMID) - GAMMA * walk_to(next_state, BLUE_PYRAMID)


def holding_green_ball_potential(state, action, next_state):
    """Potential 1 while the green ball is held: pays for taking, charges for dropping."""
    return GAMMA * is_held(next_state, GREEN_BALL) - is_held(state, GREEN_BALL)


def get_observation(state):
    return jnp.concatenate(
        [
            agent_position(state),
            agent_facing(state),
            hands_full(state),
            front_open(state),
            yellow_hex_way_turned(state),
            yellow_hex_front_free_beside(state),
            time_passed(state),
            blue_pyramid_way_turned(state),
            green_ball_held(state),
        ]
    )


def compute_reward(state, action, next_state):
    terms = {
        "walk_green_ball_to_yellow_hex_potential": 1.0 * walk_green_ball_to_yellow_hex_potential(state, action, next_state),
        "closer_to_yellow_hex_carrying": 0.1 * closer_to_yellow_hex_carrying(state, action, next_state),
        "goal_reached": 5.0 * goal_reached(state, action, next_state),
        "walk_to_blue_pyramid_potential": 0.1 * walk_to_blue_pyramid_potential(state, action, next_state),
        "holding_green_ball_potential": 1.0 * holding_green_ball_potential(state, action, next_state),
    }
    return sum(terms.values()), terms
