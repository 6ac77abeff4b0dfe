"""Steps of many environments, together or in slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxreward.tasks.task import Task

Steps = Callable[[Any, jax.Array], Any]


def slice_limit(task: Task, platform: str) -> int:
    """How many environments of `task` a step should hold on `platform`; 0 for all (see `SlicedTask`)."""
    limit = getattr(task, "max_envs_per_step", None) or getattr(task, "lanes_at_once", None)
    return limit(platform) if limit else 0


def batched_step(task: Task, platform: str) -> Steps:
    """`task.step` over a leading axis of environments: all together, or in slices one after the other where the task
    asks for that on `platform` and a slice size divides their number. The results are the same to rounding."""
    most = slice_limit(task, platform)
    together = jax.vmap(task.step)

    def run(states: Any, actions: jax.Array) -> Any:
        envs = actions.shape[0]
        size = slice_size(envs, most)
        if size == envs:
            return together(states, actions)
        cut = lambda x: x.reshape((envs // size, size, *x.shape[1:]))  # noqa: E731
        done = jax.lax.map(lambda pair: together(*pair), jax.tree.map(cut, (states, actions)))
        return jax.tree.map(lambda x: x.reshape((envs, *x.shape[2:])), done)

    return run


def slice_size(envs: int, most: int) -> int:
    """The largest divisor of `envs` from `most / 2` to `most`; `envs` where there is none, or `most` is 0."""
    fitting = (size for size in range(min(most, envs), max(1, -(-most // 2)) - 1, -1) if envs % size == 0)
    return next(fitting, envs)
