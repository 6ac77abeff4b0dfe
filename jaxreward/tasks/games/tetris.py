"""Tetris, on jumanji's environment (https://github.com/instadeepai/jumanji)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.records import Measure, Vocabulary
from jaxreward.tasks.adapters.environment import EnvironmentState
from jaxreward.tasks.adapters.jumanji import JumanjiTask, from_jumanji
from jaxreward.tasks.base import BaseTask
from jaxreward.tasks.games.scores import with_length
from jaxreward.tasks.games.tiles import draw_board
from jaxreward.tasks.metrics import WithExtraMetrics
from jaxreward.tasks.option_checks import check_horizon, check_whole, invalid_option
from jaxreward.tasks.task import Discrete

TURNS = 4
"""Rotations of a tetromino."""
LARGEST = 512
"""Cells of a board: as many as an observation may have."""


class TetrisState(NamedTuple):
    """The environment's own state, and what came of the last step."""

    core: EnvironmentState
    lines: jax.Array
    invalid: jax.Array
    total: jax.Array


class TetrisView(NamedTuple):
    """What programs see of it: the arguments of FORGE's rewards (appendix B.3), the tetromino's kind, and which actions
    are possible."""

    board: jax.Array
    placed: jax.Array
    active_tetromino: jax.Array
    turned: jax.Array
    kind: jax.Array
    possible: jax.Array
    lines_cleared: jax.Array
    invalid: jax.Array
    game_over: jax.Array
    lines: jax.Array
    step_count: jax.Array


@dataclass(frozen=True)
class Tetris(BaseTask):
    """Tetrominoes that are to fill lines, which then vanish.

    Args:
        horizon: steps of an episode, each a tetromino.
        rows: of the board.
        columns: of the board.
    """

    horizon: int = 200
    rows: int = 20
    columns: int = 10

    name = "tetris"  # type: ignore[assignment]
    state_words: ClassVar[dict[str, str]] = {
        "board": "filled cells by row and column, with the tetromino that is to be placed next, at the top",
        "placed": "filled cells without it",
        "active_tetromino": "the cells of that tetromino alone",
        "turned": "that tetromino in its four rotations, each in an upper left corner",
        "kind": "which of the seven it is: 0 to 6",
        "possible": "whether each action is possible",
        "lines_cleared": "lines that the last step cleared",
        "invalid": "whether the last action was not possible, which ends the episode",
        "game_over": "whether the episode is over: by such an action, or because none is possible",
        "lines": "lines cleared since the beginning",
        "step_count": "steps taken",
        "action": "4 c + r drops the tetromino, turned as turned[r], with its left edge in column c, or as far to the "
        "right as it fits",
    }

    state_notes = (
        "Row 0 is at the top. Tetrominoes are the long one (0), S and Z (1, 2), the square (3), T (4), L and J (5 and\n"
        "6). Where one cannot fall in from the top, the action is not possible. Which comes next is drawn uniformly."
    )

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        for name in ("rows", "columns"):
            check_whole(name, getattr(self, name))
            if not 4 <= getattr(self, name) <= 40:
                raise invalid_option(name, f"{name} must be from 4 to 40 cells, not {getattr(self, name)}")
        if self.rows * self.columns > LARGEST:
            message = f"a board of {self.rows} by {self.columns} has more than {LARGEST} cells: make it smaller"
            raise invalid_option("rows", message)

    @property
    def action_space(self) -> Discrete:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Discrete(TURNS * self.columns)

    @property
    def description(self) -> str:
        return (
            f"Tetrominoes come one after another onto a board of {self.rows} rows and {self.columns} columns. An "
            "action turns one and drops it into columns. A row that is full vanishes, and what is above moves down. An "
            "episode ends with an action that is not possible, or when there is no room for another, at the latest "
            f"after {self.horizon} steps; the score is the number of lines that were cleared."
        )

    @cached_property
    def core(self) -> JumanjiTask:
        """The environment, whose time never runs out before the horizon does."""
        with jax.ensure_compile_time_eval():  # it compares numbers as it is made
            return from_jumanji("Tetris-v0", num_rows=self.rows, num_cols=self.columns, time_limit=self.horizon + 1)

    # ---- the game

    def reset(self, key: jax.Array) -> TetrisState:
        zero = jnp.zeros((), jnp.int32)
        return TetrisState(self.core.reset(key), zero, jnp.zeros((), bool), zero)

    def step(self, state: TetrisState, action: jax.Array) -> TetrisState:
        turns = action % TURNS
        column = self._columns(state.core.env.tetromino_index)[turns, action // TURNS]
        invalid = ~state.core.env.action_mask[turns, column]
        after = self.core.step(state.core, turns * self.columns + column)
        grid = jnp.where(invalid, state.core.env.grid_padded, after.env.grid_padded)  # or it lies anywhere
        after = after.replace(env=after.env.replace(grid_padded=grid))
        lines = jnp.where(invalid, 0, after.env.full_lines.sum(dtype=jnp.int32))
        return TetrisState(after, lines, invalid, state.total + lines)

    def _columns(self, kind: jax.Array) -> jax.Array:
        """The column of the left edge of a tetromino, for each of its rotations and each column that an action asks for
        (4, columns): it stays within the board."""
        width = self.core.env.TETROMINOES_LIST[kind].any(axis=1).sum(axis=1)
        return jnp.minimum(jnp.arange(self.columns), self.columns - width[:, None])

    def terminated(self, state: TetrisState) -> jax.Array:
        return state.core.done

    # ---- programs

    def view(self, state: TetrisState) -> TetrisView:
        own = state.core.env
        placed = (own.grid_padded[: self.rows, : self.columns] > 0).astype(jnp.int32)
        left = (self.columns - 4) // 2
        possible = jnp.take_along_axis(own.action_mask, self._columns(own.tetromino_index), axis=1)
        active = jnp.zeros_like(placed).at[:4, left : left + 4].set(own.new_tetromino)
        return TetrisView(
            board=jnp.maximum(placed, active), placed=placed, active_tetromino=active,
            turned=self.core.env.TETROMINOES_LIST[own.tetromino_index], kind=own.tetromino_index,
            possible=possible.T.reshape(-1), lines_cleared=state.lines,
            invalid=state.invalid, game_over=state.core.done, lines=state.total, step_count=own.step_count,
        )  # fmt: skip

    def score(self) -> WithExtraMetrics:
        """The lines cleared; an extra metric is the part of the longest episode that was played."""
        return with_length(
            lambda state, action, after: after.lines.astype(jnp.float32),
            Measure(name="lines", rate=False), self.horizon, tells=True,
        )  # fmt: skip

    def default_observation(self, view: TetrisView) -> jax.Array:
        """The board with the next tetromino, row by row; (rows columns,)."""
        return view.board.reshape(-1).astype(jnp.float32)

    def sparse_reward(self, view: TetrisView, action: jax.Array, next_view: TetrisView) -> jax.Array:
        """The lines that a step cleared, and -1 for an action that is not possible."""
        return next_view.lines_cleared.astype(jnp.float32) - next_view.invalid

    def dense_reward(self, view: TetrisView, action: jax.Array, next_view: TetrisView) -> jax.Array:
        """2 for each line, 0.3 for each tetromino, minus new holes and roughness, and -1 for the end."""
        (rough, holes), (rougher, more) = _surface(view.placed), _surface(next_view.placed)
        placed = 0.3 * (1.0 - next_view.game_over) - 1.0 * next_view.game_over
        return 2.0 * next_view.lines_cleared + placed - 0.1 * (more - holes) - 0.02 * (rougher - rough)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.games.tetris_fragments import vocabulary

        return vocabulary(self.rows, self.columns)

    def draw(self, state: Any) -> np.ndarray:
        """The board, uint8 (20 rows, 20 columns, 3), with the next tetromino in yellow."""
        view = self.view(jax.tree.map(jnp.asarray, state))
        active = np.asarray(view.active_tetromino)
        board = np.asarray(view.board) + active
        return draw_board(board, {0: (24, 26, 32), 1: (80, 130, 210), 2: (245, 210, 80)}, 20)


def _surface(placed: jax.Array) -> tuple[jax.Array, jax.Array]:
    """How much the heights of neighbouring columns differ, added up, and how many cells are empty under others."""
    filled = placed > 0
    covered = jnp.cumsum(filled, axis=0) > 0
    heights = jnp.where(filled.any(axis=0), len(placed) - jnp.argmax(filled, axis=0), 0)
    return jnp.abs(jnp.diff(heights)).sum().astype(jnp.float32), (covered & ~filled).sum().astype(jnp.float32)
