"""Levels in words: descriptions, and what the arrays of a view mean."""

from __future__ import annotations

from collections.abc import Sequence

from jaxreward.tasks.levels.catalogue import Level
from jaxreward.tasks.levels.codes import COLOUR_NAMES, LOCKED, PUT_IN_ROOM, TYPE_NAMES

STATE_WORDS = {
    "grid": "[type, colour, state] of every cell, by row and column; the agent's own is [10, 0, direction]",
    "mission": "two clauses [verb, type, colour, location]; -1: anything, and all of a clause that is not there",
    "carrying": "[type, colour, state] of what is carried, zeros for nothing",
    "start": "[row, column, direction] of the agent as the episode began",
    "action": "0 turn left, 1 turn right, 2 forward, 3 pick up, 4 drop, 5 toggle, 6 nothing",
}


def describe(level: Level) -> str:
    """The task of a level as a short paragraph."""
    return _described(level.goal, [level])


def describe_mix(levels: Sequence[Level]) -> str:
    """The task of several levels of the same rooms."""
    goals = "; ".join(dict.fromkeys(level.goal for level in levels))
    return _described(f"what the mission says, in each episode one of {len(levels)}: {goals}", levels)


def _described(goal: str, levels: Sequence[Level]) -> str:
    rows, columns = levels[0].rooms
    rooms = "one room" if rows * columns == 1 else f"{rows} x {columns} rooms"
    lines = [f"A grid world of {rooms}, {levels[0].height} x {levels[0].width} cells with the walls: {goal}."]
    if any(level.clauses == 2 and level.verb != PUT_IN_ROOM for level in levels):
        lines.append("The second clause of the mission counts only once the first is fulfilled.")
    lines.append(
        "Going to something is to stand beside it and face it. The agent acts on the cell in front of it: it picks up "
        "what lies there if it carries nothing, drops what it carries on a free cell, opens and closes a door; a box "
        "that is toggled vanishes."
    )
    return "\n".join(lines)


def _codes(names: dict[int, str]) -> str:
    return ", ".join(f"{code} {name}" for code, name in names.items())


STATE_NOTES = f"""\
types: {_codes(TYPE_NAMES)}
colours: {_codes(dict(enumerate(COLOUR_NAMES)))}
state of a door: 0 open, 1 closed, {LOCKED} locked; directions: 0 right, 1 down, 2 left, 3 up
verbs: 0 go to, 1 pick up, 2 open, 3 put between the other two objects, 4 open the door matching the key, 5 put in room
locations: 0 left, 1 right, 2 front, 3 behind, of the agent at the start and within its room; of verb 5 the room
What the agent stands on, an open door, is hidden under it. The border is wall. A key of its colour opens a locked door.
Fulfilling the mission ends the episode."""
