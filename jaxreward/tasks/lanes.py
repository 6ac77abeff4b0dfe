"""Steps of many environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxreward.tasks.task import InSlices, Task

Steps = Callable[[Any, jax.Array], Any]


def at_once(task: Task, platform: str) -> int:
    """How many environments of `task` a step should hold on `platform`; 0 for all."""
    return task.lanes_at_once(platform) if isinstance(task, InSlices) else 0


def stepper(task: Task, platform: str) -> Steps:
    """`task.step` over a leading axis of lanes: all of them together, or in slices one after the other where the task
    asks for them on `platform` and the lanes divide into such. What comes out is the same to rounding."""
    most = at_once(task, platform)
    together = jax.vmap(task.step)

    def run(states: Any, actions: jax.Array) -> Any:
        lanes = actions.shape[0]
        size = slice_of(lanes, most)
        if size == lanes:
            return together(states, actions)
        cut = lambda x: x.reshape((lanes // size, size, *x.shape[1:]))  # noqa: E731
        done = jax.lax.map(lambda pair: together(*pair), jax.tree.map(cut, (states, actions)))
        return jax.tree.map(lambda x: x.reshape((lanes, *x.shape[2:])), done)

    return run


def slice_of(lanes: int, most: int) -> int:
    """Lanes of a slice: the largest number up to `most`, and at least half of it, that divides `lanes`; all lanes where
    there is none, or `most` is 0."""
    fitting = (size for size in range(min(most, lanes), max(1, -(-most // 2)) - 1, -1) if lanes % size == 0)
    return next(fitting, lanes)
