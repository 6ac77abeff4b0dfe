"""Base of a user's own tasks: whatever they leave out has a default."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.errors import UserError
from jaxreward.records import Vocabulary
from jaxreward.tasks.metrics import Mean, Reached, Sum, WithExtraMetrics
from jaxreward.tasks.random_keys import without_keys
from jaxreward.tasks.task import Box, Discrete, Metric, State, View, measure_of_metric
from jaxreward.tasks.wording import OF_A_CLASS, Wording


def _name(kind: type) -> str:
    """The name of a class in lower case, its words joined by dashes."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", kind.__name__).lower()


def _description(kind: type) -> str:
    """The docstring of a class, unless `dataclasses` wrote it; without one, the words of its name."""
    doc = kind.__doc__ or ""
    return inspect.cleandoc(doc) if doc and not doc.startswith(f"{kind.__name__}(") else _name(kind).replace("-", " ")


class _OfClass:
    """An attribute computed from the class, where neither a subclass nor the object has another value."""

    def __init__(self, compute: Callable[[type], str]) -> None:
        self.compute = compute

    def __get__(self, task: Any, kind: type) -> str:
        return self.compute(kind)


class BaseTask:
    """A task that says how it begins, how it goes on and what success is; everything else has a default.

    A subclass has `horizon`, `action_space`, `reset(key)`, `step(state, action)`, and `success(state)` or `score()`.
    States are any pytree of arrays: a NamedTuple, a dictionary, a dataclass of flax or chex, or a plain one that is
    decorated with `jax.tree_util.register_dataclass`.

    By default:

    - the name is that of the class, the description its docstring;
    - programs see the whole state but for random keys (see `without_keys`);
    - an episode succeeds if `success` holds of some state after the first, which ends it; it ends early in no other;
    - the sparse reward is 1 where `success` holds of the next view, else 0; or, of a task with `score()` alone, the
      figure of a step that its `Sum`, `Mean` or `Reached` collects;
    - the raw observation is every array of the view in one vector.
    """

    if TYPE_CHECKING:
        name: str
        description: str
        horizon: int
        action_space: Discrete | Box

        def reset(self, key: jax.Array) -> State: ...
        def step(self, state: State, action: jax.Array) -> State: ...

    else:
        name = _OfClass(_name)
        description = _OfClass(_description)

    state_words: Mapping[str, str] = MappingProxyType({})
    state_notes: str = ""
    wording: ClassVar[Wording] = OF_A_CLASS
    """What messages call the methods."""

    def success(self, state: State) -> jax.Array:
        """Whether the task is solved in `state` (bool scalar). It is also given views, by the sparse reward."""
        raise UserError(f"{type(self).__name__} does not say what success is: write success(self, state)")

    def score(self) -> Metric:
        """Success at any step after the first state."""
        if not _says(self, "success"):
            raise UserError(
                f"{type(self).__name__} does not say what success is: write success(self, state), or score(self)"
            )
        return Reached(self.success)

    def terminated(self, state: State) -> jax.Array:
        return jnp.asarray(self.success(state)) if _says(self, "success") else jnp.zeros((), bool)

    def view(self, state: State) -> View:
        return without_keys(state)

    def default_observation(self, view: View) -> jax.Array:
        """The arrays of the view as float32, one after the other."""
        return flat(view)

    def sparse_reward(self, view: View, action: jax.Array, next_view: View) -> jax.Array:
        own = _says(self, "success")
        try:
            if own:
                return jnp.asarray(self.success(next_view)).astype(jnp.float32)
            return self._figure(self.score(), view, action, next_view)
        except (AttributeError, KeyError, IndexError, TypeError) as error:
            asked = "success" if own else self.wording.name("score")
            raise UserError(
                f"the default sparse reward asks `{asked}` about a view, which lacks what it reads "
                f"({type(error).__name__}: {error}): {self._reward_asked_for()} too"
            ) from error

    def vocabulary(self) -> Vocabulary:
        return Vocabulary()

    def _figure(self, metric: Any, view: View, action: jax.Array, next_view: View) -> jax.Array:
        """What one step counts for `metric`, with the sign by which more is better."""
        if isinstance(metric, WithExtraMetrics):
            return self._figure(metric.main, view, action, next_view)
        if isinstance(metric, Reached):
            return jnp.asarray(metric.goal(next_view)).astype(jnp.float32)
        if isinstance(metric, Sum | Mean):
            figure = metric.figure(view, action, next_view)
            return jnp.asarray(figure if measure_of_metric(metric).higher_is_better else -figure).astype(jnp.float32)
        name = type(metric).__name__
        raise UserError(f"there is no default sparse reward for a metric of class {name}: {self._reward_asked_for()}")

    def _reward_asked_for(self) -> str:
        return self.wording.request("sparse_reward", ("view", "action", "next_view"))

    def _derived(self) -> dict[str, tuple[str, ...]]:
        """See `derived_methods`."""
        own = {name for name in ("success", "score", "terminated", "sparse_reward") if _says(self, name)}
        if "success" in own:
            return {name: ("success",) for name in ("score", "terminated", "sparse_reward") if name not in own}
        return {} if "sparse_reward" in own else {"sparse_reward": ("score",)}


def derived_methods(task: Any) -> dict[str, tuple[str, ...]]:
    """The methods that a task leaves to defaults computed from other parts of it, with what they are computed from:
    `{"terminated": ("success",)}`. A mistake there is none of theirs."""
    return task._derived() if isinstance(task, BaseTask) else {}


def _says(task: BaseTask, name: str) -> bool:
    """Whether a task has a method of its own in place of the default."""
    return getattr(getattr(task, name), "__func__", None) is not getattr(BaseTask, name)


def flat(tree: Any) -> jax.Array:
    """Every array of a tree as one float32 vector."""
    return jnp.concatenate([jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(tree)])
