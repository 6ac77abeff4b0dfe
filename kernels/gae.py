"""Generalised advantage estimation."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def gae(
    r_t: jax.Array,
    discount_t: jax.Array,
    v_tm1: jax.Array,
    v_t: jax.Array,
    lambda_: jax.Array | float,
    mask_t: jax.Array | None = None,
) -> jax.Array:
    """Advantages of one trajectory, time-major and unbatched.

    With the temporal difference ``delta_t = r_t + discount_t * v_t - v_tm1``,

        advantage_t = delta_t + discount_t * lambda_t * advantage_{t+1},    advantage_{T+1} = 0,

    which is eq. 16 of Schulman et al. (2016), "High-dimensional continuous control using
    generalized advantage estimation" (arXiv:1506.02438), truncated after T steps. Adding `v_tm1`
    gives the lambda-returns to fit the value function to. Gradients flow through the values;
    callers stop them.

    Args:
        r_t: rewards of the T steps, (T,).
        discount_t: gamma, or 0 where the episode terminated, (T,).
        v_tm1: values of the states that the steps left, (T,).
        v_t: values of the states that the steps reached, before any reset, (T,).
        lambda_: the mixing parameter in [0, 1], a scalar or (T,). Where a time limit cuts an
            episode, a 0 here with a discount of gamma bootstraps from `v_t` and keeps the next
            episode out.
        mask_t: False where the temporal difference is to count as 0, bool (T,); all count if omitted.

    Returns:
        The advantages, (T,), in the dtype of `r_t`.

    Raises:
        ValueError: the arguments are not vectors of one length.
    """
    shapes = {"r_t": r_t.shape, "discount_t": discount_t.shape, "v_tm1": v_tm1.shape, "v_t": v_t.shape}
    if r_t.ndim != 1 or len(set(shapes.values())) != 1:
        raise ValueError(f"gae expects vectors of one length T, got {shapes}; vmap over batch axes.")

    delta_t = r_t + discount_t * v_t - v_tm1
    if mask_t is not None:
        delta_t = jnp.where(mask_t, delta_t, 0.0)
    decay_t = discount_t * jnp.asarray(lambda_, r_t.dtype)

    def backward(advantage: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta, decay = step
        advantage = delta + decay * advantage
        return advantage, advantage

    _, advantages = jax.lax.scan(backward, jnp.zeros((), delta_t.dtype), (delta_t, decay_t), reverse=True)
    return advantages
