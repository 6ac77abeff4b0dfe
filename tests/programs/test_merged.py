"""Tapes merged into one computation are what each of them is alone, and hold what they share once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.programs.encode import trace
from jaxreward.programs.interpret import replay
from jaxreward.programs.limits import Limits
from jaxreward.programs.merged import Merged
from jaxreward.programs.tape import TapeError, bind, check_tape, count
from tests.compilation import jit

X, C = jax.ShapeDtypeStruct((6,), np.float32), jax.ShapeDtypeStruct((), np.float32)


def tape_of(function: Any, constants: int = 0) -> Any:
    """Of one array, and of constants after it."""
    structs = [X] + [C] * constants
    return trace(lambda *a: list(function(*a)), structs, [f"x{i}" for i in range(len(structs))], Limits())


def shared(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * jnp.arange(6.0))


TAPES = [
    tape_of(lambda x: [shared(x), jnp.tanh(x)]),
    tape_of(lambda x: [jnp.stack([jnp.max(x), shared(x)])]),
    tape_of(lambda x: [x, jnp.tanh(x)[::-1] + shared(x)]),
    tape_of(lambda x: [jnp.ones(3), jax.lax.fori_loop(0, 3, lambda k, c: jnp.cos(c) * k, jnp.max(x) * x)]),
    tape_of(lambda x: [shared(x), jnp.tanh(x)]),
]


def inputs(rows: int, *more: tuple[int, ...]) -> list[jax.Array]:
    draw = np.random.default_rng(rows)
    return [jnp.asarray(draw.normal(size=(rows, *shape)), jnp.float32) for shape in ((4, 6), *more)]


def by_row(tapes: Any, arrays: Any, lanes: int = 1) -> list[list[Any]]:
    """The outputs of every tape."""
    merged = Merged(tapes, lanes)
    groups = jit(lambda arrays: [outputs for _, outputs in merged(arrays)])(arrays)
    owners = [own for own, _ in merged(arrays)]
    rows = {k: [x[at] for x in outs] for own, outs in zip(owners, groups, strict=True) for at, k in enumerate(own)}
    return [rows[k] for k in range(len(tapes))]


def size(*tapes: Any) -> int:
    return Merged(tapes, 1).size


def assert_alike(tapes: Any, arrays: Any) -> None:
    """Every row is what its tape makes of it alone."""
    for k, (tape, found) in enumerate(zip(tapes, by_row(tapes, arrays), strict=True)):
        own = [array[k] for array in arrays[: len(tape["ins"])]]
        alone = jax.vmap(replay(tape), in_axes=(0, *[None] * (len(own) - 1)), out_axes=0)
        for a, b in zip(jit(alone)(*own), found, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("order", [(0,), (0, 1, 2, 3, 4), (3, 0, 2, 4), (1, 1, 1)])
def test_rows_are_what_their_tapes_make_of_them_alone(order):
    """In chunks of one, of all, of some whose rows are no neighbours, and of one tape several times; an output may be
    an input, or depend on none."""
    assert_alike([TAPES[k] for k in order], inputs(len(order)))


def test_nodes_that_tapes_share_are_merged():
    assert size(*[TAPES[0]] * 3) == size(TAPES[0]) == size(TAPES[0], TAPES[4]) == count(TAPES[0])
    own = [size(tape) for tape in TAPES[:3]]
    sine = size(tape_of(lambda x: [shared(x)]))
    assert size(*TAPES[:2]) == own[0] + own[1] - sine
    assert size(*TAPES[:3]) < sum(own) - 2 * sine, "a tanh more"


def test_sums_in_another_order_are_merged():
    one, two = tape_of(lambda x: [jnp.sin(x) + x]), tape_of(lambda x: [x + jnp.sin(x)])
    assert size(one, two) == 2
    differences = [tape_of(lambda x: [x - 1]), tape_of(lambda x: [1 - x])]
    assert size(*differences) == 3, "of the one constant"
    assert_alike([one, two], inputs(2))


def test_every_row_has_constants_of_its_own():
    """A tape may have fewer of them; what stands for the missing is read by nothing."""
    tapes = [
        tape_of(lambda x, a, b: [a * shared(x) + b, jnp.stack([a, b]) * a], 2),
        tape_of(lambda x, a: [a * shared(x) - a], 1),
        tape_of(lambda x: [shared(x)]),
    ]
    x, *constants = inputs(3, (), ())
    assert_alike(tapes, [x, *constants])
    missing = [constants[0].at[2].set(jnp.nan), constants[1].at[1:].set(jnp.nan)]
    assert_alike(tapes, [x, *missing])


def test_what_constants_alone_decide_is_computed_once_a_row():
    tapes = [tape_of(lambda x, a: [jnp.sum(x * jnp.sin(a * jnp.arange(6.0))), jnp.exp(a)], 1)] * 2
    x, a = inputs(2, ())
    merged = Merged(tapes, 1)
    sines = [e for e in jax.make_jaxpr(lambda *z: merged(z)[0][1])(x, a).eqns if e.primitive.name == "sin"]
    assert [e.outvars[0].aval.shape for e in sines] == [(2, 6)]
    assert_alike(tapes, [x, a])


def test_a_node_without_outputs_does_not_affect_other_tapes():
    """No source becomes such a tape, but a worker that was taken over could send one."""
    body = {"ins": [[[6], "float32"]], "nodes": [], "outs": []}
    empty = ["scan", {"body": body, "consts": 1, "carry": 0, "length": 1, "reverse": False}, [1], 0]
    tape = {"ins": [[[6], "float32"]], "nodes": [["sin", {"accuracy": None}, [0], 1], empty], "outs": [1]}
    check_tape(tape)
    assert_alike([tape, TAPES[0]], inputs(2))


def test_a_diverging_row_does_not_affect_the_others():
    """The share of a row that is not finite is its own."""
    tapes = [TAPES[0], TAPES[1]]
    (x,) = inputs(2)
    clean, spoilt = by_row(tapes, [x]), by_row(tapes, [x.at[0].set(jnp.nan)])
    assert np.isnan(spoilt[0][0]).all()
    np.testing.assert_array_equal(clean[1][0], spoilt[1][0])


def test_tapes_of_other_inputs_are_refused():
    scalar = trace(lambda a: [a + 1], [C], ["a"], Limits())
    with pytest.raises(TapeError, match="other inputs"):
        Merged([TAPES[0], scalar], 1)


@pytest.mark.slow
def test_merged_programs_of_the_suite_compute_what_each_does_alone(good, task):
    """Observations and rewards of every third good program, together and each alone."""
    programs = [program for verdict, program in good.values() if verdict.ok][::3]
    assert len(programs) > 10
    states, transitions = programs[0].spec.structs()
    for structs, tapes in (
        (states, [p.observation_tape for p in programs]),
        (transitions, [p.skeleton.tape if p.skeleton else p.reward_tape for p in programs]),
    ):
        longest = max(len(tape["ins"]) for tape in tapes)
        draw = np.random.default_rng(0)
        arrays = [jnp.asarray(draw.uniform(0, 2, (len(tapes), 3, *s.shape)).astype(s.dtype)) for s in structs]
        arrays += [jnp.full(len(tapes), 0.5)] * (longest - len(structs))
        found = by_row(tapes, arrays, len(structs))
        for k, tape in enumerate(tapes):
            fixed = bind(tape, [np.float32(0.5)] * (len(tape["ins"]) - len(structs)))
            alone = jax.vmap(replay(fixed))(*(array[k] for array in arrays[: len(structs)]))
            for a, b in zip(alone, found[k], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
