"""Demonstrations as a learner reads them: observations by a program, and samples of the policy's distribution."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxreward.demonstrations.trajectories import Trajectories
from jaxreward.devices import exact
from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.programs.interpret import replay
from jaxreward.tasks import Task
from jaxreward.training.distributions import distribution_over
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.imitation.methods import Method, method_of
from jaxreward.value_words import short

Positives = Literal["all", "last"]
"""Which transitions of an expert's episodes are imitated: all, or the last of each."""


@dataclass(frozen=True)
class Imitation:
    """What agents learn from in place of their programs' rewards.

    Attributes:
        experts: episodes for each candidate, or one set for all.
        method: how; `gail`, `airl` and `bc` are the methods with their defaults.
        positives: which transitions of the episodes are learned from.
    """

    experts: Trajectories | Sequence[Trajectories] = field(repr=False)
    method: str | Method = "gail"
    positives: Positives = "all"


class Experts(struct.PyTreeNode):
    """Transitions of an expert: `obs` and `next_obs` (n, d), `sample` (n, ...), and `done` (n,) where the episode
    ended. The first `count` () are there, the others are zero."""

    obs: Any
    sample: Any
    next_obs: Any
    done: Any
    count: Any


@dataclass(frozen=True, eq=False)
class ImitationRows:
    """An `Imitation` for the rows of a population: the method, and the transitions of each row with their digests."""

    method: Method
    rows: tuple[Experts, ...] = field(repr=False)
    digests: tuple[str, ...]

    @staticmethod
    def of(given: Imitation, task: Task, programs: Sequence[Program], ppo: PPO) -> ImitationRows:
        """What the agents of each program learn from.

        Raises:
            InvalidSetting: what is no set of episodes, as many sets as there are no programs, or a method that `ppo`
                cannot have.
            WrongTrajectories: episodes of another task.
        """
        if not isinstance(given, Imitation):
            raise InvalidSetting(f"imitation is a jr.Imitation(experts), not {short(given)}", "imitation")
        method, sets = method_of(given.method), _sets_of(given.experts, len(programs))
        if given.positives not in ("all", "last"):
            raise InvalidSetting(f"positives are all or last, not {short(given.positives)}", "positives")
        if ppo.action_repeat > 1:
            raise InvalidSetting(
                f"demonstrations have an action for every step, and PPO.action_repeat = {ppo.action_repeat} does not: "
                "set it to 1",
                "ppo.action_repeat",
            )
        if ppo.gru:
            raise InvalidSetting(
                "an agent with a memory reads rewards, and demonstrations have none: learn from them with PPO.gru = 0",
                "ppo.gru",
            )
        made = dict[tuple[str, int], tuple[Experts, str]]()
        for program, episodes in zip(programs, sets, strict=True):
            key = (program.digest, id(episodes))
            if key not in made:
                made[key] = _observed(program, task, episodes, given.positives)
        pairs = [made[program.digest, id(episodes)] for program, episodes in zip(programs, sets, strict=True)]
        return ImitationRows(method, tuple(rows for rows, _ in pairs), tuple(digest for _, digest in pairs))

    @property
    def key(self) -> tuple[Any, ...]:
        """All that training by it depends on, short."""
        return (self.method.name, self.method, self.digests)

    def take(self, rows: Sequence[int]) -> ImitationRows:
        """These rows, in this order."""
        return ImitationRows(self.method, tuple(self.rows[k] for k in rows), tuple(self.digests[k] for k in rows))

    def stacked(self, width: int) -> Experts:
        """Leaves (C, n, ...) with observations padded to `width`. n is a power of two, so that sets of nearly the same
        size share what is compiled."""
        n = 1 << (max(int(row.count) for row in self.rows) - 1).bit_length()
        rows = [
            Experts(
                _padded(row.obs, n, width), _padded(row.sample, n), _padded(row.next_obs, n, width),
                _padded(row.done, n), np.int32(row.count),
            )
            for row in self.rows
        ]  # fmt: skip
        return jax.tree.map(lambda *x: np.stack(x), *rows)


def _sets_of(given: Any, programs: int) -> list[Trajectories]:
    """A set of episodes for each program."""
    sets = [given] * programs if isinstance(given, Trajectories) else given
    if not isinstance(sets, Sequence) or not all(isinstance(one, Trajectories) for one in sets):
        message = "experts are jaxreward.demonstrations.Trajectories, one set of episodes or a list of such sets"
        raise InvalidSetting(f"{message}, not {short(given)}", "experts")
    if len(sets) != programs:
        message = f"there are {len(sets)} sets of experts for {programs} programs: give one for each, or one for all"
        raise InvalidSetting(message, "experts")
    return list(sets)


def _observed(program: Program, task: Task, episodes: Trajectories, positives: Positives) -> tuple[Experts, str]:
    """The transitions as a program observes them, and their digest."""
    episodes.require_of(program.spec)
    steps = episodes.last_steps if positives == "last" else np.arange(episodes.steps)
    samples, done = episodes.transitions(steps), np.isin(steps, episodes.last_steps)
    observe = jax.jit(exact(jax.vmap(lambda *arrays: jnp.asarray(replay(program.observation_tape)(*arrays)[0]))))
    obs, following = (np.nan_to_num(np.asarray(observe(*x)), nan=0.0, posinf=0.0, neginf=0.0)
                      for x in (samples.states, samples.next_states))  # fmt: skip
    sample = np.asarray(distribution_over(task.action_space).sample_of(jnp.asarray(samples.actions)))
    rows = Experts(obs, sample, following, done, len(steps))
    digest = hashlib.sha256()
    for array in (obs, sample, following, done):
        digest.update(np.ascontiguousarray(array).tobytes())
    return rows, digest.hexdigest()[:16]


def _padded(x: np.ndarray, n: int, width: int = 0) -> np.ndarray:
    """Rows (m, ...) with zeros to (n, ...), and where there is a `width` columns to (n, width)."""
    columns = [(0, width - x.shape[1])] if width else [(0, 0)] * (x.ndim - 1)
    return np.pad(x, [(0, n - len(x)), *columns])
