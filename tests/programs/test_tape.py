"""Tapes as untrusted data: the schema, and mutations of good tapes."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxreward.programs.encode import trace
from jaxreward.programs.flops import measure
from jaxreward.programs.interpret import replay, shapes
from jaxreward.programs.limits import Limits
from jaxreward.programs.primitives import PLAIN, primitives, replayable
from jaxreward.programs.spec import Spec
from jaxreward.programs.tape import TapeError, check_tape, count, digests, dumps, reads
from jaxreward.programs.validate import Invalid, validate

LIMITS = Limits()
X = jax.ShapeDtypeStruct((6,), np.float32)


def tape_of(function: Any, *structs: Any) -> Any:
    return trace(lambda *a: [function(*a)], structs, [f"x{i}" for i in range(len(structs))], LIMITS)


def everything(x: Any) -> Any:
    """Something of each kind of node."""
    i = jnp.argmax(x)
    y = jax.lax.fori_loop(0, 3, lambda k, c: jnp.sin(c) * k, x)
    z = jax.lax.cond(x[0] > 0, lambda v: v, lambda v: -v, y)
    w = jax.lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1.0, z)
    table = jnp.array([0.5, 1.5, -2.0, 3.0, 1.0, 0.0])
    s = jnp.zeros(6).at[i].add(x[i]) + jnp.sort(x)[::-1]
    m = jnp.outer(x, table) @ w
    return jnp.concatenate([x * table, w, s, m, jax.nn.one_hot(i, 6), jnp.clip(x, -1, 1)])


GOOD = tape_of(everything, X)


@pytest.mark.long
def test_tapes_are_json_and_replay():
    again = json.loads(dumps(GOOD))
    assert check_tape(again, ops=replayable()) == GOOD
    x = jnp.asarray(np.random.default_rng(0).normal(size=6), jnp.float32)
    expected = jax.jit(everything)(x)
    np.testing.assert_allclose(jax.jit(replay(again))(x)[0], expected, rtol=1e-6)
    batch = jnp.stack([x, -x])
    np.testing.assert_allclose(jax.vmap(replay(again))(batch)[0], jax.vmap(everything)(batch), rtol=1e-5, atol=1e-6)


def test_replay_compiles_to_what_the_function_compiles_to():
    """After optimisation the two are the same size: a tape costs nothing at run time."""

    def smooth(x: Any) -> Any:
        return jnp.tanh(x) * jnp.sum(jnp.cos(x)) + jnp.where(x > 0, x, x**2)

    def size(function: Any) -> int:
        return str(jax.jit(function).lower(X).compile().as_text()).count(" = ")

    assert size(replay(tape_of(smooth, X))) == size(smooth)


def test_encoding_is_a_fixed_point():
    again = trace(replay(GOOD), [X], ["x0"], LIMITS)
    assert count(again) <= count(GOOD) + 20  # while loops get a counter and a check, switches a clamp
    plain = tape_of(lambda x: jnp.tanh(x) + x[::-1] * 2, X)
    assert trace(replay(plain), [X], ["x0"], LIMITS) == plain


def test_reads_and_digests_follow_the_inputs():
    two = trace(lambda a, b: [jnp.sin(a), a + b], [X, X], ["a", "b"], LIMITS)
    assert reads(two) == [{0}, {0, 1}]
    assert digests(two, ["a", "b"]) != digests(two, ["a", "c"])
    assert digests(two, ["a", "b"])[0] == digests(two, ["a", "c"])[0]


def test_claims_about_indices_are_removed_from_tapes():
    """A program may claim that its indices are sorted and unique; XLA would believe it."""

    def claim(x: Any) -> Any:
        i = jnp.array([3, 1, 1])
        picked = x.at[i].get(unique_indices=True, indices_are_sorted=True)
        return x.at[i].add(picked, unique_indices=True, indices_are_sorted=True)

    tape = tape_of(claim, X)
    assert '"unique_indices":true' not in dumps(tape) and '"indices_are_sorted":true' not in dumps(tape)
    lying = json.loads(dumps(tape).replace('"unique_indices":false', '"unique_indices":true'))
    jaxpr = str(jax.make_jaxpr(replay(check_tape(lying)))(X))
    assert "unique_indices=True" not in jaxpr


def test_every_allowed_primitive_is_found():
    """A renamed primitive would silently shrink what programs can say."""
    missing = PLAIN - set(primitives())
    # `le_to` and its like order floats totally; not every JAX has all of these.
    not_everywhere = {"add_any", "le_to", "lt_to", "eq_to", "tile", "unstack", "stack", "clz"}
    since_jax_0_11 = {"log2", "one_minus_square", "polynomial"}
    assert missing <= not_everywhere | since_jax_0_11, missing


CONST = {"shape": [2], "dtype": "float32", "data": "AAAAAAAAAAA="}
MALFORMED = {
    "not a dict": [],
    "missing key": {"ins": [], "nodes": []},
    "extra key": {"ins": [], "nodes": [], "outs": [], "x": 1},
    "nodes not a list": {"ins": [], "nodes": {}, "outs": []},
    "forward reference": {"ins": [[[2], "float32"]], "nodes": [["sin", {}, [1], 1]], "outs": [0]},
    "negative reference": {"ins": [[[2], "float32"]], "nodes": [["sin", {}, [-1], 1]], "outs": [0]},
    "float reference": {"ins": [[[2], "float32"]], "nodes": [["sin", {}, [0.0], 1]], "outs": [0]},
    "bool reference": {"ins": [[[2], "float32"]], "nodes": [["sin", {}, [False], 1]], "outs": [0]},
    "out of range output": {"ins": [[[2], "float32"]], "nodes": [], "outs": [1]},
    "negative shape": {"ins": [[[-2], "float32"]], "nodes": [], "outs": [0]},
    "huge shape": {"ins": [[[2**40], "float32"]], "nodes": [], "outs": [0]},
    "deep shape": {"ins": [[[1] * 9, "float32"]], "nodes": [], "outs": [0]},
    "unknown dtype": {"ins": [[[2], "float64"]], "nodes": [], "outs": [0]},
    "unhashable dtype": {"ins": [[[2], ["float32"]]], "nodes": [], "outs": [0]},
    "unknown op": {"ins": [], "nodes": [["ffi_call", {}, [], 1]], "outs": [0]},
    "op not a string": {"ins": [], "nodes": [[["sin"], {}, [], 1]], "outs": [0]},
    "callback": {"ins": [], "nodes": [["pure_callback", {"callback": 1}, [], 1]], "outs": [0]},
    "constant too short": {"ins": [], "nodes": [["const", {**CONST, "shape": [3]}, [], 1]], "outs": [0]},
    "constant not base64": {"ins": [], "nodes": [["const", {**CONST, "data": "*"}, [], 1]], "outs": [0]},
    "constant too large": {"ins": [], "nodes": [["const", {**CONST, "shape": [2**20]}, [], 1]], "outs": [0]},
    "constant neither true nor false": {
        "ins": [], "nodes": [["const", {"shape": [1], "dtype": "bool", "data": "Ag=="}, [], 1]], "outs": [0],
    },
    "outputs huge": {"ins": [], "nodes": [["const", CONST, [], 10**9]], "outs": [0]},
    "unknown tag": {"ins": [], "nodes": [["iota", {"dtype": {"pickle": "x"}}, [], 1]], "outs": [0]},
    "two tags": {"ins": [], "nodes": [["iota", {"dtype": {"dtype": "int32", "mode": "CLIP"}}, [], 1]], "outs": [0]},
    "param a string": {"ins": [], "nodes": [["iota", {"dtype": "int32"}, [], 1]], "outs": [0]},
    "param a float": {"ins": [], "nodes": [["iota", {"dtype": 1.5}, [], 1]], "outs": [0]},
    "param name": {"ins": [], "nodes": [["iota", {"a b": 1}, [], 1]], "outs": [0]},
    "param huge": {"ins": [], "nodes": [["iota", {"shape": [10**30]}, [], 1]], "outs": [0]},
    "param deep": {"ins": [], "nodes": [["iota", {"shape": [[[[[[[[1]]]]]]]]}, [], 1]], "outs": [0]},
    "scan without body": {"ins": [], "nodes": [["scan", {"consts": 0}, [], 1]], "outs": [0]},
    "cond without branches": {"ins": [], "nodes": [["cond", {"branches": []}, [], 1]], "outs": [0]},
    "node too short": {"ins": [], "nodes": [["sin", {}]], "outs": []},
    "node null": {"ins": [], "nodes": [None], "outs": []},
}  # fmt: skip


def nested(depth: int) -> Any:
    body: Any = {"ins": [], "nodes": [], "outs": []}
    for _ in range(depth):
        body = {"ins": [], "nodes": [["cond", {"branches": [body]}, [], 0]], "outs": []}
    return body


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_tape_is_refused(name):
    with pytest.raises(TapeError, match="malformed"):
        check_tape(MALFORMED[name], ops=replayable())


def test_nesting_and_size_are_bounded():
    check_tape(nested(5))
    with pytest.raises(TapeError, match="nested"):
        check_tape(nested(50))
    with pytest.raises(TapeError, match="too many nodes"):
        check_tape({"ins": [], "nodes": [["iota", {}, [], 0]] * 30_000, "outs": []})


# ---- mutations

PATHS: list[tuple[Any, ...]] = []


def _walk(node: Any, path: tuple[Any, ...]) -> None:
    PATHS.append(path)
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        _walk(child, (*path, key))


_walk(GOOD, ())
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 8),
    st.sampled_from(
        [2**31, -(2**31), 10**12, 1.5, "", "float32", "bool", "sin", "add", "gather", "scan", "dot_general"]
    ),
    st.sampled_from(
        [[], {}, [0], [0, 1], [[0]], {"dtype": "int8"}, {"mode": "CLIP"}, {"float": "nan"}, {"precision": 7}]
    ),
)
SPEC = Spec.of(X, jax.ShapeDtypeStruct((), np.float32))
PAY = trace(lambda s, a, n: [jnp.sum(n - s) * a] * 2, SPEC.structs()[1], SPEC.labels()[1], LIMITS)
SEEN = trace(lambda x: [everything(x)], [X], ["state"], LIMITS)


@pytest.mark.long
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    st.lists(
        st.tuples(st.sampled_from(PATHS[1:]), VALUES, st.sampled_from(["set", "delete", "copy"])),
        min_size=1,
        max_size=3,
    )
)
def test_mutated_tapes_are_judged(edits):
    """A verdict every time: nothing else escapes, nothing hangs, the interpreter lives."""
    tape = copy.deepcopy(SEEN)
    for path, value, how in edits:
        parent = tape
        try:
            for key in path[:-1]:
                parent = parent[key]
            if how == "set":
                parent[path[-1]] = value
            elif how == "delete":
                del parent[path[-1]]
            else:
                parent[path[-1]] = copy.deepcopy(parent[path[-1] - 1])
        except (KeyError, IndexError, TypeError):
            continue
    try:
        validate(tape, PAY, SPEC, LIMITS)
    except Invalid as invalid:
        assert invalid.failure.message
    except Exception as error:
        # XLA's own complaint at evaluation; the verifier turns it into a verdict.
        assert "jax" in type(error).__module__ or isinstance(error, ValueError | TypeError), repr(error)
        check_tape(tape, ops=replayable())
        jax.make_jaxpr(replay(tape, LIMITS))(*shapes(tape))


@pytest.mark.long
@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    st.recursive(
        VALUES,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["ins", "nodes", "outs", "x"]), inner)
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_tape_or_raises_a_tape_error(value):
    for candidate in (value, {"ins": value, "nodes": [], "outs": []}, {"ins": [], "nodes": value, "outs": []}):
        try:
            check_tape(candidate, ops=replayable())
        except TapeError as error:
            assert "malformed" in error.message


# ---- what is not compiled by the verifier must be quick to compile for the trainer


def _chain(kind: str, x: Any) -> Any:
    """Close to the depth below which a tape is not compiled when it is judged."""
    for _ in range({"stack": 19, "pad": 19, "roll": 12, "stencil": 9, "reverse": 38}[kind]):
        if kind == "stack":
            x = jnp.stack([jnp.sin(x[(k * 7) % 32] + x[(k * 3 + 1) % 32]) for k in range(32)])
        elif kind == "pad":
            x = jnp.pad(jnp.sin(x[1:]), (1, 0)) + jnp.pad(x[:-1], (0, 1)) + x
        elif kind == "roll":
            x = jnp.sin(x) + jnp.roll(x, 1)
        elif kind == "reverse":
            x = jnp.sin(x) * 1.0001 + x[::-1]
        else:
            grid = x.reshape(8, 4)
            around = [jnp.roll(grid, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1)]
            x = sum(around, 0.0 * grid).reshape(-1) * 0.1
    return x


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stack", "pad", "roll", "stencil", "reverse"])
def test_shallow_tapes_compile_quickly(kind):
    wide = jax.ShapeDtypeStruct((32,), np.float32)
    tape = tape_of(lambda x: _chain(kind, x), wide)
    function = replay(tape)
    assert measure(jax.make_jaxpr(function)(wide), LIMITS).depth <= 40
    lowered = jax.jit(jax.vmap(function)).lower(jax.ShapeDtypeStruct((64, 32), np.float32))
    begun = time.perf_counter()
    lowered.compile()
    assert time.perf_counter() - begun < 20
