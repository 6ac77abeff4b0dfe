"""Tasks from functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.records import Measure
from jaxreward.tasks.adapters.random_play import lowest_return
from jaxreward.tasks.base import BaseTask, flat
from jaxreward.tasks.metrics import Sum
from jaxreward.tasks.option_checks import check_finite
from jaxreward.tasks.task import Box, Discrete, Metric, State, View
from jaxreward.tasks.wording import Wording

Reward = Callable[[View, jax.Array, View], Any]
"""A number from a view, an action and the next view."""


class FunctionsTask(BaseTask):
    """A task whose methods are functions: see `from_functions`."""

    wording = Wording({"sparse_reward": "reward", "default_observation": "observation"}, methods=False)
    observation: Callable[[View], Any] | None = None

    def __init__(self, functions: Mapping[str, Callable[..., Any]], metric: Metric | None, worst: float | None) -> None:
        self._metric, self._worst, self._reward = metric, worst, functions.get("sparse_reward")
        vars(self).update(functions)

    def score(self) -> Metric:
        if self._metric is not None:
            return self._metric
        if "success" in vars(self) or self._reward is None:
            return super().score()
        return Sum(self._paid, Measure(name="return", rate=False, worst=self.worst))

    def default_observation(self, view: View) -> jax.Array:
        return super().default_observation(view) if self.observation is None else flat(self.observation(view))

    @cached_property
    def worst(self) -> float:
        """The return of an agent that has none."""
        return lowest_return(self, self._paid) if self._worst is None else float(self._worst)

    def _derived(self) -> dict[str, tuple[str, ...]]:
        given, found = vars(self), dict[str, tuple[str, ...]]()
        if "success" in given:
            names = {"score": self._metric, "terminated": given.get("terminated"), "sparse_reward": self._reward}
            found = {name: ("success",) for name, own in names.items() if own is None}
        elif self._metric is None:
            found = {"score": ("step", "terminated", "view", "sparse_reward")}  # random play says what is worst
        elif self._reward is None:
            found = {"sparse_reward": ("score",)}
        return found if self.observation is None else {**found, "default_observation": ("observation",)}

    def _paid(self, state: State, action: jax.Array, after: State) -> jax.Array:
        return jnp.asarray(self.sparse_reward(self.view(state), action, self.view(after)))


def from_functions(
    reset: Callable[[jax.Array], State],
    step: Callable[[State, jax.Array], State],
    action_space: Discrete | Box,
    horizon: int,
    *,
    success: Callable[[State], jax.Array] | None = None,
    reward: Reward | None = None,
    score: Metric | None = None,
    observation: Callable[[View], Any] | None = None,
    terminated: Callable[[State], jax.Array] | None = None,
    view: Callable[[State], View] | None = None,
    name: str = "task",
    description: str = "",
    state_words: Mapping[str, str] | None = None,
    worst: float | None = None,
) -> FunctionsTask:
    """A task from the functions of a simulator; what is left out is as in `BaseTask`.

    Args:
        reset: `reset(key) -> state`, any pytree of arrays.
        step: `step(state, action) -> state`.
        action_space: `Discrete(n)` or `Box(shape, low, high)`.
        horizon: steps of an episode.
        success: whether the task is solved in a state (bool scalar); it is given views too.
        reward: `reward(view, action, next_view)`, the sparse reward, by default 1 where `success` holds. Without
            `success` and `score`, the metric is its sum over an episode.
        score: a metric, in place of both.
        observation: of a view, arrays that become the raw observation in one vector; by default all of the view.
        terminated: whether the episode ends in a state; by default where `success` holds, if that is given.
        view: what programs see of a state; by default all but random keys.
        name: of the task.
        description: by default the docstring of `step`.
        state_words: a few words for each array of the view by its path, and for `action`.
        worst: the return of an agent that diverged, and the lowest that counts; by default the lowest of random play.

    Raises:
        InvalidSetting: none of `success`, `reward` and `score` is given, or `worst` is no number.
    """
    if success is None and reward is None and score is None:
        raise InvalidSetting("from_functions must be told what is good: give success, reward or score", "task.success")
    if worst is not None:
        check_finite("worst", worst)
    given = {"success": success, "sparse_reward": reward, "terminated": terminated, "view": view}
    more: dict[str, Any] = {key: f for key, f in {**given, "observation": observation}.items() if f is not None}
    task = FunctionsTask({"reset": reset, "step": step, **more}, score, worst)
    task.horizon = int(horizon) if isinstance(horizon, np.integer) else horizon
    task.action_space = action_space
    task.name, task.description = name, description or inspect.getdoc(step) or str(name)
    task.state_words = dict(state_words or {}) if isinstance(state_words, Mapping | None) else state_words
    return task
