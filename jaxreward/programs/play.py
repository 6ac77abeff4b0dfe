"""Transitions of a task under random actions, on which its programs are validated."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.devices import FAST, exact, on_cpu, supported
from jaxreward.errors import UserError, in_a_line
from jaxreward.views import view_shapes

N = 256
_STEPS, _PHYSICS_STEPS = 50_000, 8_000
"""Steps of random play, enough for events that are not very rare. Real actions suggest a slow physics engine."""
_LONGEST = 5_000
_MOST_BYTES = 16 << 20
"""Of the transitions, and of the views of all parallel episodes."""
_NEEDED = ("reset", "step", "terminated", "view", "sparse_reward", "horizon", "action_space")

_cache: OrderedDict[tuple[int, int, int], tuple[Any, Any]] = OrderedDict()
_lock = threading.Lock()


class UnplayableTask(UserError):
    """A task whose transitions cannot be sampled or used; the cause is the exception of its own code, if there is one
    in this process."""


def can_play(task: Any) -> bool:
    """Whether `task` is complete enough to be played; a `Spec` or a bare view is not."""
    return all(hasattr(task, name) for name in _NEEDED)


def sample_transitions(task: Any, n: int = N, seed: int = 0) -> tuple[Any, Any, Any]:
    """`n` transitions `(views, actions, next_views)` of random play, numpy with a leading axis.

    Many episodes are played in parallel for one horizon, 5,000 steps at most. Half of the transitions
    are spread evenly over kinds of transitions, distinguished by the action, by which arrays of the view changed, by
    whether the task's own reward was zero and whether the episode ended: so picking something up
    occurs as often as walking does. The other half is drawn uniformly. The same task object, `n` and
    `seed` give the same arrays, played once.

    Raises:
        UnplayableTask: a method of the task fails.
    """
    key = (id(task), n, seed)
    with _lock:
        if key not in _cache:
            try:
                _cache[key] = (task, _sample(task, n, seed))
            except Exception as error:
                name = getattr(task, "name", "the task")
                text = f"'{name}' cannot be played with random actions: {in_a_line(error)[:400]}"
                raise UnplayableTask(text) from error
            while len(_cache) > 32:
                _cache.popitem(last=False)
        return _cache[key][1]


def how_many(task: Any) -> int:
    """How many transitions programs are validated on: fewer of large views, 0 where they are too large."""
    view = view_shapes(task)
    return next((n for n in (N, 64, 32) if 2 * n * _bytes(view) <= _MOST_BYTES), 0)


def _bytes(tree: Any) -> int:
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(tree))


def _sample(task: Any, n: int, seed: int) -> tuple[Any, Any, Any]:
    view = view_shapes(task)
    discrete = hasattr(task.action_space, "n")
    steps = _STEPS if discrete else _PHYSICS_STEPS
    envs = min(max(steps // task.horizon, 16), 1024, max(_MOST_BYTES // max(_bytes(view), 1), 4))
    platform = jax.default_backend()
    options = on_cpu(FAST if discrete else {}, platform)  # physics compiles no sooner with them
    options |= task.compiler_options(platform) if hasattr(task, "compiler_options") else {}
    play = jax.jit(exact(partial(_play, task, envs)), compiler_options=supported(options, platform) or None)
    rng = np.random.default_rng(seed)
    key = jax.random.key(seed)
    none = np.full(n, -1, np.int32)
    kinds = np.asarray(play(key, none, none)[0])  # first the kinds of all transitions, then those chosen
    chosen = _choose(kinds.reshape(-1), n, rng)
    times, rows = np.divmod(chosen, envs)
    return jax.device_get(play(key, times.astype(np.int32), rows.astype(np.int32))[1])


def _choose(kinds: np.ndarray[Any, Any], n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Indices into `kinds`: half of them evenly over kinds, the rest from all that is left."""
    order = rng.permutation(len(kinds))
    _, groups = np.unique(kinds[order], return_inverse=True)
    count = int(groups.max()) + 1
    each = max(1, n // (2 * count))
    picked = [order[np.flatnonzero(groups == g)[:each]] for g in range(count)]
    even = np.concatenate(picked)[: n // 2 if n > 1 else 1]
    rest = np.setdiff1d(order, even, assume_unique=True)
    found = np.concatenate([even, rng.permutation(rest)[: n - len(even)]])
    return np.resize(found, n)  # a task with fewer transitions than that repeats them


def _play(task: Any, envs: int, key: jax.Array, times: jax.Array, rows: jax.Array) -> tuple[jax.Array, Any]:
    """Kinds of all transitions, uint32 (steps, envs), and the transitions at `times` of environments `rows`."""
    first = jax.vmap(task.reset)(jax.random.split(key, envs))
    space = task.action_space
    salts = np.random.RandomState(0).randint(1, 2**31, 256).astype(np.uint32) | np.uint32(1)

    def act(key: jax.Array) -> jax.Array:
        if hasattr(space, "n"):
            return jax.random.randint(key, (envs,), 0, space.n, jnp.int32)
        low, high = jnp.maximum(jnp.asarray(space.low), -1e3), jnp.minimum(jnp.asarray(space.high), 1e3)
        return jax.random.uniform(key, (envs, *space.shape), jnp.float32, low, high)

    def step(carry: Any, t: jax.Array) -> Any:
        state, stored = carry
        action = act(jax.random.fold_in(key, t))
        following = jax.vmap(task.step)(state, action)
        view, next_view = jax.vmap(task.view)(state), jax.vmap(task.view)(following)
        over = jax.vmap(task.terminated)(following)
        paid = jax.vmap(task.sparse_reward)(view, action, next_view) != 0
        kind = over * salts[0] + paid * salts[1]
        if hasattr(space, "n"):
            kind += action.astype(jnp.uint32) * salts[2]
        for i, (a, b) in enumerate(zip(jax.tree.leaves(view), jax.tree.leaves(next_view), strict=True)):
            kind += (a != b).reshape(envs, -1).any(1) * salts[3 + i % 253]
        now = (view, action, next_view)
        stored = jax.tree.map(lambda x, old: _where(times == t, x[rows], old), now, stored)
        state = jax.tree.map(lambda new, x: _where(over, new, x), first, following)
        return (state, stored), kind

    shapes = jax.eval_shape(lambda: (jax.vmap(task.view)(first), act(key), jax.vmap(task.view)(first)))
    empty = jax.tree.map(lambda x: jnp.zeros((len(times), *x.shape[1:]), x.dtype), shapes)
    (_, stored), kinds = jax.lax.scan(step, (first, empty), jnp.arange(min(task.horizon, _LONGEST)))
    return kinds, stored


def _where(which: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    return jnp.where(which.reshape(which.shape + (1,) * (old.ndim - which.ndim)), new, old)
