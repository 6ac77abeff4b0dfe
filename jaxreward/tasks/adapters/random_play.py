"""What a task pays in random play."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxreward.tasks.metrics import Figure
from jaxreward.tasks.task import Box, Task, compiler_options

EPISODES = 16


def lowest_return(task: Task, reward: Figure) -> float:
    """The lowest sum of `reward` over an episode of random play; 0 where no step is paid less than 0.

    It is the worst value of a return whose bounds nobody knows.
    """
    options = compiler_options(task, jax.default_backend())
    play = jax.jit(lambda key: _returns(task, reward, key), compiler_options=options)
    with jax.ensure_compile_time_eval():  # it may be asked for while something is traced
        lowest, returns = jax.device_get(play(jax.random.key(0)))
    return 0.0 if lowest >= 0.0 else float(min(returns.min(), 0.0))


def _returns(task: Task, reward: Figure, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The lowest reward, and the return of every episode."""
    first, acting = jax.random.split(key)
    states = jax.vmap(task.reset)(jax.random.split(first, EPISODES))
    nothing = jnp.zeros(EPISODES)

    def goes_on(carry: Any) -> jax.Array:
        return (carry[0] < task.horizon) & ~carry[2].all()

    def step(carry: Any) -> Any:
        t, states, ended, lowest, returns = carry
        keys = jax.random.split(jax.random.fold_in(acting, t), EPISODES)
        actions = jax.vmap(lambda key: random_action(task, key))(keys)
        after = jax.vmap(task.step)(states, actions)
        paid = jax.vmap(reward)(states, actions, after).astype(jnp.float32)
        paid = jnp.where(ended | ~jnp.isfinite(paid), 0.0, paid)
        return t + 1, after, ended | jax.vmap(task.terminated)(after), jnp.minimum(lowest, paid.min()), returns + paid

    start = (0, states, jax.vmap(task.terminated)(states), jnp.zeros(()), nothing)
    *_, lowest, returns = jax.lax.while_loop(goes_on, step, start)
    return lowest, returns


def random_action(task: Task, key: jax.Array) -> jax.Array:
    """A uniform action of the task."""
    space = task.action_space
    if isinstance(space, Box):
        return jax.random.uniform(key, space.shape, jnp.float32, space.low, space.high)
    return jax.random.randint(key, (), 0, space.n, jnp.int32)
