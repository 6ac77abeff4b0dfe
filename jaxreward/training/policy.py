"""A trained agent to act with: in a notebook, in a simulator, under `jit` and `vmap`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.tasks import Task
from jaxreward.training.algorithms import network_of
from jaxreward.training.networks import Memory, PolicyNetwork, Variables
from jaxreward.training.rollout import PolicyOutput, act, finite_or_zero
from jaxreward.training.sac_hyperparameters import Learner


class Carry(struct.PyTreeNode):
    """What an agent carries from step to step: `elapsed` steps of the episode, the `sample` that its action is made of,
    and what it remembers, None without a memory."""

    elapsed: jax.Array
    sample: jax.Array
    past: Past | None


class Past(struct.PyTreeNode):
    """Of a recurrent agent: its `memory` at its last choice, the `hidden` state that this left, the `view` before the
    last step, and the reward that was `paid` since the choice."""

    memory: Memory
    hidden: jax.Array
    view: Any
    paid: jax.Array


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """An agent: a program's observation, the network, and a choice from its distribution.

        policy = result.policy(0)
        action = policy(state, key)

    Agents with a memory (`PPO.gru`), and those that hold an action for several steps (`PPO.action_repeat`), act by
    what happened before. They are played with `step`, which plays all others too:

        carry = policy.start(state)
        action, carry = policy.step(carry, state, key)

    All of this is pure and unbatched, for `jit`, `vmap` and `scan`.

    Attributes:
        variables: of the network, as `TrainResult.variables` returns them.
        ppo: the settings that it was trained with; they say what the network looks like.
        deterministic: choose the most likely action, or the mean of a real one before it is squashed, in place of
            drawing one.
    """

    task: Task
    program: Program
    variables: Variables = field(repr=False)
    ppo: Learner
    deterministic: bool = False

    def __repr__(self) -> str:
        kind = "deterministic" if self.deterministic else "sampling"
        return f"Policy({self.task.name}, program {self.program.name!r}, {kind})"

    @property
    def network(self) -> PolicyNetwork:
        return network_of(self.task, self.ppo)

    def __call__(self, state: Any, key: jax.Array | None = None) -> jax.Array:
        """The action in a state of the task, int32 () or float32 (...).

        Args:
            key: of the random choice; not needed by a deterministic agent.

        Raises:
            InvalidSetting: no key, or an agent that acts by what happened before.
        """
        if self.ppo.gru or self.ppo.action_repeat > 1:
            why = "has a memory" if self.ppo.gru else f"holds an action for {self.ppo.action_repeat} steps"
            how = "carry = policy.start(state), then action, carry = policy.step(carry, state, key)"
            setting = "gru" if self.ppo.gru else "action_repeat"
            raise InvalidSetting(f"this agent {why}: {how}", f"{type(self.ppo).__name__.lower()}.{setting}")
        return self._chosen(self.task.view(state), None, key).action

    def start(self, state: Any) -> Carry:
        """What an agent carries at the first step of an episode; `state` gives shapes alone."""
        choice, memory = self.network.distribution, self.network.memory(())
        sample = jnp.zeros_like(choice.sample(jnp.zeros(choice.outputs), choice.noise(jax.random.key(0), ())))
        view = jax.tree.map(jnp.zeros_like, self.task.view(state))
        past = None if memory is None else Past(memory, memory.hidden, view, jnp.zeros(()))
        return Carry(jnp.zeros((), jnp.int32), sample, past)

    def step(self, carry: Carry, state: Any, key: jax.Array | None = None) -> tuple[jax.Array, Carry]:
        """The action in a state, and what is carried to the next step of the episode.

        Raises:
            InvalidSetting: no key for an agent that is not deterministic.
        """
        action, _, after = self.measured_step(carry, state, key)
        return action, after

    def measured_step(
        self, carry: Carry, state: Any, key: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array, Carry]:
        """As `step`, with the log probability () of the action in second place; of a real one its log density. It is 0
        where an action is held, and for an agent that is deterministic.
        """
        choice, view = self.network.distribution, self.task.view(state)
        decides, past = carry.elapsed % self.ppo.action_repeat == 0, carry.past
        if past is not None:
            past = self._remembered(past, carry, choice.action(carry.sample), view, decides)
        chosen = self._chosen(view, None if past is None else past.memory, key)
        sample = jnp.where(decides, chosen.sample, carry.sample)
        if past is not None and chosen.hidden is not None:
            past = past.replace(hidden=jnp.where(decides, chosen.hidden, past.hidden))
        logp = jnp.where(decides & (not self.deterministic), chosen.logp, 0.0)
        return choice.action(sample), logp, Carry(carry.elapsed + 1, sample, past)

    def _remembered(self, past: Past, carry: Carry, action: jax.Array, view: Any, decides: jax.Array) -> Past:
        """The past with the step that led to `view`; what the agent remembers changes when it chooses again."""
        begins = carry.elapsed == 0
        reward, _ = self.program.reward(past.view, action, view)
        paid = jnp.where(begins, 0.0, past.paid + finite_or_zero(reward))
        known = self.network.remember(past.hidden, carry.sample, paid, jnp.zeros((), bool))
        memory = jax.tree.map(lambda new, old: jnp.where(decides & ~begins, new, old), known, past.memory)
        return Past(memory, past.hidden, view, jnp.where(decides, 0.0, paid))

    def _chosen(self, view: Any, memory: Memory | None, key: jax.Array | None) -> PolicyOutput:
        if key is None and not self.deterministic:
            message = "this agent chooses at random: give it a key, or make it with deterministic=True"
            raise InvalidSetting(message, "key")
        network = self.network
        noise = network.distribution.noise(jax.random.key(0) if key is None else key, ())
        if self.deterministic:
            noise = jnp.zeros_like(noise)
        return act(network, self.variables, self.program.observe(view), memory, noise)
