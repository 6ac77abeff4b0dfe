"""The vocabulary of Tetris: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import Template, make_vocabulary

HELPERS = '''
def heights(state):
    """Of each column (columns,)."""
    filled = state.placed > 0
    return jnp.where(filled.any(axis=0), ROWS - jnp.argmax(filled, axis=0), 0).astype(jnp.float32)


def holes(state):
    """Empty cells under filled ones, of each column (columns,)."""
    filled = (state.placed > 0).astype(jnp.int32)
    covered = jnp.cumsum(filled, axis=0) > 0
    return (covered & (filled == 0)).sum(axis=0).astype(jnp.float32)


def roughness(state):
    """Differences in height of neighbouring columns, added up."""
    return jnp.abs(jnp.diff(heights(state))).sum()


def wells(state):
    """How much lower each column is than both of its neighbours, or the walls, added up."""
    tall = jnp.pad(heights(state), 1, constant_values=ROWS)
    return jnp.maximum(jnp.minimum(tall[:-2], tall[2:]) - tall[1:-1], 0.0).sum()


def fullest(state):
    """The largest part of a row that is filled."""
    return (state.placed > 0).mean(axis=1).max()


def changes(state):
    """How often a cell of a row differs from the one beside it, in rows that are not empty; walls are filled."""
    filled = jnp.pad((state.placed > 0).astype(jnp.int32), ((0, 0), (1, 1)), constant_values=1)
    differ = jnp.abs(jnp.diff(filled, axis=1)).sum(axis=1)
    return jnp.where((state.placed > 0).any(axis=1), differ, 0).sum().astype(jnp.float32)


def landings(state):
    """Of each action, how high the tetromino will lie and how many empty cells will be under it (4 columns,) each."""
    cells = state.turned > 0
    used = cells.any(axis=1)
    lowest = 3 - jnp.argmax(jnp.flip(cells, axis=1), axis=1)
    under = cells.any(axis=2).sum(axis=1)[:, None] - 1 - lowest
    tall = heights(state)
    column = jnp.minimum(jnp.arange(COLUMNS), COLUMNS - used.sum(axis=1)[:, None])
    below = tall[jnp.minimum(column[:, :, None] + jnp.arange(4), COLUMNS - 1)]
    lies = jnp.where(used[:, None], below - under[:, None], -ROWS).max(axis=2)
    empty = jnp.where(used[:, None], lies[:, :, None] + under[:, None] - below, 0.0).sum(axis=2)
    return lies.T.reshape(-1), empty.T.reshape(-1)
'''

EVENT = (1.0, 3.0, 10.0)
STEP = (0.1, 0.3, 0.03)
FINE = (0.03, 0.1, 0.01)

FEATURES = (
    Template("cells", "board", "The cells that are filled, row by row.",
             "(state.placed > 0).reshape(-1).astype(jnp.float32)"),
    Template("column_heights", "board basic", "Heights of the columns, in halves of the board.",
             "heights(state) / (0.5 * ROWS)"),
    Template("height_steps", "board", "Differences in height of neighbouring columns, saturating at about four.",
             "jnp.tanh(jnp.diff(heights(state)) / 4.0)"),
    Template("column_holes", "board holes", "Holes of the columns, saturating at about three.",
             "jnp.tanh(holes(state) / 3.0)"),
    Template("kind_of_next", "next basic", "Which of the seven tetrominoes is to be placed.",
             "(state.kind == jnp.arange(7)).astype(jnp.float32)", 7),
    Template("shape_of_next", "next", "The cells of the tetromino that is to be placed.",
             "state.turned[0].reshape(-1).astype(jnp.float32)", 16),
    Template("possible_actions", "next actions", "Which actions are possible.", "state.possible.astype(jnp.float32)"),
    Template("landing_heights", "next actions", "How high the tetromino would lie with each action, in tens.",
             "landings(state)[0] / 10.0"),
    Template("landing_gaps", "next actions holes", "Empty cells that would be under it, saturating at about three.",
             "jnp.tanh(landings(state)[1] / 3.0)"),
    Template("summary", "board holes", "The largest height in boards, and holes and roughness in twenties.",
             "jnp.stack([heights(state).max() / ROWS, holes(state).sum() / 20.0, roughness(state) / 20.0])", 3),
    Template("time_passed", "time", "Steps taken, in hundreds.", "state.step_count[None] / 100.0"),
)  # fmt: skip

TERMS = (
    Template("line_bonus", "event lines", "The lines that were cleared.",
             "next_state.lines_cleared.astype(jnp.float32)", 1, EVENT),
    Template("lines_squared", "event lines", "Their number squared.",
             "(next_state.lines_cleared**2).astype(jnp.float32)", 1, EVENT),
    Template("end_cost", "penalty event", "Minus one when the game is over.",
             "-next_state.game_over.astype(jnp.float32)", 1, EVENT),
    Template("invalid_cost", "penalty event actions", "Minus one for an action that is not possible.",
             "-next_state.invalid.astype(jnp.float32)", 1, EVENT),
    Template("alive", "bonus", "One for every step after which the game goes on.",
             "1.0 - next_state.game_over.astype(jnp.float32)", 1, STEP),
    Template("new_holes", "shaping potential holes", "Minus the holes that the step made.",
             "holes(state).sum() - holes(next_state).sum()", 1, STEP),
    Template("hole_cost", "shaping holes", "Minus the holes of the board, in tens.", "-holes(next_state).sum() / 10.0",
             1, FINE),
    Template("rougher", "shaping potential surface", "Minus what the step made the surface rougher.",
             "roughness(state) - roughness(next_state)", 1, FINE),
    Template("rough_cost", "shaping surface", "Minus the roughness of the surface, in tens.",
             "-roughness(next_state) / 10.0", 1, FINE),
    Template("taller", "shaping potential height", "Minus what the step made the heights larger, in rows.",
             "heights(state).mean() - heights(next_state).mean()", 1, STEP),
    Template("highest_cost", "shaping height", "Minus the largest height, in boards.",
             "-heights(next_state).max() / ROWS", 1, STEP),
    Template("deeper_wells", "shaping potential surface", "Minus what the step made wells deeper.",
             "wells(state) - wells(next_state)", 1, FINE),
    Template("fuller", "shaping lines", "The largest part of a row that is filled.", "fullest(next_state)", 1, STEP),
    Template("row_changes", "shaping potential lines", "Minus what the step added to changes along rows.",
             "changes(state) - changes(next_state)", 1, FINE),
)  # fmt: skip


def vocabulary(rows: int, columns: int) -> Vocabulary:
    """Features and terms for a board of these rows and columns."""
    sizes = {
        "cells": rows * columns, "column_heights": columns, "height_steps": columns - 1, "column_holes": columns,
        "possible_actions": 4 * columns, "landing_heights": 4 * columns, "landing_gaps": 4 * columns,
    }  # fmt: skip
    features = [f._replace(size=sizes.get(f.name, f.size)) for f in FEATURES]
    return make_vocabulary(features, TERMS, HELPERS, {"ROWS": repr(rows), "COLUMNS": repr(columns)})
