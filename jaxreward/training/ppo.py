"""Proximal policy optimisation of one agent, as pure functions; the population vmaps `learn`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxreward.kernels.gae import gae
from jaxreward.training.config import PPO
from jaxreward.training.networks import ActorCritic, Params, apply, entropy, log_prob
from jaxreward.training.rollout import Trajectory

# A first reward after long silence is large against the running mean square; one step is not to
# outweigh all before it.
MAX_SCALED_REWARD = 10.0


class RewardScale(struct.PyTreeNode):
    """The running root mean square of the discounted return, by which rewards are divided.

    `ret` (E,) is the discounted sum of past rewards of each running episode, `square` the mean of
    its square over `count` steps. The mean square and not the variance: a constant reward has none.
    """

    ret: jax.Array
    square: jax.Array
    count: jax.Array


class Agent(struct.PyTreeNode):
    """One learner: parameters, Adam's moments, the reward scale, and whether it is still sound.

    A diverged agent keeps its last finite parameters and learns no more.
    """

    params: Params
    opt_state: Any
    scale: RewardScale
    diverged: jax.Array


class LearnStats(struct.PyTreeNode):
    """Scalars of one update: policy entropy and explained variance of the value."""

    entropy: jax.Array
    value_fit: jax.Array


class Batch(struct.PyTreeNode):
    obs: jax.Array
    action: jax.Array
    logp: jax.Array
    value: jax.Array
    advantage: jax.Array
    target: jax.Array


def optimizer(hyper: PPO) -> optax.GradientTransformation:
    """Clip by global norm, then Adam; the learning rate is applied by `learn`, since it is traced."""
    return optax.chain(
        optax.clip_by_global_norm(hyper.max_grad_norm), optax.scale_by_adam(b1=0.9, b2=0.999, eps=hyper.adam_epsilon)
    )


def new_agent(params: Params, hyper: PPO) -> Agent:
    zero = jnp.zeros(())
    scale = RewardScale(ret=jnp.zeros(hyper.envs), square=zero, count=zero)
    return Agent(params, optimizer(hyper).init(params), scale, jnp.zeros((), bool))


def ppo_loss(params: Params, network: ActorCritic, batch: Batch, hyper: PPO) -> jax.Array:
    """The clipped surrogate with value loss and entropy bonus (Schulman et al. 2017, eqs. 7, 9).

    batch leaves (n, ...).
    """
    logits, value = apply(network, params, batch.obs)
    ratio = jnp.exp(log_prob(logits, batch.action) - batch.logp)
    advantage = (batch.advantage - batch.advantage.mean()) / (batch.advantage.std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - hyper.clip, 1 + hyper.clip)
    policy_loss = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
    near = batch.value + jnp.clip(value - batch.value, -hyper.value_clip, hyper.value_clip)
    value_loss = 0.5 * jnp.maximum((value - batch.target) ** 2, (near - batch.target) ** 2).mean()
    bonus = entropy(logits).mean()
    return policy_loss + hyper.value_coefficient * value_loss - hyper.entropy * bonus


def scaled_rewards(
    scale: RewardScale, trajectory: Trajectory, discount: jax.Array | float
) -> tuple[RewardScale, jax.Array]:
    """Rewards (T, E) over the running root mean square of the discounted return."""

    def step(ret: jax.Array, x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, done = x
        ret = discount * ret + reward
        return jnp.where(done, 0.0, ret), ret

    last, returns = jax.lax.scan(step, scale.ret, (trajectory.reward, trajectory.done))
    count = scale.count + returns.size
    square = scale.square + (jnp.square(returns).mean() - scale.square) * returns.size / count
    scaled = trajectory.reward / jnp.sqrt(square + 1e-8)
    return RewardScale(last, square, count), jnp.clip(scaled, -MAX_SCALED_REWARD, MAX_SCALED_REWARD)


def advantages(trajectory: Trajectory, reward: jax.Array, hyper: PPO) -> jax.Array:
    """Generalised advantages (T, E). The end of an episode, the horizon included, is terminal."""
    values = jnp.concatenate([trajectory.value, trajectory.last_value[None]])
    discount = hyper.discount * (1.0 - trajectory.done)
    per_env = jax.vmap(gae, in_axes=(1, 1, 1, 1, None), out_axes=1)
    return per_env(reward, discount, values[:-1], values[1:], hyper.gae_lambda)


def learn(
    agent: Agent,
    trajectory: Trajectory,
    finite: jax.Array,
    key: jax.Array,
    progress: jax.Array,
    network: ActorCritic,
    hyper: PPO,
) -> tuple[Agent, LearnStats]:
    """One PPO update of one agent.

    Args:
        trajectory: (T, E, ...), `last_value` (E,).
        finite: whether everything the program computed was finite.
        key: PRNG key for the order of samples.
        progress: fraction of the budget that is spent, in [0, 1].

    Returns:
        The agent, unchanged but for `diverged` if anything was not finite, and the statistics.
    """
    scale, reward = agent.scale, trajectory.reward
    if hyper.scale_rewards:
        scale, reward = scaled_rewards(scale, trajectory, hyper.discount)
    advantage = advantages(trajectory, reward, hyper)
    target = advantage + trajectory.value
    whole = Batch(trajectory.obs, trajectory.action, trajectory.logp, trajectory.value, advantage, target)
    n = hyper.batch
    flat = jax.tree.map(lambda x: x.reshape((n, *x.shape[2:])), whole)
    rate = hyper.learning_rate * (1.0 - hyper.decay * progress)
    tx = optimizer(hyper)

    def minibatch(carry: tuple[Params, Any], rows: jax.Array) -> tuple[tuple[Params, Any], None]:
        params, opt_state = carry
        batch = jax.tree.map(lambda x: x[rows], flat)
        grads = jax.grad(ppo_loss)(params, network, batch, hyper)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = optax.apply_updates(params, jax.tree.map(lambda u: -rate * u, updates))
        return (params, opt_state), None

    def order(k: jax.Array) -> jax.Array:
        return jax.random.permutation(k, n).reshape(hyper.minibatches, -1)

    rows = jax.vmap(order)(jax.random.split(key, hyper.epochs)).reshape(hyper.epochs * hyper.minibatches, -1)
    (params, opt_state), _ = jax.lax.scan(minibatch, (agent.params, agent.opt_state), rows)

    logp_entropy = -trajectory.logp.mean()
    spread = target.var()
    fit = 1.0 - (target - trajectory.value).var() / (spread + 1e-8)
    learned = Agent(params, opt_state, scale, agent.diverged)
    sound = jax.tree.reduce(lambda ok, x: ok & jnp.isfinite(x).all(), (params, scale), finite)
    kept = jax.tree.map(lambda new, old: jnp.where(sound & ~agent.diverged, new, old), learned, agent)
    return kept.replace(diverged=agent.diverged | ~sound), LearnStats(logp_entropy, fit)
