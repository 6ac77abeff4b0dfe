"""Base of the tasks on environments of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.errors import InvalidSetting, UserError, in_a_line
from jaxreward.records import Measure
from jaxreward.tasks.adapters.actions import Actions
from jaxreward.tasks.adapters.library import description_of, words_of
from jaxreward.tasks.adapters.random_play import lowest_return
from jaxreward.tasks.base import BaseTask, flat
from jaxreward.tasks.documentation import state_leaves
from jaxreward.tasks.metrics import Reached
from jaxreward.tasks.option_checks import check_horizon
from jaxreward.tasks.random_keys import without_keys
from jaxreward.tasks.task import Metric
from jaxreward.tasks.wording import Wording

WORDS: Mapping[str, str] = {
    "observation": "the environment's own observation",
    "reward": "what the environment itself paid for the step that led here, 0 at first; programs may use it",
    "done": "whether the environment ended the episode here",
}


class Transition(NamedTuple):
    """What `reset` or `step` of a library gives: its state, its observation, the reward and the end."""

    env: Any
    observation: Any
    reward: Any
    done: Any


class EnvironmentState(struct.PyTreeNode):
    """The library's own state, and what its last step returned.

    `broken` says that a simulation has failed: that step is not taken, pays nothing and ends the episode. `key` is for
    the steps of a library that draws with a key of the caller's, else None.
    """

    env: Any
    observation: Any
    reward: jax.Array
    done: jax.Array
    broken: jax.Array
    key: Any = None


class EnvironmentView(struct.PyTreeNode):
    """What programs see: everything but random keys."""

    env: Any
    observation: Any
    reward: jax.Array
    done: jax.Array


@dataclass(frozen=True)
class Return:
    """The sum of the rewards of an episode, or the worst of `measure` where the simulation failed."""

    measure: Measure

    def init(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(()), jnp.zeros((), bool)

    def update(self, acc: Any, state: Any, action: jax.Array, next_state: EnvironmentState) -> Any:
        total, broken = acc
        return total + next_state.reward, broken | next_state.broken

    def value(self, acc: Any) -> jax.Array:
        total, broken = acc
        return jnp.where(broken, self.measure.worst, total)


class EnvironmentTask(BaseTask):
    """A task on an environment of another library, whose `reset` and `step` are called and nothing else is.

    The sparse reward is the environment's own. The metric is its sum over an episode, the return, unless `success` or
    `metric` is given. An episode ends where the environment says so, at the latest after `horizon` steps; an
    environment never resets itself.

    Args:
        name: of the task.
        horizon: steps of an episode.
        success: of a view, whether the task is solved there (bool scalar); the metric is then whether it ever was.
        metric: in place of the return, a fold over `EnvironmentState`s.
        worst: the return of an agent that diverged, and the lowest that counts; by default the lowest of random play.
    """

    wording = Wording({"score": "metric", "Reached.goal": "success"}, methods=False)
    options: tuple[str, ...] = ("horizon",)
    ends_early = "where the environment says so"
    draws = False
    """Whether its steps take a random key."""

    def __init__(
        self,
        env: Any,
        actions: Actions,
        *,
        name: str,
        horizon: int | None,
        description: str = "",
        success: Callable[[Any], jax.Array] | None = None,
        metric: Metric | None = None,
        worst: float | None = None,
    ) -> None:
        if horizon is None:
            message = f"{name} does not say how long an episode is: give a horizon"
            raise InvalidSetting(message, "task.horizon")
        check_horizon(horizon, f"the horizon of {name}")
        if success is not None and metric is not None:
            raise InvalidSetting("give success or metric, not both", "task.success")
        self.env, self.name, self.horizon = env, name, int(horizon)
        self.actions, self.action_space = actions, actions.space
        self._success, self._metric, self._worst = success, metric, worst
        says = description or description_of(env) or f"The environment {name}."
        scored = "" if success or metric else "\nAn episode is worth its return, the sum of the environment's rewards."
        self.description = f"{says}{scored}"

    # ---- of a library

    def first(self, key: jax.Array) -> Transition:
        """The library's reset."""
        raise NotImplementedError

    def next(self, env: Any, action: jax.Array, key: Any) -> Transition:
        """The library's step from its state `env`, with an action of its own; it never resets."""
        raise NotImplementedError

    def shown(self, env: Any) -> Any:
        """What programs see of the library's state, random keys apart, which are left out anyway."""
        return env

    def sound(self, after: Transition) -> jax.Array | None:
        """Whether a simulation has not failed (bool scalar); None for what cannot fail."""
        return None

    # ---- the task

    def reset(self, key: jax.Array) -> EnvironmentState:
        first, later = jax.random.split(key) if self.draws else (key, None)
        made = self._cast(self.first(self._own_key(first)))
        return EnvironmentState(*made, broken=jnp.zeros((), bool), key=later)

    def step(self, state: EnvironmentState, action: jax.Array) -> EnvironmentState:
        key, later = jax.random.split(state.key) if self.draws else (None, None)
        before = jax.tree.map(lambda x: x, state.env)  # some libraries write into the dictionaries of a state
        after = self._cast(self.next(before, self.actions.as_own(action), None if key is None else self._own_key(key)))
        good = self.sound(after)
        if good is None:
            return EnvironmentState(*after, broken=state.broken, key=later)
        good = good & jnp.isfinite(after.reward) & ~state.broken
        keep = lambda new, old: jnp.where(good, new, old)  # noqa: E731
        return EnvironmentState(
            env=jax.tree.map(keep, after.env, state.env),
            observation=jax.tree.map(keep, after.observation, state.observation),
            reward=keep(after.reward, 0.0), done=after.done | ~good, broken=~good, key=later,
        )  # fmt: skip

    def terminated(self, state: EnvironmentState) -> jax.Array:
        return state.done

    def view(self, state: EnvironmentState) -> EnvironmentView:
        shown, observation = without_keys((self.shown(state.env), state.observation))
        return EnvironmentView(env=shown, observation=observation, reward=state.reward, done=state.done)

    def score(self) -> Metric:
        if self._metric is not None:
            return self._metric
        if (success := self._success) is not None:
            return Reached(lambda state: jnp.asarray(success(self.view(state))))
        return Return(Measure(name="return", rate=False, worst=self.worst))

    @cached_property
    def worst(self) -> float:
        """The return of an agent that has none."""
        return lowest_return(self, lambda s, a, after: after.reward) if self._worst is None else float(self._worst)

    def default_observation(self, view: EnvironmentView) -> jax.Array:
        return flat(view.observation)

    def sparse_reward(self, view: EnvironmentView, action: jax.Array, next_view: EnvironmentView) -> jax.Array:
        return next_view.reward

    @property
    def state_words(self) -> Mapping[str, str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._words

    @cached_property
    def _words(self) -> Mapping[str, str]:
        leaves = state_leaves(self)
        first = self._shapes
        words = {**WORDS, **words_of(first.env, leaves, "env"), **words_of(first.observation, leaves, "observation")}
        words |= self.own_words(leaves)
        if self.actions.words:
            words["action"] = self.actions.words
        return {path: text for path, text in words.items() if path in leaves or path == "action"}

    def own_words(self, leaves: Collection[str]) -> Mapping[str, str]:
        """Words for arrays of the view that the library's docstrings do not have."""
        return {}

    # ---- one dtype for reset and step, whatever the library's are

    def _own_key(self, key: jax.Array) -> jax.Array:
        return key if self._traced[1] else jax.random.key_data(key)

    @property
    def _shapes(self) -> Transition:
        return self._traced[0]

    def _cast(self, made: Transition) -> Transition:
        return jax.tree.map(_as_dtype, made, self._shapes)

    @cached_property
    def _traced(self) -> tuple[Transition, bool]:
        """Shapes and dtypes of a step's result, and whether the library takes keys of `jax.random.key`; others are
        given those of `jax.random.PRNGKey`."""
        try:
            return self._trace(jax.random.key(0)), True
        except Exception:
            try:
                return self._trace(jax.random.PRNGKey(0)), False
            except UserError:
                raise
            except Exception as error:
                raise UserError(f"the environment {self.name} cannot be played: {in_a_line(error)}") from error

    def _trace(self, key: jax.Array) -> Transition:
        space = self.action_space
        real = hasattr(space, "shape")
        action = jnp.zeros(space.shape) if real else jnp.zeros((), jnp.int32)  # type: ignore[union-attr]
        first = jax.eval_shape(self.first, key)
        after = jax.eval_shape(lambda env, key: self.next(env, self.actions.as_own(action), key), first.env, key)
        for what, one, other in zip(Transition._fields[:2], first, after, strict=False):
            if jax.tree.structure(one) != jax.tree.structure(other) or [x.shape for x in jax.tree.leaves(one)] != [
                x.shape for x in jax.tree.leaves(other)
            ]:
                raise UserError(f"the {_CALLED[what]} of {self.name} has other arrays after a step than after a reset")
        if after.reward.shape or after.done.shape:
            raise UserError(
                f"{self.name} pays {after.reward.shape or after.done.shape} numbers a step: give a wrapper of it with "
                "one reward and one end"
            )
        return after._replace(reward=jax.ShapeDtypeStruct((), jnp.float32), done=jax.ShapeDtypeStruct((), jnp.bool_))


_CALLED = {"env": "state", "observation": "observation"}


def _as_dtype(x: Any, like: jax.ShapeDtypeStruct) -> Any:
    return x if jax.dtypes.issubdtype(like.dtype, jax.dtypes.prng_key) else jnp.asarray(x).astype(like.dtype)
