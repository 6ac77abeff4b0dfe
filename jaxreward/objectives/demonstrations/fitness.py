"""How well rewards tell the states of an expert from others: GRACE's fitness, and the accuracy of its Figure 4."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike


def log_discriminator(reward: ArrayLike, logp: ArrayLike, expert: ArrayLike) -> jax.Array:
    """What each state adds to AIRL's objective: log D where `expert` holds, else log(1 - D).

        D(s) = exp(r(s)) / (exp(r(s)) + pi(a | s))

    Args:
        reward: float32 (..., n).
        logp: log pi(a | s), (n,), of the policy that the expert is told from.
        expert: bool (n,).

    Returns:
        At most 0, (..., n).
    """
    reward, logp = jnp.asarray(reward), jnp.asarray(logp)
    return -jax.nn.softplus(jnp.where(jnp.asarray(expert), logp - reward, reward - logp))


def airl_fitness(
    expert: ArrayLike, negative: ArrayLike, expert_logp: ArrayLike, negative_logp: ArrayLike,
    expert_weights: ArrayLike = 1.0, negative_weights: ArrayLike = 1.0,
) -> jax.Array:  # fmt: skip
    """The objective of AIRL for rewards as discriminators (GRACE, equation 4.1).

        f(r) = mean over expert states of log D + mean over negative states of log(1 - D)

    Args:
        expert, negative: rewards of expert states, float32 (..., n), and of negative ones, (..., m).
        expert_logp, negative_logp: as in `log_discriminator`, (n,) and (m,).
        expert_weights, negative_weights: how many steps each state stands for, (n,) and (m,).

    Returns:
        At most 0, and the larger the better, (...); -inf where a reward is not finite.
    """
    expert, negative = jnp.asarray(expert), jnp.asarray(negative)
    found = weighted_mean(log_discriminator(expert, expert_logp, True), expert_weights)
    found += weighted_mean(log_discriminator(negative, negative_logp, False), negative_weights)
    finite = jnp.isfinite(expert).all(-1) & jnp.isfinite(negative).all(-1)
    return jnp.where(finite & jnp.isfinite(found), found, -jnp.inf)


def accuracy(
    expert: ArrayLike, negative: ArrayLike, expert_weights: ArrayLike = 1.0, negative_weights: ArrayLike = 1.0
) -> jax.Array:  # fmt: skip
    """The share of pairs of an expert state and a negative one in which the expert's has the larger reward.

    1 where every expert state is above every negative one. Equal rewards count half, so that a constant has 0.5.

    Args:
        expert: rewards of expert states, (..., n).
        negative: rewards of negative states, (..., m).
        expert_weights, negative_weights: how many steps each state stands for, (n,) and (m,).

    Returns:
        In [0, 1], (...); 0 where a reward is not finite.
    """
    expert, negative = jnp.asarray(expert), jnp.asarray(negative)
    shape = expert.shape[:-1]
    flat = [x.reshape(-1, x.shape[-1]) for x in (expert, negative)]

    weights = jnp.broadcast_to(jnp.asarray(negative_weights, jnp.float32), negative.shape[-1:])

    def one(above: jax.Array, below: jax.Array) -> jax.Array:
        order = jnp.argsort(below)
        lighter = jnp.concatenate([jnp.zeros(1), jnp.cumsum(weights[order])])  # of all that are below a place
        sides = [lighter[jnp.searchsorted(below[order], above, side=side)] for side in ("left", "right")]
        missed = 2 * lighter[-1] - sides[0] - sides[1]  # none missed is then 1 to the last bit
        return 1.0 - weighted_mean(missed / (2 * lighter[-1]), expert_weights)

    finite = jnp.isfinite(expert).all(-1) & jnp.isfinite(negative).all(-1)
    return jnp.where(finite, jax.vmap(one)(*flat).reshape(shape), 0.0)


def weighted_mean(x: jax.Array, weights: ArrayLike = 1.0) -> jax.Array:
    """The mean over the last axis, of which each entry stands for so many."""
    weights = jnp.broadcast_to(jnp.asarray(weights, x.dtype), x.shape[-1:])
    return (x * weights).sum(-1) / weights.sum()
