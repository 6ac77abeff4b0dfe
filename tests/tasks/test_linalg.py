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

from jaxreward.tasks import linalg

BATCH = (3, 2)


@pytest.fixture(scope="module")
def matrices() -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=(*BATCH, 7, 7)).astype(np.float32)
    return noise @ noise.swapaxes(-1, -2) + np.eye(7, dtype=np.float32)


def test_factors_are_those_of_numpy(matrices):
    np.testing.assert_allclose(linalg.cholesky(matrices), np.linalg.cholesky(matrices), atol=1e-4)
    mixed = np.concatenate([matrices[0], -matrices[0]])
    bad = np.isnan(linalg.cholesky(jnp.asarray(mixed))).any((-1, -2))
    assert bad.tolist() == [False, False, True, True], "who is not positive definite has no factor"


@pytest.mark.parametrize(("left", "lower", "transposed", "unit"), list(itertools.product((True, False), repeat=4)))
def test_solutions_solve(matrices, left, lower, transposed, unit):
    b = np.random.default_rng(1).normal(size=(*BATCH, 7, 3) if left else (*BATCH, 3, 7)).astype(np.float32)
    found = np.asarray(linalg.triangular_solve(
        jnp.asarray(matrices), jnp.asarray(b), left_side=left, lower=lower, transpose_a=transposed, conjugate_a=False,
        unit_diagonal=unit,
    ))  # fmt: skip
    half = np.tril(matrices) if lower else np.triu(matrices)
    if unit:
        half = half - np.eye(7) * half + np.eye(7)
    half = half.swapaxes(-1, -2) if transposed else half
    np.testing.assert_allclose(half @ found if left else found @ half, b, rtol=1e-2, atol=1e-2)


def test_which_versions():
    versions = ("0.9.2", "0.10.0", "0.10.2", "0.11.0rc1", "0.11.1", "0.12.0")
    assert [v for v in versions if linalg.affected(v)] == ["0.10.0", "0.10.2", "0.11.0rc1"]


@pytest.mark.skipif(not linalg.affected(jaxlib.__version__), reason="this jaxlib does not wait in its own pool")
@pytest.mark.parametrize("n", [9, linalg.LARGEST + 1])
def test_nothing_is_left_to_lapack(n):
    linalg.keep_off_the_pool()

    def solved(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b)

    both = jax.jit(jax.vmap(solved))
    noise = np.random.default_rng(2).normal(size=(2, n, n)).astype(np.float32)
    a, b = noise @ noise.swapaxes(1, 2) + n * np.eye(n, dtype=np.float32), noise[:, 0]
    text = both.lower(a, b).as_text()
    assert "potrf" not in text and "trsm" not in text
    np.testing.assert_allclose(both(a, b), np.linalg.solve(a, b[..., None])[..., 0], atol=1e-4)


TWO_AT_ONCE = """
import jax, jax.numpy as jnp
from jaxreward.tasks.linalg import keep_off_the_pool
keep_off_the_pool()
def one(a, k):
    m = jnp.sin(a @ a.T + k * jnp.eye(9)) * 0.1 + 3 * jnp.eye(9)
    factor = jax.scipy.linalg.cho_factor(0.5 * (m + m.T))
    solved = jax.scipy.linalg.cho_solve(factor, a[0])
    return a * 0.99 + 0.001 * jnp.outer(solved, solved)
step = lambda c, _: (tuple(one(a, 0.1 * i) for i, a in enumerate(c)), None)
play = jax.jit(jax.vmap(lambda *c: jax.lax.scan(step, c, None, length=500)[0]))
a = jnp.tile(jnp.eye(9) * 2 + 0.1, (1024, 1, 1))
jax.block_until_ready(play(a, a, a, a))
"""


@pytest.mark.slow
def test_factors_at_once_come_to_an_end():
    """With LAPACK's they do not, on two cores: the time is that of a machine in which nothing moves."""
    subprocess.run([sys.executable, "-c", TWO_AT_ONCE], timeout=300, check=True)
