"""Trusted functions: traced in this process, with any library of JAX, under the same contract and limits."""

from __future__ import annotations

import functools
import operator
import sys
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from own_functions import pay, see
from pointtask import PointTask, View, structs

from jaxreward.errors import InvalidSetting, UserError
from jaxreward.programs import Program, ProgramRejected
from jaxreward.programs.spec import Spec

NETWORK = nn.Dense(3)
WEIGHTS = NETWORK.init(jax.random.key(0), jnp.zeros(2))


def features(state: Any) -> jax.Array:
    return NETWORK.apply(WEIGHTS, state.pos)  # type: ignore[return-value]


def view_of(task: PointTask, seed: int = 0) -> Any:
    return task.view(task.reset(jax.random.key(seed)))


def test_trusted_and_checked_functions_have_one_digest(checker, task):
    trusted, checked = checker.load((see, pay), task, trusted=True), checker.load((see, pay), task)
    assert trusted.digest == checked.digest and trusted.source == checked.source and trusted.terms == checked.terms
    assert trusted.summary == checked.summary


TABLE = np.array([[0.5, 1.5], [2.0, 3.0]])


def indexed(state: Any) -> jax.Array:
    return state.pos * TABLE[1, 0] + TABLE.T[None, 0][0] - TABLE[::-1][0]


def test_entries_of_an_array_of_numpy_are_numbers_in_both(checker, task):
    """A trusted function reads them by numpy, the text of the same function by JAX."""
    trusted, checked = checker.load(indexed, task, trusted=True), checker.load(indexed, task)
    assert trusted.digest == checked.digest


def test_a_module_of_another_library_computes_what_it_does_alone(checker, task):
    program = checker.load(features, task, trusted=True)
    view = view_of(task)
    np.testing.assert_allclose(program.observe(view), features(view), rtol=1e-6)
    assert program.observation_size == 3 and program.terms == ("sparse",)
    assert program.source.startswith("# Traced from functions; not a program by itself: features uses NETWORK")
    assert "def features(state: Any)" in program.source and "trusted" not in program.source


def test_a_method_sees_the_view_with_its_own_type(checker, task):
    class Reward:
        scale = 2.0

        def __call__(self, state: View, action: jax.Array, next_state: View) -> jax.Array:
            assert isinstance(state, View)
            return self.scale * jnp.sum(next_state._asdict()["pos"])

    program = checker.load(Reward(), task, trusted=True)
    view = view_of(task)
    total, terms = program.reward(view, jnp.zeros(2), view)
    assert float(total) == pytest.approx(2 * float(view.pos.sum())) and terms.shape == (1,)
    assert program.name == "Reward" and "the source is not available" in program.source


def test_a_pair_of_shapes_or_a_spec_stands_in_for_a_task(checker, task):
    trees = structs(task)
    assert checker.load((see, pay), trees, trusted=True).digest == checker.load((see, pay), task).digest
    assert checker.load((see, pay), Spec.of(task), trusted=True).digest == checker.load((see, pay), task).digest
    with pytest.raises(ProgramRejected, match="no compute_reward"):
        checker.load(see, trees, trusted=True)


def prints(state: Any) -> jax.Array:
    jax.debug.print("seen {x}", x=state.pos[0])
    return state.pos


def calls_back(state: Any) -> Any:
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((2,), jnp.float32), state.pos)


def decomposes(state: Any) -> jax.Array:
    return jnp.linalg.svd(jnp.outer(state.pos, state.pos))[1]


def branches(state: Any) -> jax.Array:
    return state.pos if state.pos[0] > 0 else -state.pos


def is_boolean(state: Any) -> jax.Array:
    return state.pos > 0


def is_constant(state: Any) -> jax.Array:
    return jnp.ones(3)


def is_large(state: Any) -> jax.Array:
    return jnp.sum(jnp.ones((400, 400)) * state.pos[0], keepdims=True)[0]


def divides(state: Any, action: Any, next_state: Any) -> jax.Array:
    return state.pos[0] / 0.0


def names_nothing(state: Any, action: Any, next_state: Any) -> Any:
    return state.pos[0], {3: state.pos[0]}


@pytest.mark.parametrize(
    ("function", "stage", "words"),
    [
        (prints, "trace", "prints: it has side effects"),
        (calls_back, "trace", "'pure_callback' is not available to programs"),
        (decomposes, "trace", "'svd' is not available"),
        (branches, "trace", "branches: the truth value of an array is not known"),
        (is_boolean, "contract", "must return float32, not bool"),
        (is_constant, "numeric", "the observation is constant"),
        (is_large, "limits", "an intermediate array has 160,000 elements"),
        (divides, "numeric", "not finite"),
        (names_nothing, "contract", "3 is not the name of a term"),
    ],
)
def test_what_no_program_may_do_is_rejected_with_its_stage(checker, task, function, stage, words):
    with pytest.raises(ProgramRejected, match=words) as error:
        checker.load(function, task, trusted=True)
    assert error.value.failure.stage == stage and error.value.name == function.__name__


def test_an_error_of_the_function_itself_is_the_cause(checker, task):
    def wrong(state: Any) -> Any:
        raise KeyError("no such thing")

    with pytest.raises(ProgramRejected, match="no such thing") as error:
        checker.load(wrong, task, trusted=True)
    assert isinstance(error.value.__cause__, KeyError)


def names_a_local(state: Any) -> jax.Array:
    compute_reward = 2.0 * state.pos
    return compute_reward


def names_a_loop(state: Any, action: Any, next_state: Any) -> Any:
    total = 0.0
    for get_observation in state.pos:
        total += get_observation
    return total


@pytest.mark.parametrize("function", [names_a_local, names_a_loop])
def test_a_local_variable_may_have_the_name_of_an_entry_point(checker, task, function):
    """Its text alone is no program: `compute_reward` is assigned to."""
    program = checker.load(function, task, trusted=True)
    assert "not a program by itself" in program.source and "is assigned to" in program.source
    with pytest.raises(ProgramRejected, match="is assigned to"):
        checker.load(function, task)


class Waits:
    async def __call__(self, state: Any) -> Any:
        return state.pos


class Yields:
    def __call__(self, state: Any) -> Any:
        yield state.pos


def leaves(state: Any) -> Any:
    sys.exit(3)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (Waits(), "Waits is an async function"),
        (Yields(), "Yields is a generator"),
        (Waits().__call__, "is an async function"),
        (lambda *states: states, r"takes \*states"),
        (lambda state, *, scale: state, "takes scale"),
        (lambda state, action: 0.0, "takes 2 parameters"),
        (functools.partial(lambda a, b, state, c=1: state, b=2), "takes state"),
        (max, "the parameters of max are not known"),
        (operator.attrgetter("pos"), "the parameters of attrgetter are not known"),
        (len, "must return a float32 vector"),
        (np.sin, "sin"),
        (int, "are not known"),
        (leaves, "leaves: SystemExit: 3"),
    ],
)
def test_what_is_no_function_of_a_program_gets_a_sentence(checker, task, function, words):
    with pytest.raises(UserError, match=words) as error:
        checker.load(function, task, trusted=True)
    assert "\n" not in str(error.value)


def test_a_text_is_not_trusted_by_a_word(checker, task):
    for text in ("program.py", "def get_observation(state):\n    return state.pos\n"):
        with pytest.raises(InvalidSetting, match="trusted=True is for functions"):
            checker.load(text, task, trusted=True)


def test_a_program_is_shown_in_a_line_and_as_escaped_html(checker, task):
    def pay(state: Any, action: Any, next_state: Any) -> Any:
        return jnp.where(state.t < 3, 1.0, 0.0), {"<b>": state.pos[0]}

    program: Program = checker.load(pay, task)
    assert repr(program).startswith("Program('pay': 9 features, terms <b>; ") and "\n" not in repr(program)
    shown = program._repr_html_()
    assert "<b>" not in shown and "&lt;b&gt;" in shown and "state.t &lt; 3" in shown
