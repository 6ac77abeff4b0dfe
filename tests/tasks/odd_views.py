"""A task whose view is hard to make a vocabulary of: names that mean something else in programs, names that programs
cannot read, a random key, a picture, and a goal that is not shown."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxreward.tasks import BaseTask, Discrete

NAMES = ("robot_state", "state_of_charge", "traction", "action", "s", "state", "next_state", "GAMMA", "jnp", "class",
         "{s}", "{0} % {", "x[0:1]", "a: b, c", "it's", 'say "so"', "back\\slash", "two\nlines", "(")  # fmt: skip
SECRET = (95.5, 57.25)
"""Where the hidden goal is."""


class Body(NamedTuple):
    """`base` and `format` are names that programs may not read."""

    base: jax.Array
    format: jax.Array
    place: jax.Array


class OddView(NamedTuple):
    numbers: dict[str, jax.Array]
    body: Body
    short: dict[str, jax.Array]
    noise: jax.Array
    picture: jax.Array


class OddViews(BaseTask):
    """Numbers of odd names follow one another; the goal is where nobody says."""

    name = "odd-views"
    horizon = 20
    action_space = Discrete(3)

    def reset(self, key: jax.Array) -> OddView:
        drawn = jax.random.uniform(key, (len(NAMES),), minval=-1.0)
        body = Body(drawn[:2], drawn[2:4], 90.0 + drawn[4:6])
        short = {"a:b": drawn[:1], "[0]": drawn[1:2]}
        noise = jax.random.key_data(jax.random.fold_in(key, 1))
        return OddView(dict(zip(NAMES, drawn, strict=True)), body, short, noise, jnp.zeros((300, 300)))

    def step(self, state: OddView, action: jax.Array) -> OddView:
        old = jnp.stack([state.numbers[name] for name in NAMES])
        new = 0.9 * old + 0.1 * jnp.roll(old, 1) + 0.05 * (action - 1)
        shift = 0.1 * new[:2]
        body = Body(state.body.base + shift, state.body.format - shift, state.body.place + shift)
        short = {name: 0.9 * x + 0.01 * action for name, x in state.short.items()}
        noise = jax.random.key_data(jax.random.split(jax.random.wrap_key_data(state.noise))[0])
        return OddView(dict(zip(NAMES, new, strict=True)), body, short, noise, state.picture + 1.0)

    def success(self, state: OddView) -> jax.Array:
        n, short = state.numbers, state.short
        near = jnp.linalg.norm(state.body.place - jnp.array(SECRET)) < 0.5
        by_hand = (jnp.abs(state.body.place[0] - SECRET[0]) < 0.5) & (state.body.place[1] == SECRET[1])
        full = (n["state_of_charge"] > 0.25) & (n["{s}"] >= n["action"]) & (n["next_state"] > n["x[0:1]"])
        pulls = (n["traction"] > n["robot_state"]) & (short["a:b"][0] > short["[0]"][0])
        return (near | by_hand) & full & pulls & (n["a: b, c"] <= n["("])

    def default_observation(self, view: Any) -> jax.Array:
        return jnp.stack([view.numbers[name] for name in NAMES])
