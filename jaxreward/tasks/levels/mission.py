"""Missions: clauses as numbers, as a sentence, and the objects that they name. All of it on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from jaxreward.tasks.levels.codes import (
    ANY,
    BEHIND,
    COLOUR_NAMES,
    DOOR,
    GO_TO,
    KEY,
    LEFT,
    OPEN,
    OPEN_MATCHING,
    PICK,
    PLACE_BETWEEN,
    PUT_IN_ROOM,
    RIGHT,
    STEPS,
    THINGS,
    TYPE_NAMES,
)  # fmt: skip
from jaxreward.tasks.levels.rooms import Cell, Rooms

Clause = tuple[int, int, int, int]
"""Verb, type, colour and location; -1 for anything."""

_PLACES = ("on your left", "on your right", "in front of you", "behind you")
_SENTENCES = {
    GO_TO: "go to {thing}",
    PICK: "pick up {thing}",
    OPEN: "open {thing}",
    PLACE_BETWEEN: "put {thing} between the other two objects",
    OPEN_MATCHING: "open the door matching the key",
    PUT_IN_ROOM: "put {thing} in the {side} room",
}


def clause(verb: int, kind: int = ANY, colour: int = ANY, location: int = ANY) -> Clause:
    return verb, kind, colour, location


def mission_array(clauses: Sequence[Clause]) -> np.ndarray:
    """One or two clauses as int32 (2, 4), -1 where there is none."""
    rows = np.full((2, 4), ANY, np.int32)
    rows[: len(clauses)] = clauses
    return rows


def mission_sentence(mission: ArrayLike) -> str:
    """A mission, int (2, 4), in words: "open the red door, then open the blue door".

    It says "the" where MiniGrid says "a" of several objects that a clause names: how many there are is no part of a
    mission.

    Raises:
        ValueError: no clause, or a number that stands for no verb, type, colour or location.
    """
    rows = [tuple(int(x) for x in row) for row in np.asarray(mission).reshape(-1, 4) if int(row[0]) != ANY]
    if not rows:
        raise ValueError("a mission has at least one clause: its first verb is -1")
    joint = " and " if rows[0][0] == PUT_IN_ROOM else ", then "
    return joint.join(_words(*row) for row in rows)


def _words(verb: int, kind: int, colour: int, location: int) -> str:
    if verb not in _SENTENCES or location not in range(-1, 4) or colour not in range(-1, len(COLOUR_NAMES)):
        raise ValueError(f"[{verb}, {kind}, {colour}, {location}] is no clause [verb, type, colour, location]")
    if kind not in (ANY, *TYPE_NAMES):
        raise ValueError(f"{kind} is no type of object that a clause may name")
    noun = "object" if kind == ANY else TYPE_NAMES[kind]
    thing = f"the {noun}" if colour == ANY else f"the {COLOUR_NAMES[colour]} {noun}"
    if verb != PUT_IN_ROOM and location != ANY:
        thing += f" {_PLACES[location]}"
    return _SENTENCES[verb].format(thing=thing, side="left" if location == LEFT else "right")


def targets_of(rooms: Rooms, wanted: Clause) -> np.ndarray:
    """Which objects and doors a clause names as the episode begins, bool (THINGS,) by id.

    A location counts from where the agent stands and how it looks, and within its room, walls included.
    """
    verb, kind, colour, location = wanted
    if verb == OPEN_MATCHING:
        kind, colour = DOOR, next(c for k, c in rooms.things if k == KEY)
    found = np.zeros(THINGS, bool)
    agent, bounds = np.asarray(rooms.position), rooms.bounds(rooms.room_of(rooms.position))
    for thing, (its_kind, its_colour) in enumerate(rooms.things):
        if thing == 0 or kind not in (ANY, its_kind) or colour not in (ANY, its_colour):
            continue
        anywhere = verb == PUT_IN_ROOM or location == ANY
        cell = rooms.cell_of(thing)
        found[thing] = anywhere or (_inside(cell, bounds) and lies(location, cell - agent, rooms.direction))
    return found


def lies(location: int, offset: np.ndarray, direction: int) -> bool:
    """Whether (rows, columns) away from an agent that looks in `direction` is on its left, right, front or behind."""
    ahead = int(offset @ STEPS[direction])
    right = int(offset @ STEPS[(direction + 1) % 4])
    side = right if location in (LEFT, RIGHT) else ahead
    return side < 0 if location in (LEFT, BEHIND) else side > 0


def _inside(cell: Cell, bounds: tuple[slice, slice]) -> bool:
    rows, columns = bounds
    return rows.start <= cell[0] < rows.stop and columns.start <= cell[1] < columns.stop
