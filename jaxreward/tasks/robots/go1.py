"""Go1 push recovery: stand where you are, whatever pushes you (LIMEN, arXiv 2605.03408, sections 5.1 and A.1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxreward.records import Vocabulary
from jaxreward.tasks.metrics import MeanBelow
from jaxreward.tasks.option_checks import check_not_negative, check_whole, invalid_option
from jaxreward.tasks.robots.go1_base import GO1_WORDS, UPRIGHT, Go1Task, down
from jaxreward.tasks.robots.physics import Data
from jaxreward.tasks.robots.state import RobotState, RobotView

PUSH_STEPS = 5
PUSH_RANGE = (150.0, 400.0)
STRONGEST = 10.0
NEAR = 0.10


@dataclass(frozen=True)
class Go1PushRecovery(Go1Task):
    """A Go1-like robot that must keep standing at the origin while it is pushed.

    Args:
        push_force_scale: by which the force of pushes is multiplied, at most 10.
        push_interval: control steps (0.02 s) from one push to the next, fewer than an episode has.
        horizon: control steps of an episode.
        impl: of MJX, `jax` or `warp`.
    """

    push_force_scale: float = 1.0
    push_interval: int = 75

    name = "go1-push-recovery"
    pushed = "trunk"
    own_words: ClassVar[Mapping[str, str]] = GO1_WORDS | {
        "info.push_force": "the push of the step that led here, in the world (N), zero between pushes",
        "info.push_count": "pushes begun",
        "info.cum_pos_error": "sum of the horizontal distances from the origin so far (m)",
    }

    def __post_init__(self) -> None:
        check_not_negative("push_force_scale", self.push_force_scale, STRONGEST)
        check_whole("push_interval", self.push_interval)
        if self.push_interval <= PUSH_STEPS:
            message = f"push_interval must be more than the {PUSH_STEPS} steps of a push, not {self.push_interval}"
            raise invalid_option("push_interval", message)
        super().__post_init__()
        steps = max(self.horizon, type(self).horizon)  # a shorter horizon than usual is for trying things out
        if self.push_interval >= steps:
            raise invalid_option(
                "push_interval",
                f"push_interval must be less than the {steps} steps of an episode, or no push would ever come, "
                f"not {self.push_interval}",
            )

    @property
    def description(self) -> str:
        low, high = (force * self.push_force_scale for force in PUSH_RANGE)
        seconds = 0.02 * self.push_interval
        return (
            "A quadruped robot (Unitree Go1) stands on flat ground and is pushed from random sides, with "
            f"{low:.0f} to {high:.0f} N for 0.1 s every {seconds:g} s. It must not fall, and must stay where it "
            f"began: an episode succeeds if the robot is up for all of its {0.02 * self.horizon:g} seconds and its "
            "horizontal distance from the origin is below 0.10 m on average. An episode ends when the robot has "
            "tipped over."
        )

    def reset(self, key: jax.Array) -> RobotState:
        data = jax.tree.map(jnp.asarray, self.home)
        return RobotState(data, self.first_info(data, key))

    def first_info(self, data: Data, key: jax.Array) -> dict[str, Any]:
        return super().first_info(data, key) | {
            "rng": jax.random.key_data(key),
            "push_force": jnp.zeros(3), "push_count": jnp.zeros((), jnp.int32), "cum_pos_error": jnp.zeros(()),
        }  # fmt: skip

    def outside_force(self, state: RobotState) -> jax.Array:
        """The push, zero between pushes."""
        return self._next_push(state.info)["push_force"]

    def next_info(self, state: RobotState, action: jax.Array, data: Data) -> dict[str, Any]:
        error = state.info["cum_pos_error"] + jnp.linalg.norm(data.qpos[:2])
        return super().next_info(state, action, data) | self._next_push(state.info) | {"cum_pos_error": error}

    def _next_push(self, info: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """What `info` is to say of pushes a step later."""
        count = info["step_count"]
        into = count % self.push_interval
        begins = (count >= self.push_interval) & (into == 0)
        key, draw = jax.random.split(jax.random.wrap_key_data(info["rng"]))
        force = jnp.where(begins, self._push(draw), info["push_force"])
        return {
            "push_force": jnp.where((count >= self.push_interval) & (into < PUSH_STEPS), force, 0.0),
            "push_count": info["push_count"] + begins,
            "rng": jnp.where(begins, jax.random.key_data(key), info["rng"]),
        }

    def _push(self, key: jax.Array) -> jax.Array:
        """A force in a random horizontal direction, a tenth of it upwards too (N)."""
        strength, side = jax.random.uniform(key, (2,))
        force = self.push_force_scale * (PUSH_RANGE[0] + (PUSH_RANGE[1] - PUSH_RANGE[0]) * strength)
        angle = 2.0 * jnp.pi * side
        return force * jnp.stack([jnp.cos(angle), jnp.sin(angle), jnp.full((), 0.1)])

    def score(self) -> MeanBelow:
        """Success: up to the last step, with a mean horizontal displacement from the origin below 0.10 m."""
        displacement = lambda state: jnp.linalg.norm(state.data.qpos[:2])  # noqa: E731
        return MeanBelow(displacement, lambda state: ~down(state.data), self.horizon, NEAR)

    def sparse_reward(self, view: RobotView, action: jax.Array, next_view: RobotView) -> jax.Array:
        """1 for every step that ends up and within 0.10 m of the origin."""
        near = jnp.linalg.norm(next_view.info["pos_xy"]) < NEAR
        return (near & (next_view.info["upvector"][2] >= UPRIGHT)).astype(jnp.float32)

    def vocabulary(self) -> Vocabulary:
        from jaxreward.tasks.robots.go1_fragments import vocabulary

        return vocabulary(self.horizon, self.push_force_scale * PUSH_RANGE[1])
