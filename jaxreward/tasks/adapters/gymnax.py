"""Tasks on gymnax's environments (https://github.com/RobertTLange/gymnax)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxreward.errors import InvalidSetting, UnknownName, in_a_line
from jaxreward.tasks.adapters.actions import actions_of
from jaxreward.tasks.adapters.environment import EnvironmentTask, Transition
from jaxreward.tasks.adapters.library import import_library, name_of
from jaxreward.tasks.games.tiles import draw_board
from jaxreward.tasks.task import Metric

_TILE = 24
"""Pixels of a cell of MinAtar."""
_COLOURS = (
    (24, 26, 32), (86, 180, 233), (240, 228, 66), (0, 158, 115), (213, 94, 0), (204, 121, 167), (0, 114, 178),
    (230, 159, 0), (200, 200, 200), (150, 80, 200), (250, 250, 250),
)  # fmt: skip
"""Of the ground, and of up to ten channels: colours that colour-blind people tell apart (Okabe and Ito), and others."""


class GymnaxTask(EnvironmentTask):
    """A task on an environment of gymnax: see `from_gymnax`."""

    draws = True

    def __init__(self, env: Any, params: Any, **settings: Any) -> None:
        self.params = params
        super().__init__(env, actions_of(env.action_space(params), settings["name"]), **settings)

    def first(self, key: jax.Array) -> Transition:
        observation, state = self.env.reset_env(key, self.params)
        return Transition(state, observation, 0.0, False)

    def next(self, env: Any, action: jax.Array, key: jax.Array) -> Transition:
        observation, state, reward, done, _ = self.env.step_env(key, env, action, self.params)  # `step` would reset
        return Transition(state, observation, reward, done)


class MinAtarTask(GymnaxTask):
    """A game of MinAtar (Young and Tian 2019), which can be drawn: its observation is a grid with a channel for each
    kind of thing, (10, 10, channels)."""

    def draw(self, state: Any) -> np.ndarray:
        """A picture of the grid, uint8 (240, 240, 3), with a colour for each channel; later ones cover earlier ones."""
        seen = np.asarray(state.observation)
        kinds = np.where(seen > 0, np.arange(1, seen.shape[-1] + 1), 0).max(-1)
        return draw_board(kinds, dict(enumerate(_COLOURS[: seen.shape[-1] + 1])), _TILE)


def from_gymnax(
    env: Any,
    *,
    params: Any = None,
    horizon: int | None = None,
    success: Callable[[Any], jax.Array] | None = None,
    metric: Metric | None = None,
    worst: float | None = None,
    name: str = "",
    description: str = "",
    **options: Any,
) -> GymnaxTask:
    """A task on an environment of gymnax, such as `from_gymnax("CartPole-v1", gravity=5.0)`.

    Args:
        env: its id, or an environment.
        params: its parameters, by default its own.
        horizon: steps of an episode, by default the parameter `max_steps_in_episode`.
        success: of a view, whether the task is solved there; the metric is then whether it ever was.
        metric: in place of the return.
        worst: the return of an agent that diverged, by default the lowest of random play.
        name: of the task, by default `gymnax/<id>`.
        description: by default its docstring.
        options: parameters of the environment by name, and arguments of its constructor.

    Raises:
        UserError: gymnax is not installed, there is no such environment or option, or it cannot be played.
    """
    if isinstance(env, str):
        gymnax = import_library("gymnax", "gymnax", "gymnax")
        if env not in gymnax.registered_envs:
            raise UnknownName("environment of gymnax", env, list(gymnax.registered_envs), settings=("task",))
        parameters = {f.name for f in dataclasses.fields(_made(gymnax, env, {})[1])}
        called = name_of("gymnax", env, options)
        env, own = _made(gymnax, env, {key: value for key, value in options.items() if key not in parameters})
        options = {key: value for key, value in options.items() if key in parameters}
    else:
        own, called = env.default_params, f"gymnax/{env.name}"
    params = own if params is None else params
    if unknown := options.keys() - {f.name for f in dataclasses.fields(params)}:
        raise InvalidSetting(f"{called} has no parameter {sorted(unknown)[0]}", f"task.{sorted(unknown)[0]}")
    params = params.replace(**options)
    shape = getattr(env, "obs_shape", ())
    games = env.name.endswith("-MinAtar") and len(shape) == 3 and shape[-1] < len(_COLOURS)
    kind = MinAtarTask if games else GymnaxTask
    return kind(
        env, params, name=name or called, description=description, success=success, metric=metric, worst=worst,
        horizon=getattr(params, "max_steps_in_episode", None) if horizon is None else horizon,
    )  # fmt: skip


def _made(gymnax: Any, name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    try:
        return gymnax.make(name, **options)
    except (TypeError, ValueError) as error:
        raise InvalidSetting(f"gymnax cannot make {name}: {in_a_line(error)}", "task") from error
