"""What tasks have in common in which something is to be brought to a goal: success, and how far it came."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxreward.tasks.robots.state import RobotState


@dataclass(frozen=True)
class Bringing:
    """Something that is to be brought to a goal.

    A state's `info` has its `<thing>_pos`, `<thing>_vel` and `<thing>_goal_dist`, and `start_pos` and `goal_pos`.

    Args:
        thing: its name in `info`.
        near: metres from the goal within which it is on it.
    """

    thing: str
    near: float

    def on_goal(self, state: RobotState) -> jax.Array:
        """Whether it is on the goal; never where the simulation failed."""
        return ~state.data.broken & (self._left(state) < self.near)

    def nearer(self, state: RobotState) -> jax.Array:
        """How much nearer to the goal it is than where it began (m); 0 where the simulation failed."""
        return jnp.where(state.data.broken, 0.0, self._whole(state) - self._left(state))

    def away(self, state: RobotState) -> jax.Array:
        """How far it is from where it began (m); 0 where the simulation failed."""
        way = state.info[f"{self.thing}_pos"] - state.info["start_pos"]
        return jnp.where(state.data.broken, 0.0, jnp.linalg.norm(way))

    def brought(self, state: RobotState) -> jax.Array:
        """Of the way to where it is on the goal, the share that is made; 0 where the simulation failed."""
        whole = jnp.maximum(self._whole(state) - self.near, 1e-3)
        share = 1.0 - jnp.maximum(self._left(state) - self.near, 0.0) / whole
        return jnp.where(state.data.broken, 0.0, jnp.clip(share, 0.0, 1.0))

    def speed(self, state: RobotState) -> jax.Array:
        """Its speed (m/s); infinite where the simulation failed."""
        return jnp.where(state.data.broken, jnp.inf, jnp.linalg.norm(state.info[f"{self.thing}_vel"]))

    def _left(self, state: RobotState) -> jax.Array:
        return state.info[f"{self.thing}_goal_dist"]

    def _whole(self, state: RobotState) -> jax.Array:
        return jnp.linalg.norm(state.info["goal_pos"] - state.info["start_pos"])
