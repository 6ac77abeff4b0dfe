"""Collecting experience: every candidate, seed and environment steps together.

Axes are named C (candidates), S (seeds), E (environments) and T (steps of an unroll). Random
numbers are drawn per seed and shared by all candidates, so that a candidate's experience depends
on its program and its seed alone, and comparisons are paired: same levels, same action noise.

The scan takes T + 1 steps and commits T: the last one only supplies the value to bootstrap from,
and is taken again, from the same state, by the next call. So observations are never carried, and
every program appears exactly once in the compiled code.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.tasks import Task
from jaxreward.training.measure import Stats
from jaxreward.training.networks import ActorCritic, Params, apply, log_prob, sample_action
from jaxreward.training.population import Population


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
    """What the learner learns from. `obs` is (T, C, S, E, d), the others (T, C, S, E), and
    `last_value` (C, S, E) the value of the state after the last step."""

    obs: jax.Array
    action: jax.Array
    logp: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    last_value: jax.Array


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
    unroll: int,
    params: Params,
    lanes: Lanes,
    pool: Any,
    keys: jax.Array,
    stats: Stats,
) -> tuple[Lanes, Trajectory, Stats]:
    """Take `unroll` steps in every environment.

    Args:
        params: leaves (C, S, ...).
        lanes: the running episodes; one that ends is replaced from the pool.
        pool: fresh initial states, leaves (S, E, ...).
        keys: PRNG keys of the seeds for this call, (S,).
        stats: accumulators, added to.

    Returns:
        The episodes after `unroll` steps, the trajectory, and the statistics with these steps.
    """
    C, S, E = lanes.elapsed.shape
    metric = task.score()
    join = lambda tree: jax.tree.map(lambda x: x.reshape((C * S * E, *x.shape[3:])), tree)  # noqa: E731
    split = lambda tree: jax.tree.map(lambda x: x.reshape((C, S, E, *x.shape[1:])), tree)  # noqa: E731
    per_program = lambda tree: jax.tree.map(lambda x: x.reshape((C, S * E, *x.shape[3:])), tree)  # noqa: E731
    policy = jax.vmap(jax.vmap(lambda p, o: apply(network, p, o)))

    def step(carry: tuple[Lanes, Stats], t: jax.Array) -> tuple[tuple[Lanes, Stats], tuple[jax.Array, ...]]:
        lanes, stats = carry
        view = jax.vmap(task.view)(join(lanes.state))
        raw_obs = population.observe(per_program(split(view))).reshape(C, S, E, population.width)
        obs = jnp.nan_to_num(raw_obs, nan=0.0, posinf=0.0, neginf=0.0)
        logits, value = policy(params, obs)
        noise = jax.vmap(lambda k: jax.random.gumbel(jax.random.fold_in(k, t), (E, logits.shape[-1])))(keys)
        action = sample_action(logits, noise[None])

        next_state = split(jax.vmap(task.step)(join(lanes.state), action.reshape(-1)))
        next_view = jax.vmap(task.view)(join(next_state))
        raw_reward, terms = population.reward(
            per_program(split(view)), action.reshape(C, S * E), per_program(split(next_view))
        )
        raw_reward, terms = raw_reward.reshape(C, S, E), terms.reshape(C, S, E, -1)
        reward = jnp.nan_to_num(raw_reward, nan=0.0, posinf=0.0, neginf=0.0)
        finite = jnp.isfinite(raw_obs).all((-1, -2)) & jnp.isfinite(raw_reward).all(-1)

        elapsed, ret = lanes.elapsed + 1, lanes.ret + reward
        done = split(jax.vmap(task.terminated)(join(next_state))) | (elapsed >= task.horizon)
        acc = split(
            jax.vmap(metric.update)(join(lanes.metric), join(lanes.state), action.reshape(-1), join(next_state))
        )
        success = split(jax.vmap(metric.value)(join(acc)))
        success = jnp.where(jnp.isfinite(success), success, 0.0)
        commit = t < unroll
        new_stats = stats.add(obs, terms, finite, done, lanes.episode, success, ret, elapsed)
        stats = jax.tree.map(lambda new, old: jnp.where(commit, new, old), new_stats, stats)

        # A lane that ends at step t takes entry e + t of the pool, so that no two lanes that end
        # at the same step share a level.
        fresh = start_lanes(task, jax.tree.map(lambda x: jnp.roll(x, -t, axis=1), pool), 1)
        ended = Lanes(next_state, elapsed, lanes.episode + done, acc, ret)
        fresh = fresh.replace(episode=ended.episode)
        following = jax.tree.map(lambda new, old: _where(done, new, old), fresh, ended)
        following = jax.tree.map(lambda new, old: jnp.where(commit, new, old), following, lanes)
        return (following, stats), (obs, action, log_prob(logits, action), value, reward, done)

    (lanes, stats), out = jax.lax.scan(step, (lanes, stats), jnp.arange(unroll + 1))
    obs, action, logp, value, reward, done = jax.tree.map(lambda x: x[:unroll], out)
    return lanes, Trajectory(obs, action, logp, value, reward, done, out[3][unroll]), stats


def _where(done: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    return jnp.where(done.reshape(done.shape + (1,) * (old.ndim - done.ndim)), new, old)
