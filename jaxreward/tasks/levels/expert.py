"""A scripted expert for every level, on the host: it knows the true state and plans a whole episode."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from jaxreward.tasks.levels.catalogue import LEVELS
from jaxreward.tasks.levels.codes import (
    DONE,
    DOOR,
    DROP,
    EMPTY,
    GO_TO,
    LEFT,
    OPENED,
    PICK,
    PICK_UP,
    PLACE_BETWEEN,
    PUT_IN_ROOM,
    TOGGLE,
)  # fmt: skip
from jaxreward.tasks.levels.rooms import Cell, cells_between
from jaxreward.tasks.levels.state import LevelState
from jaxreward.tasks.levels.world import CLEAR, World

LONGEST = 1000
"""Actions after which it gives up."""


class _Stuck(Exception):
    """There is no way, or none within `LONGEST` actions."""


def expert_actions(name: str, state: LevelState) -> list[int]:
    """Actions that fulfil the mission of a level from a state, the first or a later one.

    Ways are the cheapest in actions; where objects bar one, they are picked up and put down elsewhere. Where the
    mission cannot be fulfilled any more, as after a box was toggled away, the actions end early.

    Args:
        name: of the level, e.g. `GoToRedBall`.
        state: of its task, with arrays of JAX or numpy.
    """
    return _Expert(name, state).actions()


class _Expert:
    def __init__(self, name: str, state: LevelState) -> None:
        self.level, self.world = LEVELS[name], World(state)
        self.mission, self.done = np.asarray(state.mission), np.asarray(state.done)
        self.targets = [{int(i) for i in np.flatnonzero(row)} for row in np.asarray(state.targets)]

    def actions(self) -> list[int]:
        with suppress(_Stuck):
            self._fulfil()
        return self.world.actions

    def _fulfil(self) -> None:
        verb, world = self.level.verb, self.world
        if verb == GO_TO:
            self._face(world.where(self.targets[0]))
            if not world.actions:  # it faces it already, which counts after the next action
                world.do(DONE)
        elif verb == PICK:
            self._fetch(self.targets[0])
        elif verb == PUT_IN_ROOM:
            self._sort()
        elif verb == PLACE_BETWEEN:
            self._place_between()
        else:
            first = 1 if self.level.clauses == 2 and self.done[0] else 0
            for k in range(first, self.level.clauses):
                self._open(self.targets[k])

    def _open(self, doors: set[int]) -> None:
        self._face(self.world.where(doors))
        row, column = self.world.ahead
        if self.world.grid[row][column][2] == OPENED:
            self.world.do(TOGGLE)
        self.world.do(TOGGLE)

    def _sort(self) -> None:
        width = len(self.world.grid[0])
        while wrong := [k for k in range(2) if not self._sorted(k)]:
            carried = self.world.carried[3]
            k = next((k for k in wrong if carried in self.targets[k]), wrong[0])
            if carried not in self.targets[k]:
                self._fetch(self.targets[k])
            left = self.mission[k, 3] == LEFT
            room = [cell for cell in self._clear_cells() if (cell[1] < width // 2) == left]
            self._put(self.targets[k], room)

    def _sorted(self, k: int) -> bool:
        width, left = len(self.world.grid[0]), self.mission[k, 3] == LEFT
        cells = self.world.where(self.targets[k])
        return any((cell[1] < width // 2) == left for cell in cells)

    def _place_between(self) -> None:
        target, world = self.targets[0], self.world
        everything = {i for row in world.ids for i in row if i} | ({world.carried[3]} - {0})
        first, second = sorted(everything - target)
        while True:
            anchors = world.where({first}), world.where({second})
            gap = _gap(world, anchors[0][0], anchors[1][0]) if all(anchors) else []
            if gap and not world.where(target):
                if self._put(target, gap):
                    return
            elif gap:
                self._fetch(target)
            else:  # the anchors were moved: bring one of them into line with the other
                self._fetch({first})
                [anchor] = world.where({second})
                self._put({first}, [cell for cell in world.free() if len(_gap(world, cell, anchor)) > 0])

    def _fetch(self, things: set[int]) -> None:
        """Pick up one of some objects, having put down what is carried."""
        if self.world.carried[3] in things and self.world.carried[0]:
            return
        while True:
            if self.world.carried[0]:
                self._put_away([])
            self._face(self.world.where(things))
            if not self.world.carried[0]:
                self.world.do(PICK_UP)
                return

    def _put(self, things: set[int], cells: list[Cell]) -> bool:
        """Put one of some objects, which is carried, on one of some free cells; False if it had to be put down on the
        way there."""
        self._face(cells)
        if self.world.carried[3] not in things:
            return False
        self.world.do(DROP)
        return True

    def _put_away(self, way: list[Cell]) -> None:
        """Put down what is carried where it bars neither a way nor a door."""
        for cells in (self._clear_cells(), self.world.free()):
            if away := [cell for cell in cells if cell not in way]:
                found = self.world.way_to_face(away)
                if found and CLEAR not in found[0]:
                    self._walk(found[0])
                    return self.world.do(DROP)
        raise _Stuck

    def _clear_cells(self) -> list[Cell]:
        """Free cells that are not beside a door."""
        doors = [cell for cell in self.world.cells() if self.world.kind(cell) == DOOR]
        return [cell for cell in self.world.free() if all(abs(cell[0] - r) + abs(cell[1] - c) > 1 for r, c in doors)]

    def _face(self, cells: list[Cell]) -> None:
        """Go to where one of some cells is ahead."""
        while True:
            found = self.world.way_to_face(cells)
            if found is None or len(self.world.actions) > LONGEST:
                raise _Stuck
            steps, way = found
            if CLEAR not in steps:
                return self._walk(steps)
            self._walk(steps[: steps.index(CLEAR)])
            if not self.world.carried[0]:
                self.world.do(PICK_UP)
            self._put_away([*way, self.world.ahead])

    def _walk(self, steps: list[int]) -> None:
        for action in steps:
            self.world.do(action)


def _gap(world: World, first: Cell, second: Cell) -> list[Cell]:
    """Free cells strictly between two cells of one row or column; none for others."""
    return [cell for cell in cells_between(first, second) if world.kind(cell) == EMPTY]
