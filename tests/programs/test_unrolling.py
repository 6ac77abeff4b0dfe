"""Tapes as they are compiled for accelerators: loops whose turns are one, windows that are selected."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core

from jaxreward.kernels.flood import flood
from jaxreward.programs.encode import trace
from jaxreward.programs.interpret import replay
from jaxreward.programs.limits import Limits
from jaxreward.programs.tape import Tape, count
from jaxreward.programs.unrolling import OPERATIONS, compiling_for, turns_at_once
from jaxreward.programs.windows import SELECTED

X = jnp.arange(6.0)
LOOPS: dict[str, Any] = {
    "carry": lambda x: jax.lax.scan(lambda c, _: (c * 1.5, None), x, None, length=7)[0],
    "rows": lambda x: jax.lax.scan(lambda c, row: (c + row, c * row), x[0], x)[1],
    "reverse": lambda x: jax.lax.scan(lambda c, row: (c + row, c), x[0], x, reverse=True)[1],
    "index": lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c.at[i].add(c[i + 1]), x),
}
BODY: Tape = {"ins": [[[], "float32"]], "nodes": [["neg", {}, [i], 1] for i in range(40)], "outs": [40]}


def taped(function: Any, *arguments: Any) -> Tape:
    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arguments]
    return trace(lambda *xs: jax.tree.leaves(function(*xs)), structs, [f"#{i}" for i in range(len(structs))], Limits())


def compiled(tape: Tape, platform: str, *arguments: Any) -> tuple[int, list[Any]]:
    """The trips of the loops that are left for a platform, and the values of the tape, over a batch."""
    with compiling_for(platform):
        closed = jax.make_jaxpr(jax.vmap(replay(tape)))(*arguments)
    loops = [e.params for e in closed.eqns if e.primitive.name == "scan"]
    trips = sum(math.ceil(p["length"] / p["unroll"]) for p in loops if p["length"] > p["unroll"])
    return trips, jax.jit(core.jaxpr_as_fun(closed))(*arguments)


@pytest.mark.parametrize("name", LOOPS)
def test_no_short_loop_is_left_on_a_gpu_and_values_differ_by_rounding(name: str):
    tape, batch = taped(LOOPS[name], X), jnp.stack([X, X + 0.3, -X])
    (rolled, expected), (left, found) = (compiled(tape, platform, batch) for platform in ("cpu", "gpu"))
    assert rolled == {"carry": 7, "index": 5}.get(name, 6) and left == 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("size", "limit"), [(9, 22), (13, 32)])
def test_the_flood_has_few_trips_on_a_gpu_and_the_same_values(size: int, limit: int):
    rng = np.random.default_rng(size)
    cells = rng.random((50, size, size)) < 0.8
    cells[:, [0, -1]] = cells[:, :, [0, -1]] = False
    places = rng.integers(1, size - 1, (50, 2, 2)).astype(np.int32)
    case = cells, places[:, 0], places[:, 1], places[:, 1, None] + np.array([[0, 1], [1, 0]], np.int32)
    tape = taped(partial(flood, limit=limit), *(x[0] for x in case))
    (rolled, expected), (left, found) = (compiled(tape, platform, *case) for platform in ("cpu", "gpu"))
    assert rolled == limit // 2 and left == {9: 0, 13: 2}[size]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_turns_at_once_are_even_parts_within_the_limit():
    with compiling_for("gpu"):
        for length in (1, 2, 30, 31, 66, 1000):
            turns = turns_at_once(length, BODY)
            trips = math.ceil(length / turns)
            assert turns * count(BODY) <= OPERATIONS and trips * turns - length < trips
        assert turns_at_once(30, BODY) == 30 and turns_at_once(31, BODY) == 16
        large = BODY | {"nodes": BODY["nodes"] * 20}
        assert turns_at_once(4, large) == 1


def test_a_loop_around_a_loop_stays_one():
    inner = ["scan", {"consts": 0, "carry": 1, "length": 3, "reverse": False, "body": BODY}, [0], 1]
    with compiling_for("gpu"):
        assert turns_at_once(3, {"ins": BODY["ins"], "nodes": [inner], "outs": [1]}) == 1


def test_loops_stay_loops_on_a_cpu():
    with compiling_for("gpu"), compiling_for("cpu"):
        assert turns_at_once(3, BODY) == 1
    assert turns_at_once(3, BODY) == 1


def test_windows_are_no_gather_on_a_tpu_and_the_same_values():
    """A TPU would take them row by row. Starts outside are moved inside, as by `lax.dynamic_slice`."""
    grid = jnp.arange(2 * 7 * 6.0).reshape(7, 6, 2)
    starts = jnp.array([[-3, 2], [0, 0], [2, 3], [4, 1], [9, 9]])
    tape = taped(lambda x, at: jax.lax.dynamic_slice(x, (at[0], at[1], 0), (3, 4, 2)), grid, starts[0])
    batch = jnp.stack([grid + k for k in range(len(starts))]), starts
    gathers, found = dict[str, int](), dict[str, Any]()
    for platform in ("cpu", "tpu"):
        with compiling_for(platform):
            closed = jax.make_jaxpr(jax.vmap(replay(tape)))(*batch)
        gathers[platform] = sum(e.primitive.name == "gather" and e.outvars[0].aval.ndim > 2 for e in closed.eqns)
        (found[platform],) = jax.jit(core.jaxpr_as_fun(closed))(*batch)
    assert gathers == {"cpu": 1, "tpu": 0}
    np.testing.assert_array_equal(found["tpu"], found["cpu"])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_windows_start_where_those_of_jax_do_in_every_dtype(dtype: str):
    """Also on axes with more places than the dtype has numbers, and at starts that int32 does not have."""
    kind = np.iinfo(dtype)
    places = [kind.min, kind.max, kind.max - 1, kind.min + 1, 0, 1, 5, 6, 7, 90, 127, 128, 250, 299, 300]
    starts = jnp.array([n for n in places if kind.min <= n <= kind.max], dtype)
    grid = jnp.arange(300 * 7, dtype=jnp.int32).reshape(300, 7)

    def sliced(x: Any, i: Any, j: Any) -> Any:
        return jax.lax.dynamic_slice(x, (i, j), (4, 3), allow_negative_indices=False)

    batch = grid, jnp.repeat(starts, len(starts)), jnp.tile(starts, len(starts))
    expected = [np.asarray(grid)[_within(i, 296) :, _within(j, 4) :][:4, :3] for i, j in zip(*batch[1:], strict=True)]
    np.testing.assert_array_equal(jax.jit(jax.vmap(sliced, (None, 0, 0)))(*batch), expected)
    tape = taped(sliced, *(x[0] for x in (grid[None], *batch[1:])))
    with compiling_for("tpu"):
        closed = jax.make_jaxpr(jax.vmap(replay(tape), (None, 0, 0)))(*batch)
    assert "dynamic_slice" not in str(closed) and "gather" not in str(closed)
    np.testing.assert_array_equal(jax.jit(core.jaxpr_as_fun(closed))(*batch)[0], expected)


def _within(start: Any, last: int) -> int:
    return min(max(int(start), 0), last)


def test_windows_of_large_arrays_are_gathered_and_the_selection_is_logarithmic():
    def nodes(n: int) -> tuple[int, bool]:
        row = jnp.zeros(n)
        tape = taped(lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,)), row, jnp.int32(0))
        with compiling_for("tpu"):
            closed = jax.make_jaxpr(jax.vmap(replay(tape), (None, 0)))(row, jnp.arange(3))
        return len(closed.eqns), any(e.primitive.name == "gather" for e in closed.eqns)

    (small, selected), (large, also), (_, gathered) = nodes(5), nodes(SELECTED), nodes(SELECTED + 1)
    assert not selected and not also and gathered and large <= small * math.log2(SELECTED)
