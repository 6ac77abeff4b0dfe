# ruff: noqa: E501  (program texts as data)
"""What a digest must and must not depend on; a tape computes what its source computes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import suite_good
from suite_parts import HEAD, OBSERVE, PAY, obs, rew

from jaxreward.programs import Program
from jaxreward.programs.tape import count
from jaxreward.views import view_shapes

pytestmark = pytest.mark.usefixtures("unoptimised")

TABLE = "T = jnp.array([[0.0, 1.0], [2.0, 0.0]])\n"
SAME = {
    "renamed": (obs("a = state.pos\nb = a * 2\nreturn b"), obs("first = state.pos\nsecond = first * 2\nreturn second")),
    "dead_code": (obs("return state.pos * 2"), obs("x = jnp.sin(state.vel)\ny = x + 1\nreturn state.pos * 2")),
    "statement_order": (
        obs("a = jnp.sin(state.pos)\nb = jnp.cos(state.vel)\nreturn a + b"),
        obs("b = jnp.cos(state.vel)\na = jnp.sin(state.pos)\nreturn a + b"),
    ),
    "sum_commutes": (obs("return state.pos + state.vel"), obs("return state.vel + state.pos")),
    "product_commutes": (obs("return jnp.sin(state.pos) * 3.0"), obs("return 3.0 * jnp.sin(state.pos)")),
    "maximum_commutes": (obs("return jnp.maximum(state.pos, 0)"), obs("return jnp.maximum(0, state.pos)")),
    "equality_commutes": (obs("return (state.pos == 1) * 1.0"), obs("return 1.0 * (1 == state.pos)")),
    "comparison_turned": (
        obs("return jnp.where(state.pos > state.vel, 1.0, state.pos)"),
        obs("return jnp.where(state.vel < state.pos, 1.0, state.pos)"),
    ),
    "duplicate_expressions": (
        obs("return jnp.sin(state.pos) + jnp.cos(jnp.sin(state.pos))"),
        obs("s = jnp.sin(state.pos)\nreturn s + jnp.cos(s)"),
    ),
    "helper_inlined": (
        obs("return f(state.pos, 2)", "def f(x, k):\n    return jnp.tanh(x) * k\n"),
        obs("return jnp.tanh(state.pos) * 2"),
    ),
    "jit_inlined": (
        obs("return f(state.pos)", "@jax.jit\ndef f(x):\n    return jnp.tanh(x)\n"),
        obs("return jnp.tanh(state.pos)"),
    ),
    "constants_named": (obs("return state.pos * SCALE", "SCALE = 0.5\n"), obs("return state.pos * 0.5")),
    "tables_moved": (obs("return state.pos @ T", TABLE), obs("T = jnp.array([[0.0, 1.0], [2.0, 0.0]])\nreturn state.pos @ T")),
    "entries_of_tables": (
        obs("return state.pos * T[1, 0] + T[0]", TABLE), obs("return state.pos * 2.0 + jnp.array([0.0, 1.0])"),
    ),
    "entries_at_constant_places": (
        obs("return state.pos * jax.lax.dynamic_slice(T, (1, 0), (1, 1))[0, 0] + T[-1:, ::-1][0]", TABLE),
        obs("return state.pos * 2.0 + jnp.array([0.0, 2.0])"),
    ),
    "entries_in_a_function_of_jax": (
        obs("return f(state.pos, T)", TABLE + "@jax.jit\ndef f(x, t):\n    return x * t[0].T[1]\n"),
        obs("return state.pos * jnp.ones(3)[2]"),
    ),
    "zeros_by_table": (obs("return state.pos @ jnp.ones((2, 3))"), obs("return state.pos @ jnp.array([[1.0] * 3] * 2)")),
    "loop_unrolled": (
        obs("x = state.pos\nfor i in range(3):\n    x = jnp.sin(x)\nreturn x"),
        obs("return jnp.sin(jnp.sin(jnp.sin(state.pos)))"),
    ),
    "loop_variables_renamed": (
        obs("return jax.lax.fori_loop(0, 3, lambda i, c: c + jnp.sin(c) * i, state.pos)"),
        obs("return jax.lax.fori_loop(0, 3, lambda step, value: step * jnp.sin(value) + value, state.pos)"),
    ),
    "terms_renamed_and_moved": (
        rew("a, b = state.pos[0], next_state.pos[1]\nreturn a + b, {'a': a, 'b': b}"),
        rew("p, q = next_state.pos[1], state.pos[0]\nreturn p + q, {'near': p, 'far': q}"),
    ),
    "one_term_or_none": (
        rew("return state.pos[0] - next_state.pos[0]"),
        rew("a = state.pos[0] - next_state.pos[0]\nreturn a, {'progress': a}"),
    ),
    "comments_and_layout": (HEAD + OBSERVE + PAY, "# note\n\n" + HEAD + "\n\n" + PAY + "\n# text\n" + OBSERVE),
}  # fmt: skip
DIFFERENT = {
    "constant": (obs("return state.pos * 0.5"), obs("return state.pos * 0.25")),
    "last_bit_of_a_constant": (obs("return state.pos * 0.5"), obs("return state.pos * 0.50000006")),
    "table": (obs("return state.pos @ T", TABLE), obs("return state.pos @ T", TABLE.replace("2.0", "3.0"))),
    "field": (obs("return state.pos * 2"), obs("return state.vel * 2")),
    "operation": (obs("return jnp.sin(state.pos)"), obs("return jnp.cos(state.pos)")),
    "difference_does_not_commute": (obs("return state.pos - state.vel"), obs("return state.vel - state.pos")),
    "order_of_features": (
        obs("return jnp.concatenate([state.pos, state.vel])"), obs("return jnp.concatenate([state.vel, state.pos])"),
    ),
    "iterations": (
        obs("return jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), state.pos)"),
        obs("return jax.lax.fori_loop(0, 4, lambda i, c: jnp.sin(c), state.pos)"),
    ),
    "body_of_a_loop": (
        obs("return jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), state.pos)"),
        obs("return jax.lax.fori_loop(0, 3, lambda i, c: jnp.cos(c), state.pos)"),
    ),
    "terms": (
        rew("a = state.pos[0] - next_state.pos[0]\nreturn a"),
        rew("a = state.pos[0] - next_state.pos[0]\nreturn a, {'x': state.pos[0], 'y': -next_state.pos[0]}"),
    ),
    "state_and_next_state": (rew("return state.pos[0] * action[0]"), rew("return next_state.pos[0] * action[0]")),
    "reward": (HEAD + OBSERVE + PAY, HEAD + OBSERVE + PAY.replace("0.01", "0.02")),
}  # fmt: skip


@pytest.fixture(scope="module")
def digests(checker, task):
    pairs = {("same", n): p for n, p in SAME.items()} | {("different", n): p for n, p in DIFFERENT.items()}
    outcomes = checker.check_many([s for pair in pairs.values() for s in pair], task)
    for verdict, _ in outcomes:
        assert verdict.ok, verdict.failure
    found = [v.summary.digest for v, _ in outcomes]
    return dict(zip(pairs, zip(found[::2], found[1::2], strict=True), strict=True))


@pytest.mark.parametrize("name", SAME)
def test_programs_that_compute_the_same_share_a_digest(digests, name):
    first, second = digests["same", name]
    assert first == second


@pytest.mark.parametrize("name", DIFFERENT)
def test_programs_that_compute_something_else_differ_in_digest(digests, name):
    first, second = digests["different", name]
    assert first != second


def test_the_default_written_out_is_the_default(checker, task):
    written = (
        "def get_observation(state):\n"
        "    return jnp.concatenate([state.pos, state.vel, state.goal, state.info['gyro']])\n"
        "def compute_reward(state, action, next_state):\n"
        "    return (jnp.linalg.norm(next_state.pos - next_state.goal) < 0.1).astype(jnp.float32)\n"
    )
    sources = [
        HEAD + written,
        HEAD + written[: written.index("def compute")],
        HEAD + written[written.index("def compute") :],
    ]
    digests = {program.digest for _, program in checker.check_many(sources, task) if program}
    assert digests == {Program.default(task).digest}


def test_dead_and_duplicate_code_leaves_the_tape(checker, task):
    lean = checker.load(obs("return jnp.sin(state.pos)"), task)
    fat = checker.load(obs("x = jnp.cos(state.vel)\ny = jnp.sin(state.pos)\nz = jnp.sin(state.pos)\nreturn z"), task)
    assert count(fat.observation_tape) == count(lean.observation_tape) == 1


# ---- a tape computes what its source computes


def states(task: Any, seed: int) -> Any:
    """A random view with small integers."""
    rng = np.random.default_rng(seed)
    view = view_shapes(task)

    def draw(leaf: Any) -> Any:
        if leaf.dtype.kind == "f":
            return jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype)
        return jnp.asarray(rng.integers(0, 5, leaf.shape), leaf.dtype)

    return jax.tree.map(draw, view)


def compare(program: Program, source: str, task: Any) -> None:
    names: dict[str, Any] = {}
    exec(source, names)  # our own source
    payer = names.get("compute_reward")
    if payer is None and "reward" in names:
        payer = lambda state, action, next_state: names["reward"](next_state)  # noqa: E731
    for seed in range(3):
        view, after = states(task, seed), states(task, seed + 100)
        action = jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, 2), jnp.float32)
        if "get_observation" in names:
            expected = names["get_observation"](view)
            np.testing.assert_allclose(program.observe(view), expected, rtol=1e-5, atol=1e-5)
        if payer is not None:
            total, terms = program.reward(view, action, after)
            expected = payer(view, action, after)
            expected, parts = expected if isinstance(expected, tuple | list) else (expected, {})
            np.testing.assert_allclose(total, np.float32(expected), rtol=1e-5, atol=1e-5)
            for name, value in parts.items():
                got = terms[program.terms.index(name)]
                np.testing.assert_allclose(got, np.float32(value), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", suite_good.CASES)
def test_a_tape_computes_what_its_source_does(good, task, name):
    compare(good[name][1], suite_good.CASES[name][0], task)


def test_a_while_loop_that_the_cap_cuts_short_is_not_a_number(checker, task):
    """A tape stops its loops, a source does not: a program whose loop is cut short where it is judged is refused."""
    loop = "return jax.lax.while_loop(lambda c: c[0] < {}.0, lambda c: c + 1.0, state.pos * 0.0)"
    view = task.view(task.reset(jax.random.key(0)))
    long_enough = checker.load(obs(loop.format(256)), task)
    np.testing.assert_array_equal(jax.jit(long_enough.observe)(view), [256.0, 256.0])
    verdict, _ = checker.check(obs(loop.format(257)), task)
    assert verdict.failure.stage == "limits" and "256 turns" in verdict.failure.message


TURNS = "jax.lax.while_loop(lambda c: c < {}, lambda c: c + 1, 0 * state.t)"
CUT_SHORT = {
    "integers": f"n = {TURNS}",
    "integers in another loop": f"n = jax.lax.fori_loop(0, 3, lambda i, n: n + {TURNS}, 0 * state.t)",
    "integers in a branch": f"n = jax.lax.cond(jnp.ones(()) > 0, lambda: {TURNS}, lambda: 0 * state.t)",
    "integers in lanes": "n = jax.vmap(lambda k: jax.lax.while_loop(lambda c: c < k, lambda c: c + 1, 0 * state.t))"
    "(jnp.array([1, {}]))[0]",
    "booleans": "n = jax.lax.while_loop(lambda c: c[1].sum() < {}, lambda c: (~c[0], c[1] + 1), "
    "(state.t < 0, 0 * state.t))[0]",
}
"""Loops of 256 turns, or one more, that give no float."""


@pytest.mark.parametrize("name", CUT_SHORT)
def test_a_loop_of_whole_numbers_that_the_cap_cuts_short_is_refused(checker, task, name):
    body = CUT_SHORT[name] + "\nreturn state.pos * n"
    verdict, program = checker.check(obs(body.format(256)), task)
    assert program is not None, verdict.failure
    compare(program, obs(body.format(256)), task)
    verdict, _ = checker.check(obs(body.format(257)), task)
    assert verdict.failure is not None, "what the tape computes is not what the source does"
    assert verdict.failure.stage == "limits" and "256 turns" in verdict.failure.message
