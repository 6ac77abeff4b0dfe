"""A level on the host, for planning: lists in place of arrays, and the cheapest way to face a cell."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import Final

import numpy as np

from jaxreward.tasks.levels.codes import (
    BOX,
    CLOSED,
    DOOR,
    DROP,
    EMPTY,
    EMPTY_CELL,
    FORWARD,
    KEY,
    LOCKED,
    OPENED,
    PICK_UP,
    PORTABLE,
    STEPS,
    TOGGLE,
    TURN_LEFT,
    TURN_RIGHT,
)  # fmt: skip
from jaxreward.tasks.levels.rooms import Cell
from jaxreward.tasks.levels.state import LevelState

CLEAR: Final = -1
"""A step of a way: move the object ahead out of it."""

_CLEARING = 12
"""What it is taken to cost, in actions."""

_AHEAD = tuple((int(row), int(column)) for row, column in STEPS)


class World:
    """The world of a state, and the actions that were done in it since.

    Attributes:
        grid: (type, colour, state) of each cell, by row and column.
        ids: of what lies there.
        carried: (type, colour, state, id).
        actions: what was done.
    """

    def __init__(self, state: LevelState) -> None:
        self.grid: list[list[tuple[int, ...]]] = [
            [tuple(cell) for cell in row] for row in np.asarray(state.grid).tolist()
        ]
        self.ids: list[list[int]] = np.asarray(state.ids).tolist()
        self.position: Cell = (int(state.position[0]), int(state.position[1]))
        self.direction = int(state.direction)
        self.carried: tuple[int, ...] = tuple(np.asarray(state.carried).tolist())
        self.actions: list[int] = []

    @property
    def ahead(self) -> Cell:
        return _beside(self.position, self.direction)

    def kind(self, cell: Cell) -> int:
        return self.grid[cell[0]][cell[1]][0]

    def cells(self) -> list[Cell]:
        return [(row, column) for row in range(len(self.grid)) for column in range(len(self.grid[0]))]

    def free(self) -> list[Cell]:
        """Empty cells on which the agent does not stand."""
        return [cell for cell in self.cells() if self.kind(cell) == EMPTY and cell != self.position]

    def where(self, ids: Collection[int]) -> list[Cell]:
        """Where objects or doors with some ids lie."""
        return [(row, column) for row, column in self.cells() if self.ids[row][column] in ids]

    def do(self, action: int) -> None:
        """One action, as `dynamics.act`."""
        self.actions.append(action)
        row, column = cell = self.ahead
        kind, colour, state = self.grid[row][column]
        if action in (TURN_LEFT, TURN_RIGHT):
            self.direction = (self.direction + (1 if action == TURN_RIGHT else 3)) % 4
        elif action == FORWARD and self._walkable(cell):
            self.position = cell
        elif action == PICK_UP and kind in PORTABLE and not self.carried[0]:
            self.carried = (kind, colour, state, self.ids[row][column])
            self._put(cell, EMPTY_CELL, 0)
        elif action == DROP and kind == EMPTY and self.carried[0]:
            self._put(cell, self.carried[:3], self.carried[3])
            self.carried = (0, 0, 0, 0)
        elif action == TOGGLE and kind == BOX:
            self._put(cell, EMPTY_CELL, 0)
        elif action == TOGGLE and kind == DOOR and (state != LOCKED or self._has_key(colour)):
            self.grid[row][column] = (kind, colour, CLOSED if state == OPENED else OPENED)

    def _put(self, cell: Cell, what: tuple[int, ...], thing: int) -> None:
        self.grid[cell[0]][cell[1]], self.ids[cell[0]][cell[1]] = what, thing

    def _has_key(self, colour: int) -> bool:
        return self.carried[:2] == (KEY, colour)

    def _walkable(self, cell: Cell) -> bool:
        kind, _, state = self.grid[cell[0]][cell[1]]
        return kind == EMPTY or (kind == DOOR and state == OPENED)

    def _entering(self, cell: Cell) -> tuple[int, tuple[int, ...]] | None:
        """What entering the cell ahead costs, and the steps; None where it cannot be entered."""
        kind, colour, state = self.grid[cell[0]][cell[1]]
        if self._walkable(cell):
            return 1, (FORWARD,)
        if kind == DOOR and (state == CLOSED or self._has_key(colour)):
            return 2, (TOGGLE, FORWARD)
        return (_CLEARING, (CLEAR, FORWARD)) if kind in PORTABLE else None

    def way_to_face(self, cells: Collection[Cell]) -> tuple[list[int], list[Cell]] | None:
        """The cheapest steps, actions or `CLEAR`, to face one of some cells, and the cells walked on; None: no way."""
        wanted, first = set(cells), (self.position, self.direction)
        cost: dict[tuple[Cell, int], int] = {first: 0}
        came: dict[tuple[Cell, int], tuple[tuple[Cell, int], tuple[int, ...]]] = {}
        queue, settled = [(0, first)], set()
        while queue:
            so_far, pose = heapq.heappop(queue)
            if pose in settled:
                continue
            settled.add(pose)
            cell, direction = pose
            ahead = _beside(cell, direction)
            if ahead in wanted:
                return self._traced(came, pose)
            nexts: list[tuple[tuple[Cell, int], int, tuple[int, ...]]] = [
                ((cell, (direction + 3) % 4), 1, (TURN_LEFT,)), ((cell, (direction + 1) % 4), 1, (TURN_RIGHT,)),
            ]  # fmt: skip
            if entered := self._entering(ahead):
                nexts.append(((ahead, direction), *entered))
            for after, price, steps in nexts:
                if so_far + price < cost.get(after, 10**9):
                    cost[after], came[after] = so_far + price, (pose, steps)
                    heapq.heappush(queue, (so_far + price, after))
        return None

    @staticmethod
    def _traced(
        came: dict[tuple[Cell, int], tuple[tuple[Cell, int], tuple[int, ...]]], pose: tuple[Cell, int]
    ) -> tuple[list[int], list[Cell]]:
        steps, cells = list[int](), [pose[0]]
        while pose in came:
            pose, taken = came[pose]
            steps[:0] = taken
            cells.append(pose[0])
        return steps, cells


def _beside(cell: Cell, direction: int) -> Cell:
    row, column = _AHEAD[direction]
    return cell[0] + row, cell[1] + column
