"""Grids of rooms, built at random on the host as MiniGrid's `RoomGrid` does: the same distribution, not the same draws.

Where MiniGrid draws until a place fits, a place is drawn among those that fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from jaxreward.tasks.levels.codes import (
    BALL,
    BOX,
    CLOSED,
    COLOUR_NAMES,
    DOOR,
    EMPTY,
    EMPTY_CELL,
    KEY,
    LOCKED,
    STEPS,
    WALL,
    WALL_CELL,
)  # fmt: skip

Cell = tuple[int, int]
Thing = tuple[int, int]
_T = TypeVar("_T")


def cells_between(first: Cell, second: Cell) -> list[Cell]:
    """The cells strictly between two of one row or one column; none for others."""
    (top, bottom), (left, right) = sorted((first[0], second[0])), sorted((first[1], second[1]))
    if top == bottom:
        return [(top, column) for column in range(left + 1, right)]
    return [(row, left) for row in range(top + 1, bottom)] if left == right else []


class Rejected(Exception):
    """What was drawn makes no level: draw anew."""


class Rooms:
    """Equal square rooms that share walls.

    Rooms are (row, column) of the rooms; sides are 0 right, 1 down, 2 left, 3 up, as directions.

    Attributes:
        grid: uint8 (height, width, 3).
        ids: uint8 (height, width).
        things: (type, colour) of each id, from 1 on; entry 0 is unused.
        position: row and column of the agent: in the middle until it is placed, as in MiniGrid.
        direction: of the agent.
    """

    def __init__(self, rng: np.random.Generator, size: int, rows: int = 1, columns: int = 1) -> None:
        self.rng, self.size, self.rows, self.columns = rng, size, rows, columns
        pitch = size - 1
        self.grid = np.zeros((pitch * rows + 1, pitch * columns + 1, 3), np.uint8)
        self.grid[...] = EMPTY_CELL
        self.grid[::pitch] = WALL_CELL
        self.grid[:, ::pitch] = WALL_CELL
        self.ids = np.zeros(self.grid.shape[:2], np.uint8)
        self.things: list[Thing] = [(0, 0)]
        self.position: Cell = ((rows // 2) * pitch + size // 2, (columns // 2) * pitch + size // 2)
        self.direction = 0
        self._gaps = self._draw_gaps()
        self._doors: dict[tuple[Cell, int], int] = {}

    def _draw_gaps(self) -> dict[tuple[Cell, int], Cell]:
        """Where a door of a room would be, for each side on which there is another room."""
        gaps, pitch = dict[tuple[Cell, int], Cell](), self.size - 1
        for row in range(self.rows):
            for column in range(self.columns):
                if column + 1 < self.columns:
                    cell = (row * pitch + self._whole(1, pitch), (column + 1) * pitch)
                    gaps[(row, column), 0] = gaps[(row, column + 1), 2] = cell
                if row + 1 < self.rows:
                    cell = ((row + 1) * pitch, column * pitch + self._whole(1, pitch))
                    gaps[(row, column), 1] = gaps[(row + 1, column), 3] = cell
        return gaps

    def _whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def choice(self, of: Sequence[_T]) -> _T:
        """One of `of`, each as likely."""
        return of[self._whole(0, len(of))]

    def colour(self) -> int:
        return self._whole(0, len(COLOUR_NAMES))

    def room(self) -> Cell:
        return self._whole(0, self.rows), self._whole(0, self.columns)

    def room_of(self, cell: Cell) -> Cell:
        """The room that a cell is in; of a wall, the one to its right or below."""
        return cell[0] // (self.size - 1), cell[1] // (self.size - 1)

    def bounds(self, room: Cell) -> tuple[slice, slice]:
        """Rows and columns of a room with its walls."""
        top, left = room[0] * (self.size - 1), room[1] * (self.size - 1)
        return slice(top, top + self.size), slice(left, left + self.size)

    def _new(self, cell: Cell, kind: int, colour: int, state: int = 0) -> int:
        self.things.append((kind, colour))
        self.grid[cell] = (kind, colour, state)
        self.ids[cell] = len(self.things) - 1
        return len(self.things) - 1

    def add_door(
        self, room: Cell, side: int | None = None, colour: int | None = None, locked: bool | None = None
    ) -> int:
        """Add a door and return its id; what is not given is drawn."""
        if side is None:
            side = self.choice([s for s in range(4) if (room, s) in self._gaps and (room, s) not in self._doors])
        colour = self.colour() if colour is None else colour
        locked = bool(self._whole(0, 2)) if locked is None else locked
        thing = self._new(self._gaps[room, side], DOOR, colour, LOCKED if locked else CLOSED)
        other = (room[0] + int(STEPS[side][0]), room[1] + int(STEPS[side][1]))
        self._doors[room, side] = self._doors[other, (side + 2) % 4] = thing
        return thing

    def connect(self) -> None:
        """Add doors, none of them locked, at random walls until every room can be reached."""
        while len(self._connected()) < self.rows * self.columns:
            room, side = self.room(), self._whole(0, 4)
            if (room, side) in self._gaps and (room, side) not in self._doors:
                self.add_door(room, side, locked=False)

    def _connected(self) -> set[Cell]:
        found, stack = set[Cell](), [self.room_of(self.position)]
        while stack:
            room = stack.pop()
            if room not in found:
                found.add(room)
                sides = (side for side in range(4) if (room, side) in self._doors)
                stack += [(room[0] + int(STEPS[side][0]), room[1] + int(STEPS[side][1])) for side in sides]
        return found

    def doors(self) -> list[int]:
        """The id of every door, once for each of its two rooms."""
        return list(self._doors.values())

    def cell_of(self, thing: int) -> Cell:
        """Where an object or a door is."""
        row, column = np.argwhere(self.ids == thing)[0]
        return int(row), int(column)

    def free(self, room: Cell) -> list[Cell]:
        """The empty cells of a room."""
        rows, columns = self.bounds(room)
        found = np.argwhere(self.grid[rows, columns, 0] == EMPTY)
        return [(int(r) + rows.start, int(c) + columns.start) for r, c in found]

    def add(self, kind: int, colour: int, room: Cell = (0, 0), cells: Sequence[Cell] | None = None) -> int:
        """Put an object on an empty cell of a room, not the agent's nor one beside it, and return its id.

        Args:
            cells: empty cells to draw from, in place of all of the room.

        Raises:
            Rejected: there is no such cell.
        """
        row, column = self.position
        near = [(r, c) for r, c in (self.free(room) if cells is None else cells) if abs(r - row) + abs(c - column) > 1]
        if not near:
            raise Rejected("no cell is free")
        return self._new(self.choice(near), kind, colour)

    def add_distractors(self, n: int, unique: bool = False, only: int | None = None) -> list[int]:
        """Add random objects in random rooms and return their ids.

        Args:
            unique: no two objects, of those that are there already too, have type and colour in common.
            only: the colour of all of them.
        """
        added = list[int]()
        while len(added) < n:
            colour, kind = self.colour(), self.choice((KEY, BALL, BOX))
            if unique and (kind, colour) in self.things:
                continue
            added.append(self.add(kind, colour if only is None else only, self.room()))
        return added

    def place_agent(self, room: Cell | None = None) -> None:
        """Put the agent on an empty cell, facing one that is empty or a wall, of a random room if none is given.

        Raises:
            Rejected: there is no such cell.
        """
        cells = self.free(self.room() if room is None else room)
        poses = [(cell, d) for cell in cells for d in range(4) if self._ahead(cell, d) in (EMPTY, WALL)]
        if not poses:
            raise Rejected("the agent has no place")
        self.position, self.direction = self.choice(poses)

    def _ahead(self, cell: Cell, direction: int) -> int:
        return int(self.grid[cell[0] + STEPS[direction][0], cell[1] + STEPS[direction][1], 0])

    def require_reachable(self) -> None:
        """Raise `Rejected` unless the agent can get to every object and door without moving an object."""
        kinds = self.grid[:, :, 0].tolist()
        seen, stack = {self.position}, [self.position]
        while stack:
            row, column = stack.pop()
            if kinds[row][column] not in (EMPTY, DOOR):
                continue
            for beside in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                if beside not in seen and kinds[beside[0]][beside[1]] != WALL:
                    seen.add(beside)
                    stack.append(beside)
        if any((int(r), int(c)) not in seen for r, c in np.argwhere(self.ids)):
            raise Rejected("an object cannot be reached")
