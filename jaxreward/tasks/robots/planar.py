"""Vectors and rectangles in the plane."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def turned(vector: jax.Array, angle: jax.Array) -> jax.Array:
    """`vector` (2,) turned by `angle` (rad)."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]])


def outside(point: jax.Array, half: tuple[float, float]) -> jax.Array:
    """How far `point` (2,) is from the sides of a rectangle around the origin with sides of twice `half` (m); negative
    inside."""
    over = jnp.abs(point) - jnp.array(half)
    return jnp.linalg.norm(jnp.maximum(over, 0.0)) + jnp.minimum(over.max(), 0.0)
