"""A small task with every kind of node in its view: a point on a plane, a grid, a dictionary."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

HORIZON = 10


class Agent(NamedTuple):
    position: Any
    direction: Any


class View(NamedTuple):
    pos: Any
    vel: Any
    goal: Any
    t: Any
    grid: Any
    agent: Agent
    info: dict[str, Any]


class State(NamedTuple):
    view: View
    key: Any


class Box(NamedTuple):
    shape: tuple[int, ...] = (2,)
    low: float = -1.0
    high: float = 1.0


class PointTask:
    """Not complete: without `terminated` it cannot be played, so its programs are checked on random inputs."""

    name = "point"
    horizon = HORIZON
    action_space = Box()

    def reset(self, key: jax.Array) -> State:
        a, b, c, d = jax.random.split(key, 4)
        agent = Agent(jnp.array([2, 2], jnp.int32), jnp.int32(1))
        view = View(
            jax.random.normal(a, (2,)), jnp.zeros(2), jax.random.normal(b, (2,)), jnp.int32(0),
            jax.random.randint(c, (5, 5, 2), 0, 5).astype(jnp.uint8), agent,
            {"gyro": jax.random.normal(d, (3,)), "height": jnp.float32(0.3)},
        )  # fmt: skip
        return State(view, key)

    def step(self, state: State, action: jax.Array) -> State:
        view = state.view
        return state._replace(view=view._replace(pos=view.pos + 0.1 * action, vel=action, t=view.t + 1))

    def view(self, state: State) -> View:
        return state.view

    def default_observation(self, view: View) -> jax.Array:
        return jnp.concatenate([view.pos, view.vel, view.goal, view.info["gyro"]])

    def sparse_reward(self, view: View, action: jax.Array, next_view: View) -> jax.Array:
        return (jnp.linalg.norm(next_view.pos - next_view.goal) < 0.1).astype(jnp.float32)


class GridTask(PointTask):
    """The same view with discrete actions."""

    class action_space:
        n = 6


def structs(task: PointTask) -> tuple[Any, Any]:
    """The bare trees that stand in for a task."""
    view = jax.eval_shape(lambda: task.view(task.reset(jax.random.key(0))))
    return view, jax.ShapeDtypeStruct((2,), jnp.float32)
