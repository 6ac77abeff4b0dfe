"""Levels that tests play, each compiled once."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from jaxreward.tasks import make_task
from jaxreward.tasks.levels.state import LevelState, LevelView
from jaxreward.tasks.levels.task import BabyAI
from tests.compilation import jit

STEPS = 100
T = TypeVar("T", LevelState, LevelView)


class Played(NamedTuple):
    """What follows each of `STEPS` actions of an episode, with a leading axis of steps."""

    states: LevelState
    views: LevelView
    rewards: np.ndarray

    @property
    def ends(self) -> int:
        """The steps until the mission is fulfilled; 0 if it never is."""
        found = np.flatnonzero(self.states.solved)
        return int(found[0]) + 1 if len(found) else 0


def level(name: str, **options: Any) -> BabyAI:
    task = make_task(f"babyai/{name}", **{"starts": 8, **options})
    assert isinstance(task, BabyAI)
    return task


@cache
def _run(name: str) -> Any:
    task = level(name)

    def one(state: LevelState, action: jax.Array) -> Any:
        after = task.step(state, action)
        view = task.view(after)
        return after, (after, view, task.sparse_reward(task.view(state), action, view))

    return jit(lambda state, actions: jax.lax.scan(one, state, actions)[1])


def play(name: str, state: LevelState, actions: Any) -> Played:
    """`actions` in a level from a state, filled up to `STEPS` with what does nothing."""
    padded = np.full(STEPS, 6, np.int32)
    padded[: len(actions)] = actions
    return Played(*jax.tree.map(np.asarray, _run(name)(state, padded)))


def starts(name: str, **options: Any) -> list[LevelState]:
    """The start states of a level."""
    bank = level(name, **options).bank()
    return [jax.tree.map(lambda x, i=i: x[i], bank) for i in range(len(bank.step_num))]


def at(states: T, t: int) -> T:
    return jax.tree.map(lambda x: x[t], states)
