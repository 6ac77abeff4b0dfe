"""Programs against demonstrations: every reward on every transition, in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxreward.demonstrations import Positives, Trajectories, WrongTrajectories, uniform_log_probability
from jaxreward.devices import FAST_COMPILE
from jaxreward.objectives.demonstrations.fitness import accuracy, airl_fitness, log_discriminator, weighted_mean
from jaxreward.programs import Program, Spec
from jaxreward.programs.batched_rewards import BatchedRewards
from jaxreward.programs.samples import Samples
from jaxreward.sentences import mention
from jaxreward.tasks import Task, measure_of

RULES = 3
"""Of what `DemonstrationData` counts, and how; results of others are not comparable."""
_SMALL = 1 << 20
"""Rewards of which so many or more are worth the time of compiling well, on a CPU."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class DemonstrationData:
    """Transitions of an expert, and of others.

    Attributes:
        transitions: those that are to be told from the others first, then the rest of the expert's, which are among
            the others (GRACE, section 4, phase 1); a reward of states alone sees the next states.
        experts: how many are to be told from the others.
        of_expert: how many are the expert's.
        log_probability: of every action, for `airl_fitness`: that of a uniformly random one.
        steps: of each transition its step in the episodes that it is from, the expert's or the others', int (n,).
        episodes: of each transition its episode, the others' after the expert's, int (n,).
        weights: how many steps each transition stands for, float32 (n,): 1, but where all of an expert's steps are
            positive, as many for the last of an episode that ended early as there were left. The end is then a state
            that is never left, as for the agents (`PPO.absorbing`), and a reward is not scored as if agents only passed
            through it (Kostrikov et al. 2019, "Discriminator-actor-critic"). Also 1 where it is not known of all of the
            expert's episodes how they ended.
    """

    transitions: Samples
    experts: int
    of_expert: int
    log_probability: float
    steps: Array = field(repr=False)
    episodes: Array = field(repr=False)
    weights: Array = field(repr=False)

    @staticmethod
    def require(task: Task, episodes: Trajectories) -> None:
        """Raise `WrongTrajectories` unless the episodes are of `task`."""
        episodes.require_of(Spec.of(task))

    @staticmethod
    def of(
        task: Task, expert: Trajectories, negative: Trajectories, positives: Positives = "all"
    ) -> DemonstrationData:  # fmt: skip
        """The transitions of some episodes.

        Where not all of the expert's states are positive, the last step of another episode that ended is neither
        positive nor negative, unless it is known to have failed: it may have reached the same.

        The probability of every action is that of a uniformly random one. AIRL's is of one policy, on the states of
        both sides; of the policies that acted only what they did in their own states is known, and with different
        probabilities on the two sides a constant reward tells them apart.

        Raises:
            WrongTrajectories: episodes of another task, or without a negative step.
        """
        for episodes in (expert, negative):
            DemonstrationData.require(task, episodes)
        goals = expert.positive_steps(positives)
        steps = np.concatenate([goals, expert.other_steps(positives)])
        failed = (negative.success < 1.0) & measure_of(task).rate  # success is NaN where it is not known
        alike = negative.ended & ~failed
        ends = negative.last_steps[alike] if positives != "all" else ()
        others = np.setdiff1d(np.arange(negative.steps), ends)
        if not len(others) and len(steps) == len(goals):
            raise WrongTrajectories(
                "no step is negative: every episode has one step alone and ends with it; give longer ones, or other "
                f"negative ones with {mention('negative')}"
            )
        weights = np.ones(len(steps) + len(others), np.float32)
        if positives == "all" and bool((expert.ended | (expert.lengths >= task.horizon)).all()):
            weights = np.concatenate([stays(e, task.horizon) for e in (expert, negative)])
        return DemonstrationData(
            expert.transitions(steps).joined(negative.transitions(others)), len(goals), len(steps),
            uniform_log_probability(task.action_space),
            np.concatenate([steps, others]),
            np.concatenate([expert.episode_of_step[steps], len(expert) + negative.episode_of_step[others]]), weights,
        )  # fmt: skip


def stays(episodes: Trajectories, horizon: int) -> Array:
    """For how many steps an agent is in the state after each step, if it never leaves the one that ended its
    episode, float32 (T,)."""
    weights = np.ones(episodes.steps, np.float32)
    weights[episodes.last_steps[episodes.ended]] += np.maximum(horizon - episodes.lengths[episodes.ended], 0)
    return weights


class Separation(NamedTuple):
    """How C programs tell expert transitions from negative ones.

    Attributes:
        rewards: of every transition, float32 (C, n).
        logs: what each transition adds to AIRL's objective, (C, n).
        fitness: `airl_fitness`, (C,).
        error: the standard error of that, (C,): over episodes, whose steps are alike, or over transitions, whichever is
            larger; there may be a single episode.
        accuracy: (C,).
    """

    rewards: Array
    logs: Array
    fitness: Array
    error: Array
    accuracy: Array


def separate(programs: Sequence[Program], *sets: DemonstrationData) -> tuple[Separation, ...]:
    """Score programs by `airl_fitness` and `accuracy` on each of some sets, with one launch for all rewards."""
    whole = reduce(Samples.joined, (data.transitions for data in sets))
    return separations(BatchedRewards(programs)(whole), *sets)


class Labels(Protocol):
    """Of a set of transitions the log probability of an action, how many, the first, are an expert's, the episode of
    each, int (n,), and how many steps each stands for, (n,)."""

    @property
    def log_probability(self) -> float: ...
    @property
    def experts(self) -> int: ...
    @property
    def episodes(self) -> Array: ...
    @property
    def weights(self) -> Array: ...


def separations(rewards: jax.Array | Array, *sets: Labels) -> tuple[Separation, ...]:
    """What rewards, (C, n), of which those of each set follow those of the one before, say of the sets."""
    ends = np.cumsum([len(labels.weights) for labels in sets])
    parts = np.split(np.asarray(rewards), ends[:-1], axis=1)
    return tuple(_separation(own, labels) for own, labels in zip(parts, sets, strict=True))


def _separation(rewards: Array, labels: Labels) -> Separation:
    """Of the rewards (C, n) of one set."""
    count = len(rewards)
    rows = 1 << (count - 1).bit_length()  # generations of about as many programs find it compiled
    padded = np.concatenate([rewards, np.zeros((rows - count, rewards.shape[1]), rewards.dtype)])
    fast = padded.size < _SMALL and jax.default_backend() == "cpu"
    found = jax.device_get(_scored(fast)(padded, labels.log_probability, labels.weights, labels.experts))
    logs, fitness, error, share = (x[:count] for x in found)
    return Separation(rewards, logs, fitness, np.maximum(error, _error_over_episodes(logs, labels)), share)


def _error_over_episodes(logs: Array, labels: Labels) -> Array:
    """The standard error of the fitness over episodes, (C,): that of a sum of two weighted means, whose entries are
    drawn by episode (the linearised estimator of cluster samples)."""
    experts, shares = labels.experts, labels.weights.astype(np.float64)
    shares[:experts] /= shares[:experts].sum()
    shares[experts:] /= shares[experts:].sum()
    begins = np.diff(labels.episodes, prepend=-1) != 0
    begins[experts] = True
    runs = np.flatnonzero(begins)  # of steps of one episode and one side
    other = runs >= experts
    with np.errstate(invalid="ignore"):  # of rewards that are not finite
        sums = np.add.reduceat(logs * shares, runs, axis=1)
        means = np.where(other, sums[:, other].sum(1, keepdims=True), sums[:, ~other].sum(1, keepdims=True))
        away = sums - means * np.add.reduceat(shares, runs)
        return np.sqrt(((away @ (labels.episodes[runs][:, None] == np.unique(labels.episodes))) ** 2).sum(1))


@cache
def _scored(fast: bool) -> Any:
    return jax.jit(_scores, static_argnums=3, compiler_options=dict(FAST_COMPILE) if fast else None)


def _scores(rewards: jax.Array, logp: ArrayLike, weights: jax.Array, experts: int) -> tuple[jax.Array, ...]:
    logs = log_discriminator(rewards, logp, jnp.arange(len(weights)) < experts)
    parts = slice(experts), slice(experts, None)
    error = jnp.sqrt(sum(_variance_of_mean(logs[:, part], weights[part]) for part in parts))
    (expert, negative), of = (rewards[:, part] for part in parts), [weights[part] for part in parts]
    fitness = airl_fitness(expert, negative, logp, logp, *of)
    return logs, fitness, error, accuracy(expert, negative, *of)


def _variance_of_mean(x: jax.Array, weights: jax.Array) -> jax.Array:
    """Of the weighted mean over the last axis, whose entries are drawn one by one."""
    shares = weights / weights.sum()
    return ((x - weighted_mean(x, weights)[..., None]) ** 2 * shares**2).sum(-1)
