# ruff: noqa: E501
"""Every public function of jax.numpy, jax.numpy.linalg, jax.nn and jax.lax: it goes through a tape and
comes out equal, or it is refused, and either is written down here."""

from __future__ import annotations

import ast
import json
import types
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxreward.programs.encode import trace
from jaxreward.programs.entries import Refused
from jaxreward.programs.guard import guard
from jaxreward.programs.interpret import replay
from jaxreward.programs.limits import Limits
from jaxreward.programs.names import API
from jaxreward.programs.namespace import modules
from jaxreward.programs.tape import TapeError, check_tape, dumps
from tests.compilation import jit

LIMITS = Limits()
_rng = np.random.default_rng(0)
A = _rng.uniform(0.2, 0.9, 4).astype(np.float32)
I = np.array([1, 0, 2, 1], np.int32)  # noqa: E741
B = np.array([True, False, True, True])
U = np.array([1, 2, 3, 4], np.uint8)
_m = _rng.uniform(size=(3, 3))
M = (np.eye(3) * 3 + _m + _m.T).astype(np.float32)
S, K = np.float32(0.5), np.int32(1)
INPUTS = (A, I, B, U, M, S, K)

GUESSES: tuple[tuple[Any, ...], ...] = (
    (A,), (A, A), (I,), (I, I), (B,), (B, B), (M,), (M, M), (A, A, A), (B, A, A), (I, A, A), (A, I), (A, K), (I, K), (A, 2),
    (I, 2), (M, 1), ((A, A),), ([A, A],), (A, 0), (A, (2, 2)), (A, I, A), (M, A), (M, I), (A, 3, 2), (B, A), (A, B),
    (A, A, 2), (M, 0, 1), (S, A, S), (A, B, A), (I, (3,)), (U,), (U, U),
)  # fmt: skip
"""Arguments to try in turn; the first two that a function takes are compared."""

F32 = jnp.float32
WRITTEN: dict[str, dict[str, Callable[..., Any]]] = {
    "jax.numpy": {
        "apply_along_axis": lambda f, a, i, b, u, m, s, k: f(jnp.cumsum, 0, m),
        "apply_over_axes": lambda f, a, i, b, u, m, s, k: f(jnp.sum, m, [0, 1]),
        "arange": lambda f, a, i, b, u, m, s, k: f(2, 9, 2) * s,
        "argwhere": lambda f, a, i, b, u, m, s, k: f(b, size=4),
        "array_split": lambda f, a, i, b, u, m, s, k: f(a, 3),
        "astype": lambda f, a, i, b, u, m, s, k: f(a, jnp.int32),
        "bartlett": lambda f, a, i, b, u, m, s, k: f(5) * s,
        "bincount": lambda f, a, i, b, u, m, s, k: f(i, length=4),
        "blackman": lambda f, a, i, b, u, m, s, k: f(5) * s,
        "block": lambda f, a, i, b, u, m, s, k: f([[a, a], [i, i]]),
        "broadcast_shapes": lambda f, a, i, b, u, m, s, k: jnp.zeros(f((3, 1), (1, 4))) + s,
        "broadcast_to": lambda f, a, i, b, u, m, s, k: f(a, (2, 4)),
        "can_cast": lambda f, a, i, b, u, m, s, k: a * f(jnp.int32, jnp.float32),
        "choose": lambda f, a, i, b, u, m, s, k: f(i, [a, a * 2, a * 3], mode="clip"),
        "compress": lambda f, a, i, b, u, m, s, k: f(b, a, size=3),
        "diag_indices": lambda f, a, i, b, u, m, s, k: m[f(3)],
        "dsplit": lambda f, a, i, b, u, m, s, k: f(a.reshape(1, 1, 4), 2),
        "einsum": lambda f, a, i, b, u, m, s, k: f("ij,jk->ik", m, m),
        "extract": lambda f, a, i, b, u, m, s, k: f(b, a, size=3),
        "eye": lambda f, a, i, b, u, m, s, k: f(3, k=1) * s,
        "fill_diagonal": lambda f, a, i, b, u, m, s, k: f(m, s, inplace=False),
        "flatnonzero": lambda f, a, i, b, u, m, s, k: f(b, size=3),
        "fromfunction": lambda f, a, i, b, u, m, s, k: f(lambda x, y: x + y * s, (2, 3)),
        "full": lambda f, a, i, b, u, m, s, k: f((2, 3), s),
        "geomspace": lambda f, a, i, b, u, m, s, k: f(s, 2.0, 5),
        "hamming": lambda f, a, i, b, u, m, s, k: f(5) * s,
        "hanning": lambda f, a, i, b, u, m, s, k: f(5) * s,
        "histogram": lambda f, a, i, b, u, m, s, k: f(a, bins=4),
        "histogram2d": lambda f, a, i, b, u, m, s, k: f(a, a * 2, bins=3),
        "histogramdd": lambda f, a, i, b, u, m, s, k: f(jnp.stack([a, a * 2], 1), bins=3),
        "identity": lambda f, a, i, b, u, m, s, k: f(3) * s,
        "indices": lambda f, a, i, b, u, m, s, k: f((2, 3)) * s,
        "insert": lambda f, a, i, b, u, m, s, k: f(a, 1, s),
        "intersect1d": lambda f, a, i, b, u, m, s, k: f(i, i + 1, size=3),
        "isdtype": lambda f, a, i, b, u, m, s, k: a * f(a.dtype, "real floating"),
        "issubdtype": lambda f, a, i, b, u, m, s, k: a * f(a.dtype, jnp.floating),
        "kaiser": lambda f, a, i, b, u, m, s, k: f(5, s),
        "linspace": lambda f, a, i, b, u, m, s, k: f(s, 2.0, 5),
        "logspace": lambda f, a, i, b, u, m, s, k: f(s, 2.0, 5),
        "mask_indices": lambda f, a, i, b, u, m, s, k: f(3, jnp.triu, size=6),
        "nonzero": lambda f, a, i, b, u, m, s, k: f(b, size=3),
        "ones": lambda f, a, i, b, u, m, s, k: f((2,)) * s,
        "permute_dims": lambda f, a, i, b, u, m, s, k: f(m, (1, 0)),
        "piecewise": lambda f, a, i, b, u, m, s, k: f(a, [a < 0.5, a >= 0.5], [lambda x: -x, lambda x: x]),
        "place": lambda f, a, i, b, u, m, s, k: f(a, b, a[:2], inplace=False),
        "promote_types": lambda f, a, i, b, u, m, s, k: a.astype(f(a.dtype, jnp.int32)),
        "put": lambda f, a, i, b, u, m, s, k: f(a, i, a, inplace=False),
        "put_along_axis": lambda f, a, i, b, u, m, s, k: f(a, i, a, 0, inplace=False),
        "ravel_multi_index": lambda f, a, i, b, u, m, s, k: f((i, i), (4, 4), mode="clip"),
        "setdiff1d": lambda f, a, i, b, u, m, s, k: f(i, i[:2], size=3),
        "setxor1d": lambda f, a, i, b, u, m, s, k: f(i, i + 1, size=4),
        "select": lambda f, a, i, b, u, m, s, k: f([b, a > 0.5], [a, a * 2], s),
        "tri": lambda f, a, i, b, u, m, s, k: f(3) * s,
        "tril_indices": lambda f, a, i, b, u, m, s, k: m[f(3)],
        "triu_indices": lambda f, a, i, b, u, m, s, k: m[f(3)],
        "union1d": lambda f, a, i, b, u, m, s, k: f(i, i + 1, size=5),
        "unique": lambda f, a, i, b, u, m, s, k: f(i, size=4),
        "unique_all": lambda f, a, i, b, u, m, s, k: f(i, size=4),
        "unique_counts": lambda f, a, i, b, u, m, s, k: f(i, size=4),
        "unique_inverse": lambda f, a, i, b, u, m, s, k: f(i, size=4),
        "unique_values": lambda f, a, i, b, u, m, s, k: f(i, size=4),
        "vectorize": lambda f, a, i, b, u, m, s, k: f(lambda x, y: x * y)(a, s),
        "zeros": lambda f, a, i, b, u, m, s, k: f((2,)) + s,
    },
    "jax.numpy.linalg": {
        "multi_dot": lambda f, a, i, b, u, m, s, k: f([m, m, m[0]]),
        "tensorinv": lambda f, a, i, b, u, m, s, k: f(m, ind=1),
        "tensorsolve": lambda f, a, i, b, u, m, s, k: f(m, m[0]),
        "matrix_power": lambda f, a, i, b, u, m, s, k: f(m, 3),
    },
    "jax.nn": {
        "one_hot": lambda f, a, i, b, u, m, s, k: f(i, 4),
        "standardize": lambda f, a, i, b, u, m, s, k: f(m),
    },
    "jax.lax": {
        "argmax": lambda f, a, i, b, u, m, s, k: f(a, 0, jnp.int32),
        "argmin": lambda f, a, i, b, u, m, s, k: f(a, 0, jnp.int32),
        "associative_scan": lambda f, a, i, b, u, m, s, k: f(jnp.multiply, a),
        "bitcast_convert_type": lambda f, a, i, b, u, m, s, k: f(a, jnp.int32),
        "broadcast_in_dim": lambda f, a, i, b, u, m, s, k: f(a, (2, 4), (1,)),
        "broadcast_shapes": lambda f, a, i, b, u, m, s, k: jnp.zeros(f((3, 1), (1, 4))) + s,
        "broadcasted_iota": lambda f, a, i, b, u, m, s, k: f(jnp.float32, (2, 3), 1) * s,
        "concatenate": lambda f, a, i, b, u, m, s, k: f([a, a], 0),
        "cond": lambda f, a, i, b, u, m, s, k: f(k > 0, jnp.sin, jnp.cos, a),
        "conv": lambda f, a, i, b, u, m, s, k: f(m[None, None], m[None, None, :2, :2], (1, 1), "SAME"),
        "convert_element_type": lambda f, a, i, b, u, m, s, k: f(a, jnp.int32),
        "cumlogsumexp": lambda f, a, i, b, u, m, s, k: f(a),
        "dot_general": lambda f, a, i, b, u, m, s, k: f(m, m, (((1,), (0,)), ((), ()))),
        "dynamic_slice": lambda f, a, i, b, u, m, s, k: f(a, (k,), (2,)),
        "dynamic_update_index_in_dim": lambda f, a, i, b, u, m, s, k: f(a, s, k, 0),
        "dynamic_update_slice": lambda f, a, i, b, u, m, s, k: f(a, a[:2], (k,)),
        "dynamic_update_slice_in_dim": lambda f, a, i, b, u, m, s, k: f(a, a[:2], k, 0),
        "expand_dims": lambda f, a, i, b, u, m, s, k: f(a, (0,)),
        "fori_loop": lambda f, a, i, b, u, m, s, k: f(0, k + 3, lambda j, c: c * 0.5 + j, a),
        "full": lambda f, a, i, b, u, m, s, k: f((2, 3), s),
        "index_take": lambda f, a, i, b, u, m, s, k: f(m, (i[:2],), (0,)),
        "iota": lambda f, a, i, b, u, m, s, k: f(jnp.float32, 4) * a,
        "map": lambda f, a, i, b, u, m, s, k: f(lambda x: x * x, a),
        "pad": lambda f, a, i, b, u, m, s, k: f(a, s, [(1, 2, 1)]),
        "reduce_and": lambda f, a, i, b, u, m, s, k: f(b, (0,)),
        "reduce_max": lambda f, a, i, b, u, m, s, k: f(a, (0,)),
        "reduce_min": lambda f, a, i, b, u, m, s, k: f(a, (0,)),
        "reduce_or": lambda f, a, i, b, u, m, s, k: f(b, (0,)),
        "reduce_prod": lambda f, a, i, b, u, m, s, k: f(a, (0,)),
        "reduce_sum": lambda f, a, i, b, u, m, s, k: f(a, (0,)),
        "reduce_xor": lambda f, a, i, b, u, m, s, k: f(i, (0,)),
        "reshape": lambda f, a, i, b, u, m, s, k: f(a, (2, 2)),
        "rev": lambda f, a, i, b, u, m, s, k: f(a, (0,)),
        "scan": lambda f, a, i, b, u, m, s, k: f(lambda c, x: (c + x, c * x), s, a),
        "slice": lambda f, a, i, b, u, m, s, k: f(a, (1,), (3,)),
        "squeeze": lambda f, a, i, b, u, m, s, k: f(a[None], (0,)),
        "switch": lambda f, a, i, b, u, m, s, k: f(k, [jnp.sin, jnp.cos, jnp.tanh], a),
        "transpose": lambda f, a, i, b, u, m, s, k: f(m, (1, 0)),
        "while_loop": lambda f, a, i, b, u, m, s, k: f(lambda c: c[0] < 5, lambda c: c + 1, a),
    },
}
"""Functions whose arguments cannot be guessed: `f` on the inputs above."""

NOT_TAPED = {
    "i0": "bessel_i0e", "kaiser": "bessel_i0e", "polyfit": "svd", "roots": "complex64|not known",
    "sort_complex": "complex64", "eigh": "eigh", "eigvalsh": "eigh", "lstsq": "svd", "pinv": "svd", "qr": "qr|geqrf",
    "svd": "svd", "svdvals": "svd", "trim_zeros": "not known|concrete",
}  # fmt: skip
"""Functions that a program may name and no tape holds, and what the refusal speaks of."""

NOT_FUNCTIONS = set(
    """
bfloat16 bool_ c_ dtype e euler_gamma finfo float16 float32 floating iinfo index_exp inexact inf int16 int32 int8 int_
integer mgrid nan ndarray newaxis number ogrid pi r_ s_ signedinteger uint16 uint32 uint8 unsignedinteger
""".split()  # noqa: SIM905
)
"""Constants, dtypes and index helpers; the last are tried below."""


def callers(module: str, name: str, function: Any) -> list[Callable[..., Any]]:
    """Ways to call it on INPUTS."""
    if name in WRITTEN[module]:
        call = WRITTEN[module][name]
        return [lambda *inputs: call(function, *inputs)]
    found: list[Callable[..., Any]] = []
    for guess in GUESSES:

        def attempt(*inputs: Any, guess: Any = guess) -> Any:
            by_id = {id(own): given for own, given in zip(INPUTS, inputs, strict=True)}
            return function(*jax.tree.map(lambda x: by_id.get(id(x), x), guess))

        found.append(attempt)
    return found


def flat(call: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda *inputs: [jnp.asarray(x) for x in jax.tree.leaves(call(*inputs))]


def tapes(module: str, name: str, function: Any) -> tuple[list[tuple[Callable[..., Any], Any]], list[str]]:
    """Calls that were taped, and the reasons of those that were not."""
    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in INPUTS]
    taped, reasons = [], []
    for call in callers(module, name, function):
        try:
            tape = trace(flat(call), structs, [f"x{i}" for i in range(len(INPUTS))], LIMITS)
        except TapeError as error:
            reasons.append(error.message)
        except jax.errors.ConcretizationTypeError:
            reasons.append("a value is not known when the program is traced")
        except Exception as error:
            if name in WRITTEN[module]:
                reasons.append(f"{type(error).__name__}: {error}")
        else:
            if tape["outs"]:
                taped.append((call, tape))
        if len(taped) == 2:
            break
    return taped, reasons


def names_of(module: str) -> list[str]:
    found = vars(modules()[module])
    return [n for n in sorted(API[module]) if n in found and n not in NOT_FUNCTIONS]


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("module", WRITTEN)
def test_functions_round_trip_or_are_refused(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taped: dict[str, list[tuple[Callable[..., Any], Any]]] = {}
        for name in names_of(module):
            found, reasons = tapes(module, name, vars(modules()[module])[name])
            if name in NOT_TAPED:
                wanted = NOT_TAPED[name].split("|")
                assert not found and any(w in r for r in reasons for w in wanted), (name, reasons[:3])
                continue
            assert found, f"{module}.{name} is unaccounted for: {reasons[:3]}"
            taped[name] = found
        pairs = [(name, call, tape) for name, calls in taped.items() for call, tape in calls]
        for group in _batched(pairs, 40):
            _compare(group)


def _batched(items: list[Any], size: int) -> list[list[Any]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def _compare(group: Any) -> None:
    """One compilation for many functions: each next to its tape."""
    replays = [replay(check_tape(json.loads(dumps(tape)))) for _, _, tape in group]

    def both(*inputs: Any) -> Any:
        return [(flat(call)(*inputs), again(*inputs)) for (_, call, _), again in zip(group, replays, strict=True)]

    for (name, _, _), (expected, got) in zip(group, jit(both)(*INPUTS), strict=True):
        assert len(expected) == len(got), name
        for x, y in zip(expected, got, strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype, name
            np.testing.assert_allclose(np.asarray(y, F32), np.asarray(x, F32), rtol=1e-5, atol=1e-5, err_msg=name)


def test_index_helpers_and_constants_of_jax_numpy_trace():
    found = vars(modules()["jax.numpy"])
    assert set(NOT_FUNCTIONS) <= set(API["jax.numpy"])
    tape = trace(
        lambda a: [
            found["r_"][a, 1.0], found["c_"][a, a], found["mgrid"][0:2, 0:3] * a[0], found["ogrid"][0:3] * a[0],
            a[found["s_"][1:3]], a[found["index_exp"][1:3]], a[found["newaxis"]], a + found["pi"] + found["finfo"](F32).eps,
        ],
        [jax.ShapeDtypeStruct((4,), F32)], ["a"], LIMITS,
    )  # fmt: skip
    assert len(tape["outs"]) == 8


@pytest.mark.parametrize("module", [*WRITTEN, "jax"])
def test_names_that_are_not_listed_are_refused(module):
    """Whatever else JAX has, now or in a later version, the guard refuses by name, with the line."""
    real: Any = {"jax": jax, "jax.numpy": jnp, "jax.numpy.linalg": jnp.linalg, "jax.nn": jax.nn, "jax.lax": lax}[module]
    others = [n for n in dir(real) if n not in API[module] and not n.startswith("__")]
    assert others
    for name in others:
        if f"{module}.{name}" in API:
            continue
        ast.parse(source := f"import jax\nX = {module}.{name}\ndef get_observation(state):\n    return state\n")
        with pytest.raises(Refused) as refused:
            guard(source)
        assert refused.value.line == 2 and name in refused.value.message


def test_stand_ins_hold_no_modules():
    for module, stand_in in modules().items():
        for name, value in vars(stand_in).items():
            assert not isinstance(value, types.ModuleType), (module, name)
        with pytest.raises(AttributeError, match="read-only"):
            stand_in.sum = None
