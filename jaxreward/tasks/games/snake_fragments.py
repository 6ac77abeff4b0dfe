"""The vocabulary of Snake: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import Template, make_vocabulary

HELPERS = '''
def to_food(state):
    """Rows and columns from the head to the food (2,)."""
    return state.food - state.head


def moves(state):
    """Moves from the head to the food, obstacles left out."""
    return jnp.abs(to_food(state)).sum().astype(jnp.float32)


def occupied(state, rows, columns):
    """Whether cells are part of the snake, whose tail will be gone, or outside of the grid."""
    inside = (rows >= 0) & (rows < SIZE) & (columns >= 0) & (columns < SIZE)
    held = state.body_age[jnp.clip(rows, 0, SIZE - 1), jnp.clip(columns, 0, SIZE - 1)] > 1
    return ~inside | held


def around(state):
    """Which of the eight cells around the head are occupied, from the upper left by row (8,)."""
    rows = jnp.array([-1, -1, -1, 0, 0, 1, 1, 1]) + state.head[0]
    columns = jnp.array([-1, 0, 1, -1, 1, -1, 0, 1]) + state.head[1]
    return occupied(state, rows, columns).astype(jnp.float32)


def reach(state):
    """How many cells that are not occupied lie in a row from the head up, right, down and left (4,)."""
    steps = jnp.arange(1, SIZE + 1)
    zero = jnp.zeros_like(steps)
    rows = state.head[0] + jnp.stack([-steps, zero, steps, zero])
    columns = state.head[1] + jnp.stack([zero, steps, zero, -steps])
    return jnp.cumprod(1 - occupied(state, rows, columns), axis=1).sum(axis=1).astype(jnp.float32)


def exits(state):
    """In how many directions the snake can go on."""
    return state.free.sum().astype(jnp.float32)
'''

EVENT = (1.0, 3.0, 10.0)
NEAR = (0.1, 0.3, 0.03)
STEP = (0.01, 0.03, 0.003)

FEATURES = (
    Template("head_place", "position basic", "Row and column of the head, in grids.", "state.head / SIZE", 2),
    Template("food_place", "position basic", "Row and column of the food, in grids.", "state.food / SIZE", 2),
    Template("food_way", "food basic", "Rows and columns from the head to the food, in grids.",
             "to_food(state) / SIZE", 2),
    Template("food_direction", "food", "Whether the food is further up, right, down, left.",
             ("way = to_food(state)",
              "jnp.stack([way[0] < 0, way[1] > 0, way[0] > 0, way[1] < 0]).astype(jnp.float32)"), 4),
    Template("food_beside", "food scales", "The way to the food, saturating at about two cells.",
             "jnp.tanh(0.5 * to_food(state))", 2),
    Template("can_move", "danger basic", "Whether the snake lives on if it moves up, right, down, left.",
             "state.free.astype(jnp.float32)", 4),
    Template("cells_around", "danger", "Which of the eight cells around the head are occupied.", "around(state)", 8),
    Template("free_ahead", "danger", "How many cells are free from the head up, right, down and left, in grids.",
             "reach(state) / SIZE", 4),
    Template("snake_length", "length basic", "Length of the snake, in cells of a side.", "state.length[None] / SIZE"),
    Template("tail_way", "position length", "Rows and columns from the head to the tail, in grids.",
             ("where = jnp.argmax(state.body_age.reshape(-1) == 1)",
              "(jnp.stack([where // SIZE, where % SIZE]) - state.head) / SIZE"), 2),
    Template("body", "grid", "In how many steps the snake will have left each cell, in its length.",
             "(state.body_age / jnp.maximum(state.length, 1)).reshape(-1)"),
    Template("time_passed", "time", "Steps taken, in hundreds.", "state.snake_steps[None] / 100.0"),
)  # fmt: skip

TERMS = (
    Template("food_bonus", "event food", "One for food.", "next_state.food_eaten.astype(jnp.float32)", 1, EVENT),
    Template("death_cost", "penalty event", "Minus one for running into a wall or itself.",
             "-next_state.snake_death.astype(jnp.float32)", 1, EVENT),
    Template("nearer", "shaping potential food", "Cells that the head came nearer to where the food was.",
             "moves(state) - jnp.abs(state.food - next_state.head).sum()", 1, NEAR),
    Template("nearer_one", "shaping food", "One for a step towards the food, and minus one for one away from it.",
             "jnp.sign(moves(state) - jnp.abs(state.food - next_state.head).sum())", 1, NEAR),
    Template("food_near", "shaping food", "One at the food, falling e-fold with every three cells.",
             "jnp.exp(-moves(next_state) / 3.0)", 1, NEAR),
    Template("step_cost", "penalty time", "Minus one for every step.", "-jnp.ones(())", 1, STEP),
    Template("alive", "bonus time", "One for every step that the snake lives through.",
             "1.0 - next_state.snake_death.astype(jnp.float32)", 1, STEP),
    Template("exits_left", "shaping danger", "A third for each direction in which it can go on.",
             "exits(next_state) / 3.0", 1, NEAR),
    Template("trap_cost", "penalty danger", "Minus one where it can go on in one direction at most.",
             "-(exits(next_state) < 2.0).astype(jnp.float32)", 1, NEAR),
    Template("open_space", "shaping danger", "The free cells in a row from the head in four directions, in grids.",
             "reach(next_state).mean() / SIZE", 1, NEAR),
    Template("middle", "shaping position", "Minus the distance of the head from the middle, in grids.",
             "-jnp.abs(next_state.head - 0.5 * (SIZE - 1)).sum() / SIZE", 1, NEAR),
    Template("edge_cost", "penalty position", "Minus one beside a wall.",
             "-((next_state.head == 0) | (next_state.head == SIZE - 1)).any().astype(jnp.float32)", 1, STEP),
    Template("longer_bonus", "event length", "For food, the length of the snake in tens.",
             "next_state.food_eaten * next_state.length / 10.0", 1, EVENT),
)  # fmt: skip


def vocabulary(size: int) -> Vocabulary:
    """Features and terms for a grid of `size` by `size` cells."""
    features = [f._replace(size=size * size) if f.name == "body" else f for f in FEATURES]
    return make_vocabulary(features, TERMS, HELPERS, {"SIZE": repr(size)})
