"""Functions of a user, with what a script has around them."""

from __future__ import annotations

import functools
import math
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn
from jax.numpy import tanh as squash


class Near(NamedTuple):
    goal: float = 0.5


NEAR = Near()
SETTINGS = types.SimpleNamespace(gain=1.5, name="gain")
GOAL = jnp.array([0.1, -2.5e-8])
MIX = np.array([[1.5, 2.0], [3.0, 4.0]])
STEPS: Any = np.int64(3)


def distance(view: Any, p: Any = GOAL * 2) -> jax.Array:
    # how far
    return jnp.linalg.norm(view.pos - GOAL) + p.sum() * math.pi + np.pi


@jax.jit
def potential(view: Any, k: float = 2.0) -> jax.Array:
    """The potential."""
    value: jax.Array = distance(view)
    return value * k * SETTINGS.gain


near = lambda view: potential(view) < NEAR.goal  # noqa: E731
scaled = functools.partial(potential, k=3.0)


@functools.partial(jax.jit, static_argnames="turns")
def turned(x: jax.Array, turns: int = STEPS) -> jax.Array:
    for _ in range(turns):
        x = x[::-1]
    return x


@jax.vmap
def doubled(x: jax.Array) -> jax.Array:
    return x * 2.0


def see(state: Any) -> jax.Array:
    """What is seen."""
    return jnp.concatenate([turned(state.pos), doubled(state.vel), state.info["gyro"]]).astype(np.float32)


def pay(state: "View", action: Any, next_state: Any) -> tuple[jax.Array, dict[str, Any]]:  # noqa: F821, UP037  # pyright: ignore[reportUndefinedVariable]
    """What is paid."""
    gain = scaled(state) - potential(next_state)  # the gain
    rest = lax.select(near(state), 1.0, 0.0) + nn.relu(gain) + squash(gain) + jax.numpy.sum(MIX @ state.pos)
    return gain + rest, {SETTINGS.name: gain, "rest": rest}


PLAIN = """\
import jax
import jax.numpy as jnp

def get_observation(state):
    return jnp.concatenate([state.pos[::-1][::-1][::-1], state.vel * 2.0, state.info["gyro"]])

def potential(view, k):
    far = jnp.linalg.norm(view.pos - jnp.array([0.1, -2.5e-8], jnp.float32))
    far = far + jnp.array([0.2, -5e-8], jnp.float32).sum() * jnp.pi + jnp.pi
    return far * k * 1.5

def compute_reward(state, action, next_state):
    gain = potential(state, 3.0) - potential(next_state, 2.0)
    rest = jax.lax.select(potential(state, 2.0) < 0.5, 1.0, 0.0) + jax.nn.relu(gain) + jnp.tanh(gain)
    rest = rest + jnp.sum(jnp.array([[1.5, 2.0], [3.0, 4.0]], jnp.float32) @ state.pos)
    return gain + rest, {"gain": gain, "rest": rest}
"""
"""The same as a person would write it as a program."""
