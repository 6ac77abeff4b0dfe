"""The constants of a reward: which literals they are, skeletons, and values that go back into the source."""

from __future__ import annotations

import ast
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.programs import lockdown
from jaxreward.programs.constants import FloatLiteral, LiteralError, literals, write_back
from jaxreward.programs.interpret import replay
from jaxreward.programs.limits import Limits
from jaxreward.programs.samples import Samples
from jaxreward.programs.spec import Spec
from jaxreward.programs.worker_reply import read_reply
from tests.compilation import jit

SHARED = """
import jax.numpy as jnp

REACH = 0.5
NEAR = 0.25


def away(state):
    return jnp.sqrt(jnp.sum((state.goal - state.pos) ** 2) + 1e-6)


def get_observation(state):
    return jnp.concatenate([state.pos / REACH, 3.0 * state.vel])


def bonus(state):
    return jnp.where(away(state) < NEAR, 2.0, 0.0)


def compute_reward(state, action, next_state):
    unit = 1.0 if REACH > 0.1 else -1.0
    terms = {
        "closer": 0.7 * (away(state) - away(next_state)),
        "bonus": unit * bonus(next_state),
        "effort": -0.05 * jnp.sum(jnp.abs(action) ** 1.5),
    }
    return sum(terms.values()), terms
"""


def found(source: str) -> list[float]:
    tree = ast.parse(source)
    observes = any(isinstance(n, ast.FunctionDef) and n.name == "get_observation" for n in tree.body)
    return [c.value for c in literals(tree, "compute_reward", "get_observation" if observes else None)]


def test_constants_are_the_rewards_own_numbers():
    assert found(SHARED) == [0.25, 1e-6, 2.0, 1.0, 0.1, 1.0, 0.7, 0.05]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("return 0.5 * x + 2 * y", [0.5]), ("return x ** 2.0 + 3.0 ** x", [3.0]), ("x **= 2.0\n    return x", []),
        ("return 0.0 * x + 1e999", []), ("return -0.5 * x", [0.5]), ("return (x, {f'{1.5:.1f}': x})", []),
        ("return (x, {2.5: 3.5 * x})", [3.5]), ("y: 1.5 = x\n    return y * 1_0.5", [10.5]), ("return True * x", []),
        ("return max(x, 0.25)  # é 0.75", [0.25]), ("return 'é'.count('é') * x * 0.125", [0.125]),
    ],
)  # fmt: skip
def test_only_positive_float_literals_are_constants(body, values):
    source = f"def compute_reward(x, y, z):\n    {body}\n"
    assert found(source) == values
    which = literals(ast.parse(source), "compute_reward", None)
    text, moved = write_back(source, which, [c.value for c in which])
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source)) and [c.value for c in moved] == values


def test_values_go_back_into_the_source():
    source = "W = (0.5, 1.0)  # é\ndef compute_reward(s, a, n):\n    é = ''; return W[0] * 3.0 + W[1] * 1e-05"
    which = literals(ast.parse(source), "compute_reward", None)
    text, moved = write_back(source, which, [0.1, 12345678.0, 1 / 3, 2.0])
    assert text == (
        "W = (0.1, 1.2345678e+07)  # é\ndef compute_reward(s, a, n):\n    é = ''; return W[0] * 0.33333334 + W[1] * 2.0"
    )
    assert literals(ast.parse(text), "compute_reward", None) == moved
    again, _ = write_back(text, moved, [c.value for c in which])
    assert again == source


def test_a_value_or_literal_that_does_not_fit_is_refused_with_its_line():
    source = "def compute_reward(s, a, n):\n    return 0.5 * s\n"
    (one,) = literals(ast.parse(source), "compute_reward", None)
    elsewhere, misplaced = (FloatLiteral(line, 0, 3, 0.5) for line in (9, 2))
    for literal, values, line in (
        *((one, [value], 2) for value in (-1.0, float("nan"), float("inf"))),
        *((one, values, None) for values in ([1.0, 2.0], [])),
        (elsewhere, [1.0], 9),
        (misplaced, [1.0], 2),
    ):
        with pytest.raises(LiteralError) as error:
            write_back(source, [literal], values)
        assert error.value.line == line


@pytest.fixture(scope="module")
def inputs(task):
    transition = Samples.random(Spec.of(task)).first(32).transition()
    return [jnp.asarray(a) for a in transition]


def paid(tape_function, inputs):
    return np.asarray(jit(jax.vmap(lambda *arrays: jnp.stack(tape_function(*arrays))))(*inputs))


def test_a_skeleton_with_its_constants_is_the_reward(checker, task, inputs):
    _, program = checker.check(SHARED, task)
    values = program.constants  # 0.1 decides in Python, and -1.0 is not reached there
    assert values.tolist() == pytest.approx([0.25, 1e-6, 2.0, 1.0, 0.7, 0.05])
    known = paid(program._reward, inputs)
    np.testing.assert_allclose(paid(lambda *a: replay(program.skeleton.tape)(*a, *values), inputs), known, rtol=1e-5)


def test_other_constants_are_another_program_of_the_same_structure(checker, task, inputs):
    _, program = checker.check(SHARED, task)
    other = program.with_constants(2.0 * program.constants)
    _, again = checker.check(other.source, task)
    assert again.structure == other.structure == program.structure
    assert again.skeleton.constants == other.skeleton.constants
    assert len({program.digest, other.digest, again.digest}) == 3
    assert other.observation_tape is program.observation_tape
    computed = paid(other._reward, inputs)
    np.testing.assert_allclose(computed, paid(again._reward, inputs), rtol=1e-5, atol=1e-6)
    assert not np.allclose(computed, paid(program._reward, inputs))
    np.testing.assert_array_equal(
        computed, paid(lambda *a: replay(program.skeleton.tape)(*a, *(2.0 * program.constants)), inputs)
    )
    with pytest.raises(InvalidSetting, match="has no constants"):
        checker.check("def get_observation(state):\n    return state.pos\n", task)[1].with_constants([])


def test_equal_literals_are_separate_constants(checker, task):
    """A skeleton must not tie numbers that happen to be equal."""
    text = (
        "import jax.numpy as jnp\ndef compute_reward(s, a, n):\n    return {} * jnp.sum(n.pos) + {} * jnp.sum(n.vel)\n"
    )
    one, two = (checker.check(text.format(*pair), task)[1] for pair in ((0.5, 0.5), (0.5, 0.25)))
    assert one.structure == two.structure and one.digest != two.digest
    assert one.constants.tolist() == [0.5, 0.5] and two.constants.tolist() == [0.5, 0.25]


def test_numbers_needed_by_python_are_no_constants(checker, task):
    source = """
import jax.numpy as jnp

def compute_reward(s, a, n):
    steps = int(4.0)
    table = [0.1, 0.2, 0.3]
    if 0.5 < 0.6:
        steps += 1
    total = 0.9 * jnp.sum(n.pos)
    for i in range(steps):
        total = total + table[i % 3] * n.vel[0]
    return total
"""
    verdict, program = checker.check(source, task)
    assert verdict.failure is None
    assert program.constants.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.9])


GOOD = "def compute_reward(s, a, n):\n    return 0.5 * n.pos[0]\n"


def frame(message) -> bytes:
    data = json.dumps(message).encode()
    return len(data).to_bytes(8, "little") + data


TAPE = {"ins": [], "nodes": [], "outs": [0, 0]}
GUARDED = {
    "observation": None, "reward": "compute_reward", "reward_nodes": 3, "lines": {}, "constants": [[2, 11, 14, 0.5]] * 2
}  # fmt: skip


@pytest.mark.parametrize(
    ("third", "lifted"),
    [
        ({"skeleton": TAPE, "which": [0, 1]}, (TAPE, [0, 1])), ({"skeleton": None, "which": []}, None),
        ({"skeleton": TAPE, "which": []}, None), ({"skeleton": TAPE, "which": [2]}, None),
        ({"skeleton": TAPE, "which": [1, 0]}, None), ({"skeleton": TAPE, "which": [0, 0]}, None),
        ({"skeleton": TAPE, "which": [True]}, None), ({"skeleton": TAPE, "which": "01"}, None), ({}, None),
        ({"skeleton": "tape", "which": [0]}, None), ([], None), (None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["exit", "timeout", "flood"])
def test_a_forged_skeleton_is_dropped_and_the_program_accepted(third, lifted, end):
    header = json.dumps({"end": end, "detail": ""}).encode()
    second = {"reward": TAPE, "terms": ["reward"]}
    written = b"L" + frame(GUARDED) + frame(second) + (b"" if third is None else frame(third))
    _, traced = read_reply(len(header).to_bytes(4, "little") + header + written, Limits())
    assert traced["lifted"] == lifted and traced["reward"] == TAPE


@pytest.mark.skipif(bool(lockdown.missing()), reason="no sandbox on this system")
def test_a_skeleton_that_computes_something_else_is_dropped(checker, task, monkeypatch):
    """What the worker says is believed only after it was computed."""
    from jaxreward.programs import checker as module

    true = module._reward_of

    def forged(traced, guarded):
        tape, which = traced["lifted"]
        half = true({**traced, "lifted": ({**tape, "outs": [len(tape["ins"]) - 1] * 2}, which)}, guarded)
        assert half.skeleton is not None
        return half

    assert checker.check(GOOD, task)[1].skeleton is not None
    monkeypatch.setattr(module, "_reward_of", forged)
    verdict, program = checker.check(GOOD, task)
    assert verdict.failure is None and program.skeleton is None and program.constants.size == 0
