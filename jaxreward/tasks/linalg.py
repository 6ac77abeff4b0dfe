"""Cholesky factors and triangular solves of many small matrices on CPU, without LAPACK.

From jaxlib 0.10.0 until 0.11.1 LAPACK's kernels for batches put their parts on the pool of threads that runs them, and
wait. MuJoCo XLA factors two or three matrices at once: where the pool has no more threads than that, as with two cores,
all threads come to wait for each other, and a training stands still for ever. With those versions `keep_off_the_pool`
has XLA compile loops over columns in their place, for all of this process; results differ by rounding.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

LARGEST = 64
"""Columns of the largest matrices that loops take; larger and complex ones get XLA's own algorithm, which is slow for
small ones."""


def affected(version: str) -> bool:
    """Whether this version of jaxlib can stand still."""
    return (0, 10, 0) <= tuple(int(number) for number in re.findall(r"\d+", version)[:3]) < (0, 11, 1)


@functools.cache
def keep_off_the_pool() -> None:
    """Replace LAPACK's Cholesky factors and triangular solves on CPU in this process, if this jaxlib needs it."""
    if affected(jaxlib.__version__):
        _replace(jax.lax.linalg.cholesky_p, cholesky, _xla_cholesky)
        _replace(jax.lax.linalg.triangular_solve_p, triangular_solve, _xla_triangular_solve)


def _replace(primitive: Any, ours: Any, xlas: Any) -> None:
    loops = mlir.lower_fun(ours, multiple_results=False)

    def lower(ctx: Any, *operands: Any, **params: Any) -> Any:
        matrix = ctx.avals_in[0]
        small = matrix.shape[-1] <= LARGEST and jnp.issubdtype(matrix.dtype, jnp.floating)
        return (loops if small else xlas)(ctx, *operands, **params)

    mlir.register_lowering(primitive, lower, platform="cpu")


def _xla_cholesky(ctx: Any, a: Any) -> Any:
    return [stablehlo.cholesky(a, lower=ir.BoolAttr.get(True))]


def _xla_triangular_solve(ctx: Any, a: Any, b: Any, **params: Any) -> Any:
    left, lower, unit = (ir.BoolAttr.get(params[name]) for name in ("left_side", "lower", "unit_diagonal"))
    transposed = ("ADJOINT" if params["conjugate_a"] else "TRANSPOSE") if params["transpose_a"] else "NO_TRANSPOSE"
    return [stablehlo.triangular_solve(a, b, left, lower, unit, stablehlo.TransposeAttr.get(transposed))]


def cholesky(a: jax.Array) -> jax.Array:
    """Lower factors of symmetric matrices `a` (..., n, n), with NaN for those that are not positive definite."""
    n, batch = a.shape[-1], a.shape[:-2]
    below = jnp.arange(n)[:, None]

    def column(j: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, factor = carry
        new = jnp.where(below >= j, left[:, j], 0.0) / jnp.sqrt(left[j, j])
        return left - new[:, None] * new[None, :], factor.at[:, j].set(new)

    # The batch comes last: it is what a processor can do side by side.
    first = jnp.moveaxis(a.reshape(-1, n, n), 0, -1)
    factor = jax.lax.fori_loop(0, n, column, (first, jnp.zeros_like(first)))[1]
    pivots = jnp.diagonal(factor)
    factor = jnp.where(jnp.isfinite(pivots).all(-1) & (pivots > 0).all(-1), factor, jnp.nan)
    return jnp.moveaxis(factor, -1, 0).reshape(*batch, n, n)


def triangular_solve(
    a: jax.Array, b: jax.Array, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
    unit_diagonal: bool,
) -> jax.Array:  # fmt: skip
    """As `jax.lax.linalg.triangular_solve`, for real matrices `a` (..., n, n) and `b` (..., n, k) or (..., k, n)."""
    del conjugate_a
    if not left_side:  # x a = b is a' x' = b'
        b, transpose_a = b.mT, not transpose_a
    if transpose_a:
        a, lower = a.mT, not lower
    n, shape = b.shape[-2], b.shape
    a, b = (jnp.moveaxis(x.reshape(-1, *x.shape[-2:]), 0, -1) for x in (a, b))
    if not lower:
        a, b = a[::-1, ::-1], b[::-1]
    below = jnp.arange(n)[:, None]

    def row(j: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, found = carry
        new = left[j] if unit_diagonal else left[j] / a[j, j]
        return left - jnp.where(below > j, a[:, j], 0.0)[:, None] * new, found.at[j].set(new)

    found = jax.lax.fori_loop(0, n, row, (b, jnp.zeros_like(b)))[1]
    found = jnp.moveaxis(found if lower else found[::-1], -1, 0).reshape(shape)
    return found if left_side else found.mT
