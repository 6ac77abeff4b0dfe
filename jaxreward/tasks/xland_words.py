"""XLand-MiniGrid in words: what a ruleset asks for, and what a program can read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TILE_NAMES = (
    "empty", "floor", "wall", "ball", "square", "pyramid", "goal", "key", "locked door", "closed door", "open door",
    "hex", "star",
)  # fmt: skip
COLOUR_NAMES = (
    "empty", "red", "green", "blue", "purple", "yellow", "grey", "black", "orange", "white", "brown", "pink",
)  # fmt: skip
# Tiles named by each kind of goal and rule: how many (tile, colour) pairs follow the kind's id.
_GOAL_TILES = (0, 1, 1, 1, 2, 1, 0, 2, 2, 2, 2, 1, 1, 1, 1)
_RULE_TILES = (0, 2, 2, 3, 3, 3, 3, 3, 2, 2, 2, 2)
_SIDES = ("above", "to the right of", "below", "to the left of")


def tile_name(pair: Sequence[int] | np.ndarray) -> str:
    return f"{COLOUR_NAMES[int(pair[1])]} {TILE_NAMES[int(pair[0])]}"


def _pairs(encoding: np.ndarray, count: int) -> list[tuple[int, int]]:
    return [(int(encoding[1 + 2 * i]), int(encoding[2 + 2 * i])) for i in range(count)]


def objects_of(goal: np.ndarray, rules: np.ndarray, init_tiles: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Every (tile, colour) that a ruleset names, initial tiles first, without repetition."""
    found = [(int(t), int(c)) for t, c in init_tiles]
    found += _pairs(goal, _GOAL_TILES[int(goal[0])])
    for rule in rules:
        found += _pairs(rule, _RULE_TILES[int(rule[0])])
    return tuple(dict.fromkeys(pair for pair in found if pair[0]))


def describe_goal(goal: np.ndarray) -> str:
    kind = int(goal[0])
    tiles = [tile_name(p) for p in _pairs(goal, _GOAL_TILES[kind])]
    if kind == 1:
        return f"Pick up the {tiles[0]}."
    if kind == 2:
        return f"Step onto the {tiles[0]}."
    if kind == 3:
        return f"Walk next to the {tiles[0]}."
    if kind == 4:
        return f"Put the {tiles[0]} and the {tiles[1]} next to each other (carry one and put it down beside the other)."
    if kind == 5:
        return f"Put the {tiles[0]} on row {int(goal[3])}, column {int(goal[4])}."
    if kind == 6:
        return f"Walk to row {int(goal[1])}, column {int(goal[2])}."
    if kind in (7, 8, 9, 10):
        return f"Put the {tiles[1]} directly {_SIDES[kind - 7]} the {tiles[0]}."
    if kind in (11, 12, 13, 14):
        return f"Walk to where the {tiles[0]} is directly {_SIDES[kind - 11]} you."
    return "There is no goal."


def describe_rule(rule: np.ndarray) -> str:
    kind = int(rule[0])
    tiles = [tile_name(p) for p in _pairs(rule, _RULE_TILES[kind])]
    if kind == 1:
        return f"Once held, the {tiles[0]} becomes a {tiles[1]} in the pocket."
    if kind == 2:
        return f"A {tiles[0]} next to the agent becomes a {tiles[1]}."
    if kind == 3:
        return f"A {tiles[0]} put down next to a {tiles[1]} (or the reverse): both become one {tiles[2]}."
    if kind in (4, 5, 6, 7):
        return f"A {tiles[1]} put down directly {_SIDES[kind - 4]} a {tiles[0]}: both become one {tiles[2]}."
    if kind in (8, 9, 10, 11):
        return f"A {tiles[0]} directly {_SIDES[kind - 8]} the agent becomes a {tiles[1]}."
    return ""


def describe(goal: np.ndarray, rules: np.ndarray, init_tiles: np.ndarray, horizon: int) -> str:
    """The task of a ruleset as a short paragraph."""
    placed = ", ".join(f"a {tile_name(t)}" for t in init_tiles if int(t[0]))
    lines = [f"A grid world. {describe_goal(goal)} The goal must be reached within {horizon} steps."]
    lines.append(f"At the start the grid holds {placed}, at random places; the agent starts at a random place too.")
    lines += [text for rule in rules if (text := describe_rule(rule))]
    lines.append(
        "The agent acts on the cell that it faces: it can pick up what lies there if its pocket is empty, "
        "put down what it holds if the cell is free floor, and open or close a door."
    )
    return "\n".join(lines)


def state_doc(height: int, width: int, horizon: int) -> str:
    """What programs see, for a proposer."""
    tiles = ", ".join(f"{i} {name}" for i, name in enumerate(TILE_NAMES))
    colours = ", ".join(f"{i} {name}" for i, name in enumerate(COLOUR_NAMES))
    return f"""\
state.grid            uint8 ({height}, {width}, 2): [tile id, colour id] of every cell
state.agent.position  int32 (2,): [row, column]
state.agent.direction int32 (): 0 up, 1 right, 2 down, 3 left
state.agent.pocket    uint8 (2,): [tile id, colour id] of the held object, (0, 0) when empty
state.step_num        int32 (): steps taken, 0 .. {horizon}
action                int32 (): 0 forward, 1 turn right, 2 turn left, 3 pick up, 4 put down, 5 toggle a door
tile ids: {tiles}
colour ids: {colours}
A held object is not on the grid. The agent is not on the grid. The border is wall. Floor, goal
tiles and open doors can be walked on. next_state is the state before any reset."""
