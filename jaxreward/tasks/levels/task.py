"""A BabyAI level as a task."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import UnknownName
from jaxreward.records import Vocabulary
from jaxreward.tasks.levels import dynamics, observation, words
from jaxreward.tasks.levels.bank import bank_of
from jaxreward.tasks.levels.catalogue import LEVELS, Level
from jaxreward.tasks.levels.codes import ACTIONS
from jaxreward.tasks.levels.drawing import draw
from jaxreward.tasks.levels.expert import expert_actions
from jaxreward.tasks.levels.mission import mission_sentence
from jaxreward.tasks.levels.state import LevelState, LevelView, view_of
from jaxreward.tasks.levels.vocabulary import level_vocabulary
from jaxreward.tasks.metrics import Reached
from jaxreward.tasks.option_checks import check_horizon, check_whole, invalid_option
from jaxreward.tasks.task import Discrete

MOST_STARTS = 100_000


@dataclass(frozen=True)
class BabyAI:
    """The level called `kind`.

    Attributes:
        kind: name of the level, e.g. `GoToRedBall`.
        horizon: steps of an episode; 100 as in GRACE.
        starts: different start states, drawn from when an episode begins; fewer where a level has fewer.
        seed: of these start states.
        held_out: use start states of the held-out fifth, none of which another task of the level has by default.

    Raises:
        UnknownName: no such level.
        InvalidSetting: an option out of range.
    """

    kind: str
    horizon: int = 100
    starts: int = 512
    seed: int = 0
    held_out: bool = False
    state_notes: str = words.STATE_NOTES

    def __post_init__(self) -> None:
        self._check_kind()
        check_horizon(self.horizon)
        for name, least, most in (("starts", 1, MOST_STARTS), ("seed", 0, 2**31 - 1)):
            value = getattr(self, name)
            check_whole(name, value)
            if not least <= value <= most:
                raise invalid_option(name, f"{name} must be from {least} to {most}, not {value}")
        if not isinstance(self.held_out, bool):
            raise invalid_option("held_out", f"held_out must be true or false, not {self.held_out!r}")

    def _check_kind(self) -> None:
        if self.kind not in LEVELS:
            raise UnknownName("level", self.kind, LEVELS, settings=("task",))

    @property
    def name(self) -> str:
        return f"babyai/{self.kind}"

    @property
    def level(self) -> Level:
        return LEVELS[self.kind]

    @property
    def description(self) -> str:
        return words.describe(self.level)

    @property
    def state_words(self) -> dict[str, str]:
        return words.STATE_WORDS

    @property
    def action_space(self) -> Discrete:
        return Discrete(ACTIONS)

    def bank(self) -> LevelState:
        """All start states, arrays of numpy with a leading axis."""
        return bank_of(self.kind, self.starts, self.seed, self.held_out)

    def reset(self, key: jax.Array) -> LevelState:
        bank = self.bank()
        index = jax.random.randint(key, (), 0, bank.step_num.shape[0])
        return jax.tree.map(lambda x: jnp.asarray(x)[index], bank)

    def step(self, state: LevelState, action: jax.Array) -> LevelState:
        return dynamics.step(state, action, self.level.verb, self.level.clauses)

    def terminated(self, state: LevelState) -> jax.Array:
        return state.solved

    def view(self, state: LevelState) -> LevelView:
        return view_of(state)

    def score(self) -> Reached:
        """Success: the mission is fulfilled at any step of the episode, the last included."""
        return Reached(lambda state: state.solved)

    def default_observation(self, view: LevelView) -> jax.Array:
        """The surroundings turned as the agent looks, what it faces and carries, and the mission."""
        return observation.observe(view, self.level)

    def sparse_reward(self, view: LevelView, action: jax.Array, next_view: LevelView) -> jax.Array:
        """1 on the step that fulfils the mission, else 0."""
        return observation.sparse_reward(view, action, next_view, self.level)

    def draw(self, state: LevelState) -> np.ndarray:
        """The grid, 24 pixels a cell, and under it what the agent carries."""
        return draw(jax.tree.map(np.asarray, state))

    def vocabulary(self) -> Vocabulary:
        return level_vocabulary()

    def expert_actions(self, state: LevelState) -> list[int]:
        """Actions that fulfil the mission from a state, the first or a later one; on the host."""
        return expert_actions(self.kind, state)

    def mission(self, state: LevelState) -> str:
        """The mission of an episode in words; on the host."""
        return mission_sentence(np.asarray(state.mission))
