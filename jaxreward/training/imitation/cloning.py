"""Behaviour cloning of one agent; the population vmaps it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxreward.training.hyperparameters import PPO
from jaxreward.training.imitation.experts import Experts
from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.networks import ActorCritic, Params, apply, variables_of
from jaxreward.training.ppo import Agent, optimizer


def clone(
    agent: Agent, experts: Experts, key: jax.Array, progress: jax.Array, network: ActorCritic, hyper: PPO
) -> tuple[Agent, LearnStats]:
    """Steps of Adam on the negative log probability of the expert's actions, one for each minibatch that an epoch of
    PPO has.

    Args:
        experts: of which the set of the agent's row is learned from.
        progress: fraction of the budget that is spent, in [0, 1].

    Returns:
        The agent, unchanged but for `diverged` if anything was not finite, and the statistics: the entropy of the
        policy where the expert was; of the value, which learns nothing, 0.
    """
    moments = agent.moments if agent.moments is None else _moments(experts)
    size = max(1, hyper.envs * hyper.length // hyper.minibatches)
    rate = hyper.learning_rate * (1.0 - hyper.decay * progress)
    choice = network.distribution

    def outputs(params: Params, obs: jax.Array) -> jax.Array:
        return apply(network, variables_of(params, moments), obs)[0]

    def step(carry: tuple[Params, Any], k: jax.Array) -> tuple[tuple[Params, Any], jax.Array]:
        params, opt_state = carry
        rows, noise = jax.random.split(k)
        drawn = experts.drawn(rows, size)
        grads = jax.grad(lambda p: -choice.log_prob(outputs(p, drawn.obs), drawn.sample).mean())(params)
        updates, opt_state = optimizer(hyper).update(grads, opt_state, params)
        params = optax.apply_updates(params, jax.tree.map(lambda u: -rate * u, updates))
        found = outputs(params, drawn.obs)
        return (params, opt_state), choice.entropy(found, choice.noise(noise, (size,))).mean()

    keys = jax.random.split(key, hyper.minibatches)
    (params, opt_state), entropy = jax.lax.scan(step, (agent.params, agent.opt_state), keys)
    learned = agent.replace(params=params, opt_state=opt_state, moments=moments)
    sound = jax.tree.reduce(lambda ok, x: ok & jnp.isfinite(x).all(), (params, moments), jnp.ones((), bool))
    kept = jax.tree.map(lambda new, old: jnp.where(sound & ~agent.diverged, new, old), learned, agent)
    return kept.replace(diverged=agent.diverged | ~sound), LearnStats(entropy.mean(), jnp.zeros(()))


_CONSTANT = 1e-8
"""The variance of a feature below which it counts as constant."""


def _moments(experts: Experts) -> dict[str, jax.Array]:
    """Of the expert's observations, as `networks.add_moments` keeps them. A feature that is constant in them is not
    scaled: by its deviation of next to nothing what is met in play would be far out."""
    obs, number = experts.obs[experts.of], experts.count[experts.of]
    there, count = (jnp.arange(obs.shape[0]) < number)[:, None], number.astype(jnp.float32)
    mean = jnp.where(there, obs, 0.0).sum(0) / count
    square = jnp.where(there, jnp.square(obs - mean), 0.0).sum(0)
    return {"count": count, "mean": mean, "square": jnp.where(square / count < _CONSTANT, count, square)}
