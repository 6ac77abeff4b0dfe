"""The vocabulary of XLand tasks: what a genetic proposer may build observations and rewards from.

`xland_vocabulary` fills the templates of `xland_fragments` in for the objects of a ruleset. It
knows tiles, positions, distances and actions; it does not know what a task's goal is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal

from jaxreward.records import Fragment, Vocabulary
from jaxreward.tasks import xland_fragments as templates
from jaxreward.tasks.fragment_template import Template, functions_of
from jaxreward.tasks.xland_description import COLOUR_NAMES, TILE_NAMES

TILES = tuple("_".join(reversed(name.split())) for name in TILE_NAMES)  # door_locked
OBJECT_TILES = frozenset({3, 4, 5, 6, 7, 11, 12})

HELPERS = '''
def flag(condition):
    """A truth value as a vector of one float."""
    return jnp.reshape(condition, (1,)).astype(jnp.float32)


def same(tiles, thing):
    """Where tiles, (..., 2), are `thing`, a (tile, colour)."""
    return (tiles[..., 0] == thing[0]) & (tiles[..., 1] == thing[1])


def where_is(grid, thing):
    """Cell index of the first `thing` on the grid, and HEIGHT * WIDTH where there is none."""
    cells = jnp.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    return jnp.min(jnp.where(same(grid, thing), cells, HEIGHT * WIDTH))


def is_on_grid(state, thing):
    return where_is(state.grid, thing) < HEIGHT * WIDTH


def is_held(state, thing):
    return same(state.agent.pocket, thing)


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


def faces(state, thing):
    return same(tile_in_front(state), thing)


def ahead_and_right(state, offset):
    """An offset in rows and columns, as cells ahead of the agent and to its right."""
    rows, columns = heading(state)
    return jnp.stack([offset[0] * rows + offset[1] * columns, offset[1] * -rows + offset[0] * columns])


def is_walkable(kinds):
    return (kinds == FLOOR) | (kinds == GOAL) | (kinds == DOOR_OPEN)


def is_door(kinds):
    return (kinds == DOOR_LOCKED) | (kinds == DOOR_CLOSED) | (kinds == DOOR_OPEN)


def is_object(kinds):
    """Whether a kind of tile can be picked up."""
    return ((kinds > WALL) & (kinds < GOAL)) | (kinds == KEY) | (kinds > DOOR_OPEN)


def around(cell):
    """The cells above, right of, below and left of a cell, (4, 2)."""
    return cell + jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


def around_turned(state):
    """The cells ahead of the agent, to its right, behind it and to its left, (4, 2)."""
    ahead = heading(state)
    right = jnp.stack([ahead[1], -ahead[0]])
    return state.agent.position + jnp.stack([ahead, right, -ahead, -right])


def kinds_at(grid, cells):
    return grid[cells[:, 0], cells[:, 1], 0]


def is_beside(state, cell, thing):
    """Whether `thing` lies on one of the four cells beside a cell."""
    cells = around(cell)
    return jnp.any(same(state.grid[cells[:, 0], cells[:, 1]], thing))


def lies_beside(state, thing, other):
    """Whether two things lie on neighbouring cells of the grid."""
    touching = jnp.sum(jnp.abs(place_of(state, thing) - place_of(state, other))) == 1
    return touching & is_on_grid(state, thing) & is_on_grid(state, other)


def free_beside(state, cell, thing):
    """Whether a cell is free to put something down on, and beside `thing`."""
    return (state.grid[cell[0], cell[1], 0] == FLOOR) & is_beside(state, cell, thing)


def nearest_free_side(state, thing):
    """The free cell beside `thing` that is nearest to the agent; the agent's own if there is none."""
    cells = around(place_of(state, thing))
    free = (kinds_at(state.grid, cells) == FLOOR) & is_on_grid(state, thing)
    cost = jnp.sum(jnp.abs(cells - state.agent.position), axis=1) + jnp.where(free, 0, 100)
    return jnp.where(jnp.any(free), cells[jnp.argmin(cost)], state.agent.position)


def nearest_door(state):
    """Row and column of the door nearest to the agent; the agent's own where there is no door."""
    rows = jnp.arange(HEIGHT)[:, None]
    columns = jnp.arange(WIDTH)[None, :]
    cost = jnp.abs(rows - state.agent.position[0]) + jnp.abs(columns - state.agent.position[1])
    cost = jnp.where(is_door(state.grid[:, :, 0]), cost, 100)
    index = jnp.argmin(cost.reshape(-1))
    return jnp.where(jnp.min(cost) < 100, jnp.stack([index // WIDTH, index % WIDTH]), state.agent.position)


def open_doors(state):
    return jnp.sum(state.grid[:, :, 0] == DOOR_OPEN)


def window(layer, state, radius):
    """The square of a (HEIGHT, WIDTH) layer around the agent, zeros beyond the edge."""
    row, column = state.agent.position
    return jax.lax.dynamic_slice(jnp.pad(layer, radius), (row, column), (2 * radius + 1, 2 * radius + 1))


def turned(view, state):
    """A square view, turned so that what is ahead of the agent is up."""
    views = jnp.stack([jnp.rot90(view, quarter) for quarter in range(4)])
    return jnp.sum(views * jax.nn.one_hot(state.agent.direction, 4)[:, None, None], axis=0)


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


def way_to(state, thing, cells):
    """Which of `cells`, neighbours of the agent's, are nearer to `thing` on foot than it is."""
    steps = walks(state, thing, jnp.concatenate([cells, state.agent.position[None, :]]))
    return (steps[:-1] < steps[-1]).astype(jnp.float32)


def gain_on(state, next_state, thing):
    """By how many cells the agent came closer to `thing`, 0 unless it lies on the grid throughout."""
    lies = is_on_grid(state, thing) & is_on_grid(next_state, thing)
    return jnp.where(lies, distance_to(state, thing) - distance_to(next_state, thing), 0).astype(jnp.float32)


def walk_gain_on(state, next_state, thing):
    """By how many steps on foot the agent came closer to `thing`, 0 unless it lies on the grid throughout."""
    lies = is_on_grid(state, thing) & is_on_grid(next_state, thing)
    return jnp.where(lies, walk_to(state, thing) - walk_to(next_state, thing), 0).astype(jnp.float32)


def gap_between(state, thing, other):
    """Cells between two things, one in hand being where the agent is; the widest if one is absent."""
    exist = is_on_grid(state, thing) | is_held(state, thing)
    exist = exist & (is_on_grid(state, other) | is_held(state, other))
    gap = jnp.sum(jnp.abs(place_of(state, thing) - place_of(state, other)))
    return jnp.where(exist, gap, HEIGHT + WIDTH)


def hands_emptied(state, next_state):
    return (state.agent.pocket[0] != 0) & (next_state.agent.pocket[0] == 0)


def was_picked_up(state, next_state, thing):
    """Whether `thing`, in front of the agent, was taken: the empty hands are now full, the cell is not it."""
    taken = (state.agent.pocket[0] == 0) & (next_state.agent.pocket[0] != 0)
    return taken & faces(state, thing) & ~faces(next_state, thing)


def was_put_down(state, next_state, thing):
    return is_held(state, thing) & (next_state.agent.pocket[0] == 0)
'''


def object_name(thing: tuple[int, int]) -> str:
    """`blue_pyramid` for (5, 3)."""
    tile, colour = thing
    return f"{COLOUR_NAMES[colour]}_{TILES[tile]}"


def xland_vocabulary(
    objects: Sequence[tuple[int, int]], height: int, width: int, horizon: int, *, doors: bool = True
) -> Vocabulary:
    """Fragments about the agent, its surroundings, each object and each pair of objects.

    Args:
        objects: (tile, colour) pairs that can occur under the ruleset: initial tiles and those of
            its goal and rules, distractors included. Repetitions and things that are not objects
            (floor, walls, doors) are left out.
        height: rows of the grid.
        width: columns of the grid, at most 30.
        horizon: steps of an episode.
        doors: whether the grid has doors; without, fragments about doors are left out.
    """
    if not 3 <= width <= 30:
        raise ValueError(f"the walking-distance helper packs a row into 32 bits: width {width} is not in 3..30")
    things = list(dict.fromkeys((int(t), int(c)) for t, c in objects if int(t) in OBJECT_TILES))
    constants = {"HEIGHT": str(height), "WIDTH": str(width), "SPAN": f"{max(height, width) - 1}.0"}
    constants |= {"HORIZON": f"{horizon}.0", "GAMMA": "0.99", "FLOOD": str(height + width + max(height, width) // 2)}
    constants |= {name.upper(): str(TILES.index(name)) for name in TILES if name in _TILE_CONSTANTS}
    constants |= {name: str(index) for index, name in enumerate(_ACTIONS)}
    constants |= {object_name(thing).upper(): f"({thing[0]}, {thing[1]})" for thing in things}

    fragments = [*fill("feature", templates.FEATURES), *fill("term", templates.TERMS)]
    if doors:
        fragments += [*fill("feature", templates.DOOR_FEATURES), *fill("term", templates.DOOR_TERMS)]
    for x in things:
        fragments += [*fill("feature", templates.OBJECT_FEATURES, x), *fill("term", templates.OBJECT_TERMS, x)]
    for x, y in itertools.combinations(things, 2):
        fragments += [*fill("feature", templates.PAIR_FEATURES, x, y), *fill("term", templates.PAIR_TERMS, x, y)]
    for x, y in itertools.permutations(things, 2):
        fragments += fill("term", templates.ORDERED_PAIR_TERMS, x, y)
    return Vocabulary(constants=constants, helpers=functions_of(HELPERS), fragments=tuple(fragments), discount="GAMMA")


_TILE_CONSTANTS = ("floor", "wall", "goal", "key", "door_locked", "door_closed", "door_open")
_ACTIONS = ("FORWARD", "TURN_RIGHT", "TURN_LEFT", "PICK_UP", "PUT_DOWN", "TOGGLE")


def fill(kind: Literal["feature", "term"], entries: Iterable[Template], *things: tuple[int, int]) -> list[Fragment]:
    """Fragments of templates for one object or pair; `about:` tags name the objects."""
    names = [object_name(thing) for thing in things]
    values = {}
    for (lower, upper, words), name in zip((("x", "X", "a"), ("y", "Y", "b")), names, strict=False):
        values |= {lower: name, upper: name.upper(), words: name.replace("_", " ")}

    def filled(text: str) -> str:
        for placeholder, value in values.items():
            text = text.replace("{" + placeholder + "}", value)
        return text

    return [
        Fragment(
            name=filled(template.name), kind=kind, source=filled(template.source(kind)), size=template.size,
            scales=template.scales,
            tags=(*template.tags.split(), *(f"about:{name}" for name in names)), doc=filled(template.doc),
        )
        for template in entries
    ]  # fmt: skip
