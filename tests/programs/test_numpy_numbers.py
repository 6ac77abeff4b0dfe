"""Constants of NumPy and JAX in functions: their text computes with the dtypes that the functions compute with."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import own_functions
import pytest

from jaxreward.function_source import source_of
from jaxreward.function_source.literals import literal

DTYPES = (jnp.bool_, jnp.uint8, jnp.int32, jnp.float16, jnp.float32)
VALUES = (
    3, 0.1, True, np.bool_(True), np.int8(3), np.uint8(200), np.int16(3), np.int32(3), np.int64(3), np.uint32(3),
    np.float16(0.1), ml_dtypes.bfloat16(0.5), np.float32(0.1), np.float64(0.1), np.array(3), np.array([3, 4]),
    np.array([0.1, 2]), np.array([1, 2], np.int8), jnp.int32(3), jnp.asarray(3), jnp.asarray(0.5), jnp.array([1, 2]),
    jnp.arange(2) * 0.25, jnp.full(2, 1.5), jnp.array([0.1, 2]), jnp.bfloat16(0.5), jnp.full((1, 2), 3),
)  # fmt: skip


def combined(c: Any) -> Any:
    def look(state):
        named = c
        several = [c, (c, state)]
        return [
            lambda: state + c, lambda: c - state, lambda: state * c, lambda: state / c, lambda: state // c,
            lambda: state % c, lambda: c**state, lambda: state & c, lambda: state > c, lambda: c == state,
            lambda: jnp.where(state > 0, state, c), lambda: jnp.maximum(c, state), lambda: (c * 2) * state,
            lambda: state + c / 2, lambda: state * (1.5 * c - 1), lambda: -c + state, lambda: named * state,
            lambda: several[0] + several[1][1], lambda: state + (lambda k: k)(c), lambda: c * jnp.ones(2) * state,
        ]  # fmt: skip

    return look


def outcomes(function: Any, dtype: Any) -> list[Any]:
    """The dtype, the shape and the weakness of each result, or that there is none."""

    def results(state: Any) -> list[Any]:
        found = []
        for made in function(state):
            try:
                found.append(made())
            except TypeError:
                found.append(None)
        return found

    made = jax.eval_shape(results, jax.ShapeDtypeStruct((2,), dtype))
    return [m and (m.dtype, m.shape, m.weak_type) for m in made]


def as_program(function: Any) -> Any:
    names: dict[str, Any] = {}
    exec(source_of(function), names)
    return names["get_observation"]


@pytest.mark.filterwarnings("ignore")  # NumPy's overflows
@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{type(v).__name__} {getattr(v, 'dtype', '')} {v}")
def test_the_text_computes_in_the_dtypes_of_the_function(value):
    function = combined(value)
    written = as_program(function)
    for dtype in DTYPES:
        assert outcomes(written, dtype) == outcomes(function, dtype), dtype


def test_a_flag_of_numpy_is_inverted_as_a_flag():
    flag, big = np.bool_(True), np.uint8(200)

    def look(state):
        return jnp.where(~flag, state, 0.0), state * (big + big), -big * state

    state = jnp.ones(2)
    with np.errstate(over="ignore"):
        for ours, theirs in zip(as_program(look)(state), look(state), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_where_python_needs_a_number_it_is_one():
    """Each of these fails for an array while a program is traced."""
    n: Any = np.int64(2)
    flag, scale, sizes = np.bool_(True), np.float64(2.0), (np.int64(1), np.int32(2))

    def repeated(x, turns, by):
        for _ in range(turns):
            x = x * by
        return x

    def look(state):
        steps = n
        x = jnp.zeros((n, 2)) + state[:n].reshape(n - 1, -1) + jnp.arange(n)
        for size in sizes:
            x = x.reshape(-1, size) if flag and not scale > 3 else x
        for i in range(steps):
            x = x + state[i * n : (i + 1) * n].sum(axis=n - 2, keepdims=flag)
        assert sizes[0] == 1
        x = repeated(x, n, by=scale) + jax.nn.one_hot(jnp.int32(state[0]), num_classes=max(n, 1))
        return x * int(scale) + {1: 1.0, 2: 2.0}[n] + [1.0, 2.0, 3.0][n]

    traced = jax.make_jaxpr(lambda state: as_program(look)(state))(jnp.ones(4))
    assert str(traced) == str(jax.make_jaxpr(look)(jnp.ones(4)))


def test_the_bound_of_an_array_keeps_its_dtype():
    few = np.int8(2)
    assert "jnp.arange(few)" in source_of(lambda state: state * jnp.arange(few))


def test_a_default_that_only_counts_is_a_number_and_another_an_array():
    def look(state, turns=np.int64(2), by=np.int64(2)):
        for _ in range(turns):
            state = state * by
        return state

    text = source_of(look)
    assert "turns=2, by=jnp.int32(2)" in text
    assert "turns=3" in source_of(own_functions.see)


def test_arithmetic_of_constants_alone_is_that_of_numpy():
    scale, table = np.float64(3.0), np.array([[1, 2], [3, 4]])

    def look(state):
        return state * (1 / scale) + (table * 0.1 + 1)[0] + state * scale

    text = source_of(look)
    assert f"state * ({literal(np.float64(1 / 3))})" in text and "state * scale" in text
    assert "constant = jnp.array([[1.1, 1.2], [1.3, 1.4]], jnp.float32)" in text
