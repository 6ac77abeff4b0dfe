"""Factors and triangular solves of many small matrices on CPU, without LAPACK.

From jaxlib 0.10.0 until 0.11.1 LAPACK's batched kernels submit subtasks to the thread pool that runs them, and wait.
MuJoCo XLA factors several batches at once, and so may a program: where the pool has no more threads than that, as with
two cores, all threads wait for each other, and training deadlocks. With those versions
`compile_without_lapack` has XLA compile the loops of this file in their place. Results differ by rounding.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib

LARGEST = 64
"""Columns of the largest matrices whose Cholesky factors and triangular solves are loops; XLA's own algorithm, which is
slow for small ones, takes larger ones. LU factors, which XLA lacks, are computed in panels of so many columns."""


def affected(version: str) -> bool:
    """Whether this version of jaxlib can deadlock: from 0.10.0, which introduced it, until 0.11.1, whose published
    builds are fixed."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    return (0, 10, 0) <= tuple(numbers + [0] * (3 - len(numbers))) < (0, 11, 1)


@functools.cache
def compile_without_lapack() -> None:
    """Compile from now on, in this process, Cholesky, LU and triangular solves on CPU without LAPACK, if this jaxlib
    needs it. Functions that were compiled before stay as they are."""
    if not affected(jaxlib.__version__):
        return
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import stablehlo
    from jax.interpreters import mlir

    def xla_cholesky(ctx: Any, a: Any) -> Any:
        return [stablehlo.cholesky(a, lower=ir.BoolAttr.get(True))]

    def xla_triangular_solve(ctx: Any, a: Any, b: Any, **params: Any) -> Any:
        left, lower, unit = (ir.BoolAttr.get(params[name]) for name in ("left_side", "lower", "unit_diagonal"))
        turned = ("ADJOINT" if params["conjugate_a"] else "TRANSPOSE") if params["transpose_a"] else "NO_TRANSPOSE"
        return [stablehlo.triangular_solve(a, b, left, lower, unit, stablehlo.TransposeAttr.get(turned))]

    def replace(primitive: Any, loops: Callable[..., Any], xlas: Callable[..., Any] | None, many: bool = False) -> None:
        by_loops = mlir.lower_fun(loops, multiple_results=many)

        def lower(ctx: Any, *operands: Any, **params: Any) -> Any:
            only_conjugated = params.get("conjugate_a") and not params.get("transpose_a")  # XLA has no word for it
            large = ctx.avals_in[0].shape[-1] > LARGEST and not only_conjugated
            return (xlas if xlas and large else by_loops)(ctx, *operands, **params)

        mlir.register_lowering(primitive, lower, platform="cpu")

    replace(jax.lax.linalg.cholesky_p, cholesky, xla_cholesky)
    replace(jax.lax.linalg.triangular_solve_p, triangular_solve, xla_triangular_solve)
    replace(jax.lax.linalg.lu_p, lu, None, many=True)


def _batch_last(x: jax.Array) -> jax.Array:
    """(..., m, n) as (m, n, batch): the batch is what a processor can do side by side."""
    return jnp.moveaxis(x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]), 0, -1)


def cholesky(a: jax.Array) -> jax.Array:
    """Lower factors of Hermitian matrices `a` (..., n, n), of which only the lower half is read; NaN for those that are
    not positive definite."""
    n = a.shape[-1]
    below = jnp.arange(n)[:, None]

    def column(j: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, factor = carry
        new = jnp.where(below >= j, left[:, j], 0.0) / jnp.sqrt(left[j, j].real)
        return left - new[:, None] * new[None, :].conj(), factor.at[:, j].set(new)

    if not a.size:
        return a
    first = _batch_last(a)
    factor = jax.lax.fori_loop(0, n, column, (first, jnp.zeros_like(first)))[1]
    pivots = jnp.diagonal(factor).real
    factor = jnp.where(jnp.isfinite(pivots).all(-1) & (pivots > 0).all(-1), factor, jnp.nan)
    return jnp.moveaxis(factor, -1, 0).reshape(a.shape)


def triangular_solve(
    a: jax.Array, b: jax.Array, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
    unit_diagonal: bool,
) -> jax.Array:  # fmt: skip
    """As `jax.lax.linalg.triangular_solve`, for `a` (..., n, n) and `b` (..., n, k), or (..., k, n) on the right."""
    if not b.size:
        return b
    if conjugate_a:
        a = a.conj()
    if not left_side:  # x a = b is a' x' = b'
        b, transpose_a = b.mT, not transpose_a
    if transpose_a:
        a, lower = a.mT, not lower
    n, shape = b.shape[-2], b.shape
    a, b = _batch_last(a), _batch_last(b)
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


def lu(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """LU factors of `a` (..., m, n) with partial pivoting, in one matrix; pivots (..., k), with which row every row was
    exchanged in turn, k the smaller of m and n; and the permutation of the rows (..., m).

    Large matrices in panels of `LARGEST` columns, so that most of the work is products of matrices (Golub and Van Loan,
    Matrix Computations, section 3.4).
    """
    m, n = a.shape[-2:]
    k = min(m, n)
    if k <= LARGEST or not a.size:
        return _lu_panel(a)
    pivots = []
    order = jnp.broadcast_to(jnp.arange(m, dtype=jnp.int32), a.shape[:-1])
    for start in range(0, k, LARGEST):
        end = min(start + LARGEST, k)
        panel, exchanged, rows = _lu_panel(a[..., start:, start:end])
        pivots.append(exchanged + start)
        order = order.at[..., start:].set(jnp.take_along_axis(order[..., start:], rows, axis=-1))
        below = jnp.take_along_axis(a[..., start:, :], rows[..., None], axis=-2)
        top, under = panel[..., : end - start, :], panel[..., end - start :, :]
        right = triangular_solve(
            top, below[..., : end - start, end:], left_side=True, lower=True, transpose_a=False, conjugate_a=False,
            unit_diagonal=True,
        )  # fmt: skip
        rest = below[..., end - start :, end:] - jnp.matmul(under, right, precision="highest")
        upper = jnp.concatenate([below[..., : end - start, :start], top, right], -1)
        lower = jnp.concatenate([below[..., end - start :, :start], under, rest], -1)
        a = jnp.concatenate([a[..., :start, :], upper, lower], -2)
    return a, jnp.concatenate(pivots, -1), order


def _lu_panel(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`lu`, column by column."""
    m, n = a.shape[-2:]
    k, batch = min(m, n), a.shape[:-2]
    rows, columns = jnp.arange(m)[:, None], jnp.arange(n)[:, None]

    def column(j: jax.Array, carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        left, pivots, order = carry
        under = rows > j
        size = jnp.abs(left[:, j].real) + jnp.abs(left[:, j].imag)
        pivot = jnp.argmax(jnp.where(rows >= j, size, -1.0), axis=0).astype(jnp.int32)
        exchanged = jnp.where(rows == j, pivot, jnp.where(rows == pivot, j, rows))
        left = jnp.take_along_axis(left, exchanged[:, None], axis=0)
        order = jnp.take_along_axis(order, exchanged, axis=0)
        by = jnp.where(under & (left[j, j] != 0), left[:, j] / left[j, j], 0.0)
        left = left - by[:, None] * jnp.where(columns > j, left[j], 0.0)
        left = left.at[:, j].set(jnp.where(under, by, left[:, j]))
        return left, pivots.at[j].set(pivot), order

    first = _batch_last(a)
    order = jnp.broadcast_to(rows.astype(jnp.int32), (m, first.shape[-1]))
    carry = first, jnp.zeros((k, first.shape[-1]), jnp.int32), order
    if a.size:
        carry = jax.lax.fori_loop(0, k, column, carry)
    return tuple(jnp.moveaxis(x, -1, 0).reshape(*batch, *x.shape[:-1]) for x in carry)  # type: ignore[return-value]
