"""Tiny tasks whose optimal values are known exactly.

They tell a wrong trainer from a noisy curve. With discount g the values are:

========================  ======================================================================
`probe-constant`          one step, an action without effect, reward 1: V = 1
`probe-signal`            one step, reward equals the observed sign: V(+1) = 1, V(-1) = -1
`probe-delay`             two steps, reward 1 on the second: V(first) = g, V(second) = 1
`probe-choice`            one step, reward 1 for the action that equals the observed bit, else 0
`probe-corridor`          walk right along `length` cells; success is to arrive in time
`probe-endless`           reward 1 on each of `length` steps, which look the same: V = 1 / (1 - g)
                          where the horizon is a cut (`PPO.bootstrap`); else V lies between the mean of
                          (1 - g^k) / (1 - g) over k = 1 .. length and 1 / (1 - g (length - 1) / length)
`probe-aim`               one step that ends the episode, a real action a, reward 1 - (a - sign / 2)^2: V = 1
========================  ======================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxreward.records import Fragment, Vocabulary
from jaxreward.tasks.metrics import Reached
from jaxreward.tasks.option_checks import invalid_option
from jaxreward.tasks.task import Box, Discrete


class ProbeState(struct.PyTreeNode):
    """`signal` is drawn at reset, `t` counts steps, `place` is used by the corridor, `error` by the aim."""

    signal: jax.Array
    t: jax.Array
    place: jax.Array
    hit: jax.Array
    error: jax.Array


@dataclass(frozen=True)
class Probe:
    """One probe task; `kind` is the part of its name after `probe-`."""

    kind: str
    length: int = 6
    state_notes: str = ""

    def __post_init__(self) -> None:
        if self.length < 1:
            raise invalid_option("length", f"length must be at least 1, not {self.length}")

    @property
    def name(self) -> str:
        return f"probe-{self.kind}"

    @property
    def description(self) -> str:
        return {
            "constant": "Any action is rewarded with 1.",
            "signal": "The reward is the signal, whatever the action.",
            "delay": "The second of two steps is rewarded with 1.",
            "choice": "Choose action 1 if the signal is 1, else action 0.",
            "corridor": f"Walk right (action 1) until cell {self.length}; action 0 walks left.",
            "endless": "Every step is rewarded with 1, whatever the action.",
            "aim": "Choose an action near 0.5 if the signal is 1, else near -0.5.",
        }[self.kind]

    @property
    def state_words(self) -> dict[str, str]:
        return {
            "signal": "-1 or 1, drawn at reset",
            "t": "steps taken",
            "place": f"cell of the corridor, 0 .. {self.length}",
            "hit": "whether the last step was a success",
            "error": "distance of the last action from what it should have been",
        }

    @property
    def horizon(self) -> int:
        return {"delay": 2, "corridor": 3 * self.length, "endless": self.length}.get(self.kind, 1)

    @property
    def action_space(self) -> Discrete | Box:
        return Box((1,)) if self.kind == "aim" else Discrete(2)

    def reset(self, key: jax.Array) -> ProbeState:
        signal = jnp.where(jax.random.bernoulli(key), 1.0, -1.0)
        zero = jnp.zeros((), jnp.int32)
        return ProbeState(
            signal=signal.astype(jnp.float32), t=zero, place=zero, hit=jnp.zeros((), bool), error=jnp.zeros(())
        )

    def step(self, state: ProbeState, action: jax.Array) -> ProbeState:
        t = state.t + 1
        if self.kind == "aim":
            error = jnp.abs(action[0] - state.signal / 2)
            return state.replace(t=t, hit=error < 0.2, error=error)
        place = state.place
        if self.kind == "corridor":
            place = jnp.clip(place + jnp.where(action == 1, 1, -1), 0, self.length)
        hit = {
            "constant": jnp.ones((), bool),
            "signal": state.signal > 0,
            "delay": t == 2,
            "choice": (action == 1) == (state.signal > 0),
            "corridor": place == self.length,
            "endless": jnp.ones((), bool),
        }[self.kind]
        return state.replace(t=t, place=place, hit=hit)

    def terminated(self, state: ProbeState) -> jax.Array:
        ends = {"corridor": state.place == self.length, "aim": state.t == 1}
        return ends.get(self.kind, jnp.zeros((), bool))

    def view(self, state: ProbeState) -> ProbeState:
        return state

    def score(self) -> Reached:
        """Success: the task rewarded a step."""
        return Reached(lambda state: state.hit)

    def default_observation(self, view: ProbeState) -> jax.Array:
        t = 0 * view.t if self.kind == "endless" else view.t
        return jnp.stack([view.signal, t.astype(jnp.float32), view.place.astype(jnp.float32) / self.length])

    def sparse_reward(self, view: ProbeState, action: jax.Array, next_view: ProbeState) -> jax.Array:
        if self.kind == "signal":
            return next_view.signal
        if self.kind == "aim":
            return 1.0 - next_view.error**2
        return next_view.hit.astype(jnp.float32)

    def draw(self, state: ProbeState) -> np.ndarray:
        """A bar: the signal by its colour, the place by its length, a success by a white end."""
        picture = np.zeros((16, 64, 3), np.uint8)
        reach = 8 + 48 * int(state.place) // max(1, self.length)
        picture[:, :reach] = (40, 160, 80) if float(state.signal) > 0 else (60, 90, 200)
        picture[:, 56:] = 255 * bool(state.hit)
        return picture

    def vocabulary(self) -> Vocabulary:
        feature = "def {0}(state):\n    return jnp.stack([state.{0}]).astype(jnp.float32)\n"
        progress = (
            "def progress(state, action, next_state):\n"
            "    return (next_state.place - state.place).astype(jnp.float32)\n"
        )
        hit = "def hit(state, action, next_state):\n    return next_state.hit.astype(jnp.float32)\n"
        features = [
            Fragment(name=n, kind="feature", source=feature.format(n), tags=(n,)) for n in ("signal", "t", "place")
        ]
        terms = [
            Fragment(name="progress", kind="term", source=progress, tags=("shaping", "place"), scales=(0.1, 1.0)),
            Fragment(name="hit", kind="term", source=hit, tags=("milestone",), scales=(1.0,)),
        ]
        return Vocabulary(fragments=(*features, *terms))
