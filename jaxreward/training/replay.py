"""A replay buffer of one agent, on the device: what it saw, did and was paid, the newest steps of all environments.

Observations are stored once, since the one that follows a step is that of the next row. All agents of a chunk write at
the same row, which the number of the update says, so that writing is one slice and not a scatter.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from jaxreward.training.rollout import Trajectory


class Replay(struct.PyTreeNode):
    """K rows of E environments: `obs` (K + 1, E, d) with a last row that only follows, `action` (K, E, a) as it was
    sampled, `reward`, `terminated` and `truncated` (K, E)."""

    obs: jax.Array
    action: jax.Array
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array


class Transitions(struct.PyTreeNode):
    """A batch of B steps: `obs` and `following` (B, d), `action` (B, a), and (B,) else."""

    obs: jax.Array
    action: jax.Array
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    following: jax.Array


def new_replay(rows: int, envs: int, width: int, actions: int) -> Replay:
    """An empty buffer for observations of `width` features and actions of so many numbers."""
    flag = jnp.zeros((rows, envs), bool)
    return Replay(
        jnp.zeros((rows + 1, envs, width)), jnp.zeros((rows, envs, actions)), jnp.zeros((rows, envs)), flag, flag
    )


def add(replay: Replay, trajectory: Trajectory, update: jax.Array) -> Replay:
    """With the T steps of an unroll, those of update number `update`, in place of the oldest; T divides the rows."""
    first = update * trajectory.reward.shape[0] % replay.reward.shape[0]
    rows = Replay(
        trajectory.obs,  # T + 1 of them: the last one is what follows the newest step
        trajectory.action, trajectory.reward, trajectory.done & ~trajectory.truncated, trajectory.truncated,
    )  # fmt: skip
    return jax.tree.map(lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, first, 0), replay, rows)


def sample(replay: Replay, key: jax.Array, update: jax.Array, length: int, batch: int) -> Transitions:
    """`batch` steps, drawn uniformly from those written up to update number `update`, of `length` rows each.

    Once the buffer is full the oldest row is left out, whose observation the newest step needs.
    """
    rows, envs = replay.reward.shape
    written = (update + 1) * length
    ages, places = jax.random.split(key)
    age = jax.random.randint(ages, (batch,), 0, jnp.minimum(written, rows - 1))
    env = jax.random.randint(places, (batch,), 0, envs)
    row = (written - 1 - age) % rows
    steps = jax.tree.map(lambda x: x[row, env], replay)
    return Transitions(
        steps.obs, steps.action, steps.reward, steps.terminated, steps.truncated, replay.obs[row + 1, env]
    )
