from typing import NamedTuple

import jax
import jax.numpy as jnp

import jaxreward as jr

MOVES = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


class State(NamedTuple):
    agent: jax.Array
    key: jax.Array
    has_key: jax.Array
    goal: jax.Array


class Parcel(jr.BaseTask):
    """Fetch the key, then walk through the door to the goal. A wall parts the 7 x 7 cells; its door is at (3, 3)."""

    horizon = 60
    action_space = jr.Discrete(4)
    state_words = {"agent": "[row, column]", "key": "[row, column]", "action": "0 up, 1 right, 2 down, 3 left"}

    def reset(self, key):
        left, right = jax.random.split(key)
        agent, key = jax.random.randint(left, (2, 2), 0, jnp.array([7, 3]))
        goal = jax.random.randint(right, (2,), jnp.array([0, 4]), 7)
        return State(agent, key, jnp.all(agent == key), goal)

    def step(self, state, action):
        to = jnp.clip(state.agent + MOVES[action], 0, 6)
        free = (to[1] != 3) | ((to[0] == 3) & state.has_key)
        agent = jnp.where(free, to, state.agent)
        return state._replace(agent=agent, has_key=state.has_key | jnp.all(agent == state.key))

    def success(self, state):
        return jnp.all(state.agent == state.goal)

    def expert_actions(self, state):
        """To the key, along the row of the door, to the goal."""
        row, column = state.agent
        actions = []
        if not state.has_key:
            actions = moves(row, state.key[0], 2, 0) + moves(column, state.key[1], 1, 3)
            row, column = state.key
        return actions + moves(row, 3, 2, 0) + moves(column, state.goal[1], 1, 3) + moves(3, state.goal[0], 2, 0)


def moves(start, end, up, down):
    """The action `up` or `down`, as often as it takes from one number to the other."""
    return [up if end > start else down] * abs(int(end) - int(start))
