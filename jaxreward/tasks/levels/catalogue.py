"""The levels: 17 of BabyAI as MiniGrid 3.2.0 has them, and three of GRACE (appendix A.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxreward.tasks.levels.codes import (
    ANY,
    BALL,
    BLUE,
    BOX,
    COLOUR_NAMES,
    DOOR,
    EMPTY,
    GO_TO,
    GREY,
    KEY,
    LEFT,
    OPEN,
    OPEN_MATCHING,
    PICK,
    PLACE_BETWEEN,
    PORTABLE,
    PUT_IN_ROOM,
    RED,
    RIGHT,
)  # fmt: skip
from jaxreward.tasks.levels.mission import Clause, clause, targets_of
from jaxreward.tasks.levels.rooms import Rejected, Rooms, cells_between

MIDDLE = (1, 1)
"""The middle one of nine rooms."""

Build = Callable[[Rooms], list[Clause]]
"""Fills empty rooms and returns the clauses of the mission; may raise `Rejected`."""


@dataclass(frozen=True)
class Level:
    """One level.

    Attributes:
        name: as GRACE writes it.
        goal: the mission in words.
        size: cells along the side of a room, walls included.
        rooms: rows and columns of rooms.
        verb: of every clause.
        clauses: how many a mission has.
        build: what fills the rooms.
        kinds: types of objects and doors that occur.
        minigrid: MiniGrid's name, `BabyAI-<minigrid>-v0`; empty for a level that it lacks.
        located: missions may say where an object lies as seen at the start.
    """

    name: str
    goal: str
    size: int
    rooms: tuple[int, int]
    verb: int
    clauses: int
    build: Build
    kinds: tuple[int, ...]
    minigrid: str = ""
    located: bool = False

    @property
    def height(self) -> int:
        return (self.size - 1) * self.rooms[0] + 1

    @property
    def width(self) -> int:
        return (self.size - 1) * self.rooms[1] + 1


def _named(rooms: Rooms, verb: int, thing: int) -> list[Clause]:
    """The mission to do something to what has type and colour of an object."""
    return [clause(verb, *rooms.things[thing])]


def _red_ball(distractors: int, only: int | None = None) -> Build:
    def build(rooms: Rooms) -> list[Clause]:
        rooms.place_agent()
        ball = rooms.add(BALL, RED)
        rooms.add_distractors(distractors, only=only)
        rooms.require_reachable()
        return _named(rooms, GO_TO, ball)

    return build


def _red_blue_ball(rooms: Rooms) -> list[Clause]:
    rooms.place_agent()
    rooms.add_distractors(7)
    if {(BALL, RED), (BALL, BLUE)} & {*rooms.things}:
        raise Rejected("there is but one red or blue ball")
    ball = rooms.add(BALL, rooms.choice((RED, BLUE)))
    rooms.require_reachable()
    return _named(rooms, GO_TO, ball)


def _any_object(distractors: int, unique: bool) -> Build:
    def build(rooms: Rooms) -> list[Clause]:
        rooms.place_agent()
        things = rooms.add_distractors(distractors, unique)
        rooms.require_reachable()
        return _named(rooms, GO_TO, rooms.choice(things))

    return build


def _pick_dist(rooms: Rooms) -> list[Clause]:
    things = rooms.add_distractors(5, unique=True)
    rooms.place_agent()
    kind, colour = rooms.things[rooms.choice(things)]
    return [clause(PICK, *rooms.choice(((kind, ANY), (ANY, colour), (kind, colour))))]


def _pick_loc(rooms: Rooms) -> list[Clause]:
    rooms.add_distractors(8)
    rooms.place_agent()
    rooms.require_reachable()
    for _ in range(100):
        colour = rooms.choice((ANY, *range(len(COLOUR_NAMES))))
        kind = rooms.choice((BOX, BALL, KEY))
        wanted = clause(PICK, kind, colour, rooms.choice(range(4)) if rooms.choice((True, False)) else ANY)
        if targets_of(rooms, wanted).any():
            return [wanted]
    raise Rejected("no object was found that a description fits")


def _maze(verb: int) -> Build:
    """Nine connected rooms with 18 objects: one of these to pick up, or one of the doors to open."""

    def build(rooms: Rooms) -> list[Clause]:
        rooms.place_agent()
        rooms.connect()
        things = rooms.add_distractors(18)
        rooms.require_reachable()
        return _named(rooms, verb, rooms.choice(things if verb == PICK else rooms.doors()))

    return build


def _four_doors(rooms: Rooms) -> list[int]:
    colours = rooms.rng.permutation(len(COLOUR_NAMES))[:4]
    return [rooms.add_door(MIDDLE, side, int(colour), locked=False) for side, colour in enumerate(colours)]


def _open_door_color(rooms: Rooms) -> list[Clause]:
    first = _four_doors(rooms)[0]
    rooms.place_agent(MIDDLE)
    return _named(rooms, OPEN, first)


def _open_door_loc(rooms: Rooms) -> list[Clause]:
    _four_doors(rooms)
    location = rooms.choice(range(4))
    rooms.place_agent(MIDDLE)
    return [clause(OPEN, DOOR, ANY, location)]


def _two_doors(colours: tuple[int, int] | None) -> Build:
    def build(rooms: Rooms) -> list[Clause]:
        first, second = rooms.rng.permutation(len(COLOUR_NAMES))[:2] if colours is None else colours
        rooms.add_door(MIDDLE, 2, int(first), locked=False)
        rooms.add_door(MIDDLE, 0, int(second), locked=False)
        rooms.place_agent(MIDDLE)
        return [clause(OPEN, DOOR, int(first)), clause(OPEN, DOOR, int(second))]

    return build


def _red_door(rooms: Rooms) -> list[Clause]:
    door = rooms.add_door((0, 0), 0, RED, locked=False)
    rooms.place_agent((0, 0))
    return _named(rooms, OPEN, door)


def _go_to_door(rooms: Rooms) -> list[Clause]:
    doors = [rooms.add_door(MIDDLE) for _ in range(4)]
    rooms.place_agent(MIDDLE)
    return _named(rooms, GO_TO, rooms.choice(doors))


def _place_between(rooms: Rooms) -> list[Clause]:
    """Two anchors in one row or column with a free cell between them, and a third object that is elsewhere."""
    rooms.place_agent()
    things = rooms.add_distractors(3, unique=True)
    target, first, second = map(rooms.cell_of, things)
    gap = cells_between(first, second)
    if not any(rooms.grid[cell][0] == EMPTY for cell in gap) or target in gap:
        raise Rejected("there is no free cell between two objects")
    rooms.require_reachable()
    return _named(rooms, PLACE_BETWEEN, things[0])


def _matching_door(rooms: Rooms) -> list[Clause]:
    doors = _four_doors(rooms)
    rooms.place_agent(MIDDLE)
    rooms.add(KEY, rooms.things[rooms.choice(doors)][1], MIDDLE)
    rooms.require_reachable()
    return [clause(OPEN_MATCHING, DOOR)]


def _sort_colours(rooms: Rooms) -> list[Clause]:
    rooms.add_door((0, 0), 0, locked=False)
    rooms.place_agent()
    rooms.add(BALL, RED, (0, 0))
    rooms.add(BALL, BLUE, (0, 1))
    rooms.require_reachable()
    return [clause(PUT_IN_ROOM, BALL, RED, RIGHT), clause(PUT_IN_ROOM, BALL, BLUE, LEFT)]


_ONE, _TWO, _NINE = (1, 1), (1, 2), (3, 3)
_ALL = (DOOR, *PORTABLE)
_LEVELS = (
    Level("GoToRedBallNoDist", "go to the red ball", 8, _ONE, GO_TO, 1, _red_ball(0), (BALL,), "GoToRedBallNoDists"),
    Level("GoToRedBall", "go to a red ball among other objects", 8, _ONE, GO_TO, 1, _red_ball(7), PORTABLE,
          "GoToRedBall"),
    Level("PickupDist", "pick up the object with the type, the colour or both that the mission names", 7, _ONE, PICK, 1,
          _pick_dist, PORTABLE, "PickupDist"),
    Level("PickupLoc", "pick up an object that the mission describes by type, colour and where it lies as seen at the "
          "start", 8, _ONE, PICK, 1, _pick_loc, PORTABLE, "PickupLoc", located=True),
    Level("GoToObj", "go to the only object", 8, _ONE, GO_TO, 1, _any_object(1, True), PORTABLE, "GoToObj"),
    Level("OpenDoorColor", "open the door of the mission's colour", 8, _NINE, OPEN, 1, _open_door_color, (DOOR,),
          "OpenDoorColor"),
    Level("OpenTwoDoors", "open two doors, in the mission's order", 6, _NINE, OPEN, 2, _two_doors(None), (DOOR,),
          "OpenTwoDoors"),
    Level("OpenRedDoor", "open the red door", 5, _TWO, OPEN, 1, _red_door, (DOOR,), "OpenRedDoor"),
    Level("GoToObjS4", "go to the only object of a room of four cells", 4, _ONE, GO_TO, 1, _any_object(1, True),
          PORTABLE, "GoToObjS4"),
    Level("GoToRedBlueBall", "go to the ball of the mission's colour, red or blue", 8, _ONE, GO_TO, 1, _red_blue_ball,
          PORTABLE, "GoToRedBlueBall"),
    Level("GoToRedBallGrey", "go to the red ball among grey objects", 8, _ONE, GO_TO, 1, _red_ball(7, GREY), PORTABLE,
          "GoToRedBallGrey"),
    Level("Pickup", "pick up an object of the mission's type and colour, in any of nine rooms", 8, _NINE, PICK, 1,
          _maze(PICK), _ALL, "Pickup"),
    Level("Open", "open a door of the mission's colour, of any of nine rooms", 8, _NINE, OPEN, 1, _maze(OPEN), _ALL,
          "Open"),
    Level("OpenRedBlueDoors", "open the red door, then the blue door", 6, _NINE, OPEN, 2, _two_doors((RED, BLUE)),
          (DOOR,), "OpenRedBlueDoors"),
    Level("OpenDoorLoc", "open a door that the mission describes by where it is as seen at first", 8, _NINE, OPEN, 1,
          _open_door_loc, (DOOR,), "OpenDoorLoc", located=True),
    Level("GoToLocalS8N7", "go to an object of the mission's type and colour, of seven", 8, _ONE, GO_TO, 1,
          _any_object(7, False), PORTABLE, "GoToLocalS8N7"),
    Level("GoToDoor", "go to a door of the mission's colour", 7, _NINE, GO_TO, 1, _go_to_door, (DOOR,), "GoToDoor"),
    Level("PlaceBetween", "put the object that the mission names between the two others, on a cell of their row or "
          "column", 8, _ONE, PLACE_BETWEEN, 1, _place_between, PORTABLE),
    Level("OpenMatchingDoor", "open the door of the colour of the key", 7, _NINE, OPEN_MATCHING, 1, _matching_door,
          (DOOR, KEY)),
    Level("SortColors", "put the red ball into the right room and the blue ball into the left room", 5, _TWO,
          PUT_IN_ROOM, 2, _sort_colours, (DOOR, BALL)),
)  # fmt: skip

LEVELS: dict[str, Level] = {level.name: level for level in _LEVELS}
"""All levels by name."""
