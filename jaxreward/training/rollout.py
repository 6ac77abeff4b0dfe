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
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.tasks import Task, Telling, measure_of, stepper
from jaxreward.training.distributions import Distribution
from jaxreward.training.measure import Stats
from jaxreward.training.networks import ActorCritic, Memory, Variables, apply
from jaxreward.training.population import Population


class Lanes(struct.PyTreeNode):
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
    (T + 1, C, S, E, d) and `value` (T + 1, C, S, E) hold one step more, the one that follows. `cut` is
    where an episode ends by the horizon and not by the task; `memory` is what was remembered at the start, leaves
    (C, S, E, ...)."""

    obs: jax.Array
    action: jax.Array
    logp: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    cut: jax.Array
    memory: Memory | None = None


def reset_pool(task: Task, keys: jax.Array, envs: int) -> Any:
    """Fresh initial states, leaves (S, E, ...), from the seeds' keys (S,)."""
    return jax.vmap(lambda key: jax.vmap(task.reset)(jax.random.split(key, envs)))(keys)


def start_lanes(task: Task, pool: Any, candidates: int, network: ActorCritic | None = None) -> Lanes:
    """Episodes at their first step, the same initial states for every candidate; `network` says what a recurrent agent
    remembers."""
    seeds, envs = jax.tree.leaves(pool)[0].shape[:2]
    shape = (candidates, seeds, envs)
    spread = lambda tree: jax.tree.map(lambda x: jnp.broadcast_to(x[None], (candidates, *x.shape)), tree)  # noqa: E731
    metric = jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (*shape, *jnp.shape(x))), task.score().init())
    zeros = jnp.zeros(shape, jnp.int32)
    memory = network.memory(shape) if network is not None else None
    return Lanes(state=spread(pool), elapsed=zeros, episode=zeros, metric=metric, ret=jnp.zeros(shape), memory=memory)


def collect(
    task: Task,
    population: Population,
    network: ActorCritic,
    length: int,
    repeat: int,
    platform: str,
    constants: jax.Array,
    variables: Variables,
    lanes: Lanes,
    pool: Any,
    noise: jax.Array,
    stats: Stats,
) -> tuple[Lanes, Trajectory, Stats]:
    """Take `length` actions in every environment, each for `repeat` steps.

    Args:
        platform: of the device: `cpu`, `gpu` or `tpu`.
        constants: of the rewards, as the population has them.
        variables: of the network, leaves (C, S, ...).
        lanes: the running episodes; one that ends is replaced from the pool.
        pool: fresh initial states, leaves (S, E, ...).
        noise: of every step, (length + 1, S, E, ...), as `action_noise` draws it.
        stats: accumulators, added to.

    Returns:
        The episodes after `length` actions, the trajectory, and the statistics with these.
    """
    moves = Moves(task, network, platform, *lanes.elapsed.shape)

    def advance(lanes: Lanes, view: Any, action: jax.Array) -> tuple[Lanes, _Step]:
        """One step of every environment, whatever ends with it."""
        moved, next_view, terminated = moves.move(lanes, action)
        next_view = _apart(next_view, lanes.elapsed, platform)
        raw_reward, terms = population.reward(constants, view, moves.by_program(action), next_view)
        reward, terms = moves.split_programs(raw_reward), moves.split_programs(terms)
        finite = jnp.isfinite(reward)
        reward = jnp.nan_to_num(reward, nan=0.0, posinf=0.0, neginf=0.0)
        late = moved.elapsed >= task.horizon
        return moved.replace(ret=lanes.ret + reward), _Step(reward, terms, finite, terminated, late)

    def advance_again(carry: tuple[Lanes, _Step], action: jax.Array) -> tuple[Lanes, _Step]:
        """One step more with the same action, where the episode goes on."""
        lanes, so_far = carry
        ended = so_far.terminated | so_far.late
        moved, step = advance(lanes, moves.view(lanes), action)
        step = step.replace(
            reward=so_far.reward + step.reward, terms=so_far.terms + step.terms, finite=so_far.finite & step.finite
        )
        keep = lambda old, new: _where(ended, old, new)  # noqa: E731
        return jax.tree.map(keep, lanes, moved), jax.tree.map(keep, so_far, step)

    def step(carry: tuple[Lanes, Stats], at: tuple[jax.Array, jax.Array]) -> tuple[tuple[Lanes, Stats], Any]:
        (lanes, stats), (t, noise) = carry, at
        view = moves.view(lanes)
        chosen = moves.choose(variables, moves.split_programs(population.observe(view)), lanes.memory, noise)
        ended, taken = advance(lanes, view, chosen.action)
        if repeat > 1:
            again = lambda _, carry: advance_again(carry, chosen.action)  # noqa: E731
            ended, taken = jax.lax.fori_loop(1, repeat, again, (ended, taken))
        finite, done = chosen.finite & taken.finite.all(-1), taken.terminated | taken.late
        success, beside = moves.values(ended)
        commit = t < length
        ends = (success, ended.ret, ended.elapsed, beside)
        new_stats = stats.add(chosen.obs, taken.terms, finite, done, lanes.episode, *ends)
        stats = jax.tree.map(lambda new, old: jnp.where(commit, new, old), new_stats, stats)
        following = moves.begin_again(ended, done, pool, t)
        following = following.replace(memory=network.remember(chosen.hidden, chosen.sample, taken.reward, done))
        following = jax.tree.map(lambda new, old: jnp.where(commit, new, old), following, lanes)
        cut = taken.late & ~taken.terminated
        return (following, stats), (chosen.obs, chosen.sample, chosen.logp, chosen.value, taken.reward, done, cut)

    memory = lanes.memory
    (lanes, stats), out = jax.lax.scan(step, (lanes, stats), (jnp.arange(length + 1), noise))
    obs, action, logp, value, reward, done, cut = out
    return lanes, Trajectory(obs, action[:-1], logp[:-1], value, reward[:-1], done[:-1], cut[:-1], memory), stats


class Choice(struct.PyTreeNode):
    """What an agent saw and chose: `obs` (C, S, E, d) and whether all of it was finite (C, S), the action and the
    sample that it was made of, its log-probability and the value, and the hidden state of a recurrent agent."""

    obs: jax.Array
    finite: jax.Array
    action: jax.Array
    sample: jax.Array
    logp: jax.Array
    value: jax.Array
    hidden: jax.Array | None


@dataclass(frozen=True)
class Moves:
    """A step of C x S x E environments but for what programs compute of it.

    Views, actions and observations of programs have leading axes (C, S E); all else has (C, S, E).
    """

    task: Task
    network: ActorCritic
    platform: str
    candidates: int
    seeds: int
    envs: int

    def _join(self, tree: Any) -> Any:
        lanes = self.candidates * self.seeds * self.envs
        return jax.tree.map(lambda x: x.reshape((lanes, *x.shape[3:])), tree)

    def _split(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape((self.candidates, self.seeds, self.envs, *x.shape[1:])), tree)

    def by_program(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape((self.candidates, self.seeds * self.envs, *x.shape[3:])), tree)

    def split_programs(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape((self.candidates, self.seeds, self.envs, *x.shape[2:])), tree)

    def _views(self, states: Any) -> Any:
        """Of states (lanes, ...), as programs see them."""
        seen = jax.vmap(self.task.view)(states)
        return jax.tree.map(lambda x: x.reshape((self.candidates, self.seeds * self.envs, *x.shape[1:])), seen)

    def view(self, lanes: Lanes) -> Any:
        return self._views(self._join(lanes.state))

    def choose(self, variables: Variables, raw_obs: jax.Array, memory: Memory | None, noise: jax.Array) -> Choice:
        """The actions of a step by observations (C, S, E, d) and noise (S, E, ...)."""
        over = self.network.distribution
        obs = jnp.nan_to_num(raw_obs, nan=0.0, posinf=0.0, neginf=0.0)
        agents = jax.vmap(jax.vmap(lambda v, o, m: apply(self.network, v, o, m)))
        outputs, value, hidden = agents(variables, obs, memory)
        sample = over.sample(outputs, noise[None])
        finite = jnp.isfinite(raw_obs).all((-1, -2))
        return Choice(obs, finite, over.action(sample), sample, over.log_prob(outputs, sample), value, hidden)

    def move(self, lanes: Lanes, action: jax.Array) -> tuple[Lanes, Any, jax.Array]:
        """The episodes after an action, with `ret` as it was; what programs see of them then; whether they ended."""
        metric = self.task.score()
        before, flat = self._join(lanes.state), self._join(action)
        after = stepper(self.task, self.platform)(before, flat)
        acc = jax.vmap(metric.update)(self._join(lanes.metric), before, flat, after)
        moved = lanes.replace(state=self._split(after), elapsed=lanes.elapsed + 1, metric=self._split(acc))
        return moved, self._views(after), self._split(jax.vmap(self.task.terminated)(after))

    def values(self, ended: Lanes) -> tuple[jax.Array, jax.Array]:
        """What the metric would say if every episode ended here, and what it tells beside, (C, S, E, B)."""
        metric, measure = self.task.score(), measure_of(self.task)
        acc = self._join(ended.metric)
        value = self._split(jax.vmap(metric.value)(acc))
        # nothing counts as less than the worst, or to diverge would be better than an honest failure
        bounded = jnp.maximum if measure.higher_is_better else jnp.minimum
        value = bounded(measure.worst, jnp.where(jnp.isfinite(value), value, measure.worst))
        if isinstance(metric, Telling):
            return value, self._split(jax.vmap(metric.also)(acc))
        return value, jnp.zeros((self.candidates, self.seeds, self.envs, 0))

    def begin_again(self, ended: Lanes, done: jax.Array, pool: Any, t: jax.Array) -> Lanes:
        """The episodes that follow step `t`: fresh ones where one is `done`. What agents remember stays."""
        # A lane that ends at step t takes entry e + t of the pool, so that no two lanes that end
        # at the same step share a level.
        fresh = start_lanes(self.task, jax.tree.map(lambda x: _from(x, t % self.envs), pool), 1)
        ended = ended.replace(episode=ended.episode + done)
        fresh = fresh.replace(episode=ended.episode, memory=ended.memory)
        return jax.tree.map(lambda new, old: _where(done, new, old), fresh, ended)


class _Step(struct.PyTreeNode):
    """What came of an action: (C, S, E), terms (C, S, E, K)."""

    reward: jax.Array
    terms: jax.Array
    finite: jax.Array
    terminated: jax.Array
    late: jax.Array


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
