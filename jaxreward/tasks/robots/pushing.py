"""What tasks have in common in which something is to be pushed to a goal: how well it was done as told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax

from jaxreward.tasks.metrics import Both, Reached, WithExtraMetrics
from jaxreward.tasks.robots.bringing import Bringing
from jaxreward.tasks.robots.manner_metrics import KeptShare, Most, Slow
from jaxreward.tasks.robots.state import RobotState


@dataclass(frozen=True)
class Pushing(Bringing):
    """Something that is to be pushed to a goal.

    Args:
        thing: its name in `info`.
        near: metres from the goal within which it is on it.
        touched: whether it is touched as it is to be.
        gentle: metres a second up to which it is pushed gently.
        still: metres up to which it has not moved.
    """

    touched: Callable[[RobotState], jax.Array]
    gentle: float
    still: float

    def score(self) -> WithExtraMetrics:
        """Success; extra metrics, in [0, 1], are whether it was touched, the share of its way on which it was, the
        share of the way to the goal that was made, and how slow it stayed. The manners count as far as it was
        brought."""
        brought = Most(self.brought)
        pushed = KeptShare(self.nearer, kept=self.touches, least=self.still)
        return WithExtraMetrics(
            Reached(self.on_goal),
            {"touched": Reached(self.touches), "pushed": Both(pushed, brought), "brought": brought,
             "gentle": Both(Slow(self.speed, self.away, self.gentle, self.still), brought)},
        )  # fmt: skip

    def touches(self, state: RobotState) -> jax.Array:
        """Whether it is touched as it is to be; never where the simulation failed."""
        return ~state.data.broken & self.touched(state)
