"""MiniGrid's codes of a cell, (type, colour, state), and the numbers of actions, verbs and locations."""

from __future__ import annotations

from typing import Final

import numpy as np

EMPTY: Final = 1
WALL: Final = 2
DOOR: Final = 4
KEY: Final = 5
BALL: Final = 6
BOX: Final = 7
AGENT: Final = 10

TYPE_NAMES: Final = {EMPTY: "empty", WALL: "wall", DOOR: "door", KEY: "key", BALL: "ball", BOX: "box", AGENT: "agent"}
COLOUR_NAMES: Final = ("red", "green", "blue", "purple", "yellow", "grey")
RED: Final = 0
BLUE: Final = 2
GREY: Final = 5
OPENED: Final = 0
CLOSED: Final = 1
LOCKED: Final = 2

EMPTY_CELL: Final = (EMPTY, 0, 0)
WALL_CELL: Final = (WALL, GREY, 0)
PORTABLE: Final = (KEY, BALL, BOX)

TURN_LEFT: Final = 0
TURN_RIGHT: Final = 1
FORWARD: Final = 2
PICK_UP: Final = 3
DROP: Final = 4
TOGGLE: Final = 5
DONE: Final = 6
ACTIONS: Final = 7

STEPS: Final = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]], np.int32)
"""The cell ahead as (rows, columns), by direction: 0 right, 1 down, 2 left, 3 up."""

GO_TO: Final = 0
PICK: Final = 1
OPEN: Final = 2
PLACE_BETWEEN: Final = 3
OPEN_MATCHING: Final = 4
PUT_IN_ROOM: Final = 5
VERBS: Final = 6

LEFT: Final = 0
RIGHT: Final = 1
FRONT: Final = 2
BEHIND: Final = 3
ANY: Final = -1
"""What a clause leaves open, and every entry of a clause that is not there."""

THINGS: Final = 32
"""Ids of objects and doors are 1 .. 31; 0 is none."""
