"""What is computed of views: the objects that a mission names, the default observation, and the sparse reward."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxreward.tasks.levels.catalogue import Level
from jaxreward.tasks.levels.codes import (
    AGENT,
    ANY,
    BALL,
    BOX,
    COLOUR_NAMES,
    DOOR,
    DROP,
    EMPTY,
    GO_TO,
    KEY,
    OPEN_MATCHING,
    OPENED,
    PICK,
    PLACE_BETWEEN,
    PUT_IN_ROOM,
    STEPS,
    TOGGLE,
    VERBS,
    WALL,
)  # fmt: skip
from jaxreward.tasks.levels.dynamics import between, in_room
from jaxreward.tasks.levels.state import LevelView

RADIUS = 4
"""Cells that the window of the default observation reaches from the agent."""

_KINDS = (EMPTY, WALL, DOOR, KEY, BALL, BOX)
_SIDE = 2 * RADIUS + 1


def agent_of(view: LevelView) -> tuple[jax.Array, jax.Array]:
    """Row and column of the agent, int32 (2,), and its direction, int32 ()."""
    here = view.grid[:, :, 0] == AGENT
    rows, columns = jnp.arange(here.shape[0]), jnp.arange(here.shape[1])
    row = jnp.sum(jnp.any(here, axis=1) * rows)
    column = jnp.sum(jnp.any(here, axis=0) * columns)
    direction = jnp.sum(jnp.where(here, view.grid[:, :, 2], 0).astype(jnp.int32))
    return jnp.stack([row, column]).astype(jnp.int32), direction


def ahead_of(view: LevelView) -> jax.Array:
    """Row and column of the cell in front of the agent, int32 (2,)."""
    position, direction = agent_of(view)
    return position + jnp.asarray(STEPS)[direction]


def named(view: LevelView, level: Level, k: int) -> jax.Array:
    """Cells with what clause `k` names, bool (height, width).

    An object that is carried is nowhere, and one that was moved may fit another location than it did at the start.
    """
    kind, colour = view.mission[k, 1], view.mission[k, 2]
    kinds, colours = view.grid[:, :, 0], view.grid[:, :, 1]
    if level.verb == OPEN_MATCHING:
        key = jnp.max(jnp.where(kinds == KEY, colours, 0))
        colour = jnp.where(view.carrying[0] == KEY, view.carrying[1], key)
    thing = (kinds == DOOR) | (kinds == KEY) | (kinds == BALL) | (kinds == BOX)
    fits = thing & ((kind == ANY) | (kinds == kind)) & ((colour == ANY) | (colours == colour))
    return fits & _lies(view, view.mission[k, 3], level.size) if level.located else fits


def _lies(view: LevelView, location: jax.Array, size: int) -> jax.Array:
    """Cells at a location as seen at the start, in the room of the start; all cells for -1."""
    height, width, _ = view.grid.shape
    rows, columns = jnp.arange(height)[:, None] - view.start[0], jnp.arange(width)[None, :] - view.start[1]
    step, right = jnp.asarray(STEPS)[view.start[2]], jnp.asarray(STEPS)[(view.start[2] + 1) % 4]
    ahead, aside = rows * step[0] + columns * step[1], rows * right[0] + columns * right[1]
    top, left = view.start[:2] // (size - 1) * (size - 1) - view.start[:2]
    inside = (rows >= top) & (rows < top + size) & (columns >= left) & (columns < left + size)
    on = jnp.stack([aside < 0, aside > 0, ahead > 0, ahead < 0])[location]
    return (location == ANY) | (on & inside)


def sparse_reward(view: LevelView, action: jax.Array, after: LevelView, level: Level) -> jax.Array:
    """1 on the step that fulfils the mission, else 0, as far as two views tell it (see docs/levels.md)."""
    row, column = ahead_of(after)
    faced = after.grid[row, column]
    if level.verb == PUT_IN_ROOM:
        there = [
            named(after, level, k) & in_room(after.mission[k, 3], after.grid.shape[1]) for k in range(level.clauses)
        ]
        return (jnp.any(there[0]) & jnp.any(there[1])).astype(jnp.float32)
    if level.verb == PLACE_BETWEEN:
        dropped = (action == DROP) & (view.carrying[0] != 0) & (after.carrying[0] == 0)
        lying = (after.grid[:, :, 0] >= KEY) & (after.grid[:, :, 0] <= BOX)
        return (dropped & named(after, level, 0)[row, column] & between(lying, row, column)).astype(jnp.float32)
    if level.verb == GO_TO:
        return named(after, level, 0)[row, column].astype(jnp.float32)
    if level.verb == PICK:
        taken = (view.carrying[0] == 0) & (after.carrying[0] != 0)
        return (taken & named(view, level, 0)[row, column]).astype(jnp.float32)
    opened = (action == TOGGLE) & (faced[0] == DOOR) & (faced[2] == OPENED)
    last = named(after, level, level.clauses - 1)
    if level.clauses == 2:  # of the first door it can be seen that it is open, not that it once was
        first = jnp.any(named(after, level, 0) & (after.grid[:, :, 2] == OPENED))
        opened &= first
    return (opened & last[row, column]).astype(jnp.float32)


def observe(view: LevelView, level: Level) -> jax.Array:
    """The default observation, float32 (d,): see `docs/levels.md` for its parts."""
    position, direction = agent_of(view)
    masks = [named(view, level, k) for k in range(level.clauses)]
    if level.verb == PLACE_BETWEEN:
        masks.append(_gap(view, masks[0]))
    kinds = view.grid[:, :, 0]
    open_door = (kinds == DOOR) & (view.grid[:, :, 2] == OPENED)
    layers = jnp.stack([~((kinds == EMPTY) | (kinds == AGENT) | open_door), (kinds == DOOR) & ~open_door, *masks])
    window = _turned(_window(layers.astype(jnp.float32), position), direction)
    parts = [window.reshape(-1)]
    for mask in masks:
        parts.append(_nearest(mask, position, direction))
    row, column = position + jnp.asarray(STEPS)[direction]
    faced = view.grid[row, column].astype(jnp.int32)
    parts += [
        (faced[0] == jnp.asarray(_KINDS)).astype(jnp.float32),
        jax.nn.one_hot(faced[1], len(COLOUR_NAMES)),
        jax.nn.one_hot(faced[2], 3),
        (view.carrying[0] == jnp.asarray((KEY, BALL, BOX))).astype(jnp.float32),
        jax.nn.one_hot(view.carrying[1], len(COLOUR_NAMES)) * (view.carrying[0] != 0),
        *(_encoded(view.mission[k]) for k in range(level.clauses)),
    ]
    return jnp.concatenate(parts).astype(jnp.float32)


def _gap(view: LevelView, target: jax.Array) -> jax.Array:
    """Free cells between the two objects that are not the target, bool (height, width)."""
    kinds = view.grid[:, :, 0]
    lying = (kinds >= KEY) & (kinds <= BOX) & ~target
    left, up = jnp.cumsum(lying, axis=1) > 0, jnp.cumsum(lying, axis=0) > 0
    right = jnp.cumsum(lying[:, ::-1], axis=1)[:, ::-1] > 0
    down = jnp.cumsum(lying[::-1], axis=0)[::-1] > 0
    return ((left & right) | (up & down)) & (kinds == EMPTY)


def _window(layers: jax.Array, position: jax.Array) -> jax.Array:
    """The square around the agent, (layers, 9, 9), zeros beyond the edge."""
    padded = jnp.pad(layers, ((0, 0), (RADIUS, RADIUS), (RADIUS, RADIUS)))
    zero = jnp.zeros((), position.dtype)
    return jax.lax.dynamic_slice(padded, (zero, position[0], position[1]), (layers.shape[0], _SIDE, _SIDE))


def _turned(window: jax.Array, direction: jax.Array) -> jax.Array:
    """A window turned so that what is ahead of the agent is up."""
    views = jnp.stack([jnp.rot90(window, quarter, axes=(1, 2)) for quarter in (1, 2, 3, 0)])
    return jnp.sum(views * jax.nn.one_hot(direction, 4)[:, None, None, None], axis=0)


def _nearest(mask: jax.Array, position: jax.Array, direction: jax.Array) -> jax.Array:
    """Whether there is such a cell, and how far the nearest is ahead and to the right, scaled; float32 (3,)."""
    height, width = mask.shape
    rows, columns = jnp.arange(height)[:, None] - position[0], jnp.arange(width)[None, :] - position[1]
    far = height + width
    index = jnp.argmin(jnp.where(mask, jnp.abs(rows) + jnp.abs(columns), far).reshape(-1))
    offset = jnp.stack([index // width, index % width]) - position
    step, right = jnp.asarray(STEPS)[direction], jnp.asarray(STEPS)[(direction + 1) % 4]
    there = jnp.any(mask)
    away = jnp.stack([jnp.sum(offset * step), jnp.sum(offset * right)]) / 8.0
    return jnp.concatenate([there[None].astype(jnp.float32), jnp.where(there, away, 0.0)])


def _encoded(clause: jax.Array) -> jax.Array:
    """A clause as one-hots of verb, type, colour and location, the last three with an entry for anything."""
    kinds = jnp.asarray((ANY, DOOR, KEY, BALL, BOX))
    return jnp.concatenate([
        jax.nn.one_hot(clause[0], VERBS), (clause[1] == kinds).astype(jnp.float32),
        jax.nn.one_hot(clause[2] + 1, len(COLOUR_NAMES) + 1), jax.nn.one_hot(clause[3] + 1, 5),
    ])  # fmt: skip
