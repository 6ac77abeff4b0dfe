"""Banks of start states, generated on the host."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from jaxreward.errors import UserError
from jaxreward.tasks.levels.catalogue import LEVELS
from jaxreward.tasks.levels.codes import THINGS
from jaxreward.tasks.levels.mission import mission_array, targets_of
from jaxreward.tasks.levels.rooms import Rejected, Rooms
from jaxreward.tasks.levels.state import LevelState

HELD_OUT = 5
"""One of so many start states is held out."""

_MOST_TRIES = 2_000
"""Start states in a row that are not of the wanted kind: then there is none."""


def start_states(name: str, seed: int) -> Iterator[LevelState]:
    """Start states of a level without end, as arrays of numpy; the same for the same seed."""
    level = LEVELS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    while True:
        rooms = Rooms(rng, level.size, *level.rooms)
        try:
            clauses = level.build(rooms)
        except Rejected:
            continue
        targets = np.zeros((2, THINGS), bool)
        for k, wanted in enumerate(clauses):
            targets[k] = targets_of(rooms, wanted)
        yield start_state(rooms.grid, rooms.ids, rooms.position, rooms.direction, mission_array(clauses), targets)


def start_state(
    grid: np.ndarray, ids: np.ndarray, position: tuple[int, int], direction: int, mission: np.ndarray,
    targets: np.ndarray,
) -> LevelState:  # fmt: skip
    """A state with empty hands before the first step; the clauses of a mission are not fulfilled yet."""
    fields: dict[str, Any] = {
        "grid": np.asarray(grid, np.uint8), "ids": np.asarray(ids, np.uint8),
        "position": np.asarray(position, np.int32), "direction": np.asarray(direction, np.int32),
        "carried": np.zeros(4, np.uint8), "mission": np.asarray(mission, np.int32),
        "targets": np.asarray(targets, bool), "start": np.asarray([*position, direction], np.int32),
        "done": np.zeros(2, bool), "solved": np.zeros((), bool), "step_num": np.zeros((), np.int32),
    }  # fmt: skip
    return LevelState(**fields)


def is_held_out(state: LevelState) -> bool:
    """Whether a start state is one of the held-out fifth: by a digest of what programs see of it, and so the same
    whatever the seed."""
    arrays = (state.grid, state.start, state.mission)
    digest = hashlib.blake2b(b"".join(np.asarray(x).tobytes() for x in arrays), digest_size=8).digest()
    return int.from_bytes(digest, "little") % HELD_OUT == 0


@lru_cache(maxsize=64)
def bank_of(name: str, size: int, seed: int, held_out: bool) -> LevelState:
    """`size` different start states of a level with a leading axis, or as many as there are of a small one.

    Args:
        held_out: the held-out ones, or only others.

    Raises:
        UserError: the level has no such start state.
    """
    found: dict[bytes, LevelState] = {}
    tries = 0
    for state in start_states(name, seed):
        key = np.asarray(state.grid).tobytes() + np.asarray(state.start).tobytes() + np.asarray(state.mission).tobytes()
        tries += 1
        if key not in found and is_held_out(state) == held_out:
            found[key], tries = state, 0
        if len(found) == size or tries == _MOST_TRIES:
            break
    if not found:
        raise UserError(f"babyai/{name} has no start state with held_out={str(held_out).lower()}")
    states = list(found.values())
    columns: dict[str, Any] = {
        field: np.stack([getattr(state, field) for state in states]) for field in LevelState.__dataclass_fields__
    }
    return LevelState(**columns)
