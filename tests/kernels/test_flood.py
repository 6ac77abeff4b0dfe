"""The flood of bits against the search over cells."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.kernels.flood import flood, flood_by_cells

SIDES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]], np.int32)
SHAPES = [
    (9, 9, 22),
    (13, 13, 32),
    (7, 7, 18),
    (4, 4, 2),
    (8, 6, 20),
    (5, 30, 50),
    (11, 12, 10),
    (12, 11, 4),
    (4, 61, 70),
]


def grids(height: int, width: int, n: int = 200) -> tuple[np.ndarray, ...]:
    """Grids between walls, from nearly empty to mazes; starts inside, targets anywhere inside the wall too."""
    rng = np.random.default_rng(height * width)
    passable = rng.random((n, height, width)) < rng.uniform(0.4, 1.0, (n, 1, 1))
    passable[:, [0, -1]] = passable[:, :, [0, -1]] = False
    low, high = [1, 1], [height - 1, width - 1]
    start, target = rng.integers(low, high, (2, n, 2)).astype(np.int32)
    target[::10] = start[::10]
    return passable, start, target, target[:, None] + SIDES


@pytest.mark.slow
@pytest.mark.parametrize(("height", "width", "limit"), SHAPES)
def test_equals_the_search_over_cells(height: int, width: int, limit: int):
    cases = grids(height, width)
    steps, nearer = jax.jit(jax.vmap(partial(flood, limit=limit)))(*cases)
    expected, expected_nearer = jax.jit(jax.vmap(partial(flood_by_cells, limit=limit)))(*cases)
    assert steps.dtype == jnp.int32 and nearer.dtype == bool
    np.testing.assert_array_equal(steps, expected)
    np.testing.assert_array_equal(nearer, expected_nearer)
    assert set(np.asarray(steps)) >= {0, 1, 2, limit}


def test_one_grid_without_jit_or_vmap():
    passable = np.zeros((9, 9), bool)
    passable[1:-1, 1:-1] = True
    passable[1:7, 4] = False  # a wall with a way round it at the bottom
    start, target = np.array([1, 5], np.int32), np.array([1, 3], np.int32)
    case = [jnp.asarray(x) for x in (passable, start, target, target + SIDES)]
    steps, nearer = flood(*case, limit=22)
    assert int(steps) == 14 and nearer.tolist() == [False, False, True, False]
    assert int(flood(*case, limit=12)[0]) == 12, "the limit"


@pytest.mark.long
def test_a_target_in_the_wall_is_not_reached():
    passable = jnp.zeros((9, 9), bool).at[1:-1, 1:-1].set(True)
    edge = jnp.array([(r, c) for r in range(9) for c in range(9) if r in (0, 8) or c in (0, 8)])
    steps = jax.vmap(lambda cell: flood(passable, jnp.array([4, 4]), cell, cell[None], 22)[0])(edge)
    assert (steps == 22).all()
