"""A step of a gated recurrent unit with a gradient of its own."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial

import jax
import jax.numpy as jnp

Residuals = tuple[jax.Array, ...]


def gru_reference(h: jax.Array, x: jax.Array, wi: jax.Array, wh: jax.Array, bi: jax.Array, bn: jax.Array) -> jax.Array:
    """The hidden state that follows, (B, H).

    Cho et al. (2014), arXiv:1406.1078, in the variant that applies the reset gate after the product, as cuDNN and
    `flax.linen.GRUCell` do:

        r = sigmoid(x Wi_r + bi_r + h Wh_r)
        z = sigmoid(x Wi_z + bi_z + h Wh_z)
        n = tanh(x Wi_n + bi_n + r (h Wh_n + bn))
        h' = (1 - z) n + z h

    Args:
        h: the hidden state, (B, H).
        x: the input, (B, d).
        wi, wh: kernels of the gates r, z and n side by side, (d, 3 H) and (H, 3 H).
        bi, bn: biases (3 H,) and (H,).
    """
    return _forward(h, x, wi, wh, bi, bn)[0]


@partial(jax.custom_vjp, nondiff_argnums=(6,))
def gru(
    h: jax.Array, x: jax.Array, wi: jax.Array, wh: jax.Array, bi: jax.Array, bn: jax.Array, precision: str | None = None
) -> jax.Array:
    """`gru_reference`, with a gradient that keeps six arrays of a step where automatic differentiation keeps twelve:
    of a long batch they are read from memory, which costs as much as a tenth of the products.

    `precision` of the products, those of the gradient too, is as for `jax.default_matmul_precision`; None is JAX's own.
    """
    with _products(precision):
        return _forward(h, x, wi, wh, bi, bn)[0]


def _products(precision: str | None) -> AbstractContextManager[None]:
    return nullcontext() if precision is None else jax.default_matmul_precision(precision)


def _forward(
    h: jax.Array, x: jax.Array, wi: jax.Array, wh: jax.Array, bi: jax.Array, bn: jax.Array
) -> tuple[jax.Array, Residuals]:
    if h.ndim != 2 or x.ndim != 2 or wi.shape != (x.shape[1], 3 * h.shape[1]):
        raise ValueError(f"gru expects h (B, H), x (B, d) and wi (d, 3 H), got {h.shape}, {x.shape} and {wi.shape}")
    read_r, read_z, read_n = jnp.split(x @ wi + bi, 3, -1)
    kept_r, kept_z, kept_n = jnp.split(h @ wh, 3, -1)
    r, z = jax.nn.sigmoid(read_r + kept_r), jax.nn.sigmoid(read_z + kept_z)
    kept_n = kept_n + bn
    n = jnp.tanh(read_n + r * kept_n)
    return (1.0 - z) * n + z * h, (r, z, n, kept_n)


def _gru_fwd(
    h: jax.Array, x: jax.Array, wi: jax.Array, wh: jax.Array, bi: jax.Array, bn: jax.Array, precision: str | None
) -> tuple[jax.Array, Residuals]:
    with _products(precision):
        after, gates = _forward(h, x, wi, wh, bi, bn)
    return after, (h, x, wi, wh, *gates)


def _gru_bwd(precision: str | None, residuals: Residuals, g: jax.Array) -> Residuals:
    h, x, wi, wh, r, z, n, kept_n = residuals
    d_n = g * (1.0 - z) * (1.0 - n * n)
    d_z = g * (h - n) * z * (1.0 - z)
    d_r = d_n * kept_n * r * (1.0 - r)
    read = jnp.concatenate([d_r, d_z, d_n], -1)
    kept = jnp.concatenate([d_r, d_z, d_n * r], -1)
    with _products(precision):
        return kept @ wh.T + g * z, read @ wi.T, x.T @ read, h.T @ kept, read.sum(0), (d_n * r).sum(0)


gru.defvjp(_gru_fwd, _gru_bwd)
