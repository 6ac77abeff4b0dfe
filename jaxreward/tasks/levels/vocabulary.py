"""The vocabulary of levels: what is faced, carried, open and where, of objects by type and colour and of the mission's.

Fragments read views alone, with helpers of their own: they are carried away as program text.
"""

from __future__ import annotations

from functools import cache

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import Template, make_vocabulary

_CONSTANTS = {
    "WALL": "2", "DOOR": "4", "KEY": "5", "BALL": "6", "BOX": "7", "AGENT": "10", "COLOURS": "6", "GAMMA": "0.99",
    "STEPS": "((0, 1), (1, 0), (0, -1), (-1, 0))",
}  # fmt: skip

_HELPERS = '''
def agent_pose(state):
    """Row, column and direction of the agent, int32 (3,)."""
    here = state.grid[:, :, 0] == AGENT
    row = jnp.argmax(jnp.any(here, axis=1))
    column = jnp.argmax(jnp.any(here, axis=0))
    return jnp.stack([row, column, state.grid[row, column, 2].astype(row.dtype)])


def cell_ahead(state):
    """Row and column of the cell in front of the agent (2,)."""
    pose = agent_pose(state)
    return pose[:2] + jnp.array(STEPS)[pose[2]]


def faced(state):
    """[type, colour, state] of the cell in front of the agent (3,)."""
    ahead = cell_ahead(state)
    return state.grid[ahead[0], ahead[1]].astype(jnp.int32)


def things(state):
    """Cells with a door or an object (H, W)."""
    return (state.grid[:, :, 0] >= DOOR) & (state.grid[:, :, 0] <= BOX)


def as_kind(kind, colour):
    """One-hot of type, door to box, and colour (24,), all zeros for what is none of them."""
    index = (kind - DOOR) * COLOURS + colour
    return ((jnp.arange(4 * COLOURS) == index) & (kind >= DOOR) & (kind <= BOX)).astype(jnp.float32)


def fits(kind, colour, clause):
    """Whether type and colour are those of a clause of the mission, whose -1 stands for anything."""
    thing = (kind >= DOOR) & (kind <= BOX) & (clause[0] >= 0)
    return thing & ((clause[1] < 0) | (kind == clause[1])) & ((clause[2] < 0) | (colour == clause[2]))


def named(state, k):
    """Cells with what clause `k` names (H, W)."""
    return fits(state.grid[:, :, 0].astype(jnp.int32), state.grid[:, :, 1].astype(jnp.int32), state.mission[k])


def way_to(state, mask):
    """Steps from the agent to the nearest marked cell, 0 where there is none."""
    pose = agent_pose(state)
    rows = jnp.abs(jnp.arange(mask.shape[0]) - pose[0])
    columns = jnp.abs(jnp.arange(mask.shape[1]) - pose[1])
    steps = jnp.where(mask, rows[:, None] + columns[None, :], 1000)
    return jnp.where(jnp.any(mask), jnp.min(steps), 0).astype(jnp.float32)


def in_the_middle(state):
    """Cells whose thing lies strictly between two other things of its row or of its column (H, W)."""
    lies = things(state)
    before = [jnp.cumsum(lies, axis=axis) - lies > 0 for axis in (0, 1)]
    total = [jnp.sum(lies, axis=axis, keepdims=True) for axis in (0, 1)]
    after = [total[axis] - jnp.cumsum(lies, axis=axis) > 0 for axis in (0, 1)]
    return lies & ((before[0] & after[0]) | (before[1] & after[1]))
'''

_FEATURES = (
    Template("facing", "relative basic", "What the agent faces: one-hot of type (door, key, ball, box) and colour.", (
        "cell = faced(state)", "as_kind(cell[0], cell[1])"), 24),
    Template("facing_type", "relative basic", "Whether the agent faces a wall, a door, a key, a ball or a box.", (
        "kind = faced(state)[0]",
        "jnp.stack([kind == k for k in (WALL, DOOR, KEY, BALL, BOX)]).astype(jnp.float32)"), 5),
    Template("facing_door", "relative", "Whether the agent faces a door that is open, closed or locked.", (
        "cell = faced(state)",
        "jnp.stack([(cell[0] == DOOR) & (cell[2] == k) for k in range(3)]).astype(jnp.float32)"), 3),
    Template("carried", "held basic", "What the agent carries: one-hot of type and colour.", (
        "held = state.carrying.astype(jnp.int32)", "as_kind(held[0], held[1])"), 24),
    Template("carries", "held basic", "Whether the agent carries anything.",
             "jnp.stack([state.carrying[0] > 0]).astype(jnp.float32)"),
    Template("lying", "other", "How many things there are, by type (door, key, ball, box) and colour.", (
        "kinds = state.grid[:, :, 0].astype(jnp.int32)",
        "found = [jnp.sum((kinds == k) & (state.grid[:, :, 1] == c)) for k in (DOOR, KEY, BALL, BOX)"
        " for c in range(6)]",
        "jnp.stack(found).astype(jnp.float32)"), 24),
    Template("doors_open", "other", "How many doors are open, by colour.", (
        "opened = (state.grid[:, :, 0] == DOOR) & (state.grid[:, :, 2] == 0)",
        "jnp.stack([jnp.sum(opened & (state.grid[:, :, 1] == c)) for c in range(6)]).astype(jnp.float32)"), 6),
    Template("beside", "relative", "Things on the four cells around the agent, by type and colour.", (
        "pose = agent_pose(state)",
        "cells = [state.grid[pose[0] + r, pose[1] + c].astype(jnp.int32) for r, c in STEPS]",
        "sum(as_kind(cell[0], cell[1]) for cell in cells)"), 24),
    Template("middle", "other", "Things strictly between two others of their row or column, by type and colour.", (
        "inside = in_the_middle(state)", "kinds = state.grid[:, :, 0].astype(jnp.int32)",
        "found = [jnp.sum(inside & (kinds == k) & (state.grid[:, :, 1] == c)) for k in (DOOR, KEY, BALL, BOX)"
        " for c in range(6)]", "jnp.stack(found).astype(jnp.float32)"), 24),
    Template("balls_left", "other", "How many balls lie in the left half, by colour.", (
        "half = jnp.arange(state.grid.shape[1]) < state.grid.shape[1] // 2",
        "balls = (state.grid[:, :, 0] == BALL) & half[None, :]",
        "jnp.stack([jnp.sum(balls & (state.grid[:, :, 1] == c)) for c in range(6)]).astype(jnp.float32)"), 6),
    Template("balls_right", "other", "How many balls lie in the right half, by colour.", (
        "half = jnp.arange(state.grid.shape[1]) > state.grid.shape[1] // 2",
        "balls = (state.grid[:, :, 0] == BALL) & half[None, :]",
        "jnp.stack([jnp.sum(balls & (state.grid[:, :, 1] == c)) for c in range(6)]).astype(jnp.float32)"), 6),
    Template("faces_named", "relative basic about:mission", "Whether the agent faces what each clause names.", (
        "cell = faced(state)",
        "jnp.stack([fits(cell[0], cell[1], state.mission[k]) for k in range(2)]).astype(jnp.float32)"), 2),
    Template("carries_named", "held basic about:mission", "Whether the agent carries what each clause names.", (
        "held = state.carrying.astype(jnp.int32)",
        "jnp.stack([fits(held[0], held[1], state.mission[k]) for k in range(2)]).astype(jnp.float32)"), 2),
    Template("opened_named", "other about:mission", "Whether a door that each clause names is open.", (
        "opened = (state.grid[:, :, 0] == DOOR) & (state.grid[:, :, 2] == 0)",
        "jnp.stack([jnp.any(opened & named(state, k)) for k in range(2)]).astype(jnp.float32)"), 2),
    Template("faces_opened_named", "relative about:mission", "Whether the agent faces an open door of a clause.", (
        "cell = faced(state)", "opened = (cell[0] == DOOR) & (cell[2] == 0)",
        "jnp.stack([opened & fits(cell[0], cell[1], state.mission[k]) for k in range(2)]).astype(jnp.float32)"), 2),
    Template("middle_named", "other about:mission", "Whether what each clause names lies between two other things.", (
        "inside = in_the_middle(state)",
        "jnp.stack([jnp.any(inside & named(state, k)) for k in range(2)]).astype(jnp.float32)"), 2),
    Template("way_named", "relative about:mission", "Steps to the nearest thing that each clause names, by ten.",
             "jnp.stack([way_to(state, named(state, k)) for k in range(2)]) / 10.0", 2),
)  # fmt: skip

_TERMS = (
    Template("came_to_face_named", "milestone about:mission", "The agent comes to face what the first clause names.", (
        "gained = GAMMA * faces_named(next_state)[0] - faces_named(state)[0]", "gained"), 1, (1.0, 2.0, 0.5)),
    Template("took_named", "milestone about:mission", "The agent comes to carry what the first clause names.", (
        "gained = GAMMA * carries_named(next_state)[0] - carries_named(state)[0]", "gained"), 1, (1.0, 2.0, 0.5)),
    Template("opened_first", "milestone about:mission", "A door that the first clause names is opened.", (
        "gained = GAMMA * opened_named(next_state)[0] - opened_named(state)[0]", "gained"), 1, (1.0, 2.0, 0.5)),
    Template("opened_second", "milestone about:mission", "A door that the second clause names is opened.", (
        "gained = GAMMA * opened_named(next_state)[1] - opened_named(state)[1]", "gained"), 1, (1.0, 2.0, 0.5)),
    Template("nearer_to_named", "potential about:mission", "Potential: minus the steps to what the first clause names.",
             "way_named(state)[0] - GAMMA * way_named(next_state)[0]", 1, (1.0, 3.0, 0.3)),
    Template("nearer_to_second", "potential about:mission", "Potential: minus the steps to what the second names.",
             "way_named(state)[1] - GAMMA * way_named(next_state)[1]", 1, (1.0, 3.0, 0.3)),
    Template("stood_still", "penalty", "The agent neither moved nor turned.",
             "-jnp.all(agent_pose(state) == agent_pose(next_state)).astype(jnp.float32)", 1, (0.01, 0.03, 0.003)),
    Template("every_step", "penalty basic", "A cost of every step.", "-1.0", 1, (0.01, 0.003, 0.03)),
)  # fmt: skip


@cache
def level_vocabulary() -> Vocabulary:
    """The vocabulary of all levels."""
    return make_vocabulary(_FEATURES, _TERMS, _HELPERS, _CONSTANTS)
