"""The sizes of loops, which versions of JAX write down in different ways."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.programs.encode import trace
from jaxreward.programs.interpret import replay
from jaxreward.programs.limits import Limits
from jaxreward.programs.loops import scan_sizes

X = jnp.arange(6.0)

SCANS: dict[str, tuple[Any, tuple[int, int]]] = {
    "carry alone": (lambda x: jax.lax.scan(lambda c, _: (c + 1, None), x, None, length=3)[0], (0, 1)),
    "rows alone": (lambda x: jax.lax.scan(lambda c, row: (c, row * 2), None, x)[1], (0, 0)),
    "constants": (lambda x: jax.lax.scan(lambda c, row: (c + row * x[0], c), x[1], x), (1, 1)),
    "two carries": (lambda x: jax.lax.scan(lambda c, r: ((c[0] + r, c[0]), x), (x[0], x[1]), x), (1, 2)),
    "no turn": (lambda x: jax.lax.scan(lambda c, row: (c + row, c), x[0], x[:0]), (0, 1)),
    "reverse": (lambda x: jax.lax.scan(lambda c, row: (c + row, c), x[0], x, reverse=True), (0, 1)),
}


@pytest.mark.parametrize("name", SCANS)
def test_the_sizes_of_a_scan_are_read_from_its_jaxpr(name):
    function, sizes = SCANS[name]
    scans = [e for e in jax.make_jaxpr(function)(X).eqns if e.primitive.name == "scan"]
    assert [scan_sizes(e) for e in scans] == [sizes]


@pytest.mark.parametrize("name", SCANS)
def test_a_tape_of_a_scan_gives_what_the_scan_does(name):
    function, _ = SCANS[name]

    def flat(x: jax.Array) -> list[jax.Array]:
        return jax.tree.leaves(function(x))

    tape = trace(flat, [jax.ShapeDtypeStruct(X.shape, X.dtype)], ["x"], Limits())
    for replayed, known in zip(replay(tape)(X), flat(X), strict=True):
        np.testing.assert_allclose(replayed, known)
