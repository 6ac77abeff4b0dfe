"""Proximal policy optimisation of one agent, as pure functions; the population vmaps `learn`.

`rollout.collect` comes before it: an iteration is collect, `advantages`, and `epochs` of `update`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxreward.kernels.gae import gae
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.networks import (
    ActorCritic,
    Memory,
    Params,
    Variables,
    add_moments,
    apply,
    new_moments,
    variables_of,
)
from jaxreward.training.reward_scale import MAX_SCALED_REWARD, RewardScale, add_returns, new_scale
from jaxreward.training.rollout import Trajectory


class Agent(struct.PyTreeNode):
    """One learner: parameters, running moments of its observations (None unless they are normalised),
    Adam's moments, the reward scale, whether it is still sound, and the discriminator that pays it (None unless one
    does).

    A diverged agent keeps its last finite parameters and learns no more.
    """

    params: Params
    moments: Any
    opt_state: Any
    scale: RewardScale
    diverged: jax.Array
    discriminator: Any = None

    @property
    def variables(self) -> Variables:
        """What the network is applied with."""
        return variables_of(self.params, self.moments)


class Batch(struct.PyTreeNode):
    """The samples that minibatches are drawn from, in one of three layouts; fields that a layout lacks are None.

    - steps (n, ...): observations, actions, values, advantages and targets.
    - with `fresh_values`, unrolls (n, L, ...), `obs` (n, L + 1, d): rewards, ends and truncations in place of
      advantages and targets, which are computed in the loss.
    - with a GRU, sequences (n, T, ...): advantages and targets, the rewards and ends that the network reads, and its
      memory at the start (n, ...).
    """

    obs: jax.Array
    action: jax.Array
    logp: jax.Array
    value: jax.Array
    advantage: Any = None
    target: Any = None
    reward: Any = None
    done: Any = None
    truncated: Any = None
    memory: Memory | None = None


def optimizer(hyper: PPO) -> optax.GradientTransformation:
    """Clip by global norm, then Adam; the learning rate is applied by `learn`, since it is traced."""
    return optax.chain(
        optax.clip_by_global_norm(hyper.max_grad_norm), optax.scale_by_adam(b1=0.9, b2=0.999, eps=hyper.adam_epsilon)
    )


def new_agent(params: Params, hyper: PPO, width: int) -> Agent:
    """An agent that has learned nothing, for observations of `width` features, padding included."""
    scale = new_scale(hyper.envs, jnp.zeros(()) if hyper.center_values else None)
    moments = new_moments(width) if hyper.normalize_observations else None
    return Agent(params, moments, optimizer(hyper).init(params), scale, jnp.zeros((), bool))


def ppo_loss(params: Params, moments: Any, key: jax.Array, network: ActorCritic, batch: Batch, hyper: PPO) -> jax.Array:
    """The clipped surrogate with value loss and entropy bonus (Schulman et al. 2017, eqs. 7, 9)."""
    policy = network.distribution
    outputs, value = _outputs(network, variables_of(params, moments), batch)
    advantage, target = batch.advantage, batch.target
    if hyper.fresh_values:
        estimate = jax.vmap(lambda r, d, c, v: unroll_advantages(r, d, c, v, hyper))
        advantage, target = estimate(batch.reward, batch.done, batch.truncated, jax.lax.stop_gradient(value))
        outputs, value = outputs[:, :-1], value[:, :-1]
    ratio = jnp.exp(policy.log_prob(outputs, batch.action) - batch.logp)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - hyper.clip, 1 + hyper.clip)
    policy_loss = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
    near = batch.value + jnp.clip(value - batch.value, -hyper.value_clip, hyper.value_clip)
    value_loss = 0.5 * jnp.maximum((value - target) ** 2, (near - target) ** 2).mean()
    bonus = policy.entropy(outputs, policy.noise(key, value.shape)).mean()
    return policy_loss + hyper.value_coefficient * value_loss - hyper.entropy * bonus


def _outputs(network: ActorCritic, variables: Variables, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """The policy's outputs and the values of a batch; with a GRU step by step from what was remembered at its start."""
    if batch.memory is None:
        outputs, value, _ = apply(network, variables, batch.obs)
        return outputs, value

    def step(memory: Memory | None, x: Batch) -> tuple[Memory | None, tuple[jax.Array, jax.Array]]:
        outputs, value, hidden = apply(network, variables, x.obs, memory)
        return network.remember(hidden, x.action, x.reward, x.done), (outputs, value)

    steps = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), batch.replace(memory=None))
    _, found = jax.lax.scan(step, batch.memory, steps)
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), found)


def scaled_rewards(scale: RewardScale, trajectory: Trajectory, hyper: PPO) -> tuple[RewardScale, jax.Array]:
    """Rewards (T, E) times `reward_scale`; with `scale_rewards` over the running root mean square of the discounted
    return, clipped; with `absorbing` that of the last step of an episode for ever, which is not clipped again: what a
    state pays is the same whether it is left or not. With `center_values` those by which values are less by the mean of
    the first update."""
    value, times = _centre(scale, trajectory, hyper), _times(trajectory, hyper)
    rewards = trajectory.reward * times
    if not hyper.scale_rewards:
        kept = scale.replace(value=value, count=scale.count + rewards.size)
        return kept, rewards * hyper.reward_scale + _shift(value, trajectory, hyper) * hyper.reward_scale

    scale = add_returns(scale.replace(value=value), rewards, trajectory.done, hyper.discount)
    unit = scale.unit
    scaled = jnp.clip(trajectory.reward / unit, -MAX_SCALED_REWARD, MAX_SCALED_REWARD) * times
    shifted = scaled + _shift(value, trajectory, hyper) / unit
    return scale, shifted * hyper.reward_scale


def _centre(scale: RewardScale, trajectory: Trajectory, hyper: PPO) -> jax.Array | None:
    """The mean value under the first policy, None unless values are centred: that of a constant reward, the mean of
    the first update, until an episode ends with the probability that one ended at a step."""
    if scale.value is None:
        return None
    ends = 0.0 if hyper.absorbing else _terminal(trajectory, hyper).mean()
    first = trajectory.reward.mean() / (1.0 - hyper.discount * (1.0 - ends))
    return jnp.where(scale.count > 0, scale.value, first)


def _shift(value: jax.Array | None, trajectory: Trajectory, hyper: PPO) -> jax.Array | float:
    """What to add to rewards (T, E) so that every value is less by `value`, and all advantages are what they were."""
    if value is None:
        return 0.0
    return value * (hyper.discount * (1.0 - _terminal(trajectory, hyper)) - 1.0)


def _times(trajectory: Trajectory, hyper: PPO) -> jax.Array | float:
    """How often each reward is paid, discounted (T, E): once, with `absorbing` that of the last step for ever."""
    return jnp.where(_terminal(trajectory, hyper), 1.0 / (1.0 - hyper.discount), 1.0) if hyper.absorbing else 1.0


def _terminal(trajectory: Trajectory, hyper: PPO) -> jax.Array:
    """Where an episode is over, and nothing follows (T, E)."""
    return trajectory.done & ~trajectory.truncated if hyper.bootstrap else trajectory.done


def unroll_advantages(
    reward: jax.Array, done: jax.Array, truncated: jax.Array, values: jax.Array, hyper: PPO
) -> tuple[jax.Array, jax.Array]:
    """Advantages and value targets (L,) of one unroll.

    The value after an episode's last step is that of another episode. So the end of an episode is terminal,
    unless `hyper.bootstrap` distinguishes truncation: a truncated step is masked, its advantage is 0 and its target
    its own value, as in Brax. With `hyper.fresh_values` the advantage is that of one step followed by the
    lambda-return, as in Brax too.

    Args:
        reward, done: (L,); `done` is where an episode ends.
        truncated: where it is the horizon alone that ends it, (L,).
        values: of the states before each step and after the last, (L + 1,).
    """
    mask = ~truncated if hyper.bootstrap else jnp.ones_like(truncated)
    discount = hyper.discount * (1.0 - done)
    advantage = gae(reward, discount, values[:-1], values[1:], hyper.gae_lambda, mask)
    target = advantage + values[:-1]
    if hyper.fresh_values:
        advantage = reward + discount * jnp.concatenate([target[1:], values[-1:]]) - values[:-1]
        advantage = jnp.where(mask, advantage, 0.0)
    return advantage, target


def advantages(trajectory: Trajectory, reward: jax.Array, hyper: PPO) -> tuple[jax.Array, jax.Array]:
    """Advantages and value targets (T, E) from the values that were estimated during collection."""
    unrolls = [_unrolls(x, hyper) for x in (reward, trajectory.done, trajectory.truncated, trajectory.value)]
    per_env = jax.vmap(lambda r, d, c, v: unroll_advantages(r, d, c, v, hyper), in_axes=1, out_axes=1)
    advantage, target = jax.vmap(per_env)(*unrolls)
    return advantage.reshape(reward.shape), target.reshape(reward.shape)


def _unrolls(x: jax.Array, hyper: PPO) -> jax.Array:
    """(T, ...) to (unrolls, L, ...), and (T + 1, ...) to (unrolls, L + 1, ...): with the step that follows."""
    L = hyper.unroll
    if x.shape[0] == hyper.length:
        return x.reshape((hyper.unrolls, L, *x.shape[1:]))
    return jnp.stack([x[k * L : (k + 1) * L + 1] for k in range(hyper.unrolls)])


def batch_of(trajectory: Trajectory, reward: jax.Array, advantage: jax.Array, target: jax.Array, hyper: PPO) -> Batch:
    """The samples of an iteration, in the layout that `hyper` asks for: unrolls with `fresh_values`, sequences
    (E, T, ...) with a GRU, single steps (T E, ...) otherwise."""
    t = trajectory
    if hyper.fresh_values:
        whole = Batch(t.obs, t.action, t.logp, t.value[:-1], reward=reward, done=t.done, truncated=t.truncated)
        return jax.tree.map(lambda x: _flat(jnp.swapaxes(_unrolls(x, hyper), 1, 2)), whole)
    steps = Batch(t.obs[:-1], t.action, t.logp, t.value[:-1], advantage, target)
    if hyper.gru:
        steps = steps.replace(reward=t.reward, done=t.done)
        return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), steps).replace(memory=t.memory)
    return jax.tree.map(_flat, steps)


def _flat(x: jax.Array) -> jax.Array:
    """The first two axes as one."""
    return x.reshape((-1, *x.shape[2:]))


def update(
    params: Params, opt_state: Any, moments: Any, key: jax.Array, rate: jax.Array, batch: Batch,
    network: ActorCritic, hyper: PPO,
) -> tuple[Params, Any]:  # fmt: skip
    """One gradient step on a minibatch, with learning rate `rate`."""
    grads = jax.grad(ppo_loss)(params, moments, key, network, batch, hyper)
    updates, opt_state = optimizer(hyper).update(grads, opt_state, params)
    return optax.apply_updates(params, jax.tree.map(lambda u: -rate * u, updates)), opt_state


def epochs(agent: Agent, batch: Batch, key: jax.Array, progress: jax.Array, network: ActorCritic, hyper: PPO) -> Agent:
    """`hyper.epochs` passes over the samples in new orders, an `update` for each minibatch."""
    n = batch.logp.shape[0]
    rate = hyper.learning_rate * (1.0 - hyper.decay * progress)

    def order(k: jax.Array) -> jax.Array:
        return jax.random.permutation(k, n).reshape(hyper.minibatches, -1)

    def minibatch(carry: tuple[Params, Any], x: tuple[jax.Array, jax.Array]) -> tuple[tuple[Params, Any], None]:
        rows, k = x
        part = jax.tree.map(lambda x: x[rows], batch)
        return update(*carry, agent.moments, k, rate, part, network, hyper), None

    *orders, noise = jax.random.split(key, hyper.epochs + 1)
    rows = jax.vmap(order)(jnp.stack(orders)).reshape(hyper.epochs * hyper.minibatches, -1)
    keys = jax.random.split(noise, len(rows))
    (params, opt_state), _ = jax.lax.scan(minibatch, (agent.params, agent.opt_state), (rows, keys))
    return agent.replace(params=params, opt_state=opt_state)


def learn(
    agent: Agent,
    trajectory: Trajectory,
    finite: jax.Array,
    key: jax.Array,
    progress: jax.Array,
    network: ActorCritic,
    hyper: PPO,
) -> tuple[Agent, LearnStats]:
    """What follows the collection in an iteration of PPO, for one agent.

    Args:
        trajectory: (T, E, ...), as in `Trajectory`.
        finite: whether everything the program computed was finite.
        key: PRNG key for the order of samples and for the estimate of the entropy.
        progress: fraction of the budget that is spent, in [0, 1].

    Returns:
        The agent, unchanged but for `diverged` if anything was not finite, and the statistics.
    """
    scale, reward = scaled_rewards(agent.scale, trajectory, hyper)
    moments = agent.moments
    if moments is not None:
        moments = add_moments(moments, trajectory.obs[:-1])
    advantage, target = advantages(trajectory, reward, hyper)
    batch = batch_of(trajectory, reward, advantage, target, hyper)
    learned = epochs(agent.replace(moments=moments, scale=scale), batch, key, progress, network, hyper)

    fit = 1.0 - (target - trajectory.value[:-1]).var() / (target.var() + 1e-8)
    of_agent = (learned.params, learned.moments, learned.scale)
    sound = jax.tree.reduce(lambda ok, x: ok & jnp.isfinite(x).all(), of_agent, finite)
    kept = jax.tree.map(lambda new, old: jnp.where(sound & ~agent.diverged, new, old), learned, agent)
    return kept.replace(diverged=agent.diverged | ~sound), LearnStats(-trajectory.logp.mean(), fit)
