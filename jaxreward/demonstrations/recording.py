"""Recording episodes: of an agent, of random actions, or of actions that are known beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.demonstrations.trajectories import Source, Trajectories, WrongTrajectories, joined
from jaxreward.devices import exact
from jaxreward.errors import in_a_line
from jaxreward.programs.spec import Spec
from jaxreward.tasks import Box, Discrete, Task, compiler_options
from jaxreward.tasks.metrics import episode_value

_MOST_BYTES = 256 << 20
"""Of the views of episodes that are played at a time."""


class Actor(Protocol):
    """Who acts: pure and unbatched, for `jit` and `vmap`. `training.Policy` is one."""

    def start(self, state: Any) -> Any:
        """What it carries at the first step of an episode."""
        ...

    def step(self, carry: Any, state: Any, key: jax.Array) -> tuple[jax.Array, Any]:
        """An action in a state of the task, and what it carries to the next step."""
        ...


class Measuring(Protocol):
    """An actor that knows the log probability, or density, of what it chooses."""

    def measured_step(self, carry: Any, state: Any, key: jax.Array) -> tuple[jax.Array, jax.Array, Any]:
        """As `Actor.step`, with the log probability () of the action in second place."""
        ...


@dataclass(frozen=True)
class RandomActor:
    """Uniformly random actions."""

    space: Discrete | Box

    def start(self, state: Any) -> None:
        return None

    def step(self, carry: None, state: Any, key: jax.Array) -> tuple[jax.Array, None]:
        if isinstance(self.space, Discrete):
            return jax.random.randint(key, (), 0, self.space.n, jnp.int32), None
        return jax.random.uniform(key, self.space.shape, jnp.float32, self.space.low, self.space.high), None

    def measured_step(self, carry: None, state: Any, key: jax.Array) -> tuple[jax.Array, jax.Array, None]:
        return self.step(carry, state, key)[0], jnp.float32(uniform_log_probability(self.space)), None


@dataclass(frozen=True)
class _Planned:
    """Actions that are known beforehand, (steps, ...), the first where they end."""

    actions: Any

    def start(self, state: Any) -> jax.Array:
        return jnp.zeros((), jnp.int32)

    def step(self, carry: jax.Array, state: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.actions[carry], carry + 1


def uniform_log_probability(space: Discrete | Box) -> float:
    """The log probability of a uniformly random action; of real ones its log density."""
    return -math.log(space.n) if isinstance(space, Discrete) else -space.size * math.log(space.high - space.low)


def record(
    task: Task, actor: Actor, episodes: int, *, seed: int = 0, source: Source = "policy", task_arg: Sequence[str] = ()
) -> Trajectories:
    """Let `actor` play whole episodes; the same `seed` gives every actor the same initial states.

    Args:
        actor: log probabilities are recorded of one that is `Measuring`, else they are NaN.
        source, task_arg: for the fields of `Trajectories`.
    """
    resets, acts = _keys(episodes, seed)
    return _recorded(task, [actor], resets, acts, source, seed, task_arg)


def record_random(task: Task, episodes: int, *, seed: int = 0, task_arg: Sequence[str] = ()) -> Trajectories:
    """Episodes of uniformly random actions."""
    return record(task, RandomActor(task.action_space), episodes, seed=seed, source="random", task_arg=task_arg)


def reset_keys(episodes: int, seed: int) -> jax.Array:
    """The random keys (episodes,) that `record` gives to `task.reset`."""
    return _keys(episodes, seed)[0]


def _keys(episodes: int, seed: int) -> tuple[jax.Array, jax.Array]:
    pairs = jax.vmap(jax.random.split)(jax.random.split(jax.random.key(seed), episodes))
    return pairs[:, 0], pairs[:, 1]


def record_actions(
    task: Task, keys: jax.Array, plans: Sequence[Any], *, source: Source = "expert", seed: int | None = None,
    task_arg: Sequence[str] = (), texts: Sequence[str] = (),
) -> Trajectories:  # fmt: skip
    """Episodes of actions that are known beforehand.

    Args:
        keys: random keys (N,), such as `reset_keys` gives: episode i begins in `task.reset(keys[i])`.
        plans: the actions of each episode, (steps, ...); it ends with them, or before where the task ends it.

    Raises:
        WrongTrajectories: a plan without actions, or with more than the task's horizon.
    """
    lengths = [len(plan) for plan in plans]
    if min(lengths) < 1 or max(lengths) > task.horizon:
        raise WrongTrajectories(f"an episode of {task.name} has 1 to {task.horizon} actions, and not {max(lengths)}")
    dtype = np.int32 if isinstance(task.action_space, Discrete) else np.float32
    longest = 8 * -(-max(lengths) // 8)  # fewer shapes to compile for
    try:
        arrays = [np.asarray(plan, dtype) for plan in plans]
        padded = np.stack([np.resize(plan, (longest, *plan.shape[1:])) for plan in arrays])
    except (TypeError, ValueError) as error:
        raise WrongTrajectories(f"actions of {task.name} are {np.dtype(dtype)}: {in_a_line(error)}") from error
    return _recorded(
        task, [_Planned(x) for x in padded], keys, keys, source, seed, task_arg, np.asarray(lengths), tuple(texts),
        longest,
    )  # fmt: skip


def _recorded(
    task: Task, actors: Sequence[Any], resets: jax.Array, acts: jax.Array, source: Source, seed: int | None,
    task_arg: Sequence[str], lengths: np.ndarray | None = None, texts: tuple[str, ...] = (), longest: int = 0,
) -> Trajectories:  # fmt: skip
    """Episodes of one actor, or each of one of as many planned ones."""
    spec, horizon, count = Spec.of(task), longest or task.horizon, len(resets)
    planned = isinstance(actors[0], _Planned)
    plans = np.stack([actor.actions for actor in actors]) if planned else np.zeros((count, 0))
    ends = np.asarray(lengths if lengths is not None else np.full(count, horizon), np.int32)

    def one(reset: jax.Array, act: jax.Array, plan: jax.Array, end: jax.Array) -> Any:
        return _play(task, _Planned(plan) if planned else actors[0], reset, act, end, horizon, spec)

    options = compiler_options(task, jax.default_backend())
    play = jax.jit(exact(jax.vmap(one)), compiler_options=options or None)
    view = sum(x.size * x.dtype.itemsize for x in spec.structs()[0])
    size = max(1, min(count, _MOST_BYTES // (view * (horizon + 1))))
    parts = list[Trajectories]()
    for first in range(0, count, size):
        own = slice(first, first + size)
        found = jax.device_get(play(resets[own], acts[own], plans[own], ends[own]))
        parts.append(_cut(found, spec, task.name, source, seed, tuple(task_arg), texts[own]))
    return joined(parts)


def _play(task: Task, actor: Any, reset: jax.Array, acts: jax.Array, end: jax.Array, horizon: int, spec: Spec) -> Any:
    """One episode of `end` steps at most, in arrays of `horizon` steps."""
    metric = task.score()
    state = jax.tree.map(jnp.asarray, task.reset(reset))

    def step(carry: Any, t: jax.Array) -> Any:
        state, acc, over, _, memory = carry
        noise = jax.random.fold_in(acts, t)
        if hasattr(actor, "measured_step"):
            action, logp, after = actor.measured_step(memory, state, noise)
        else:
            (action, after), logp = actor.step(memory, state, noise), jnp.float32(jnp.nan)
        action = spec.act(action)
        following = task.step(state, action)
        now = task.terminated(following)
        new = (following, metric.update(acc, state, action, following), now | (t + 1 >= end), now, after)
        kept = jax.tree.map(lambda x, old: jnp.where(over, old, x), new, carry)
        return kept, (spec.flatten(task.view(kept[0])), action, logp, over)

    start = (state, metric.init(), jnp.zeros((), bool), jnp.zeros((), bool), actor.start(state))
    (_, acc, _, terminated, _), (views, actions, logp, over) = jax.lax.scan(step, start, jnp.arange(horizon))
    views = [jnp.concatenate([a[None], x]) for a, x in zip(spec.flatten(task.view(state)), views, strict=True)]
    return views, actions, logp, (~over).sum(), episode_value(metric, acc), terminated


def _cut(
    found: Any, spec: Spec, name: str, source: Source, seed: int | None, task_arg: tuple[str, ...],
    texts: tuple[str, ...],
) -> Trajectories:  # fmt: skip
    """Episodes without what the arrays hold after their ends."""
    views, actions, logp, lengths, success, ended = found
    steps = np.arange(actions.shape[1])[None] < lengths[:, None]
    states = np.arange(actions.shape[1] + 1)[None] <= lengths[:, None]
    return Trajectories(
        spec=spec, states=tuple(x[states] for x in views), actions=actions[steps], lengths=lengths.astype(np.int32),
        log_probabilities=logp[steps].astype(np.float32), success=success.astype(np.float32), ended=ended, texts=texts,
        task=name, task_arg=task_arg, source=source, seed=seed,
    )  # fmt: skip
