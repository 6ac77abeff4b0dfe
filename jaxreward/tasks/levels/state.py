"""States of levels, and what programs see of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.tasks.levels.codes import AGENT


class LevelState(struct.PyTreeNode):
    """The true state of an episode.

    Attributes:
        grid: uint8 (height, width, 3), MiniGrid's (type, colour, state) of each cell by row and column, without agent.
        ids: uint8 (height, width), which object or door lies where; 0 for none.
        position: int32 (2,), row and column of the agent.
        direction: int32 (), 0 right, 1 down, 2 left, 3 up.
        carried: uint8 (4,), (type, colour, state, id) of what is carried; zeros for nothing.
        mission: int32 (2, 4), clauses [verb, type, colour, location]; -1 is anything, and a clause that is not there.
        targets: bool (2, THINGS), by clause and id: what a clause names, found when the episode begins.
        start: int32 (3,), row, column and direction of the agent when the episode began.
        done: bool (2,), which clauses are fulfilled.
        solved: bool (), whether the last step fulfilled the mission.
        step_num: int32 (), steps taken.
    """

    grid: jax.Array
    ids: jax.Array
    position: jax.Array
    direction: jax.Array
    carried: jax.Array
    mission: jax.Array
    targets: jax.Array
    start: jax.Array
    done: jax.Array
    solved: jax.Array
    step_num: jax.Array


class LevelView(struct.PyTreeNode):
    """What programs see; see `words.STATE_WORDS`."""

    grid: jax.Array
    mission: jax.Array
    carrying: jax.Array
    start: jax.Array


def view_of(state: LevelState) -> LevelView:
    """The view of a state: the grid with the agent painted in, without ids and targets."""
    height, width, _ = state.grid.shape
    here = (jnp.arange(height)[:, None] == state.position[0]) & (jnp.arange(width)[None, :] == state.position[1])
    agent = jnp.stack([jnp.full((), AGENT), jnp.zeros((), jnp.int32), state.direction]).astype(jnp.uint8)
    return LevelView(
        grid=jnp.where(here[:, :, None], agent, state.grid),
        mission=state.mission,
        carrying=state.carried[:3],
        start=state.start,
    )
