"""Descriptions of XLand-MiniGrid tasks: the goal and rules of a ruleset, and the arrays of a view."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

TILE_NAMES = (
    "empty", "floor", "wall", "ball", "square", "pyramid", "goal", "key", "locked door", "closed door", "open door",
    "hex", "star",
)  # fmt: skip
COLOUR_NAMES = (
    "empty", "red", "green", "blue", "purple", "yellow", "grey", "black", "orange", "white", "brown", "pink",
)  # fmt: skip
_SIDES = ("above", "to the right of", "below", "to the left of")
# By kind: how many (tile, colour) pairs follow the kind's id, and a sentence. `{0}` and on are those
# tiles, then the numbers that follow them.
_GOALS = (
    (0, "There is no goal."),
    (1, "Pick up the {0}."),
    (1, "Step onto the {0}."),
    (1, "Walk next to the {0}."),
    (2, "Put the {0} and the {1} next to each other (carry one and put it down beside the other)."),
    (1, "Put the {0} on row {1}, column {2}."),
    (0, "Walk to row {0}, column {1}."),
    *((2, f"Put the {{1}} directly {side} the {{0}}.") for side in _SIDES),
    *((1, f"Walk to where the {{0}} is directly {side} you.") for side in _SIDES),
)
_RULES = (
    (0, ""),
    (2, "Once held, the {0} becomes a {1} in the pocket."),
    (2, "A {0} next to the agent becomes a {1}."),
    (3, "A {0} put down next to a {1} (or the reverse): both become one {2}."),
    *((3, f"A {{1}} put down directly {side} a {{0}}: both become one {{2}}.") for side in _SIDES),
    *((2, f"A {{0}} directly {side} the agent becomes a {{1}}.") for side in _SIDES),
)


def tile_name(pair: Sequence[int] | np.ndarray) -> str:
    return f"{COLOUR_NAMES[int(pair[1])]} {TILE_NAMES[int(pair[0])]}"


def _tiles(kinds: Sequence[tuple[int, str]], encoding: np.ndarray) -> list[tuple[int, int]]:
    """The (tile, colour) pairs of an encoded goal or rule."""
    return [(int(encoding[1 + 2 * i]), int(encoding[2 + 2 * i])) for i in range(kinds[int(encoding[0])][0])]


def _sentence(kinds: Sequence[tuple[int, str]], encoding: np.ndarray) -> str:
    tiles = _tiles(kinds, encoding)
    numbers = [int(v) for v in encoding[1 + 2 * len(tiles) :]]
    return kinds[int(encoding[0])][1].format(*map(tile_name, tiles), *numbers)


def objects_of(goal: np.ndarray, rules: np.ndarray, init_tiles: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Every (tile, colour) that a ruleset names, initial tiles first, without repetition."""
    found = [(int(t), int(c)) for t, c in init_tiles]
    found += _tiles(_GOALS, goal)
    for rule in rules:
        found += _tiles(_RULES, rule)
    return tuple(dict.fromkeys(pair for pair in found if pair[0]))


def describe(goal: np.ndarray, rules: np.ndarray, init_tiles: np.ndarray, horizon: int) -> str:
    """The task of a ruleset as a short paragraph."""
    placed = ", ".join(f"a {tile_name(t)}" for t in init_tiles if int(t[0]))
    lines = [f"A grid world. {_sentence(_GOALS, goal)} The goal must be reached within {horizon} steps."]
    lines.append(f"At the start the grid holds {placed}, at random places; the agent starts at a random place too.")
    lines += [text for rule in rules if (text := _sentence(_RULES, rule))]
    lines.append(
        "The agent acts on the cell that it faces: it can pick up what lies there if its pocket is empty, "
        "put down what it holds if the cell is free floor, and open or close a door."
    )
    return re.sub(r"\b([aA]) (?=[aeo])", r"\1n ", "\n".join(lines))  # an orange square


def layout(rooms: int, doors: int) -> str:
    """Rooms and doors in words; `doors` is the number of closed doors at the start of an episode."""
    if rooms == 1 and not doors:
        return "The grid is one room: there are no inner walls and no doors."
    closed = f"{doors} closed doors" if doors != 1 else "one closed door"
    return (
        f"The grid is divided by inner walls into {rooms} rooms, joined by {closed} (tile id 9) of any colour. "
        "Nobody walks through a closed door: it must be toggled open by an agent that faces it."
    )


ENDS = "Reaching the goal ends the episode."


def state_words(horizon: int) -> dict[str, str]:
    """What the arrays of a view and the actions mean."""
    return {
        "grid": "[tile id, colour id] of every cell, by row and column",
        "agent.position": "[row, column]",
        "agent.direction": "0 up, 1 right, 2 down, 3 left",
        "agent.pocket": "[tile id, colour id] of the held object, (0, 0) when empty",
        "step_num": f"steps taken, 0 .. {horizon}",
        "action": "0 forward, 1 turn right, 2 turn left, 3 pick up, 4 put down, 5 toggle a door",
    }


def _ids(names: Sequence[str]) -> str:
    return ", ".join(f"{i} {name}" for i, name in enumerate(names))


STATE_NOTES = f"""\
tile ids: {_ids(TILE_NAMES)}
colour ids: {_ids(COLOUR_NAMES)}
A held object is not on the grid. The agent is not on the grid. The border is wall. Floor, goal
tiles and open doors can be walked on. next_state is the state before any reset."""
