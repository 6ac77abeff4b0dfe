"""A step of the GRU against flax's, and its gradient against automatic differentiation."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.kernels.gru import gru, gru_reference

B, D, H, T = 5, 7, 6, 9


def arguments(seed: int = 0) -> list[jax.Array]:
    rng = np.random.default_rng(seed)
    shapes = ((B, H), (T, B, D), (D, 3 * H), (H, 3 * H), (3 * H,), (H,))
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]


def unrolled(cell: Any, h: jax.Array, xs: jax.Array, *weights: jax.Array) -> jax.Array:
    """A number that depends on the hidden states of all steps of a sequence."""
    _, states = jax.lax.scan(lambda h, x: (cell(h, x, *weights),) * 2, h, xs)
    return jnp.sum(jnp.sin(states) * jnp.arange(1.0, T + 1)[:, None, None])


def assert_close(found: Any, expected: Any) -> None:
    """Within 1e-6 of the largest number."""
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * max(1.0, float(jnp.abs(b).max())))


def test_equals_the_cell_of_flax():
    h, xs, wi, wh, bi, bn = arguments()
    gates = {f"i{g}": {"kernel": k, "bias": b} for g, k, b in zip("rzn", jnp.split(wi, 3, -1), jnp.split(bi, 3))}
    gates |= {f"h{g}": {"kernel": k} for g, k in zip("rzn", jnp.split(wh, 3, -1))}
    gates["hn"]["bias"] = bn
    expected, _ = nn.GRUCell(H).apply({"params": gates}, h, xs[0])
    assert_close(gru(h, xs[0], wi, wh, bi, bn), expected)


def test_equals_the_reference():
    h, xs, *weights = arguments()
    assert_close(gru(h, xs[0], *weights), gru_reference(h, xs[0], *weights))


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_automatic_differentiation(seed: int):
    """Over a sequence, for every argument."""
    of = lambda cell: jax.grad(lambda *a: unrolled(cell, *a), argnums=tuple(range(6)))(*arguments(seed))  # noqa: E731
    found, expected = of(gru), of(gru_reference)
    assert all(float(jnp.abs(g).max()) > 1e-3 for g in expected)
    assert_close(found, expected)


def test_agents_of_a_population_have_gradients_of_their_own():
    several = [jnp.stack(x) for x in zip(arguments(1), arguments(2), strict=True)]
    grad = jax.grad(lambda *a: unrolled(gru, *a), argnums=(2, 3))
    together = jax.vmap(grad)(*several)
    for k in range(2):
        assert_close(jax.tree.map(lambda x, k=k: x[k], together), grad(*arguments(k + 1)))


def test_shapes_that_do_not_fit_are_refused():
    h, xs, wi, *rest = arguments()
    with pytest.raises(ValueError, match="wi"):
        gru(h, xs[0], wi[:-1], *rest)
