"""What an update of each learner is made of, for a chunk that knows none of them by name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from jaxreward.tasks import Task
from jaxreward.training import ppo, sac
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.networks import ActorCritic, Params, PolicyNetwork, Variables, init_padded, parts_of
from jaxreward.training.rollout import Trajectory
from jaxreward.training.sac_hyperparameters import SAC, Learner
from jaxreward.training.soft_networks import SoftActor, SoftCritic, init_soft, shapes_of


class Algorithm(Protocol):
    """The functions of a learner, all of one agent. `hyper` are its settings."""

    def network(self, task: Task, hyper: Any) -> Any:
        """The network that chooses actions."""
        ...

    def shapes(self, network: Any, hyper: Any, width: int) -> Params:
        """Shapes of the parameters for observations of `width` features."""
        ...

    def init(self, network: Any, hyper: Any, seed: int, width: int, padded: int) -> Params:
        """The first parameters for observations of `width` features carried in vectors of `padded`; drawn on the
        host."""
        ...

    def new_agent(self, params: Params, hyper: Any, width: int, network: Any) -> Any:
        """An agent that has learned nothing, with `params`, `variables` and `diverged`."""
        ...

    def with_policy(self, agent: Any, variables: Variables) -> Any:
        """An agent that has learned nothing but a policy of before: its `variables`, padded as the agent's own."""
        ...

    def learn(
        self, agent: Any, trajectory: Trajectory, finite: jax.Array, key: jax.Array, progress: jax.Array,
        update: jax.Array, network: Any, hyper: Any,
    ) -> tuple[Any, LearnStats]:  # fmt: skip
        """What follows the collection in update number `update`, with `progress` of the budget spent."""
        ...

    def floats(self, hyper: Any, width: int) -> float:
        """Numbers that an agent takes on a device, about; see `plan.first_chunk`."""
        ...


class _PPO:
    def network(self, task: Task, hyper: PPO) -> ActorCritic:
        return ActorCritic.of(task, hyper)

    def shapes(self, network: ActorCritic, hyper: PPO, width: int) -> Params:
        key, obs = jax.random.key(0), jnp.zeros(width)
        return jax.eval_shape(network.init, key, obs, network.memory(()))["params"]

    def init(self, network: ActorCritic, hyper: PPO, seed: int, width: int, padded: int) -> Params:
        return init_padded(network, seed, width, padded, hyper.initializer)

    def new_agent(self, params: Params, hyper: PPO, width: int, network: ActorCritic) -> ppo.Agent:
        return ppo.new_agent(params, hyper, width)

    def with_policy(self, agent: ppo.Agent, variables: Variables) -> ppo.Agent:
        params, moments = parts_of(variables)
        return agent.replace(params=params, moments=moments)

    def learn(
        self, agent: ppo.Agent, trajectory: Trajectory, finite: jax.Array, key: jax.Array, progress: jax.Array,
        update: jax.Array, network: ActorCritic, hyper: PPO,
    ) -> tuple[ppo.Agent, LearnStats]:  # fmt: skip
        return ppo.learn(agent, trajectory, finite, key, progress, network, hyper)

    def floats(self, hyper: PPO, width: int) -> float:
        """The unroll's observations are written, transposed for the learner and gathered into minibatches, three copies
        and a half. Of a minibatch every layer keeps its outputs for the gradient, and every weight has its gradient,
        Adam's moments and copies. The factors are rounded from what the compiler said of fifteen learners on CPU."""
        layers = [pair for widths in (hyper.hidden, hyper.value_hidden) for pair in pairwise((width, *widths))]
        weights, units = sum(a * b for a, b in layers), sum(b for _, b in layers)
        if hyper.gru:  # six products, and what is kept of each for the gradient
            weights += 3 * hyper.gru * (hyper.gru + hyper.hidden[-1]) + 2 * hyper.gru * sum(hyper.heads[:1])
            units += 8 * hyper.gru + 2 * sum(hyper.heads)
        steps = hyper.envs * hyper.length
        return steps * (3.5 * (width + 16) + 3.0 * units / hyper.minibatches) + 8.0 * weights


class _SAC:
    def network(self, task: Task, hyper: SAC) -> SoftActor:
        return SoftActor.of(task, hyper)

    def shapes(self, network: SoftActor, hyper: SAC, width: int) -> Params:
        return shapes_of(network, SoftCritic.of(hyper), width)

    def init(self, network: SoftActor, hyper: SAC, seed: int, width: int, padded: int) -> Params:
        return init_soft(network, SoftCritic.of(hyper), seed, width, padded, hyper.initializer)

    def new_agent(self, params: Params, hyper: SAC, width: int, network: SoftActor) -> sac.SoftAgent:
        return sac.new_agent(params, hyper, width, network)

    def with_policy(self, agent: sac.SoftAgent, variables: Variables) -> sac.SoftAgent:
        """The critics start afresh."""
        params, moments = parts_of(variables)
        learned = agent.learned.replace(params={**agent.params, "actor": params})
        return agent.replace(learned=learned, moments=moments)

    def learn(
        self, agent: sac.SoftAgent, trajectory: Trajectory, finite: jax.Array, key: jax.Array, progress: jax.Array,
        update: jax.Array, network: SoftActor, hyper: SAC,
    ) -> tuple[sac.SoftAgent, LearnStats]:  # fmt: skip
        return sac.learn(agent, trajectory, finite, key, update, network, hyper)

    def floats(self, hyper: SAC, width: int) -> float:
        """Mostly the replay buffer. A gradient step keeps the outputs of every layer of three networks."""
        weights = sum(_weights(w, hyper.network == "simba", width) for w in (hyper.hidden, *[hyper.value_hidden] * 4))
        units = 6.0 * (sum(hyper.hidden) + 2 * sum(hyper.value_hidden))
        held = hyper.rows * hyper.envs * (width + 16)
        step = hyper.envs * hyper.length * (width + 16) + hyper.batch_size * (4 * width + 3 * units)
        return held + step + 4.0 * weights


def gradient_flops(sac: SAC, width: int) -> float:
    """Floating point operations of the gradient steps of one update of one agent, about: of a value that is learned
    from three passes, of its target one and of the policy's gradient three, and of the policy five."""
    simba = sac.network == "simba"
    passes = 5 * _weights(sac.hidden, simba, width) + 14 * _weights(sac.value_hidden, simba, width)
    return 2.0 * sac.updates * sac.batch_size * passes


def _weights(widths: tuple[int, ...], simba: bool, inputs: int) -> int:
    if simba:
        return inputs * widths[0] + 8 * sum(w * w for w in widths)
    return sum(a * b for a, b in pairwise((inputs, *widths)))


def algorithm_of(learner: Learner) -> Algorithm:
    """The functions of a learner."""
    return _SAC() if isinstance(learner, SAC) else _PPO()


def network_of(task: Task, learner: Learner) -> PolicyNetwork:
    """The network that chooses the actions of the agents that `learner` trains on `task`."""
    return algorithm_of(learner).network(task, learner)
