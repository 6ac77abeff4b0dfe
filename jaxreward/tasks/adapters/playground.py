"""Tasks on MuJoCo Playground's environments (https://github.com/google-deepmind/mujoco_playground)."""

from __future__ import annotations

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
from jaxreward.tasks.adapters.environment import EnvironmentTask, EnvironmentView, Transition
from jaxreward.tasks.adapters.library import import_library, name_of
from jaxreward.tasks.adapters.mujoco_words import index_words
from jaxreward.tasks.base import flat
from jaxreward.tasks.simulation import UNFUSED, max_envs_per_step
from jaxreward.tasks.task import Metric

_WORDS: Mapping[str, str] = {
    "qpos": "positions of the joints: see below",
    "qvel": "velocities of the joints: see below",
    "act": "activations of the actuators",
    "ctrl": "last commands to the actuators",
    "xpos": "[x, y, z] of every body's frame in the world (m)",
    "xquat": "its rotation, a unit quaternion with the real part first",
    "site_xpos": "[x, y, z] of every site in the world (m)",
    "mocap_pos": "[x, y, z] of the bodies that the task moves (m)",
    "mocap_quat": "their rotations, unit quaternions with the real part first",
    "sensordata": "readings of the sensors",
}
"""The arrays of MJX's data that programs see, where the model has any."""


class PlaygroundView(struct.PyTreeNode):
    """Those arrays of MJX's data, None where the model has none, and `info` of the environment."""

    qpos: Any
    qvel: Any
    act: Any
    ctrl: Any
    xpos: Any
    xquat: Any
    site_xpos: Any
    mocap_pos: Any
    mocap_quat: Any
    sensordata: Any
    info: Any


class PlaygroundTask(EnvironmentTask):
    """A task on an environment of MuJoCo Playground: see `from_playground`."""

    options = ("horizon", "impl")
    impl = "jax"

    def first(self, key: jax.Array) -> Transition:
        state = self.env.reset(key)
        return Transition(state, state.obs, state.reward, state.done)

    def next(self, env: Any, action: jax.Array, key: None) -> Transition:
        state = self.env.step(env, action)
        return Transition(state, state.obs, state.reward, state.done)

    def shown(self, env: Any) -> PlaygroundView:
        arrays = {name: getattr(env.data, name) for name in _WORDS}
        return PlaygroundView(**{name: x if x.size else None for name, x in arrays.items()}, info=env.info)

    def sound(self, after: Transition) -> jax.Array:
        data = after.env.data
        return jnp.isfinite(data.qpos).all() & jnp.isfinite(data.qvel).all()

    def default_observation(self, view: EnvironmentView) -> jax.Array:
        """The environment's observation; of several, `state`, which Playground's own agents see."""
        seen = view.observation
        return flat(seen["state"] if isinstance(seen, Mapping) and "state" in seen else seen)

    def own_words(self, leaves: Collection[str]) -> Mapping[str, str]:
        return {f"env.{name}": words for name, words in _WORDS.items()}

    @cached_property
    def state_notes(self) -> str:  # type: ignore[override]
        """Bodies, joints and actuators by index."""
        model = self.env.mj_model
        bodies = ", ".join(f"{k} {model.body(k).name}" for k in range(model.nbody))
        return "\n".join([f"Rows of xpos and xquat: {bodies}.", *index_words(model)])

    def compiler_options(self, platform: str) -> Mapping[str, Any]:
        return UNFUSED if platform == "cpu" else {}

    def max_envs_per_step(self, platform: str) -> int:
        return max_envs_per_step(platform) if self.impl == "jax" else 0  # in Warp, environments share contact buffers

    def draw(self, state: Any) -> np.ndarray:
        """A picture, uint8 (240, 320, 3), from the first camera of the model."""
        from jaxreward.tasks.rendering import posed, render

        model, data = self.env.mj_model, state.env.data
        moved = {"mocap_pos": data.mocap_pos, "mocap_quat": data.mocap_quat} if model.nmocap else {}
        return render(model, posed(model, qpos=data.qpos, qvel=data.qvel, **moved), 0 if model.ncam else -1)


def from_playground(
    env: Any,
    *,
    impl: str = "jax",
    horizon: int | None = None,
    success: Callable[[Any], jax.Array] | None = None,
    metric: Metric | None = None,
    worst: float | None = None,
    name: str = "",
    description: str = "",
    **options: Any,
) -> PlaygroundTask:
    """A task on an environment of MuJoCo Playground, such as `from_playground("CartpoleBalance")`.

    A step whose result is not finite is not taken and ends the episode, which counts as the worst.

    Args:
        env: its name in the registry, or an environment without wrappers.
        impl: of MJX, for an environment by its name: `jax`, or `warp` on a GPU.
        horizon: steps of an episode, by default the `episode_length` of its configuration.
        success: of a view, whether the task is solved there; the metric is then whether it ever was.
        metric: in place of the return.
        worst: the return of an agent that diverged, by default the lowest of random play.
        name: of the task, by default `playground/<name>`.
        description: by default the environment's docstring.
        options: entries of its configuration in place of its own, those inside of others after a dot.

    Raises:
        UserError: Playground is not installed, there is no such environment or option, or it cannot be played.
    """
    compile_without_lapack()
    if isinstance(env, str):
        registry = import_library("mujoco_playground", "playground", "playground").registry
        if env not in registry.ALL_ENVS:
            raise UnknownName("environment of MuJoCo Playground", env, list(registry.ALL_ENVS), settings=("task",))
        called = name_of("playground", env, options)
        own = {"impl": impl} if "impl" in registry.get_default_config(env) else {}
        try:
            env = registry.load(env, config_overrides={**own, **options})
        except Exception as error:
            raise InvalidSetting(f"Playground cannot make {env}: {in_a_line(error)}", "task") from error
    else:
        called = f"playground/{type(env.unwrapped).__name__}"
        impl = str(getattr(env._config, "impl", "jax"))
    actions = box((int(env.action_size),), np.float32(-1.0), np.float32(1.0), called)
    task = PlaygroundTask(
        env, actions, name=name or called, description=description, success=success, metric=metric, worst=worst,
        horizon=int(env._config.episode_length) if horizon is None else horizon,
    )  # fmt: skip
    task.impl = impl
    return task
