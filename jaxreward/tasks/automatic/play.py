"""Transitions of a task under random actions, from which its vocabulary is derived."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.devices import FAST_COMPILE, on_cpu
from jaxreward.tasks.random_keys import is_typed_key
from jaxreward.tasks.stepping import slice_limit, slice_size
from jaxreward.tasks.task import Box, Task, compiler_options, measure_of_metric
from jaxreward.tasks.traces import Traced

Array = np.ndarray[Any, Any]

EPISODES, LONGEST = 256, 400
"""Episodes that are played, and steps of each, at most."""
HEAVY_EPISODES, HEAVY_LONGEST = 64, 150
"""Of a task whose step has many equations: a simulation of bodies."""
HEAVY = 2_000
"""Equations of such a step."""
_MOST_BYTES = 64 << 20
"""Of all views that are kept in memory, and of the states that are played together."""
KEPT = 4_096
"""Transitions that are examined, at most: those with a reward or progress, and others by chance."""
LARGEST_ARRAY = 1 << 16
"""Elements of an array of the view that is examined, at most; no fragment reads a larger one."""
STICKY = 0.85
"""Chance to repeat the action before, in half of the episodes: repeated, actions lead further."""
DISCOUNT = 0.97
"""Of the returns by which states are judged."""


@dataclass(frozen=True)
class Play:
    """Transitions of random play, numpy with a leading axis of transitions.

    Attributes:
        views, next_views: trees like the task's view, with a zero for each array that is `skipped`.
        actions: (N,) or (N, *shape).
        reward: of the task itself.
        progress: how much the metric rose at this step, more being better.
        return_of_reward, return_of_progress: discounted sums from this step to the end of the episode.
        steps: how many steps the episode had before.
        ends_early: whether an episode was seen to end before the last step that was played.
        skipped: leaves of the view that are not kept: arrays of more than `LARGEST_ARRAY` elements, random keys.
    """

    views: Any
    next_views: Any
    actions: Array
    reward: Array
    progress: Array
    return_of_reward: Array
    return_of_progress: Array
    steps: Array
    ends_early: bool
    skipped: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.reward)

    def signals(self) -> tuple[tuple[Array, Array], ...]:
        """What tells good steps from others: pairs of what a step brought, and what came from it on."""
        pairs = ((self.reward, self.return_of_reward), (self.progress, self.return_of_progress))
        return tuple(pair for pair in pairs if np.ptp(pair[0]) > 1e-6 or np.ptp(pair[1]) > 1e-6)


def play(task: Task, seed: int = 0) -> Play:
    """Play `task` with random actions, in half of the episodes with actions that are repeated.

    The same task, machine and seed give the same transitions.
    """
    state = jax.eval_shape(task.reset, jax.eval_shape(lambda: jax.random.key(0)))
    view = jax.eval_shape(task.view, state)
    skipped = frozenset(k for k, leaf in enumerate(jax.tree.leaves(view)) if _is_skipped(leaf))
    heavy = _equations(task, state) > HEAVY
    episodes, longest = _size(task, state, view, heavy)
    platform = jax.default_backend()
    options = compiler_options(task, platform) | on_cpu({} if heavy else FAST_COMPILE, platform)
    run = jax.jit(lambda key: _episodes(task, episodes, longest, key), compiler_options=options or None)
    packed, actions, rewards, values, alive = jax.device_get(run(jax.random.key(seed)))
    rewards = np.where(alive & np.isfinite(rewards), rewards, 0.0)
    values = np.where(np.isfinite(values), values, 0.0)
    sign = 1.0 if measure_of_metric(task.score()).higher_is_better else -1.0
    progress = np.where(alive, sign * np.diff(values, axis=0), 0.0)
    returns = [_returns(x) for x in (rewards, progress)]
    kept = _kept(rewards, progress, alive, np.random.default_rng(seed))
    t, e = np.divmod(kept, episodes)
    return Play(
        views=_unpacked({kind: x[t, e] for kind, x in packed.items()}, view, len(kept)),
        next_views=_unpacked({kind: x[t + 1, e] for kind, x in packed.items()}, view, len(kept)),
        actions=actions[t, e], reward=rewards[t, e], progress=progress[t, e], return_of_reward=returns[0][t, e],
        return_of_progress=returns[1][t, e], steps=t, ends_early=bool((~alive).any()),
        skipped=skipped,
    )  # fmt: skip


def _is_skipped(leaf: Any) -> bool:
    return math.prod(leaf.shape) > LARGEST_ARRAY or is_typed_key(leaf.dtype)


def _packed(view: Any) -> dict[str, jax.Array]:
    """The arrays of a view that are not skipped, a vector for each dtype: one array of many numbers compiles faster
    than many arrays."""
    by_dtype: dict[str, list[jax.Array]] = {}
    for leaf in jax.tree.leaves(view):
        if not _is_skipped(leaf):
            by_dtype.setdefault(jnp.dtype(leaf.dtype).name, []).append(jnp.ravel(leaf))
    return {name: jnp.concatenate(leaves) for name, leaves in by_dtype.items()}


def _unpacked(packed: Mapping[str, Array], like: Any, n: int) -> Any:
    """The views whose arrays are `packed` (n, elements): a tree like `like`, with a zero for each skipped array."""
    used = dict.fromkeys(packed, 0)
    found = []
    for leaf in jax.tree.leaves(like):
        if _is_skipped(leaf):
            found.append(np.zeros(n, np.uint8))
            continue
        name, size = jnp.dtype(leaf.dtype).name, math.prod(leaf.shape)
        found.append(packed[name][:, used[name] : used[name] + size].reshape((n, *leaf.shape)))
        used[name] += size
    return jax.tree.unflatten(jax.tree.structure(like), found)


def _size(task: Task, state: Any, view: Any, heavy: bool) -> tuple[int, int]:
    """Episodes, and steps of each."""
    size = _bytes(x for x in jax.tree.leaves(view) if not _is_skipped(x))
    episodes, longest = (HEAVY_EPISODES, HEAVY_LONGEST) if heavy else (EPISODES, LONGEST)
    longest = min(longest, task.horizon)
    most = max(_MOST_BYTES // max(size, 1), 64)
    at_once = _MOST_BYTES // max(_bytes(x for x in jax.tree.leaves(state) if not is_typed_key(x.dtype)), 1)
    episodes = min(episodes, max(min(most // longest, at_once), 16))
    return episodes, max(1, min(longest, most // episodes))


def _bytes(leaves: Iterable[Any]) -> int:
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in leaves)


def _equations(task: Task, state: Any) -> int:
    """Equations of a step."""
    space = task.action_space
    real = isinstance(space, Box)
    action = jax.ShapeDtypeStruct(space.shape if real else (), jnp.float32 if real else jnp.int32)
    return Traced(None, jax.make_jaxpr(task.step)(state, action)).equations


def _episodes(task: Task, episodes: int, longest: int, key: jax.Array) -> Any:
    """Packed views and values of the metric (steps + 1, episodes, ...); actions, rewards and whether the step belongs
    to the episode (steps, episodes, ...)."""
    metric, space = task.score(), task.action_space
    first, acting = jax.random.split(key)
    states = jax.vmap(task.reset)(jax.random.split(first, episodes))
    accs = jax.tree.map(lambda x: jnp.broadcast_to(x, (episodes, *jnp.shape(x))), metric.init())
    sticky = jnp.arange(episodes) % 2 == 1
    size = slice_size(episodes, slice_limit(task, jax.default_backend()))

    def draw(key: jax.Array) -> jax.Array:
        if isinstance(space, Box):
            low, high = max(space.low, -1e3), min(space.high, 1e3)
            return jax.random.uniform(key, (episodes, *space.shape), jnp.float32, low, high)
        return jax.random.randint(key, (episodes,), 0, space.n, jnp.int32)

    def of_one(state: Any, acc: Any, action: jax.Array) -> Any:
        after = task.step(state, action)
        acc = metric.update(acc, state, action, after)
        view = task.view(after)
        reward = jnp.asarray(task.sparse_reward(task.view(state), action, view), jnp.float32)
        return after, acc, _packed(view), reward, jnp.asarray(metric.value(acc), jnp.float32), task.terminated(after)

    def in_slices(arguments: Any) -> Any:
        together = jax.vmap(of_one)
        if size == episodes:
            return together(*arguments)
        cut = jax.tree.map(lambda x: x.reshape((episodes // size, size, *x.shape[1:])), arguments)
        done = jax.lax.map(lambda x: together(*x), cut)
        return jax.tree.map(lambda x: x.reshape((episodes, *x.shape[2:])), done)

    def step(carry: Any, key: jax.Array) -> Any:
        states, accs, action, alive = carry
        new, repeat = draw(key), jax.random.bernoulli(jax.random.fold_in(key, 1), STICKY, (episodes,)) & sticky
        action = jnp.where(repeat.reshape((episodes, *[1] * (new.ndim - 1))), action, new)
        states, accs, views, rewards, values, ended = in_slices((states, accs, action))
        return (states, accs, action, alive & ~ended), (views, action, rewards, values, alive)

    keys = jax.random.split(acting, longest + 1)
    start = (states, accs, draw(keys[0]), jnp.ones(episodes, bool))
    seen, actions, rewards, values, alive = jax.lax.scan(step, start, keys[1:])[1]
    first_views = jax.vmap(lambda state: _packed(task.view(state)))(states)
    views = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first_views, seen)
    at_first = jnp.asarray(jax.vmap(metric.value)(accs), jnp.float32)
    return views, actions, rewards, jnp.concatenate([at_first[None], values]), alive


def _returns(rewards: Array) -> Array:
    """Discounted sums to the end, for every step (steps, episodes)."""
    found, total = np.zeros_like(rewards), np.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        found[t] = total = rewards[t] + DISCOUNT * total
    return found


def _kept(rewards: Array, progress: Array, alive: Array, rng: np.random.Generator) -> Array:
    """Indices of transitions: half of them those where reward or progress was unusual, the rest by chance."""
    valid = np.flatnonzero(alive.reshape(-1))
    rare = np.zeros(len(valid), bool)
    for signal in (rewards.reshape(-1)[valid], progress.reshape(-1)[valid]):
        rare |= signal != np.median(signal)
    unusual = rng.permutation(valid[rare])[: KEPT // 2]
    rest = rng.permutation(np.setdiff1d(valid, unusual))[: KEPT - len(unusual)]
    return np.sort(np.concatenate([unusual, rest]))
