"""One step of a level, as MiniGrid 3.2.0 takes it, and whether it fulfils the mission."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxreward.tasks.levels.codes import (
    BALL,
    BOX,
    DOOR,
    DROP,
    EMPTY,
    EMPTY_CELL,
    FORWARD,
    GO_TO,
    KEY,
    LEFT,
    LOCKED,
    OPENED,
    PICK,
    PICK_UP,
    PLACE_BETWEEN,
    PUT_IN_ROOM,
    STEPS,
    TOGGLE,
    TURN_LEFT,
    TURN_RIGHT,
)  # fmt: skip
from jaxreward.tasks.levels.state import LevelState


class Event(NamedTuple):
    """What one action did: (row, column) in front of the agent before it, the id there, and what changed hands."""

    cell: jax.Array
    thing: jax.Array
    picked: jax.Array
    dropped: jax.Array
    toggled: jax.Array


def act(state: LevelState, action: jax.Array) -> tuple[LevelState, Event]:
    """The world after an action, the mission apart."""
    row, column = cell = state.position + jnp.asarray(STEPS)[state.direction]
    there, thing = state.grid[row, column], state.ids[row, column]
    kind, carried = there[0], state.carried
    walkable = (kind == EMPTY) | ((kind == DOOR) & (there[2] == OPENED))
    portable = (kind == KEY) | (kind == BALL) | (kind == BOX)
    picked = (action == PICK_UP) & portable & (carried[0] == 0)
    dropped = (action == DROP) & (kind == EMPTY) & (carried[0] != 0)
    toggled = action == TOGGLE
    has_key = (carried[0] == KEY) & (carried[1] == there[1])
    locked = there[2] == LOCKED
    door = jnp.where(locked, jnp.where(has_key, OPENED, LOCKED), 1 - there[2]).astype(jnp.uint8)
    gone = picked | (toggled & (kind == BOX))  # a box is opened and, being empty, vanishes
    changed = jnp.where(toggled & (kind == DOOR), there.at[2].set(door), there)
    changed = jnp.where(dropped, carried[:3], changed)
    changed = jnp.where(gone, jnp.asarray(EMPTY_CELL, jnp.uint8), changed)
    remains = jnp.where(gone, 0, jnp.where(dropped, carried[3], thing)).astype(jnp.uint8)
    held = jnp.where(picked, jnp.append(there, thing), jnp.where(dropped, 0, carried)).astype(jnp.uint8)
    turn = jnp.where(action == TURN_LEFT, 3, jnp.where(action == TURN_RIGHT, 1, 0))
    after = state.replace(
        grid=state.grid.at[row, column].set(changed),
        ids=state.ids.at[row, column].set(remains),
        position=jnp.where((action == FORWARD) & walkable, cell, state.position),
        direction=(state.direction + turn) % 4,
        carried=held,
        step_num=state.step_num + 1,
    )
    return after, Event(cell, thing, picked, dropped, toggled)


def step(state: LevelState, action: jax.Array, verb: int, clauses: int) -> LevelState:
    """The next state.

    Args:
        action: int32 (), MiniGrid's: 0 turn left, 1 turn right, 2 forward, 3 pick up, 4 drop, 5 toggle, 6 done.
        verb: of all clauses of the level.
        clauses: 1 or 2. Two are fulfilled one after the other, or, of `PUT_IN_ROOM`, hold together.
    """
    after, event = act(state, action)
    hits = [_fulfilled(verb, k, state, after, event) for k in range(clauses)]
    if clauses == 1:
        done, solved = jnp.stack([hits[0], jnp.zeros((), bool)]), hits[0]
    elif verb == PUT_IN_ROOM:
        done, solved = jnp.stack(hits), hits[0] & hits[1]
    else:
        first = state.done[0] | hits[0]
        solved = first & hits[1]
        done = jnp.stack([first, solved])
    return after.replace(done=done, solved=solved)


def _fulfilled(verb: int, k: int, before: LevelState, after: LevelState, event: Event) -> jax.Array:
    """Whether a step did what clause `k` asks for."""
    named = after.targets[k]
    if verb == PICK:
        return event.picked & named[event.thing]
    if verb == PLACE_BETWEEN:
        row, column = event.cell
        return event.dropped & named[before.carried[3]] & between(after.ids > 0, row, column)
    if verb == PUT_IN_ROOM:
        return jnp.any(named[after.ids] & in_room(after.mission[k, 3], after.ids.shape[1]))
    row, column = after.position + jnp.asarray(STEPS)[after.direction]
    faced = named[after.ids[row, column]]
    if verb == GO_TO:
        return faced
    return event.toggled & faced & (after.grid[row, column, 2] == OPENED)


def between(lying: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
    """Whether things lie on both sides of a cell in its row, or in its column; `lying` is bool (height, width)."""
    rows, columns = jnp.arange(lying.shape[0]), jnp.arange(lying.shape[1])
    across, along = lying[row], lying[:, column]
    sideways = jnp.any(across & (columns < column)) & jnp.any(across & (columns > column))
    return sideways | (jnp.any(along & (rows < row)) & jnp.any(along & (rows > row)))


def in_room(side: jax.Array, width: int) -> jax.Array:
    """The columns, bool (width,), of the left or right of two rooms that are parted by the middle column."""
    columns = jnp.arange(width)
    return jnp.where(side == LEFT, columns < width // 2, columns > width // 2)
