"""Tasks on jumanji's environments (https://github.com/instadeepai/jumanji)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxreward.errors import InvalidSetting, UnknownName, in_a_line
from jaxreward.tasks.adapters.actions import actions_of
from jaxreward.tasks.adapters.environment import EnvironmentTask, Transition
from jaxreward.tasks.adapters.library import import_library, name_of, unwrapped
from jaxreward.tasks.task import Metric

_WRAPPERS = ("AutoResetWrapper", "VmapAutoResetWrapper", "VmapWrapper")


class JumanjiTask(EnvironmentTask):
    """A task on an environment of jumanji: see `from_jumanji`."""

    def first(self, key: jax.Array) -> Transition:
        state, step = self.env.reset(key)
        return Transition(state, step.observation, step.reward, step.last())

    def next(self, env: Any, action: jax.Array, key: None) -> Transition:
        state, step = self.env.step(env, action)
        return Transition(state, step.observation, step.reward, step.last())


def from_jumanji(
    env: Any,
    *,
    horizon: int | None = None,
    success: Callable[[Any], jax.Array] | None = None,
    metric: Metric | None = None,
    worst: float | None = None,
    name: str = "",
    description: str = "",
    **options: Any,
) -> JumanjiTask:
    """A task on an environment of jumanji, such as `from_jumanji("Snake-v1", time_limit=500)`.

    Args:
        env: its id, or an environment; wrappers that reset or batch are taken off.
        horizon: steps of an episode, by default the environment's `time_limit`.
        success: of a view, whether the task is solved there; the metric is then whether it ever was.
        metric: in place of the return.
        worst: the return of an agent that diverged, by default the lowest of random play.
        name: of the task, by default `jumanji/<id>`.
        description: by default the environment's docstring.
        options: arguments of the environment's constructor.

    Raises:
        UserError: jumanji is not installed, there is no such environment or option, or it cannot be played.
    """
    if isinstance(env, str):
        jumanji = import_library("jumanji", "jumanji", "jumanji")
        known = sorted(jumanji.registered_environments())
        if env not in known:
            raise UnknownName("environment of jumanji", env, known, settings=("task",))
        called = name_of("jumanji", env, options)
        try:
            env = jumanji.make(env, **options)
        except (TypeError, ValueError) as error:
            raise InvalidSetting(f"jumanji cannot make {env}: {in_a_line(error)}", "task") from error
    else:
        called = f"jumanji/{type(env.unwrapped).__name__}"
    env = unwrapped(env, _WRAPPERS, "_env")
    limit = getattr(env, "time_limit", None)
    return JumanjiTask(
        env, actions_of(env.action_spec, name or called), name=name or called, description=description,
        success=success, metric=metric, worst=worst,
        horizon=(None if limit is None else int(limit)) if horizon is None else horizon,
    )  # fmt: skip
