"""Base of the tasks on Brax's environments; a subclass adds its description and metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.records import Vocabulary
from jaxreward.tasks.brax.descriptions import WORDS, notes_of
from jaxreward.tasks.brax.environment import (
    BACKENDS,
    Backend,
    BraxState,
    BraxView,
    Environment,
    as_pipeline,
    like,
    make_environment,
    sound,
    view_fields,
)
from jaxreward.tasks.metrics import Figure
from jaxreward.tasks.option_checks import check_choice, check_horizon
from jaxreward.tasks.rendering import posed, render
from jaxreward.tasks.simulation import UNFUSED, max_envs_per_step
from jaxreward.tasks.task import Box


@dataclass(frozen=True)
class BraxTask:
    """A task on one of Brax's environments.

    A subclass has `name`, `description`, `env_name`, `score`, `sparse_reward` and `dense_reward`, and overrides the
    methods below where it differs.

    Args:
        backend: Brax's simulation: `spring`, the fastest on CPU, `generalized`, `positional` or `mjx`.
        horizon: control steps of an episode.
    """

    backend: Backend = "spring"
    horizon: int = 1000

    solid: ClassVar[tuple[str, ...]] = ()
    """Geometries that touch the floor besides those that do in Brax."""
    own_words: ClassVar[Mapping[str, str]] = {}
    """Descriptions of the arrays of the view that only this task has."""
    ends_early: ClassVar[str] = ""
    """When an episode ends before the horizon, in words, if the description does not say it."""

    def __post_init__(self) -> None:
        check_choice("backend", self.backend, BACKENDS)
        check_horizon(self.horizon)

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def env_name(self) -> str:
        """What Brax calls the environment."""
        return self.name

    @cached_property
    def env(self) -> Environment:
        """Brax's environment."""
        return make_environment(self.env_name, self.backend, self.solid)

    @cached_property
    def control_s(self) -> float:
        """Seconds of a control step."""
        return float(np.asarray(self.env.sys.opt.timestep)) * self.env._n_frames  # env.dt, also while tracing

    @cached_property
    def _shapes(self) -> Any:
        """Shapes and dtypes of the backend's state after a step."""
        first = jax.eval_shape(self.env.reset, jax.random.key(0))
        return jax.eval_shape(self.env.step, first, jnp.zeros(self.env.action_size)).pipeline_state

    @property
    def action_space(self) -> Box:
        return Box((self.env.action_size,))

    @property
    def state_words(self) -> Mapping[str, str]:
        return {**WORDS, **self.own_words}

    @property
    def state_notes(self) -> str:
        return notes_of(self.env_name, self.env, self.control_s)

    def compiler_options(self, platform: str) -> Mapping[str, Any]:
        fused = self.env_name == "humanoid" and self.backend == "spring"
        return UNFUSED if platform == "cpu" and not fused else {}

    def max_envs_per_step(self, platform: str) -> int:
        return max_envs_per_step(platform)

    # ---- what a subclass may replace

    def own_fields(self, pipeline: Any) -> dict[str, jax.Array]:
        """`state.own` at a reset."""
        return {}

    def next_own(self, state: BraxState, pipeline: Any) -> dict[str, jax.Array]:
        """`state.own` after a step that led from `state` to `pipeline`."""
        return state.own

    def ended(self, state: BraxState) -> jax.Array:
        """Whether the episode ends in a sound `state`: Brax's `done` (bool scalar)."""
        return state.done

    # ---- the simulation

    def reset(self, key: jax.Array) -> BraxState:
        pipeline = like(self.env.reset(key).pipeline_state, self._shapes)
        no = jnp.zeros((), bool)
        return BraxState(
            pipeline=pipeline, reward=jnp.zeros(()), done=no, broken=no, last_action=jnp.zeros(self.action_space.shape),
            step_count=jnp.zeros((), jnp.int32), own=self.own_fields(pipeline),
        )  # fmt: skip

    def step(self, state: BraxState, action: jax.Array) -> BraxState:
        action = jnp.clip(jnp.asarray(action, jnp.float32), -1.0, 1.0)
        # Brax's step reads nothing of the state before but the backend's; `metrics` it fills in.
        blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), self._blank)
        stepped = self.env.step(blank.replace(pipeline_state=state.pipeline), action)
        pipeline = like(stepped.pipeline_state, self._shapes)
        good = sound(pipeline) & jnp.isfinite(stepped.reward) & ~state.broken
        pipeline = jax.tree.map(lambda new, old: jnp.where(good, new, old), pipeline, state.pipeline)
        return BraxState(
            pipeline=pipeline,
            reward=jnp.where(good, jnp.asarray(stepped.reward, jnp.float32), 0.0),
            done=good & (jnp.asarray(stepped.done) > 0.5),
            broken=~good,
            last_action=action,
            step_count=state.step_count + 1,
            own=self.next_own(state, pipeline),
        )

    @cached_property
    def _blank(self) -> Any:
        """Shapes of Brax's own state at a reset, the backend's left out."""
        return jax.eval_shape(self.env.reset, jax.random.key(0)).replace(pipeline_state=None)

    def terminated(self, state: BraxState) -> jax.Array:
        return state.broken | self.ended(state)

    def view(self, state: BraxState) -> BraxView:
        return BraxView(**view_fields(state))

    # ---- defaults

    def default_observation(self, view: BraxView) -> jax.Array:
        """The environment's own observation."""
        return self.env._get_obs(as_pipeline(view))

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.brax.fragments import vocabulary

        return vocabulary(self.name, self.control_s, self.horizon)

    def draw(self, state: BraxState) -> np.ndarray:
        """A picture, uint8 (240, 320, 3), from the first camera of the model, which follows the runner.

        Raises:
            CannotRender: this machine cannot render, or has no display and MUJOCO_GL is not set.
        """
        model = self.env.sys.mj_model
        return render(model, posed(model, qpos=state.pipeline.q, qvel=state.pipeline.qd), 0 if model.ncam else -1)

    # ---- figures of metrics

    def figure(self, of: Callable[[BraxState, jax.Array, BraxState], jax.Array], broken: float = 0.0) -> Figure:
        """A figure of a step that counts as `broken` where the simulation failed; NaN makes a metric fail closed."""
        return lambda s, a, after: jnp.where(after.broken, broken, of(s, a, after))
