"""Tasks on Brax's environments (https://github.com/google/brax), prepared or not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxreward.errors import InvalidSetting, UnknownName, in_a_line
from jaxreward.kernels.linalg import compile_without_lapack
from jaxreward.tasks.adapters.actions import box
from jaxreward.tasks.adapters.environment import EnvironmentTask, Transition
from jaxreward.tasks.adapters.library import import_library, name_of, unwrapped
from jaxreward.tasks.adapters.mujoco_words import index_words
from jaxreward.tasks.simulation import UNFUSED, max_envs_per_step
from jaxreward.tasks.task import Metric

_WRAPPERS = ("AutoResetWrapper", "EpisodeWrapper", "EvalWrapper", "VmapWrapper")
EPISODE = 1_000
"""Steps of an episode of `brax.envs.create`."""


class BraxEnvironmentView(struct.PyTreeNode):
    """The arrays that every backend of Brax has, and `info` of the environment."""

    q: jax.Array
    qd: jax.Array
    x_pos: jax.Array
    x_rot: jax.Array
    xd_vel: jax.Array
    xd_ang: jax.Array
    info: Any


class BraxEnvironmentTask(EnvironmentTask):
    """A task on an environment of Brax: see `from_brax`."""

    options = ("horizon", "backend")

    @property
    def backend(self) -> str:
        return self.env.backend

    def first(self, key: jax.Array) -> Transition:
        state = self.env.reset(key)
        return Transition(state, state.obs, state.reward, state.done)

    def next(self, env: Any, action: jax.Array, key: None) -> Transition:
        state = self.env.step(env, action)
        return Transition(state, state.obs, state.reward, state.done)

    def shown(self, env: Any) -> BraxEnvironmentView:
        p = env.pipeline_state
        return BraxEnvironmentView(p.q, p.qd, p.x.pos, p.x.rot, p.xd.vel, p.xd.ang, env.info)

    def sound(self, after: Transition) -> jax.Array:
        from jaxreward.tasks.brax.environment import sound

        return sound(after.env.pipeline_state)

    def own_words(self, leaves: Collection[str]) -> Mapping[str, str]:
        from jaxreward.tasks.brax.descriptions import WORDS

        as_here = {"x.pos": "x_pos", "x.rot": "x_rot", "xd.vel": "xd_vel", "xd.ang": "xd_ang"}
        words = {f"env.{as_here.get(path, path)}": text for path, text in WORDS.items()}
        return {**words, "action": WORDS["action"]}

    @cached_property
    def state_notes(self) -> str:  # type: ignore[override]
        """Bodies, joints and motors by index."""
        names = ", ".join(f"{k} {name}" for k, name in enumerate(self.env.sys.link_names))
        return "\n".join([f"Rows of x_pos, x_rot, xd_vel and xd_ang: {names}.", *index_words(self.env.sys.mj_model)])

    def compiler_options(self, platform: str) -> Mapping[str, Any]:
        return UNFUSED if platform == "cpu" else {}

    def max_envs_per_step(self, platform: str) -> int:
        return max_envs_per_step(platform)

    def draw(self, state: Any) -> np.ndarray:
        """A picture, uint8 (240, 320, 3), from the first camera of the model."""
        from jaxreward.tasks.rendering import posed, render

        model, p = self.env.sys.mj_model, state.env.pipeline_state
        return render(model, posed(model, qpos=p.q, qvel=p.qd), 0 if model.ncam else -1)


def from_brax(
    env: Any,
    *,
    backend: str = "spring",
    horizon: int | None = None,
    success: Callable[[Any], jax.Array] | None = None,
    metric: Metric | None = None,
    worst: float | None = None,
    name: str = "",
    description: str = "",
    **options: Any,
) -> BraxEnvironmentTask:
    """A task on an environment of Brax, such as `from_brax("halfcheetah", backend="generalized")`.

    A step whose result is not finite, or in which a body is faster than 100 m/s, is not taken and ends the episode,
    which counts as the worst.

    Args:
        env: its name, or an environment; wrappers that reset, batch or count steps are taken off.
        backend: of an environment by its name: `spring`, the fastest on CPU, `generalized`, `positional` or `mjx`.
        horizon: steps of an episode, by default those of an `EpisodeWrapper`, or 1,000 as in `brax.envs.create`.
        success: of a view, whether the task is solved there; the metric is then whether it ever was.
        metric: in place of the return.
        worst: the return of an agent that diverged, by default the lowest of random play.
        name: of the task, by default `brax/<name>`.
        description: by default the environment's docstring.
        options: arguments of the environment's constructor.

    Raises:
        UserError: Brax is not installed, there is no such environment or option, or it cannot be played.
    """
    compile_without_lapack()
    if isinstance(env, str):
        envs = import_library("brax.envs", "brax", "brax")
        if env not in envs._envs:
            raise UnknownName("environment of brax", env, sorted(envs._envs), settings=("task",))
        called = name_of("brax", env, options)
        try:
            with warnings.catch_warnings(), jax.ensure_compile_time_eval():
                warnings.simplefilter("ignore")  # that Brax's environments are not developed any more
                env = envs.get_environment(env, backend=backend, **options)
        except Exception as error:
            message = f"brax cannot make {env} with the backend {backend}: {in_a_line(error)}"
            raise InvalidSetting(message, "task.backend") from error
    else:
        called = f"brax/{type(env.unwrapped).__name__.lower()}"
        horizon = getattr(env, "episode_length", EPISODE) if horizon is None else horizon
        if (repeat := int(jnp.asarray(getattr(env, "action_repeat", 1)))) != 1:
            message = f"the environment's wrapper repeats every action {repeat} times: wrap it with action_repeat=1"
            raise InvalidSetting(f"{message}, and train with PPO(action_repeat={repeat})", "task")
        env = unwrapped(env, _WRAPPERS, "env")
    with jax.ensure_compile_time_eval():
        actions = box((int(env.action_size),), np.float32(-1.0), np.float32(1.0), called)
    return BraxEnvironmentTask(
        env, actions, name=name or called, horizon=EPISODE if horizon is None else int(jnp.asarray(horizon)),
        description=description, success=success, metric=metric, worst=worst,
    )  # fmt: skip
