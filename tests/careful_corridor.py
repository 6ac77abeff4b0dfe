"""A corridor to be walked in a certain manner: a task with an instruction that trains in a second."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxreward.records import Fragment, Instruction, Subtask, Vocabulary
from jaxreward.tasks.metrics import Reached, WithExtraMetrics
from jaxreward.tasks.probe import Probe, ProbeState

BACK = """def back(state, action, next_state):
    return (next_state.place < state.place).astype(jnp.float32)
"""


class WentBack:
    """Whether some step led to an earlier cell."""

    def init(self) -> jax.Array:
        return jnp.zeros((), bool)

    def update(self, acc: jax.Array, state: ProbeState, action: jax.Array, next_state: ProbeState) -> jax.Array:
        return acc | (next_state.place < state.place)

    def value(self, acc: jax.Array) -> jax.Array:
        return acc.astype(jnp.float32)


@dataclass(frozen=True)
class CarefulCorridor(Probe):
    """Success is to arrive; the instruction also asks for a step back, for which success does not ask."""

    kind: str = "corridor"
    length: int = 3

    @property
    def name(self) -> str:
        return "careful-corridor"

    def score(self) -> WithExtraMetrics:  # type: ignore[override]
        arrived = Reached(lambda state: state.hit)
        return WithExtraMetrics(arrived, {"arrived": arrived, "went_back": WentBack()})

    def vocabulary(self) -> Vocabulary:
        own = super().vocabulary()
        back = Fragment(name="back", kind="term", source=BACK, tags=("bonus",), scales=(0.1, 0.3, 1.0, 3.0))
        return own.model_copy(update={"fragments": (*own.fragments, back)})

    def instruction(self) -> Instruction:
        return Instruction(
            words="Walk to the right end, but go back a step on the way.",
            subtasks=(
                Subtask(name="arrive", words="arrive at the right end", metric="arrived", terms=("hit", "progress")),
                Subtask(name="turn", words="go back a step on the way", metric="went_back", terms=("back",)),
            ),
        )
