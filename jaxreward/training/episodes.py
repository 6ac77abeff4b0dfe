"""Episodes of a trained agent, state by state: for people to watch, and for programs to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import UserError
from jaxreward.programs import Program
from jaxreward.tasks import Discrete, Task
from jaxreward.training.config import PPO
from jaxreward.training.networks import ActorCritic, Params, apply, sample_action


@dataclass(frozen=True)
class Episode:
    """One episode: `states`, a pytree of numpy arrays with a leading axis of `length` + 1; its `success`
    by the task's metric; its undiscounted `ret` by the program."""

    states: Any
    length: int
    success: float
    ret: float

    def state(self, t: int) -> Any:
        """The state after `t` steps."""
        return jax.tree.map(lambda x: x[t], self.states)


def play(task: Task, program: Program, params: Params, ppo: PPO, episodes: int = 3, seed: int = 0) -> list[Episode]:
    """Let an agent play; the same `seed` gives the same initial states and the same chance to every agent.

    Args:
        params: as `TrainResult.params` returns them.
        ppo: the settings that it was trained with; they say what its network looks like.

    Raises:
        UserError: actions that are not discrete.
    """
    if not isinstance(task.action_space, Discrete):
        raise UserError(f"agents of {task.name} cannot be played: its actions are not discrete")
    network = ActorCritic(task.action_space.n, ppo.hidden, ppo.activation)
    metric = task.score()

    def one(key: jax.Array) -> Any:
        reset, act = jax.random.split(key)
        state = task.reset(reset)

        def step(carry: Any, t: jax.Array) -> Any:
            state, acc, ret, over = carry
            obs = jnp.nan_to_num(program.observe(task.view(state)), nan=0.0, posinf=0.0, neginf=0.0)
            logits, _ = apply(network, params, obs)
            action = sample_action(logits, jax.random.gumbel(jax.random.fold_in(act, t), logits.shape))
            following = task.step(state, action)
            reward, _ = program.reward(task.view(state), action, task.view(following))
            after = (following, metric.update(acc, state, action, following), ret + reward, task.terminated(following))
            carry = jax.tree.map(lambda new, old: jnp.where(over, old, new), after, carry)
            return carry, (carry[0], over)

        start = (state, metric.init(), jnp.zeros(()), jnp.zeros((), bool))
        (_, acc, ret, _), (states, over) = jax.lax.scan(step, start, jnp.arange(task.horizon))
        states = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, states)
        return states, (~over).sum(), metric.value(acc), ret

    keys = jax.random.split(jax.random.key(seed), episodes)
    states, lengths, success, returns = jax.device_get(jax.jit(jax.vmap(one))(keys))
    found = []
    for k, length in enumerate(np.asarray(lengths)):
        kept = jax.tree.map(lambda x, k=k, end=int(length) + 1: np.asarray(x[k, :end]), states)
        found.append(Episode(kept, int(length), float(success[k]), float(returns[k])))
    return found
