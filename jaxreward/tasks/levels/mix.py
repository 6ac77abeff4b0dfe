"""Several levels as one task: the mission says what an episode is about (GRACE, section 5.2, multi-task)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.tasks.levels import dynamics, observation, words
from jaxreward.tasks.levels.bank import bank_of
from jaxreward.tasks.levels.catalogue import LEVELS, Level
from jaxreward.tasks.levels.codes import ANY
from jaxreward.tasks.levels.expert import expert_actions
from jaxreward.tasks.levels.state import LevelState, LevelView
from jaxreward.tasks.levels.task import BabyAI

BETWEEN = "+"
"""Between the names of the levels."""


class LevelMix(BabyAI):
    """Levels with rooms of the same size and number, e.g. `GoToObj+PickupLoc`; each episode is of one, drawn evenly.

    Levels are told apart by the verb and the number of clauses of the mission, which decide what fulfils it.

    Attributes:
        kind: their names, with `+` between them.
        starts: different start states of each.

    The other attributes are those of `BabyAI`.

    Raises:
        UnknownName: no such level.
        InvalidSetting: one of them twice, rooms that differ, or an option out of range.
    """

    def _check_kind(self) -> None:
        names = self.kind.split(BETWEEN)
        for name in names:
            if name not in LEVELS:
                raise UnknownName("level", name, LEVELS, settings=("task",))
        if twice := [name for k, name in enumerate(names) if name in names[:k]]:
            raise InvalidSetting(f"{self.name} has {twice[0]} twice: name it once", "task")
        first = self.levels[0]
        for other in self.levels[1:]:
            if (other.size, other.rooms) != (first.size, first.rooms):
                shapes = [f"{x.name} has {x.height} x {x.width} cells" for x in (first, other)]
                same = [x.name for x in LEVELS.values() if (x.size, x.rooms) == (first.size, first.rooms)]
                raise InvalidSetting(
                    f"levels that are mixed have the same rooms, and {shapes[0]}, {shapes[1]}: {first.name} goes with "
                    f"{', '.join(name for name in same if name != first.name) or 'no other'}",
                    "task",
                )

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        return tuple(LEVELS[name] for name in self.kind.split(BETWEEN))

    @cached_property
    def _kinds(self) -> tuple[Level, ...]:
        """One level for each verb and number of clauses, with locations where any of these has them."""
        found = dict[tuple[int, int], Level]()
        for level in self.levels:
            kind = level.verb, level.clauses
            if kind not in found or level.located:
                found[kind] = level
        return tuple(found.values())

    @property
    def level(self) -> Level:
        """The first of the levels."""
        return self.levels[0]

    @property
    def description(self) -> str:
        return words.describe_mix(self.levels)

    def bank(self) -> LevelState:
        return _joined(tuple(level.name for level in self.levels), self.starts, self.seed, self.held_out)

    def reset(self, key: jax.Array) -> LevelState:
        """Any of the levels is as likely, also where one has fewer start states."""
        bank = self.bank()
        sizes = [bank_of(x.name, self.starts, self.seed, self.held_out).step_num.shape[0] for x in self.levels]
        which, one = jax.random.split(key)
        level = jax.random.randint(which, (), 0, len(sizes))
        count = jnp.asarray(sizes)[level]
        index = (jnp.cumsum(jnp.asarray(sizes)) - jnp.asarray(sizes))[level] + jax.random.randint(one, (), 0, count)
        return jax.tree.map(lambda x: jnp.asarray(x)[index], bank)

    def step(self, state: LevelState, action: jax.Array) -> LevelState:
        return self._chosen(state.mission, lambda kind: dynamics.step(state, action, kind.verb, kind.clauses))

    def default_observation(self, view: LevelView) -> jax.Array:
        """That of the level, with zeros up to the longest of them."""
        found = [observation.observe(view, kind) for kind in self._kinds]
        longest = max(x.size for x in found)
        padded = dict(zip(self._kinds, (jnp.pad(x, (0, longest - x.size)) for x in found), strict=True))
        return self._chosen(view.mission, padded.__getitem__)

    def sparse_reward(self, view: LevelView, action: jax.Array, next_view: LevelView) -> jax.Array:
        return self._chosen(view.mission, lambda kind: observation.sparse_reward(view, action, next_view, kind))

    def expert_actions(self, state: LevelState) -> list[int]:
        mission = np.asarray(state.mission)
        (kind,) = [kind for kind in self._kinds if bool(_is_of(mission, kind))]
        return expert_actions(kind.name, state)

    def _chosen(self, mission: jax.Array, make: Callable[[Level], Any]) -> Any:
        """What is made for the kind of level that a mission is of."""
        first, *others = self._kinds
        found = make(first)
        for kind in others:
            found = jax.tree.map(lambda x, y, of=_is_of(mission, kind): jnp.where(of, y, x), found, make(kind))
        return found


def _is_of(mission: Any, kind: Level) -> Any:
    """Whether a mission (2, 4) is one of levels of this kind, bool ()."""
    return (mission[0, 0] == kind.verb) & ((mission[1, 0] != ANY) == (kind.clauses == 2))


@lru_cache(maxsize=8)
def _joined(names: Sequence[str], starts: int, seed: int, held_out: bool) -> LevelState:
    """The banks of levels, one after the other."""
    banks = [bank_of(name, starts, seed, held_out) for name in names]
    return jax.tree.map(lambda *columns: np.concatenate(columns), *banks)
