"""Tasks as a person would write them who has no vocabulary: a grid with a key and a door, by its fields, by an array of
cells, and with other names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxreward.records import Vocabulary
from jaxreward.tasks import Discrete
from jaxreward.tasks.metrics import Reached

SIZE = 7
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


class KeyDoorState(NamedTuple):
    """Places are int32 (2,), row and column."""

    agent: jax.Array
    key: jax.Array
    door: jax.Array
    has_key: jax.Array
    open: jax.Array


@dataclass(frozen=True)
class KeyDoor:
    """Step on the key to take it, then on the door to open it."""

    name: str = "key-door"
    description: str = "A room of 7 x 7 cells with a key and a door. Fetch the key, then go to the door: it opens."
    state_notes: str = ""
    horizon: int = 40

    @property
    def action_space(self) -> Discrete:
        return Discrete(4)

    @property
    def state_words(self) -> dict[str, str]:
        return {}

    def reset(self, key: jax.Array) -> Any:
        cells = jax.random.choice(key, SIZE * SIZE, (3,), replace=False)
        places = jnp.stack([cells // SIZE, cells % SIZE], axis=1).astype(jnp.int32)
        off = jnp.zeros((), bool)
        return KeyDoorState(places[0], places[1], places[2], off, off)

    def step(self, state: Any, action: jax.Array) -> Any:
        agent = jnp.clip(state.agent + jnp.array(MOVES, jnp.int32)[action], 0, SIZE - 1)
        has_key = state.has_key | jnp.all(agent == state.key)
        opened = state.open | (has_key & jnp.all(agent == state.door))
        return state._replace(agent=agent, has_key=has_key, open=opened)

    def terminated(self, state: Any) -> jax.Array:
        return state.open

    def view(self, state: Any) -> Any:
        return state

    def score(self) -> Reached:
        return Reached(lambda state: state.open)

    def default_observation(self, view: Any) -> jax.Array:
        flags = jnp.stack([view.has_key, view.open])
        return jnp.concatenate([view.agent, view.key, view.door, flags]).astype(jnp.float32)

    def sparse_reward(self, view: Any, action: jax.Array, next_view: Any) -> jax.Array:
        return (next_view.open & ~view.open).astype(jnp.float32)

    def vocabulary(self) -> Vocabulary:
        return Vocabulary()


class CellsView(NamedTuple):
    """`cells` is int32 (7, 7): 0 floor, 1 agent, 2 key, 3 door."""

    cells: jax.Array
    has_key: jax.Array
    open: jax.Array


@dataclass(frozen=True)
class KeyDoorCells(KeyDoor):
    """The same world; programs see an array of cells."""

    name: str = "key-door-cells"

    def view(self, state: Any) -> CellsView:
        cells = jnp.zeros((SIZE, SIZE), jnp.int32).at[tuple(state.door)].set(3)
        cells = cells.at[tuple(state.key)].set(jnp.where(state.has_key, cells[tuple(state.key)], 2))
        return CellsView(cells.at[tuple(state.agent)].set(1), state.has_key, state.open)

    def default_observation(self, view: Any) -> jax.Array:
        return jnp.concatenate([view.cells.reshape(-1), view.has_key[None]]).astype(jnp.float32)


@dataclass(frozen=True)
class KeyDoorRenamed(KeyDoor):
    """The same world as a dictionary whose names say nothing, with a field that never changes and one of noise."""

    name: str = "key-door-renamed"

    def reset(self, key: jax.Array) -> Any:
        return {"state": super().reset(key), "noise": key}

    def step(self, state: Any, action: jax.Array) -> Any:
        return {"state": super().step(state["state"], action), "noise": jax.random.split(state["noise"])[0]}

    def terminated(self, state: Any) -> jax.Array:
        return state["state"].open

    def view(self, state: Any) -> dict[str, jax.Array]:
        s = state["state"]
        noise = jax.random.uniform(state["noise"], (2,), minval=0.0, maxval=6.0)
        return {"a": s.agent, "b": s.key, "c": s.door, "d": s.has_key, "e": s.open, "f": noise, "g": jnp.full((2,), 3)}

    def score(self) -> Reached:
        return Reached(lambda state: state["state"].open)

    def default_observation(self, view: Any) -> jax.Array:
        flags = jnp.stack([view["d"], view["e"]])
        return jnp.concatenate([view["a"], view["b"], view["c"], flags]).astype(jnp.float32)

    def sparse_reward(self, view: Any, action: jax.Array, next_view: Any) -> jax.Array:
        return (next_view["e"] & ~view["e"]).astype(jnp.float32)
