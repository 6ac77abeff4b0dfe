"""Snake, on jumanji's environment (https://github.com/instadeepai/jumanji)."""

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

EMPTY, FOOD, BODY, HEAD = range(4)
"""Cells of `game_grid`."""
LARGEST = 22
"""Rows and columns, whose cells an observation can have."""


class SnakeState(NamedTuple):
    """The environment's own state, and what came of the last step."""

    core: EnvironmentState
    eaten: jax.Array
    dead: jax.Array


class SnakeView(NamedTuple):
    """What programs see of it: the arguments of FORGE's rewards (appendix B.3), places, and what the next step would
    end."""

    game_grid: jax.Array
    head: jax.Array
    food: jax.Array
    body_age: jax.Array
    free: jax.Array
    length: jax.Array
    food_eaten: jax.Array
    snake_death: jax.Array
    snake_steps: jax.Array


@dataclass(frozen=True)
class Snake(BaseTask):
    """A snake that grows with all it eats, and must not run into the walls or itself.

    Args:
        horizon: steps of an episode.
        size: rows and columns of the grid.
    """

    horizon: int = 500
    size: int = 12

    name = "snake"  # type: ignore[assignment]
    action_space = Discrete(4)  # type: ignore[assignment]
    state_words: ClassVar[dict[str, str]] = {
        "game_grid": "cells by row and column: 0 empty, 1 food, 2 body, 3 head",
        "head": "row and column of the head; where it ran into something, as before",
        "food": "row and column of the food; 0, 0 where the grid is full and there is none",
        "body_age": "for each cell of the snake, head included, in how many steps it will have left it; 0 elsewhere",
        "free": "whether the snake lives on if it moves up, right, down, left",
        "length": "cells of the snake, 1 at first",
        "food_eaten": "whether it ate in the last step",
        "snake_death": "whether it ran into a wall or itself in the last step, which ends the episode",
        "snake_steps": "steps taken",
        "action": "0 moves up, 1 right, 2 down, 3 left",
    }

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        check_whole("size", self.size)
        if not 4 <= self.size <= LARGEST:
            raise invalid_option("size", f"size must be from 4 to {LARGEST} cells, not {self.size}")

    @property
    def description(self) -> str:
        return (
            f"A snake moves over a grid of {self.size} by {self.size} cells. It grows by a cell whenever it eats, and "
            "food then lies elsewhere. An episode ends when it runs into a wall or itself or fills the grid, at the "
            f"latest after {self.horizon} steps; the score is the food that it ate, which is its length less 1."
        )

    @property
    def state_notes(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        last = self.size - 1
        return (
            f"Rows are counted from the top and columns from the left, from 0 to {last}. The snake begins with its\n"
            "head alone, anywhere. The cell that its tail leaves is free for its head in the same step."
        )

    @cached_property
    def core(self) -> JumanjiTask:
        """The environment, whose time never runs out before the horizon does."""
        with jax.ensure_compile_time_eval():  # it compares numbers as it is made
            return from_jumanji("Snake-v1", num_rows=self.size, num_cols=self.size, time_limit=self.horizon + 1)

    # ---- the game

    def reset(self, key: jax.Array) -> SnakeState:
        return SnakeState(self.core.reset(key), jnp.bool_(False), jnp.bool_(False))

    def step(self, state: SnakeState, action: jax.Array) -> SnakeState:
        after = self.core.step(state.core, action)
        dead = ~state.core.env.action_mask[action]
        stays = state.core.env.replace(step_count=after.env.step_count)
        after = after.replace(env=jax.tree.map(lambda old, new: jnp.where(dead, old, new), stays, after.env))
        return SnakeState(after, after.env.length > state.core.env.length, dead)

    def terminated(self, state: SnakeState) -> jax.Array:
        return state.core.done

    # ---- programs

    def view(self, state: SnakeState) -> SnakeView:
        own = state.core.env
        head, food = jnp.stack(own.head_position), jnp.stack(own.fruit_position)
        grid = jnp.where(own.body, BODY, EMPTY).at[head[0], head[1]].set(HEAD)
        grid = jnp.where(own.body.all(), grid, grid.at[food[0], food[1]].set(FOOD))
        return SnakeView(
            game_grid=grid, head=head, food=food, body_age=own.body_state, free=own.action_mask, length=own.length,
            food_eaten=state.eaten, snake_death=state.dead, snake_steps=own.step_count,
        )  # fmt: skip

    def score(self) -> WithExtraMetrics:
        """The food eaten; an extra metric is the part of the longest episode that was played."""
        return with_length(
            lambda state, action, after: after.eaten.astype(jnp.float32),
            Measure(name="food eaten", rate=False), self.horizon, tells=False,
        )  # fmt: skip

    def default_observation(self, view: SnakeView) -> jax.Array:
        """Where head and food are, and the length, each about in [0, 1]; (5,)."""
        places = jnp.concatenate([view.head, view.food]) / (self.size - 1)
        return jnp.append(places, view.length / self.size**2).astype(jnp.float32)

    def sparse_reward(self, view: SnakeView, action: jax.Array, next_view: SnakeView) -> jax.Array:
        """1 for food, and -1 for running into a wall or itself."""
        return next_view.food_eaten.astype(jnp.float32) - next_view.snake_death

    def dense_reward(self, view: SnakeView, action: jax.Array, next_view: SnakeView) -> jax.Array:
        """The same, and a tenth for every cell nearer to the food."""
        nearer = jnp.abs(view.food - view.head).sum() - jnp.abs(view.food - next_view.head).sum()
        return self.sparse_reward(view, action, next_view) + 0.1 * nearer

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.games.snake_fragments import vocabulary

        return vocabulary(self.size)

    def draw(self, state: Any) -> np.ndarray:
        """The grid, uint8 (20 size, 20 size, 3); the head is red where it ran into itself."""
        grid = np.asarray(self.view(jax.tree.map(jnp.asarray, state)).game_grid)
        head = (220, 60, 50) if state.dead else (250, 230, 90)
        return draw_board(grid, {EMPTY: (24, 26, 32), FOOD: (230, 70, 70), BODY: (70, 170, 90), HEAD: head}, 20)
