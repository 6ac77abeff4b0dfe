"""Where an error says that `trusted=True` would help, it does; where it would not, no error says so."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.random import normal

from jaxreward.function_source import UnreadableFunction, source_of
from jaxreward.programs import ProgramRejected


class Goal:
    @property
    def there(self) -> float:
        return 1.0

    def seen(self, state):
        return state.pos * self.there


class Shown:
    def __init__(self, state) -> None:
        self.state = state


GOAL, KEY, TURN, LOWEST = Goal(), jax.random.key(0), np.complex128(1j), np.array([-np.inf, 0.0])


def keyed(state, key):
    return state.pos + key


def uses_numpy(state):
    return np.abs(state.pos)


def uses_math(state):
    return math.sin(state.t) * state.pos


def uses_nothing(state):
    return undefined_name * state.pos  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def uses_key(state):
    return state.pos + jax.nn.relu(KEY)


def uses_complex(state):
    return TURN * state.pos


def draws(state):
    return normal(state.pos)


def reads_nothing(state):
    return GOAL.nothing * state.pos  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (uses_numpy, "uses_numpy uses np.abs, and programs compute with jax.numpy: write jnp.abs"),
        (uses_math, "uses_math calls math.sin, a function of math that programs do not have: use jnp.sin"),
        (uses_nothing, "uses the name undefined_name, which is not defined: define or import it"),
        (uses_key, "uses_key uses KEY, which is an array of key<fry>"),
        (uses_complex, "uses_complex uses TURN, which is an array of complex128"),
        (draws, "draws calls normal, a function of jax that programs do not have"),
        (reads_nothing, "reads_nothing uses the attribute nothing of GOAL, a Goal"),
        (Shown, "Shown is a class, not a function of Python"),
        (functools.partial(keyed, key=KEY), "a value that is bound to keyed is an array of key<fry>"),
    ],
)
def test_trusting_is_not_advised_where_it_does_not_help(checker, task, function, words):
    with pytest.raises(UnreadableFunction) as error:
        source_of(function)
    assert words in str(error.value) and "trusted" not in str(error.value) and "\n" not in str(error.value)
    with pytest.raises((ProgramRejected, UnreadableFunction)):
        checker.load(function, task, trusted=True)


def prints(state):
    print("seen")
    return state.pos


def maps(state):
    return jax.tree.map(jnp.negative, state.pos)


def opens_with(state):
    with jax.named_scope("look"):
        return state.pos


def copies(state):
    return state._replace(vel=state.pos).vel


def draws_here(state):
    return state.pos + jax.random.normal(jax.random.key(0), (2,))


def mistypes(state):
    return jnp.relu(state.pos)  # pyright: ignore[reportAttributeAccessIssue]


def misreads(state):
    return state.heading  # no field


def calls_back(state):
    return jax.pure_callback(lambda x: x, state.pos, state.pos)


def overflows(state):
    return state.pos * 2**33 + 99999999999


def imports(state):
    import operator

    return operator.neg(state.pos)


def looks_up(state):
    return state.pos * (1 in {1, 2} and GOAL.there)


def is_masked(state):
    return jnp.maximum(state.pos, LOWEST)


pair = lambda state: state.pos, lambda state: state.vel
without_text: dict[str, Any] = {}
exec("def hidden(state):\n    return state.pos", without_text)


@pytest.mark.parametrize("function", [imports, looks_up, is_masked, pair[0], without_text["hidden"], GOAL.seen])
def test_trusting_is_advised_where_only_the_text_is_missing(checker, task, function):
    with pytest.raises(UnreadableFunction, match="or pass trusted=True$"):
        source_of(function)
    assert checker.load(function, task, trusted=True).observation_size == 2


@pytest.mark.parametrize("function", [prints, maps, opens_with, copies])
def test_trusting_is_advised_where_only_the_rules_forbid_it(checker, task, function):
    with pytest.raises(ProgramRejected, match=r"^\w+ is rejected: guard: .*or pass trusted=True\)$"):
        checker.load(function, task)
    assert checker.load(function, task, trusted=True).observation_size == 2


@pytest.mark.parametrize("function", [draws_here, mistypes, misreads, calls_back, overflows])
def test_trusting_is_not_advised_for_what_always_fails(checker, task, function):
    with pytest.raises(ProgramRejected, match=r"is rejected: guard: ") as error:
        checker.load(function, task)
    assert "trusted" not in str(error.value)
    with pytest.raises(ProgramRejected):
        checker.load(function, task, trusted=True)


def test_a_number_of_numpy_that_is_used_in_both_ways_is_told(checker, task):
    turns: Any = np.int64(2)

    def look(state):
        several = turns
        return state.pos[:several] * several

    with pytest.raises(ProgramRejected, match=r"numbers of NumPy are arrays in a program: write int\(N\)"):
        checker.load(look, task)
