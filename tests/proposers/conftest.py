"""A state, on which the tests of proposers evaluate programs."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest


class Agent(NamedTuple):
    position: jax.Array
    direction: jax.Array
    pocket: jax.Array


class State(NamedTuple):
    grid: jax.Array
    agent: Agent
    step_num: jax.Array


@pytest.fixture(scope="session")
def state() -> State:
    grid = jnp.full((9, 9, 2), 2, jnp.uint8).at[1:-1, 1:-1].set(jnp.array([1, 7], jnp.uint8))
    grid = grid.at[2, 3].set(jnp.array([5, 5], jnp.uint8)).at[6, 6].set(jnp.array([4, 2], jnp.uint8))
    agent = Agent(jnp.array([4, 4], jnp.int32), jnp.int32(1), jnp.zeros(2, jnp.uint8))
    return State(grid, agent, jnp.int32(3))


@pytest.fixture(scope="session")
def shapes(state):
    """Trace a source that is ours, or that a test made of ours: observation and reward shapes."""

    def trace(source):
        namespace: dict = {}
        exec(source, namespace)
        action = jax.ShapeDtypeStruct((), jnp.int32)
        observation = reward = None
        if "get_observation" in namespace:
            observation = jax.eval_shape(namespace["get_observation"], state)
            assert observation.ndim == 1 and observation.dtype == jnp.float32
        if "compute_reward" in namespace:
            reward = jax.eval_shape(namespace["compute_reward"], state, action, state)
            if isinstance(reward, tuple):
                total, terms = reward
                assert total.shape == () and all(t.shape == () for t in terms.values())
        return observation, reward

    return trace


@pytest.fixture
def key(monkeypatch, tmp_path):
    """A working directory without a `.env`, and the key of the loopback server."""
    from tests.proposers.talk import KEY  # not for the tests that talk to nobody

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
