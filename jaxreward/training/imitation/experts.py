"""Demonstrations as a learner reads them: observations by a program, and samples of the policy's distribution."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxreward.demonstrations.trajectories import Positives, Trajectories
from jaxreward.devices import exact
from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.programs.interpret import replay
from jaxreward.tasks import Task
from jaxreward.training.distributions import distribution_over
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.imitation.methods import AIRL, GAIL, Method, method_of
from jaxreward.value_words import short


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
    """Transitions of U sets: `obs` (U, n, d), `sample` (U, n, ...), for AIRL `next_obs` (U, n, d), and `done` (U, n)
    where the episode is over. Of set u the first `count[u]` are there, the others are zero. Agents learn from the set
    of their row, `of` (C,); inside a row it is a number ()."""

    obs: Any
    sample: Any
    next_obs: Any
    done: Any
    count: Any
    of: Any

    def drawn(self, key: jax.Array, size: int) -> Transition:
        """So many transitions of the set of one row, with replacement."""
        rows = jax.random.randint(key, (size,), 0, self.count[self.of])
        taken = (None if x is None else x[self.of, rows] for x in (self.obs, self.sample, self.next_obs, self.done))
        return Transition(*taken)


class Transition(NamedTuple):
    """Drawn transitions (n, ...), see `Experts`."""

    obs: Any
    sample: Any
    next_obs: Any
    done: Any


@dataclass(frozen=True, eq=False)
class ObservedSet:
    """A set of transitions as a program observes them, on the host, and the digest of what they are made of."""

    rows: Transition = field(repr=False)
    digest: str

    def __len__(self) -> int:
        return len(self.rows.done)


@dataclass(frozen=True, eq=False)
class ImitationRows:
    """An `Imitation` for the rows of a population: the method, and the transitions of each row."""

    method: Method
    rows: tuple[ObservedSet, ...] = field(repr=False)

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
        if given.positives not in get_args(Positives):
            raise InvalidSetting(f"positives are all, last or marked, not {short(given.positives)}", "positives")
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
        if given.positives != "all" and not isinstance(method, GAIL):
            message = f"{method.name} learns from whole episodes: positives={given.positives!r} is for gail"
            raise InvalidSetting(message, "positives", "method")
        made = dict[tuple[str, int], ObservedSet]()
        for program, episodes in zip(programs, sets, strict=True):
            key = (program.digest, id(episodes))
            if key not in made:
                made[key] = _observed(program, task, episodes, given.positives, isinstance(method, AIRL))
        return ImitationRows(
            method, tuple(made[p.digest, id(episodes)] for p, episodes in zip(programs, sets, strict=True))
        )

    @property
    def key(self) -> tuple[Any, ...]:
        """All that training by it depends on, short."""
        return (self.method.name, self.method, tuple(row.digest for row in self.rows))

    def take(self, rows: Sequence[int]) -> ImitationRows:
        """These rows, in this order."""
        return ImitationRows(self.method, tuple(self.rows[k] for k in rows))

    def shapes(self, width: int) -> Experts:
        """Those of `stacked`, without the arrays."""
        sets, n = self._sets()
        first = next(iter(sets.values())).rows

        def of(x: np.ndarray, *more: int) -> Any:
            return jax.ShapeDtypeStruct((len(sets), n, *(more or x.shape[1:])), x.dtype)

        following = None if first.next_obs is None else of(first.next_obs, width)
        rows = of(first.obs, width), of(first.sample), following, of(first.done)
        return Experts(*rows, *(jax.ShapeDtypeStruct((k,), np.int32) for k in (len(sets), len(self.rows))))

    def stacked(self, width: int) -> Experts:
        """The sets with observations padded to `width`, each once. Their transitions are padded to a power of two, so
        that sets of nearly the same size share what is compiled."""
        sets, n = self._sets()
        padded = [
            Transition(
                _padded(x.obs, n, width), _padded(x.sample, n),
                None if x.next_obs is None else _padded(x.next_obs, n, width), _padded(x.done, n),
            )
            for x in (one.rows for one in sets.values())
        ]  # fmt: skip
        whole, place = jax.tree.map(lambda *x: np.stack(x), *padded), list(sets)
        counts = np.asarray([len(one) for one in sets.values()], np.int32)
        of = np.asarray([place.index(row.digest) for row in self.rows], np.int32)
        return Experts(whole.obs, whole.sample, whole.next_obs, whole.done, counts, of)

    def _sets(self) -> tuple[dict[str, ObservedSet], int]:
        """The different sets by digest, and how many transitions there is room for in each."""
        sets = {row.digest: row for row in self.rows}
        return sets, 1 << (max(map(len, sets.values())) - 1).bit_length()


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


def _observed(
    program: Program, task: Task, episodes: Trajectories, positives: Positives, following: bool
) -> ObservedSet:
    """The transitions as a program observes them, with the observations after them if these are read."""
    episodes.require_of(program.spec)
    steps = episodes.positive_steps(positives)
    over = episodes.last_steps[episodes.ended | (episodes.lengths >= task.horizon)]
    samples, done = episodes.transitions(steps), np.isin(steps, over)
    sample = np.asarray(distribution_over(task.action_space).sample_of(jnp.asarray(samples.actions)))
    digest = hashlib.sha256(program.digest.encode())
    for array in (*samples.transition(), done):
        digest.update(np.ascontiguousarray(array).tobytes())
    obs, after = (_seen(program, states) if read else None
                  for states, read in ((samples.states, True), (samples.next_states, following)))  # fmt: skip
    return ObservedSet(Transition(obs, sample, after, done), f"{digest.hexdigest()[:16]}{'+' * following}")


_BLOCK = 4096
"""States that are observed at a time."""


def _seen(program: Program, states: Sequence[np.ndarray]) -> np.ndarray:
    """The observations (n, d) of states (n, ...)."""
    count = len(states[0])
    size = min(_BLOCK, 1 << (count - 1).bit_length())
    parts = [
        np.asarray(_observe(program)(*[_padded(x[k : k + size], size) for x in states])) for k in range(0, count, size)
    ]
    obs = np.concatenate(parts)[:count]
    if bad := int((~np.isfinite(obs)).any(1).sum()):
        message = f"what program {program.name} observes of {bad} of {count} states of the expert is not finite"
        raise InvalidSetting(f"{message}: guard divisions, logarithms, square roots and powers", "programs")
    return obs


@lru_cache(maxsize=8)
def _observe(program: Program) -> Any:
    tape = replay(program.observation_tape)
    return jax.jit(exact(jax.vmap(lambda *arrays: jnp.asarray(tape(*arrays)[0]))))


def _padded(x: np.ndarray, n: int, width: int = 0) -> np.ndarray:
    """Rows (m, ...) with zeros to (n, ...), and where there is a `width` columns to (n, width)."""
    columns = [(0, width - x.shape[1])] if width else [(0, 0)] * (x.ndim - 1)
    return np.pad(x, [(0, n - len(x)), *columns])
