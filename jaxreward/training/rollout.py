"""Collecting experience: every candidate, seed and environment steps together.

Axes are named C (candidates), S (seeds), E (environments) and T (steps of an unroll). Random
numbers are drawn per seed and shared by all candidates, so that a candidate's experience depends
on its program and its seed alone, and comparisons are paired: same levels, same action noise.

The scan takes T + 1 steps and commits T: the last one only supplies the value to bootstrap from,
and is taken again, from the same state, by the next call. So observations are never carried, and
every program appears exactly once in the compiled code.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.tasks import Task, Telling, measure_of, stepper
from jaxreward.training.measure import Stats
from jaxreward.training.networks import ActorCritic, Variables, apply
from jaxreward.training.population import Constants, Population


class Lanes(struct.PyTreeNode):
    """The running episodes: every leaf has leading axes (C, S, E).

    `elapsed` counts steps of the episode, `episode` the episodes that ended before it, `metric`
    is the task metric's accumulator and `ret` the undiscounted return so far.
    """

    state: Any
    elapsed: jax.Array
    episode: jax.Array
    metric: Any
    ret: jax.Array


class Trajectory(struct.PyTreeNode):
    """What the learner learns from: (T, C, S, E), actions as the distribution samples them. `obs`
    (T + 1, C, S, E, d) and `value` (T + 1, C, S, E) hold one step more, the one that follows. `cut` is
    where an episode ends by the horizon and not by the task."""

    obs: jax.Array
    action: jax.Array
    logp: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    cut: jax.Array


def reset_pool(task: Task, keys: jax.Array, envs: int) -> Any:
    """Fresh initial states, leaves (S, E, ...), from the seeds' keys (S,)."""
    return jax.vmap(lambda key: jax.vmap(task.reset)(jax.random.split(key, envs)))(keys)


def start_lanes(task: Task, pool: Any, candidates: int) -> Lanes:
    """Episodes at their first step, the same initial states for every candidate."""
    seeds, envs = jax.tree.leaves(pool)[0].shape[:2]
    shape = (candidates, seeds, envs)
    spread = lambda tree: jax.tree.map(lambda x: jnp.broadcast_to(x[None], (candidates, *x.shape)), tree)  # noqa: E731
    metric = jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (*shape, *jnp.shape(x))), task.score().init())
    zeros = jnp.zeros(shape, jnp.int32)
    return Lanes(state=spread(pool), elapsed=zeros, episode=zeros, metric=metric, ret=jnp.zeros(shape))


def collect(
    task: Task,
    population: Population,
    network: ActorCritic,
    length: int,
    repeat: int,
    platform: str,
    constants: Constants,
    variables: Variables,
    lanes: Lanes,
    pool: Any,
    keys: jax.Array,
    stats: Stats,
) -> tuple[Lanes, Trajectory, Stats]:
    """Take `length` actions in every environment, each for `repeat` steps.

    Args:
        platform: of the device: `cpu`, `gpu` or `tpu`.
        constants: of the rewards.
        variables: of the network, leaves (C, S, ...).
        lanes: the running episodes; one that ends is replaced from the pool.
        pool: fresh initial states, leaves (S, E, ...).
        keys: PRNG keys of the seeds for this call, (S,).
        stats: accumulators, added to.

    Returns:
        The episodes after `length` actions, the trajectory, and the statistics with these.
    """
    C, S, E = lanes.elapsed.shape
    metric, measure = task.score(), measure_of(task)
    # nothing counts as less than the worst, or to diverge would be better than an honest failure
    bounded = partial(jnp.maximum if measure.higher_is_better else jnp.minimum, measure.worst)
    join = lambda tree: jax.tree.map(lambda x: x.reshape((C * S * E, *x.shape[3:])), tree)  # noqa: E731
    split = lambda tree: jax.tree.map(lambda x: x.reshape((C, S, E, *x.shape[1:])), tree)  # noqa: E731
    per_program = lambda tree: jax.tree.map(lambda x: x.reshape((C, S * E, *x.shape[3:])), tree)  # noqa: E731
    policy = jax.vmap(jax.vmap(lambda v, o: apply(network, v, o)))
    over, take_step = network.distribution, stepper(task, platform)

    def advance(lanes: Lanes, view: Any, action: jax.Array) -> tuple[Lanes, _Step]:
        """One step of every environment, whatever ends with it."""
        flat = action.reshape((C * S * E, *action.shape[3:]))
        next_state = split(take_step(join(lanes.state), flat))
        next_view = jax.vmap(task.view)(join(next_state))
        raw_reward, terms = population.reward(
            constants, per_program(split(view)), per_program(action), per_program(split(next_view))
        )
        raw_reward, terms = raw_reward.reshape(C, S, E), terms.reshape(C, S, E, -1)
        reward = jnp.nan_to_num(raw_reward, nan=0.0, posinf=0.0, neginf=0.0)
        elapsed = lanes.elapsed + 1
        terminated = split(jax.vmap(task.terminated)(join(next_state)))
        acc = split(jax.vmap(metric.update)(join(lanes.metric), join(lanes.state), flat, join(next_state)))
        moved = Lanes(next_state, elapsed, lanes.episode, acc, lanes.ret + reward)
        return moved, _Step(reward, terms, jnp.isfinite(raw_reward), terminated, elapsed >= task.horizon)

    def advance_again(carry: tuple[Lanes, _Step], action: jax.Array) -> tuple[Lanes, _Step]:
        """One step more with the same action, where the episode goes on."""
        lanes, so_far = carry
        ended = so_far.terminated | so_far.late
        moved, step = advance(lanes, jax.vmap(task.view)(join(lanes.state)), action)
        step = step.replace(
            reward=so_far.reward + step.reward, terms=so_far.terms + step.terms, finite=so_far.finite & step.finite
        )
        keep = lambda old, new: _where(ended, old, new)  # noqa: E731
        return jax.tree.map(keep, lanes, moved), jax.tree.map(keep, so_far, step)

    def step(carry: tuple[Lanes, Stats], t: jax.Array) -> tuple[tuple[Lanes, Stats], tuple[jax.Array, ...]]:
        lanes, stats = carry
        view = jax.vmap(task.view)(join(lanes.state))
        raw_obs = population.observe(per_program(split(view))).reshape(C, S, E, population.width)
        obs = jnp.nan_to_num(raw_obs, nan=0.0, posinf=0.0, neginf=0.0)
        outputs, value = policy(variables, obs)
        noise = jax.vmap(lambda k: over.noise(jax.random.fold_in(k, t), (E,)))(keys)
        sample = over.sample(outputs, noise[None])
        action = over.action(sample)

        ended, taken = advance(lanes, view, action)
        if repeat > 1:
            again = lambda _, carry: advance_again(carry, action)  # noqa: E731
            ended, taken = jax.lax.fori_loop(1, repeat, again, (ended, taken))
        finite = jnp.isfinite(raw_obs).all((-1, -2)) & taken.finite.all(-1)
        done = taken.terminated | taken.late
        success = split(jax.vmap(metric.value)(join(ended.metric)))
        success = bounded(jnp.where(jnp.isfinite(success), success, measure.worst))
        beside = jnp.zeros((C, S, E, 0))
        if isinstance(metric, Telling):
            beside = split(jax.vmap(metric.also)(join(ended.metric)))
        commit = t < length
        ends = (success, ended.ret, ended.elapsed, beside)
        new_stats = stats.add(obs, taken.terms, finite, done, lanes.episode, *ends)
        stats = jax.tree.map(lambda new, old: jnp.where(commit, new, old), new_stats, stats)

        # A lane that ends at step t takes entry e + t of the pool, so that no two lanes that end
        # at the same step share a level.
        fresh = start_lanes(task, jax.tree.map(lambda x: jnp.roll(x, -t, axis=1), pool), 1)
        ended = ended.replace(episode=lanes.episode + done)
        fresh = fresh.replace(episode=ended.episode)
        following = jax.tree.map(lambda new, old: _where(done, new, old), fresh, ended)
        following = jax.tree.map(lambda new, old: jnp.where(commit, new, old), following, lanes)
        cut = taken.late & ~taken.terminated
        return (following, stats), (obs, sample, over.log_prob(outputs, sample), value, taken.reward, done, cut)

    (lanes, stats), out = jax.lax.scan(step, (lanes, stats), jnp.arange(length + 1))
    obs, action, logp, value, reward, done, cut = out
    return lanes, Trajectory(obs, action[:-1], logp[:-1], value, reward[:-1], done[:-1], cut[:-1]), stats


class _Step(struct.PyTreeNode):
    """What came of an action: (C, S, E), terms (C, S, E, K)."""

    reward: jax.Array
    terms: jax.Array
    finite: jax.Array
    terminated: jax.Array
    late: jax.Array


def _where(done: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    return jnp.where(done.reshape(done.shape + (1,) * (old.ndim - done.ndim)), new, old)
