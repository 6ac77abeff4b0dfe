"""Episodes of a trained agent, state by state: for people to watch, and for programs to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.devices import exact
from jaxreward.programs import Program
from jaxreward.records import Measure
from jaxreward.tasks import Task, compiler_options
from jaxreward.tasks.metrics import episode_value
from jaxreward.training.networks import Variables
from jaxreward.training.policy import Policy
from jaxreward.training.sac_hyperparameters import Learner


@dataclass(frozen=True)
class Episode:
    """One episode: `states`, a pytree of numpy arrays, random keys apart, with a leading axis of `length` + 1; its
    `success` by the task's metric; its undiscounted `ret` by the program, and what each reward term paid on each step,
    `terms` (length, K)."""

    states: Any
    length: int
    success: float
    ret: float
    terms: np.ndarray

    def state(self, t: int) -> Any:
        """The state after `t` steps."""
        return jax.tree.map(lambda x: x[t], self.states)


def play(
    task: Task, program: Program, variables: Variables, ppo: Learner, episodes: int = 3, seed: int = 0
) -> list[Episode]:
    """Let an agent play; the same `seed` gives the same initial states and the same chance to every agent.

    Args:
        variables: as `TrainResult.variables` returns them.
        ppo: the settings that it was trained with; they say what its network looks like.
    """
    policy, metric = Policy(task, program, variables, ppo), task.score()

    def one(key: jax.Array) -> Any:
        reset, acts = jax.random.split(key)
        state = jax.tree.map(jnp.asarray, task.reset(reset))

        def step(carry: Any, t: jax.Array) -> Any:
            state, acc, ret, over, agent = carry
            action, agent_after = policy.step(agent, state, jax.random.fold_in(acts, t))
            following = task.step(state, action)
            reward, terms = program.reward(task.view(state), action, task.view(following))
            acc_after = metric.update(acc, state, action, following)
            after = (following, acc_after, ret + reward, task.terminated(following), agent_after)
            carry = jax.tree.map(lambda new, old: jnp.where(over, old, new), after, carry)
            return carry, (carry[0], over, terms)

        start = (state, metric.init(), jnp.zeros(()), jnp.zeros((), bool), policy.start(state))
        (_, acc, ret, *_), (states, over, terms) = jax.lax.scan(step, start, jnp.arange(task.horizon))
        states = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, states)
        return states, (~over).sum(), episode_value(metric, acc), ret, terms

    keys = jax.random.split(jax.random.key(seed), episodes)
    options = compiler_options(task, jax.default_backend())
    played = jax.device_get(jax.jit(exact(jax.vmap(one)), compiler_options=options or None)(keys))
    states, lengths, success, returns, terms = played
    found = []
    for k, length in enumerate(np.asarray(lengths)):
        kept = jax.tree.map(lambda x, k=k, end=int(length) + 1: _on_host(x[k, :end]), states)
        found.append(
            Episode(kept, int(length), float(success[k]), float(returns[k]), np.asarray(terms[k, : int(length)]))
        )
    return found


def _on_host(x: Any) -> Any:
    """An array as one of numpy's, which has no random keys."""
    return x if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray(x)


def telling(episodes: Sequence[Episode], measure: Measure) -> dict[str, Episode]:
    """The best, the median and the worst of some episodes: by the metric, and where that is equal the shorter one of
    two that were won and the one that returned more of two that were not."""

    def standing(e: Episode) -> tuple[float, float, float]:
        won = measure.rate and e.success > 0.5
        return measure.oriented(e.success), -e.length if won else 0.0, e.ret

    order = sorted(episodes, key=standing, reverse=True)
    return {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
