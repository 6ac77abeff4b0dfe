"""Small factors without LAPACK's batches, which can stand still for ever."""

from __future__ import annotations

import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

from jaxreward.kernels import linalg

BATCH, N = (3, 2), 5
KINDS = (np.float32, np.complex64)
REPLACED = pytest.mark.skipif(not linalg.affected(jaxlib.__version__), reason="this jaxlib's LAPACK waits for nobody")


def some(kind: type, *shape: int, seed: int = 0) -> np.ndarray:
    real, imaginary = np.random.default_rng(seed).normal(size=(2, *BATCH, *shape))
    return (real + 1j * imaginary if kind is np.complex64 else real).astype(kind)


def positive(kind: type, n: int = N) -> np.ndarray:
    noise = some(kind, n, n)
    return noise @ noise.conj().swapaxes(-1, -2) + n * np.eye(n, dtype=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_cholesky_factors_are_those_of_numpy(kind):
    a = positive(kind)
    above = np.triu(np.full((N, N), np.nan), 1)
    for given in (a, a + above.astype(kind)):
        found = np.tril(linalg.cholesky(jnp.asarray(given)))
        np.testing.assert_allclose(found, np.linalg.cholesky(a), rtol=1e-4, atol=1e-5)
    bad = np.isnan(linalg.cholesky(jnp.asarray(np.concatenate([a[0], -a[0], 0 * a[0]])))).any((-1, -2))
    assert bad.tolist() == [False] * 2 + [True] * 4, "who is not positive definite has no factor"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [N, pytest.param(linalg.LARGEST + 1, id="large")])
def test_triangular_solves_solve_by_whatever_path(kind, n):
    """Through JAX's own function, all 32 ways of complex and 16 of real matrices."""
    linalg.compile_without_lapack()
    a = np.asarray(some(kind, n, n) / n + 2.0 * np.eye(n), kind)
    columns, rows = some(kind, n, 3, seed=1), some(kind, 3, n, seed=1)
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    ways = [dict(zip(names, flags, strict=True)) for flags in itertools.product((True, False), repeat=5)]
    if kind is np.float32:
        ways = [how for how in ways if not how["conjugate_a"]]  # is what it is without

    @jax.jit
    def solved(a: jax.Array, columns: jax.Array, rows: jax.Array) -> list[jax.Array]:
        solve = jax.lax.linalg.triangular_solve
        return [solve(a, columns if how["left_side"] else rows, **how) for how in ways]

    for how, found in zip(ways, map(np.asarray, solved(a, columns, rows)), strict=True):
        b = columns if how["left_side"] else rows
        half = np.tril(a) if how["lower"] else np.triu(a)
        half = half - half * np.eye(n) + np.eye(n) if how["unit_diagonal"] else half
        half = half.conj() if how["conjugate_a"] else half
        half = half.swapaxes(-1, -2) if how["transpose_a"] else half
        back = half @ found if how["left_side"] else found @ half
        np.testing.assert_allclose(back, b, rtol=1e-3, atol=1e-4, err_msg=str(how))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("m", "n"), [(5, 5), (5, 3), (3, 5), (1, 1), (66, 70), pytest.param(140, 130, marks=pytest.mark.slow)]
)
def test_lu_factors_are_those_of_lapack(kind, m, n):
    from scipy.linalg import lu_factor

    a, (rtol, atol) = some(kind, m, n), (1e-4, 1e-5) if m < 10 else (1e-3, 2e-4)
    factors, pivots, order = (np.asarray(x) for x in linalg.lu(jnp.asarray(a)))
    assert pivots.shape == (*BATCH, min(m, n)) and order.shape == (*BATCH, m)
    for at in np.ndindex(*BATCH):
        theirs, their_pivots = lu_factor(a[at])
        np.testing.assert_allclose(factors[at], theirs, rtol, atol)
        assert pivots[at].tolist() == their_pivots[: min(m, n)].tolist()
        lower = np.tril(factors[at][:, : min(m, n)], -1) + np.eye(m, min(m, n))
        np.testing.assert_allclose(lower @ np.triu(factors[at])[: min(m, n)], a[at][order[at]], rtol, atol)


def test_a_singular_matrix_has_a_zero_pivot_and_is_finite():
    flat = jnp.ones((1, 3, 3))
    factors = np.asarray(linalg.lu(flat)[0])
    assert np.isfinite(factors).all() and factors[0, 1, 1] == 0.0


def test_empty_matrices_stay_empty():
    linalg.compile_without_lapack()
    assert jax.lax.linalg.cholesky(jnp.zeros((2, 0, 0))).shape == (2, 0, 0)
    assert jnp.linalg.solve(jnp.zeros((0, 3, 3)), jnp.zeros((0, 3, 1))).shape == (0, 3, 1)
    solved = jax.lax.linalg.triangular_solve(jnp.ones((2, 3, 3)), jnp.zeros((2, 3, 0)), left_side=True)
    assert solved.shape == (2, 3, 0)


def test_jax_0_10_up_to_0_11_0_is_affected():
    versions = ("0.9.2", "0.10", "0.10.2", "0.11.0rc1", "0.11.1", "0.12.0")
    assert [v for v in versions if linalg.affected(v)] == ["0.10", "0.10.2", "0.11.0rc1"]


@pytest.mark.slow
@REPLACED
@pytest.mark.parametrize("n", [N, linalg.LARGEST + 1])
def test_nothing_that_a_program_may_use_is_left_to_lapack(n):
    linalg.compile_without_lapack()

    def solved(a: jax.Array, b: jax.Array) -> tuple[jax.Array, ...]:
        factor = jax.scipy.linalg.cho_factor(a)
        return jax.scipy.linalg.cho_solve(factor, b), jnp.linalg.solve(a, b), jnp.linalg.inv(a) @ b

    both = jax.jit(jax.vmap(jax.vmap(solved)))
    a, b = positive(np.float32, n), some(np.float32, n, seed=2)
    assert "lapack" not in both.lower(a, b).as_text()
    for found in both(a, b):
        np.testing.assert_allclose(found, np.linalg.solve(a, b[..., None])[..., 0], rtol=1e-2, atol=1e-4)
    slope = jax.grad(lambda a: jnp.linalg.det(a).sum())(jnp.asarray(positive(np.float32)))
    own = positive(np.float32)
    theirs = np.linalg.det(own)[..., None, None] * np.linalg.inv(own).swapaxes(-1, -2)
    np.testing.assert_allclose(slope, theirs, rtol=1e-3, atol=1e-2)


AT_ONCE = """
import jax, jax.numpy as jnp
from jaxreward.kernels.linalg import compile_without_lapack
compile_without_lapack()
def one(a, k):
    m = jnp.sin(a @ a.T + k * jnp.eye(9)) * 0.1 + 3 * jnp.eye(9)
    factor = jax.scipy.linalg.cho_factor(0.5 * (m + m.T))
    solved = jax.scipy.linalg.cho_solve(factor, a[0]) + jnp.linalg.solve(m, a[0])
    return a * 0.99 + 0.001 * jnp.outer(solved, solved)
step = lambda c, _: (tuple(one(a, 0.1 * i) for i, a in enumerate(c)), None)
play = jax.jit(jax.vmap(lambda *c: jax.lax.scan(step, c, None, length=300)[0]))
a = jnp.tile(jnp.eye(9) * 2 + 0.1, (1024, 1, 1))
jax.block_until_ready(play(a, a, a, a))
"""


@pytest.mark.slow
def test_concurrent_factorisations_terminate():
    """With LAPACK's they do not, on two cores; the limit is for a machine in which nothing moves."""
    subprocess.run([sys.executable, "-c", AT_ONCE], timeout=300, check=True)
