"""In which manner a robot moves something: the largest value of an episode, the share of a way that was made as told,
how slow it stayed, what never happened and what holds at the end; shares and slowness are 0 for what did not move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

OfState = Callable[[Any], jax.Array]


@dataclass(frozen=True)
class Most:
    """The largest `value` of a state of an episode; with a `scale`, that times it, at most 1."""

    value_of: OfState
    scale: float = 0.0

    def init(self) -> jax.Array:
        return jnp.zeros(())

    def update(self, acc: jax.Array, state: Any, action: jax.Array, next_state: Any) -> jax.Array:
        return jnp.maximum(acc, self.value_of(next_state))

    def value(self, acc: jax.Array) -> jax.Array:
        return jnp.minimum(self.scale * acc, 1.0) if self.scale else acc


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """A share: how much something moved, and how much of that it was `kept` at the end of a step."""

    kept: OfState
    least: float

    def init(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(()), jnp.zeros(())

    def value(self, acc: tuple[jax.Array, jax.Array]) -> jax.Array:
        return jnp.where(acc[0] > self.least, acc[1] / jnp.maximum(acc[0], self.least), 0.0)


@dataclass(frozen=True)
class KeptShare(_Kept):
    """Of the way that something was brought, the share at whose end it was `kept` as it is to be.

    Way that is made a second time does not count, so going to and fro changes nothing.

    Args:
        way: how far it is on its way, from where it began (m); 0 where the simulation failed.
        kept: whether it is kept so.
        least: a way of no more is none (m).
    """

    way: OfState

    def update(
        self, acc: tuple[jax.Array, jax.Array], state: Any, action: jax.Array, next_state: Any
    ) -> tuple[jax.Array, jax.Array]:
        farthest, kept = acc
        beyond = jnp.maximum(self.way(next_state) - farthest, 0.0)
        return farthest + beyond, kept + beyond * self.kept(next_state)


@dataclass(frozen=True)
class KeptPath(_Kept):
    """Of the path that something made, the share at whose end it was `kept` as it is to be.

    Args:
        moved: the path of a step, from the state before it and the one after it (m).
        kept: whether it is kept so.
        least: a path of no more is none (m).
    """

    moved: Callable[[Any, Any], jax.Array]

    def update(
        self, acc: tuple[jax.Array, jax.Array], state: Any, action: jax.Array, next_state: Any
    ) -> tuple[jax.Array, jax.Array]:
        moved = self.moved(state, next_state)
        return acc[0] + moved, acc[1] + moved * self.kept(next_state)


@dataclass(frozen=True)
class AtEnd:
    """1 where something `holds` in the last state of an episode, 0 otherwise."""

    holds: OfState

    def init(self) -> jax.Array:
        return jnp.zeros((), bool)

    def update(self, acc: jax.Array, state: Any, action: jax.Array, next_state: Any) -> jax.Array:
        return self.holds(next_state)

    def value(self, acc: jax.Array) -> jax.Array:
        return acc.astype(jnp.float32)


@dataclass(frozen=True)
class Slow:
    """1 where `speed` never passed `limit`, 0 from three times that on, and between them less the faster it was.

    Args:
        speed: in m/s or rad/s, or how far something was moved (m); infinite where the simulation failed.
        away: how far what moves is from where it began (m or rad).
        limit: of the speed.
        least: farther than that it must have been at some step, or it did not move.
    """

    speed: OfState
    away: OfState
    limit: float
    least: float

    def init(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(()), jnp.zeros(())

    def update(
        self, acc: tuple[jax.Array, jax.Array], state: Any, action: jax.Array, next_state: Any
    ) -> tuple[jax.Array, jax.Array]:
        return jnp.maximum(acc[0], self.away(next_state)), jnp.maximum(acc[1], self.speed(next_state))

    def value(self, acc: tuple[jax.Array, jax.Array]) -> jax.Array:
        slow = jnp.clip((3.0 * self.limit - acc[1]) / (2.0 * self.limit), 0.0, 1.0)
        return jnp.where(acc[0] > self.least, slow, 0.0)


@dataclass(frozen=True)
class Never:
    """1 where something `happens` in no state of an episode after the first, 0 otherwise."""

    happens: OfState

    def init(self) -> jax.Array:
        return jnp.zeros((), bool)

    def update(self, acc: jax.Array, state: Any, action: jax.Array, next_state: Any) -> jax.Array:
        return acc | self.happens(next_state)

    def value(self, acc: jax.Array) -> jax.Array:
        return 1.0 - acc.astype(jnp.float32)
