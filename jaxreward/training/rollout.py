"""Collecting experience: every candidate, seed and environment steps together.

Axes are named C (candidates), S (seeds), E (environments) and T (steps of an unroll). Random
numbers are drawn per seed and shared by all candidates, so that a candidate's experience depends
on its program and its seed alone, and comparisons are paired: same levels, same action noise.

The scan takes T + 1 steps and commits T: the last one only supplies the value to bootstrap from,
and is taken again, from the same state, by the next call. So observations are never carried, and
every program appears exactly once in the compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.tasks import ExtraMetrics, Task, batched_step
from jaxreward.tasks.metrics import episode_value, extra_values
from jaxreward.training.distributions import Distribution
from jaxreward.training.networks import Memory, PolicyNetwork, Variables, apply
from jaxreward.training.population import Population
from jaxreward.training.rollout_statistics import Stats


class RolloutState(struct.PyTreeNode):
    """The running episodes: every leaf has leading axes (C, S, E).

    `elapsed` counts steps of the episode, `episode` the episodes that ended before it, `metric`
    is the task metric's accumulator and `ret` the undiscounted return so far; `memory` is what a recurrent agent
    remembers, None for others.
    """

    state: Any
    elapsed: jax.Array
    episode: jax.Array
    metric: Any
    ret: jax.Array
    memory: Memory | None = None


class Trajectory(struct.PyTreeNode):
    """What the learner learns from: (T, C, S, E), actions as the distribution samples them. `obs`
    (T + 1, C, S, E, d) and `value` (T + 1, C, S, E) hold one step more, the one that follows. `truncated` is
    where an episode ends by the horizon and not by the task; `memory` is what was remembered at the start, leaves
    (C, S, E, ...)."""

    obs: jax.Array
    action: jax.Array
    logp: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    truncated: jax.Array
    memory: Memory | None = None


def reset_pool(task: Task, keys: jax.Array, envs: int) -> Any:
    """Fresh initial states, leaves (S, E, ...), from the seeds' keys (S,)."""
    return jax.vmap(lambda key: jax.vmap(task.reset)(jax.random.split(key, envs)))(keys)


def start_rollout(task: Task, pool: Any, candidates: int, network: PolicyNetwork | None = None) -> RolloutState:
    """Episodes at their first step, the same initial states for every candidate; `network` says what a recurrent agent
    remembers."""
    seeds, envs = jax.tree.leaves(pool)[0].shape[:2]
    shape = (candidates, seeds, envs)
    spread = lambda tree: jax.tree.map(lambda x: jnp.broadcast_to(x[None], (candidates, *x.shape)), tree)  # noqa: E731
    metric = jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (*shape, *jnp.shape(x))), task.score().init())
    zeros = jnp.zeros(shape, jnp.int32)
    memory = network.memory(shape) if network is not None else None
    return RolloutState(
        state=spread(pool), elapsed=zeros, episode=zeros, metric=metric, ret=jnp.zeros(shape), memory=memory
    )


def collect(
    task: Task,
    population: Population,
    network: PolicyNetwork,
    length: int,
    repeat: int,
    platform: str,
    data: Any,
    variables: Variables,
    rollout: RolloutState,
    pool: Any,
    noise: jax.Array,
    stats: Stats,
) -> tuple[RolloutState, Trajectory, Stats]:
    """Take `length` actions in every environment, each for `repeat` steps.

    Args:
        platform: of the device: `cpu`, `gpu` or `tpu`.
        data: of the population.
        variables: of the network, leaves (C, S, ...).
        rollout: the running episodes; one that ends is replaced from the pool.
        pool: fresh initial states, leaves (S, E, ...).
        noise: of every step, (length + 1, S, E, ...), as `action_noise` draws it.
        stats: accumulators, added to.

    Returns:
        The episodes after `length` actions, the trajectory, and the statistics with these.
    """
    env = PopulationEnv(task, network, platform, *rollout.elapsed.shape)

    def advance(rollout: RolloutState, view: Any, action: jax.Array) -> tuple[RolloutState, EnvStep]:
        """One step of every environment, whatever ends with it."""
        moved, next_view, terminated = env.move(rollout, action)
        next_view = _apart(next_view, rollout.elapsed, platform)
        raw_reward, terms = population.reward(data, view, env.by_program(action), next_view)
        reward, terms = env.split_programs(raw_reward), env.split_programs(terms)
        finite = jnp.isfinite(reward)
        reward = finite_or_zero(reward)
        truncated = (moved.elapsed >= task.horizon) & ~terminated
        return moved.replace(ret=rollout.ret + reward), EnvStep(reward, terms, finite, terminated, truncated)

    def advance_again(carry: tuple[RolloutState, EnvStep], action: jax.Array) -> tuple[RolloutState, EnvStep]:
        """One step more with the same action, where the episode goes on."""
        rollout, so_far = carry
        ended = so_far.terminated | so_far.truncated
        moved, step = advance(rollout, env.view(rollout), action)
        step = step.replace(
            reward=so_far.reward + step.reward, terms=so_far.terms + step.terms, finite=so_far.finite & step.finite
        )
        keep = lambda old, new: _where(ended, old, new)  # noqa: E731
        return jax.tree.map(keep, rollout, moved), jax.tree.map(keep, so_far, step)

    def step(
        carry: tuple[RolloutState, Stats], at: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[RolloutState, Stats], Any]:
        (rollout, stats), (t, noise) = carry, at
        view = env.view(rollout)
        chosen = env.choose(variables, env.split_programs(population.observe(data, view)), rollout.memory, noise)
        ended, taken = advance(rollout, view, chosen.action)
        if repeat > 1:
            again = lambda _, carry: advance_again(carry, chosen.action)  # noqa: E731
            ended, taken = jax.lax.fori_loop(1, repeat, again, (ended, taken))
        finite, done = chosen.finite & taken.finite, taken.terminated | taken.truncated
        success, extra = env.values(ended)
        commit = t < length
        ends = (success, ended.ret, ended.elapsed, extra)
        new_stats = stats.add(chosen.obs, taken.terms, finite, done, rollout.episode, *ends)
        stats = jax.tree.map(lambda new, old: jnp.where(commit, new, old), new_stats, stats)
        following = env.reset_done(ended, done, pool, t)
        following = following.replace(memory=network.remember(chosen.hidden, chosen.sample, taken.reward, done))
        following = jax.tree.map(lambda new, old: jnp.where(commit, new, old), following, rollout)
        out = (chosen.obs, chosen.sample, chosen.logp, chosen.value, taken.reward, done, taken.truncated)
        return (following, stats), out

    memory = rollout.memory
    (rollout, stats), out = jax.lax.scan(step, (rollout, stats), (jnp.arange(length + 1), noise))
    obs, action, logp, value, reward, done, truncated = out
    return (
        rollout,
        Trajectory(obs, action[:-1], logp[:-1], value, reward[:-1], done[:-1], truncated[:-1], memory),
        stats,
    )


class PolicyOutput(struct.PyTreeNode):
    """What an agent saw and chose: `obs` (..., d) and whether all of it was `finite` (...), the action and the sample
    that it was made of, its log-probability and the value, and the hidden state of a recurrent agent."""

    obs: jax.Array
    finite: jax.Array
    action: jax.Array
    sample: jax.Array
    logp: jax.Array
    value: jax.Array
    hidden: jax.Array | None


def finite_or_zero(x: jax.Array) -> jax.Array:
    """`x` with 0 in place of NaN and infinities: what learners get of observations and rewards."""
    return jnp.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def act(
    network: PolicyNetwork, variables: Variables, raw_obs: jax.Array, memory: Memory | None, noise: jax.Array
) -> PolicyOutput:
    """The actions of one agent by observations (..., d) and noise (..., ...)."""
    policy = network.distribution
    obs = finite_or_zero(raw_obs)
    outputs, value, hidden = apply(network, variables, obs, memory)
    sample = policy.sample(outputs, noise)
    logp = policy.log_prob(outputs, sample)
    return PolicyOutput(obs, jnp.isfinite(raw_obs).all(-1), policy.action(sample), sample, logp, value, hidden)


_BLOCK = 512
"""Environments whose recurrent agents act at a time on a CPU: what a product of so many rows writes stays in the cache
(benchmarks/plain_trainer.py)."""


def act_in_blocks(
    blocks: int,
    network: PolicyNetwork,
    variables: Variables,
    raw_obs: jax.Array,
    memory: Memory | None,
    noise: jax.Array,
) -> PolicyOutput:
    """`act` on observations (E, d), so many blocks of them one after the other."""
    rows = jax.tree.map(lambda x: x.reshape((blocks, -1, *x.shape[1:])), (raw_obs, memory, noise))
    found = jax.lax.map(lambda block: act(network, variables, *block), rows)
    return jax.tree.map(lambda x: x.reshape((-1, *x.shape[2:])), found)


@dataclass(frozen=True)
class PopulationEnv:
    """A step of C x S x E environments but for what programs compute of it.

    Views, actions and observations of programs have leading axes (C, S E); all else has (C, S, E).
    """

    task: Task
    network: PolicyNetwork
    platform: str
    candidates: int
    seeds: int
    envs: int

    def _join(self, tree: Any) -> Any:
        count = self.candidates * self.seeds * self.envs
        return jax.tree.map(lambda x: x.reshape((count, *x.shape[3:])), tree)

    def _split(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape((self.candidates, self.seeds, self.envs, *x.shape[1:])), tree)

    def by_program(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape((self.candidates, self.seeds * self.envs, *x.shape[3:])), tree)

    def split_programs(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape((self.candidates, self.seeds, self.envs, *x.shape[2:])), tree)

    def _views(self, states: Any) -> Any:
        """Views of states (C S E, ...), leaves (C, S E, ...)."""
        seen = jax.vmap(self.task.view)(states)
        return jax.tree.map(lambda x: x.reshape((self.candidates, self.seeds * self.envs, *x.shape[1:])), seen)

    def view(self, rollout: RolloutState) -> Any:
        return self._views(self._join(rollout.state))

    def choose(self, variables: Variables, raw_obs: jax.Array, memory: Memory | None, noise: jax.Array) -> PolicyOutput:
        """The actions of a step by observations (C, S, E, d) and noise (S, E, ...)."""
        in_blocks = self.platform == "cpu" and self.network.gru > 0 and self.envs % _BLOCK == 0
        one = partial(act_in_blocks, self.envs // _BLOCK) if in_blocks else act
        over_seeds = jax.vmap(partial(one, self.network))
        return jax.vmap(over_seeds, in_axes=(0, 0, 0, None))(variables, raw_obs, memory, noise)

    def move(self, rollout: RolloutState, action: jax.Array) -> tuple[RolloutState, Any, jax.Array]:
        """The episodes after an action, with `ret` as it was; what programs see of them then; whether they ended."""
        metric = self.task.score()
        before, flat = self._join(rollout.state), self._join(action)
        after = batched_step(self.task, self.platform)(before, flat)
        acc = jax.vmap(metric.update)(self._join(rollout.metric), before, flat, after)
        moved = rollout.replace(state=self._split(after), elapsed=rollout.elapsed + 1, metric=self._split(acc))
        return moved, self._views(after), self._split(jax.vmap(self.task.terminated)(after))

    def values(self, ended: RolloutState) -> tuple[jax.Array, jax.Array]:
        """What the metric would say if every episode ended here, and its extra metrics, (C, S, E, B)."""
        metric, acc = self.task.score(), self._join(ended.metric)
        value = self._split(jax.vmap(partial(episode_value, metric))(acc))
        if isinstance(metric, ExtraMetrics):
            return value, self._split(jax.vmap(partial(extra_values, metric))(acc))
        return value, jnp.zeros((self.candidates, self.seeds, self.envs, 0))

    def reset_done(self, ended: RolloutState, done: jax.Array, pool: Any, t: jax.Array) -> RolloutState:
        """The episodes that follow step `t`: fresh ones where one is `done`. What agents remember stays."""
        # An environment whose episode ends at step t takes entry e + t of the pool, so that no two that end
        # at the same step share a level.
        fresh = start_rollout(self.task, jax.tree.map(lambda x: _from(x, t % self.envs), pool), 1)
        ended = ended.replace(episode=ended.episode + done)
        fresh = fresh.replace(episode=ended.episode, memory=ended.memory)
        return jax.tree.map(lambda new, old: _where(done, new, old), fresh, ended)


class EnvStep(struct.PyTreeNode):
    """What came of an action: (C, S, E), terms (C, S, E, K). `terminated` is where the task ended the episode,
    `truncated` where the horizon alone did."""

    reward: jax.Array
    terms: jax.Array
    finite: jax.Array
    terminated: jax.Array
    truncated: jax.Array


def action_noise(over: Distribution, envs: int, steps: int, keys: jax.Array) -> jax.Array:
    """The noise of the actions of so many steps, (steps, S, E, ...), from the seeds' keys (S,)."""

    def at(t: jax.Array) -> jax.Array:
        return jax.vmap(lambda key: over.noise(jax.random.fold_in(key, t), (envs,)))(keys)

    return jax.vmap(at)(jnp.arange(steps))


def _from(x: jax.Array, first: jax.Array) -> jax.Array:
    """`x` (S, E, ...) from environment `first` on, the ones before it last."""
    return jax.lax.dynamic_slice_in_dim(jnp.concatenate([x, x], 1), first, x.shape[1], axis=1)


def _apart(views: Any, elapsed: jax.Array, platform: str) -> Any:
    """The same views, in memory. On CPU a compiler that may fuse them repeats the environment in every function of a
    program that reads them; it drops optimization barriers, and a condition that only the run knows stops it."""
    if platform != "cpu":
        return views
    return jax.lax.cond(elapsed.ravel()[0] >= 0, lambda x: x, lambda x: jax.tree.map(jnp.zeros_like, x), views)


def _where(done: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    return jnp.where(done.reshape(done.shape + (1,) * (old.ndim - done.ndim)), new, old)
