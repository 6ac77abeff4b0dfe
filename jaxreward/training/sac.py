"""Soft actor-critic of one agent (Haarnoja et al. 2018, arXiv 1812.05905), as pure functions; the population vmaps
`learn`. Losses and their order are Brax's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.networks import Params, Variables, add_moments, apply, new_moments, variables_of
from jaxreward.training.replay import Replay, Transitions, add, new_replay, sample
from jaxreward.training.reward_scale import MAX_SCALED_REWARD, RewardScale, add_returns, new_scale
from jaxreward.training.rollout import Trajectory
from jaxreward.training.sac_hyperparameters import SAC
from jaxreward.training.soft_networks import SoftActor, SoftCritic, both, seen


class Learned(struct.PyTreeNode):
    """What gradient steps change: `params` of `actor` and `critic`, the critic's `target`, the logarithm of the
    temperature, and Adam's moments of all three."""

    params: Params
    target: Params
    log_temperature: jax.Array
    opt_state: Any


class SoftAgent(struct.PyTreeNode):
    """One learner: what it learned, running moments of its observations (None unless they are normalised), the reward
    scale, what it remembers to learn from, and whether it is still sound.

    A diverged agent keeps its last finite parameters and learns no more.
    """

    learned: Learned
    moments: Any
    scale: RewardScale
    replay: Replay
    diverged: jax.Array

    @property
    def params(self) -> Params:
        return self.learned.params

    @property
    def variables(self) -> Variables:
        """What the policy is applied with."""
        return variables_of(self.params["actor"], self.moments)


def new_agent(params: Params, hyper: SAC, width: int, network: SoftActor) -> SoftAgent:
    """An agent that has learned nothing, for observations of `width` features, padding included."""
    adam = _adam(hyper)
    log_temperature = jnp.log(jnp.float32(hyper.temperature))
    opt_state = {name: adam.init(params[name]) for name in ("actor", "critic")}
    opt_state["temperature"] = adam.init(log_temperature)
    return SoftAgent(
        learned=Learned(params, jax.tree.map(jnp.copy, params["critic"]), log_temperature, opt_state),
        moments=new_moments(width) if hyper.normalize_observations else None,
        scale=new_scale(hyper.envs),
        replay=new_replay(hyper.rows, hyper.envs, width, network.distribution.encoded),
        diverged=jnp.zeros((), bool),
    )


def learn(
    agent: SoftAgent, trajectory: Trajectory, finite: jax.Array, key: jax.Array, update: jax.Array,
    network: SoftActor, hyper: SAC,
) -> tuple[SoftAgent, LearnStats]:  # fmt: skip
    """What follows the collection in an iteration of SAC, for one agent.

    Args:
        trajectory: (T, E, ...), as in `Trajectory`.
        finite: whether everything the program computed was finite.
        key: PRNG key for the choice of transitions and of actions.
        update: the number of this iteration, from 0.

    Returns:
        The agent, unchanged but for its replay buffer and `diverged` if anything was not finite, and the statistics.
    """
    replay = add(agent.replay, trajectory, update)
    moments, scale = agent.moments, agent.scale
    if moments is not None:
        moments = add_moments(moments, trajectory.obs[:-1])
    if hyper.scale_rewards:
        scale = add_returns(scale, trajectory.reward, trajectory.done, hyper.discount)
    critic = SoftCritic.of(hyper)

    def step(learned: Learned, key: jax.Array) -> tuple[Learned, jax.Array]:
        drawn, acting = jax.random.split(key)
        batch = sample(replay, drawn, update, hyper.length, hyper.batch_size)
        return gradient_step(learned, _as_read(batch, moments, scale, network, hyper), acting, network, critic, hyper)

    def steps(learned: Learned) -> tuple[Learned, jax.Array]:
        learned, fit = jax.lax.scan(step, learned, jax.random.split(key, hyper.updates))
        return learned, fit[-1]

    ready = (update + 1) * hyper.envs * hyper.length >= hyper.warmup
    learned, fit = jax.lax.cond(ready, steps, lambda learned: (learned, jnp.zeros(())), agent.learned)
    sound = jax.tree.reduce(lambda ok, x: ok & jnp.isfinite(x).all(), (learned, moments, scale), finite)
    new, old = (learned, moments, scale), (agent.learned, agent.moments, agent.scale)
    learned, moments, scale = jax.tree.map(lambda a, b: jnp.where(sound & ~agent.diverged, a, b), new, old)
    after = SoftAgent(learned, moments, scale, replay, agent.diverged | ~sound)
    return after, LearnStats(-trajectory.logp.mean(), fit)


def _as_read(batch: Transitions, moments: Any, scale: RewardScale, network: SoftActor, hyper: SAC) -> Transitions:
    """Transitions as networks read them: observations normalised, rewards in units of their returns."""
    reward = batch.reward
    if hyper.scale_rewards:
        reward = jnp.clip(reward / scale.unit, -MAX_SCALED_REWARD, MAX_SCALED_REWARD)
    return batch.replace(
        obs=seen(moments, batch.obs, network.clip), following=seen(moments, batch.following, network.clip),
        reward=reward * hyper.reward_scale,
    )  # fmt: skip


def gradient_step(
    learned: Learned, batch: Transitions, key: jax.Array, network: SoftActor, critic: SoftCritic, hyper: SAC
) -> tuple[Learned, jax.Array]:
    """One step of the temperature, both values and the policy, each by the others as they were; also the explained
    variance of the first value."""
    choice, raw = network.distribution, network.clone(normalize=False, clip=float("inf"))
    temperature = jnp.exp(learned.log_temperature)
    keys = jax.random.split(key, 3)

    def act(actor: Params, obs: jax.Array, k: jax.Array) -> tuple[jax.Array, jax.Array]:
        outputs, _, _ = apply(raw, {"params": actor}, obs)
        chosen = choice.sample(outputs, choice.noise(k, obs.shape[:-1]))
        return choice.encode(chosen), choice.log_prob(outputs, chosen)

    values = lambda params, obs, action: both(critic, params, obs, action, hyper.precision)  # noqa: E731

    _, logp = act(learned.params["actor"], batch.obs, keys[0])
    wanted = hyper.target_entropy * choice.encoded

    def temperature_loss(log_temperature: jax.Array) -> jax.Array:
        return (jnp.exp(log_temperature) * jax.lax.stop_gradient(-logp - wanted)).mean()

    action, next_logp = act(learned.params["actor"], batch.following, keys[1])
    following = values(learned.target, batch.following, action).min(0) - temperature * next_logp
    target = batch.reward + hyper.discount * jnp.where(batch.terminated, 0.0, following)
    taken = choice.encode(batch.action)

    def critic_loss(params: Params) -> tuple[jax.Array, jax.Array]:
        known = values(params, batch.obs, taken)
        error = jnp.where(batch.truncated, 0.0, known - target)
        return 0.5 * jnp.square(error).mean(), known[0]

    def actor_loss(params: Params) -> jax.Array:
        action, logp = act(params, batch.obs, keys[2])
        return (temperature * logp - values(learned.params["critic"], batch.obs, action).min(0)).mean()

    adam, rates = _adam(hyper), (hyper.temperature_learning_rate, hyper.learning_rate)
    gradient, known = jax.grad(critic_loss, has_aux=True)(learned.params["critic"])
    log_temperature, of_temperature = _moved(
        adam, learned.log_temperature, jax.grad(temperature_loss)(learned.log_temperature),
        learned.opt_state["temperature"], rates[0], 0.0,
    )  # fmt: skip
    new_critic, of_critic = _moved(
        adam, learned.params["critic"], gradient, learned.opt_state["critic"], rates[1], hyper.weight_decay
    )
    new_actor, of_actor = _moved(
        adam, learned.params["actor"], jax.grad(actor_loss)(learned.params["actor"]), learned.opt_state["actor"],
        rates[1], hyper.weight_decay,
    )  # fmt: skip
    moved = jax.tree.map(lambda old, new: old + hyper.tau * (new - old), learned.target, new_critic)
    after = Learned(
        {"actor": new_actor, "critic": new_critic}, moved, log_temperature,
        {"actor": of_actor, "critic": of_critic, "temperature": of_temperature},
    )  # fmt: skip
    return after, 1.0 - (target - known).var() / (target.var() + 1e-8)


def _adam(hyper: SAC) -> optax.GradientTransformation:
    """Adam without a learning rate, which is traced and applied by `_moved`."""
    return optax.scale_by_adam(eps=hyper.adam_epsilon)


def _moved(
    adam: optax.GradientTransformation, params: Params, gradient: Params, state: Any, rate: Any, decay: Any
) -> tuple[Params, Any]:
    """Parameters and Adam's moments after one step, with decoupled weight decay of matrices."""
    steps, state = adam.update(gradient, state)

    def move(path: Any, x: jax.Array, step: jax.Array) -> jax.Array:
        matrix = bool(path) and path[-1].key == "kernel"
        return x - rate * (step + decay * x if matrix else step)

    return jax.tree_util.tree_map_with_path(move, params, steps), state
