"""What a task is: pure functions over a state pytree.

Batching, resets and episode bookkeeping belong to the trainer. Every method below is unbatched
and must work under `jax.jit` and `jax.vmap`. The metric is computed on the true state; programs
only ever see `view(state)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from jaxreward.devices import supported
from jaxreward.errors import InvalidSetting
from jaxreward.records import SUCCESS, Instruction, Measure, Subgoals, Vocabulary

State = Any
"""A pytree of arrays that carries its own PRNG key if the dynamics need one."""
View = Any
"""The part of a state that programs may read: a pytree of numeric arrays."""


@dataclass(frozen=True)
class Discrete:
    """Actions 0 .. n-1, as an int32 scalar.

    Raises:
        InvalidSetting: there is no action.
    """

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise InvalidSetting(f"Discrete({self.n}) has no action; n must be at least 1", "n")


@dataclass(frozen=True)
class Box:
    """Real actions of a given shape within [low, high], as float32.

    Raises:
        InvalidSetting: a shape without elements, or bounds that are not two finite numbers in ascending order.
    """

    shape: tuple[int, ...]
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple) or min(self.shape, default=1) < 1:
            message = f"the shape of a Box is a tuple of positive whole numbers, e.g. (3,), not {self.shape}"
            raise InvalidSetting(message, "shape")
        bounds = (self.low, self.high)
        if any(np.shape(x) or not np.isfinite(x) for x in bounds) or self.low >= self.high:
            raise InvalidSetting(
                f"a Box needs two finite numbers with low < high, the same for all of its actions, not {self.low} and "
                f"{self.high}; what has other bounds, or none, is for `step` to make of them",
                *("low", "high"),
            )

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Metric(Protocol):
    """A trajectory-level success metric as a fold over one episode.

    `value` maps the accumulator to a float32 scalar when the episode ends: success in [0, 1], or what `Measured`
    says. The trainer counts a value that is not finite as the measure's worst, 0 of a rate: a metric fails closed.
    """

    def init(self) -> Any: ...
    def update(self, acc: Any, state: State, action: jax.Array, next_state: State) -> Any: ...
    def value(self, acc: Any) -> jax.Array: ...


@runtime_checkable
class ExtraMetrics(Protocol):
    """A metric with extra metrics: `also` maps the accumulator to a float32 array, an entry for each of `names`, when
    the episode ends. They are reported only."""

    @property
    def names(self) -> tuple[str, ...]: ...
    def also(self, acc: Any) -> jax.Array: ...


@runtime_checkable
class Progressive(Protocol):
    """A metric some of whose extra metrics say how far an episode came: `progress` has their names, the earliest stage
    first. Each lies in [0, 1], and more is nearer to success."""

    @property
    def progress(self) -> tuple[str, ...]: ...


@runtime_checkable
class Measured(Protocol):
    """A metric whose value is not a success rate."""

    @property
    def measure(self) -> Measure: ...


@runtime_checkable
class Dense(Protocol):
    """A task with a dense reward written by a person, as a baseline."""

    def dense_reward(self, view: View, action: jax.Array, next_view: View) -> jax.Array:
        """The reward, float32 scalar."""
        ...


@runtime_checkable
class Staged(Protocol):
    """A task that says in data what leads to its goal."""

    def subgoals(self) -> Subgoals:
        """The way there, in names of fragments of the vocabulary and of its own."""
        ...


@runtime_checkable
class Instructed(Protocol):
    """A task with an instruction: what is to be done, and how. Its subtasks name extra metrics of the task, by which
    they are scored, and fragments of its vocabulary, which pay for them."""

    def instruction(self) -> Instruction:
        """What the agent is asked to do, in words, and its subtasks."""
        ...


@runtime_checkable
class Compiled(Protocol):
    """A task with compiler options."""

    def compiler_options(self, platform: str) -> Mapping[str, Any]:
        """XLA's options for functions that call `reset`, `step` and `view` on `platform` (`cpu`, `gpu` or `tpu`)."""
        ...


@runtime_checkable
class SlicedTask(Protocol):
    """A task whose environments step faster in slices than all together."""

    def max_envs_per_step(self, platform: str) -> int:
        """The largest slice on `platform`; 0 for all environments. Tasks may also call it `lanes_at_once`."""
        ...


@runtime_checkable
class Drawable(Protocol):
    """A task whose states can be rendered."""

    def draw(self, state: State) -> np.ndarray:
        """A picture of one state, on the host: uint8 (height, width, 3), the same size for all states."""
        ...


def mission_of(task: Any, state: Any) -> str:
    """What the episode that begins with a state of numpy arrays is about, of tasks with a `mission(state) -> str`."""
    tell = getattr(task, "mission", None)
    return str(tell(state)) if callable(tell) else ""


@runtime_checkable
class Demonstrated(Protocol):
    """A task with a scripted expert, and maybe a `mission(state) -> str` that tells what an episode is about."""

    def expert_actions(self, state: State) -> Sequence[Any]:
        """Actions that solve the task from a state of numpy arrays, the first or a later one, planned on the host; as
        far as there is a way."""
        ...


@runtime_checkable
class Task(Protocol):
    """A simulator with words, a metric and defaults.

    `horizon` is the number of steps after which an episode ends, in training and in evaluation
    alike. Whether the learner takes that for an end like any other, or for a cut after which the task
    would have gone on, is `PPO.bootstrap`: by default a cut for a `Box`, an end for `Discrete` actions.
    `step` never resets. `default_observation` and `sparse_reward` act on views, so that a program could
    have been written in their place.

    `state_words` says in a few words what each array of a view means, by its path (`agent.position`),
    and under `action` what the actions do; shapes and dtypes are not for it to say (see
    `documentation`). `state_notes` holds what concerns no single array: ids, facts of the world.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def state_words(self) -> Mapping[str, str]: ...
    @property
    def state_notes(self) -> str: ...
    @property
    def horizon(self) -> int: ...
    @property
    def action_space(self) -> Discrete | Box: ...

    def reset(self, key: jax.Array) -> State:
        """A fresh initial state of an episode."""
        ...

    def step(self, state: State, action: jax.Array) -> State: ...

    def terminated(self, state: State) -> jax.Array:
        """Whether the episode ends in `state` (bool scalar), the horizon apart."""
        ...

    def view(self, state: State) -> View: ...

    def score(self) -> Metric: ...

    def default_observation(self, view: View) -> jax.Array:
        """The task's raw observation, float32 (d,)."""
        ...

    def sparse_reward(self, view: View, action: jax.Array, next_view: View) -> jax.Array:
        """The task's own reward, float32 scalar."""
        ...

    def vocabulary(self) -> Vocabulary: ...


def metric_names(task: Task) -> tuple[str, ...]:
    """Names of the extra metrics of `task`."""
    metric = task.score()
    return tuple(metric.names) if isinstance(metric, ExtraMetrics) else ()


def progress_names(task: Task) -> tuple[str, ...]:
    """Those of the extra metrics of `task` that say how far an episode came, the earliest stage first."""
    metric = task.score()
    return tuple(metric.progress) if isinstance(metric, Progressive) else ()


def measure_of(task: Task) -> Measure:
    """The measure of the metric of `task`."""
    return measure_of_metric(task.score())


def measure_of_metric(metric: Metric) -> Measure:
    """The measure of `metric`, by default a success rate."""
    return metric.measure if isinstance(metric, Measured) else SUCCESS


def compiler_options(task: Task, platform: str) -> dict[str, Any]:
    """XLA's options for `task` on `platform`, without those that the installed XLA does not know."""
    return supported(task.compiler_options(platform), platform) if isinstance(task, Compiled) else {}
