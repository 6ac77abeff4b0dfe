"""Functions as the text of programs and fragments: what is written out, what is refused, and that nothing runs."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import math
import sys
import textwrap
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import own_functions
import pytest
from jax.scipy.special import erf
from own_functions import PLAIN, pay, potential, see

from jaxreward.errors import InvalidSetting
from jaxreward.function_source import UnreadableFunction, fragment_text, source_of
from jaxreward.function_source.literals import NotLiteral, literal
from jaxreward.programs import ProgramRejected
from jaxreward.records import Fragment

CALLED: list[str] = []


def test_functions_and_the_program_that_a_person_would_write_have_one_digest(checker, task):
    program = checker.load((see, pay), task)
    assert program.digest == checker.load(PLAIN, task).digest
    assert program.digest == checker.load([pay, see], task).digest == checker.load(source_of(pay, see), task).digest
    assert program.name == "see+pay" and program.terms == ("gain", "rest")


def test_the_text_keeps_comments_and_docstrings_and_leaves_annotations_out():
    text = source_of(pay, see)
    assert "# how far" in text and "# the gain" in text and '"""What is paid."""' in text
    assert "def get_observation(state):" in text and "def compute_reward(state, action, next_state):" in text
    assert "def potential(view, k=2.0):" in text and "->" not in text and "value = distance(view)" in text
    assert "GOAL = jnp.array([0.1, -2.5e-08], jnp.float32)" in text and "gain_2 = 1.5" not in text
    assert "@jax.vmap\ndef doubled(x):" in text and "jit" not in text and "own_functions" not in text


def test_one_function_alone_leaves_the_other_half_to_the_task(checker, task):
    seen, paid = checker.load(see, task), checker.load(pay, task)
    assert seen.terms == ("sparse",) and paid.observation_size == 9
    assert "compute_reward" not in seen.source and "get_observation" not in paid.source


def test_constants_of_a_closure_are_those_of_the_moment(checker, task):
    def made(scale: float, goal: Any):
        def reward(state, action, next_state):
            return scale * jnp.sum((next_state.pos - goal) ** 2)

        return reward

    goals = [np.array([1.0, 2.0]), jnp.array([1.0, 2.0]), (1.0, 2.0)]
    digests = {checker.load(made(0.5, jnp.array(goal)), task).digest for goal in goals}
    assert len(digests) == 1
    assert checker.load(made(0.25, goals[1]), task).digest not in digests
    text = source_of(made(0.5, goals[0]))
    assert "scale = 0.5\n" in text and "goal = jnp.array([1.0, 2.0], jnp.float32)\n" in text


def test_names_that_clash_are_changed(checker, task):
    def named(value: float):
        def potential(view):
            return value * jnp.sum(view.vel)

        return potential

    other, get_observation = named(2.0), named(4.0)

    def reward_of_three(state, action, next_state):
        return potential(state) + other(state) + get_observation(next_state)

    program = checker.load(reward_of_three, task)
    assert "def get_observation(" not in program.source and program.source.count("def ") == 5
    plain = PLAIN.replace("def get_observation", "def unused").split("def compute_reward")[0]
    plain += "def compute_reward(state, action, next_state):\n"
    plain += "    return potential(state, 2.0) + 2.0 * jnp.sum(state.vel) + 4.0 * jnp.sum(next_state.vel)\n"
    assert program.digest == checker.load(plain, task).digest


def test_a_constant_keeps_its_name_where_two_are_called_the_same():
    first = types_of(0.5)
    second = types_of(0.25)

    def reward(state, action, next_state):
        return first(state) + second(next_state)

    text = source_of(reward)
    assert "scale = 0.5\n" in text and "scale_2 = 0.25\n" in text and "scale_2 * view" in text


def types_of(scale: float):
    def scaled(view):
        return scale * view.t

    return scaled


def test_partials_defaults_and_lambdas_are_bound(checker, task):
    def weighed(state, action, next_state, weight=own_functions.SETTINGS.gain, *, near=False):
        total = weight * jnp.sum(next_state.pos)
        return total + 1.0 if near else total

    simple = lambda state, action, next_state: 1.5 * jnp.sum(next_state.pos)  # noqa: E731
    digest = checker.load(simple, task).digest
    assert checker.load(weighed, task).digest == digest
    assert checker.load(functools.partial(weighed, weight=1.5), task).digest == digest
    assert checker.load(functools.partial(weighed, near=True), task).digest != digest
    assert checker.load(jax.jit(weighed), task).digest == digest


def test_graces_reward_of_a_state_is_one(checker, task):
    def reward(state):
        return jnp.sum(state.pos)

    assert checker.load(reward, task).summary.reward_reads == ("next_state.pos",)


def test_names_inside_of_f_strings_are_replaced_or_refused(checker, task):
    names = own_functions.SETTINGS

    def reward(state, action, next_state):
        return state.pos[0], {f"{names.name} ä {'x'}": state.pos[0]}

    def on_lines(state, action, next_state):
        return state.pos[0], {
            f"""a
            {names.name}""": state.pos[0]
        }

    assert checker.load(reward, task).terms == ("gain ä x",)
    try:
        text = source_of(on_lines)
    except UnreadableFunction as error:
        assert "inside of a string" in str(error)
    else:
        assert "{name}" in text


def test_fields_of_objects_are_read_where_they_are_stored():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Slots:
        scale: float = 0.5

    class Scales:
        scale = 0.5

    held = (Slots(), Scales, Scales(), types.SimpleNamespace(scale=0.5), Scaled(0.5))
    for config in held:

        def scaled(state):
            return config.scale * state.pos  # noqa: B023

        assert source_of(scaled).startswith("scale = 0.5\n")


class Scaled(NamedTuple):
    scale: float


# ---- constants


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8", "uint32", "float16", "bfloat16", "float32"])
def test_arrays_read_back_with_every_bit(dtype):
    bits = np.random.default_rng(0).integers(0, 2**32, 64, np.uint32)
    if dtype == "float32":
        values = bits.view(np.float32)
        values = jnp.array(values[np.isfinite(values)])
    else:
        values = jnp.array(bits % 200).astype(dtype)
    values = values[: len(values) // 2 * 2].reshape(2, -1)
    back = eval(literal(values), {"jnp": jnp})
    assert back.dtype == values.dtype and np.array_equal(back, values)


@pytest.mark.parametrize("value", [3, -0.25, True, "a'b", None, (1, (2.5,)), [1, "x"], {"a": (1, 2)}, np.int64(7)])
def test_plain_values_read_back(value):
    back = eval(literal(value))
    assert back == value and (type(back) is type(value) or isinstance(value, np.generic))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "not finite"),
        ((1.0, -math.inf), "not finite"),
        (np.array([1.0, np.nan]), "not finite"),
        (np.array([1e300]), "not finite"),
        (np.zeros(2000), "2,000 numbers"),
        ([0] * 2000, "more than 1,024"),
        (np.array([2**40]), "beyond int32"),
        (np.array([1j]), "complex128"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), "ShapeDtypeStruct"),
        (object(), "object"),
        ({1, 2}, "set"),
    ],
)
def test_what_has_no_short_text_is_not_written(value, reason):
    with pytest.raises(NotLiteral, match=reason):
        literal(value)


# ---- refusals


class Goal:
    def __init__(self) -> None:
        self.place = 1.0

    @property
    def far(self) -> float:
        CALLED.append("property")
        return 2.0

    def distance(self, state):
        return state.pos * self.place


def _wrapper(function):
    @functools.wraps(function)
    def inner(*arguments):
        CALLED.append("wrapper")
        return function(*arguments)

    return inner


@_wrapper
def decorated(state):
    return state.pos


async def waits(state):
    return state.pos


def yields(state):
    yield state.pos


def uses_object(state):
    return GOAL


def uses_property(state):
    return GOAL.far * state.pos


def uses_infinity(state):
    return BAD * state.pos


def uses_large(state):
    return LARGE[:2] * state.pos


def uses_library(state):
    return erf(state.pos)


def hostile_import(state):
    import os

    return os.getpid() * state.pos


def squared(x):
    return x * own_functions.GOAL


GOAL, BAD, LARGE = Goal(), math.inf, np.ones(2000)
without_text: dict[str, Any] = {}
exec("def hidden(state):\n    return state.pos", without_text)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (decorated, "decorated is decorated by _wrapper: only @jax.jit, @jax.vmap"),
        (GOAL.distance, "distance is a method of Goal"),
        (uses_object, "uses_object uses GOAL, a Goal, which cannot be written out"),
        (uses_property, "uses_property uses the attribute far of GOAL, a Goal"),
        (uses_infinity, "uses_infinity uses BAD, which is inf, which is not finite"),
        (hostile_import, "hostile_import has `import os` inside: import it at the top"),
        (uses_large, "uses_large uses LARGE, which is an array of 2,000 numbers"),
        (uses_library, "uses_library calls erf, a function of jax that programs do not have"),
        (jax.vmap(squared), "squared is wrapped by another function"),
        (without_text["hidden"], "the source of hidden is not available"),
    ],
)
def test_what_cannot_be_written_is_one_sentence_with_a_way_out(function, words):
    with pytest.raises(UnreadableFunction) as error:
        source_of(function)
    said = str(error.value)
    assert words in said and said.endswith(", or pass trusted=True") and "\n" not in said
    assert CALLED == []


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ((waits,), "waits is an async function"),
        ((yields,), "yields is a generator"),
        ((lambda a, b: a,), "takes 2 parameters: write it with"),
        ((lambda *state: state,), r"takes \*state"),
        ((see, see), "two functions of the same kind"),
        ((3,), "3 is a int: a program is made of functions"),
    ],
)
def test_what_is_no_function_of_a_program_is_refused(functions, words):
    with pytest.raises(UnreadableFunction, match=words):
        source_of(*functions)


def test_a_variable_that_hides_what_the_text_needs_is_told():
    numbers = jnp

    def hides(state):
        jnp = state.pos
        return numbers.abs(jnp)

    with pytest.raises(UnreadableFunction, match="hides has a variable called jnp"):
        source_of(hides)


def test_a_constant_that_has_the_name_of_a_variable_gets_another(checker, task):
    settings = own_functions.SETTINGS

    def reward(state, action, next_state):
        gain = settings.gain * state.pos[0]
        return gain

    text = source_of(reward)
    assert "gain_2 = 1.5\n" in text and "gain = gain_2 * state.pos[0]" in text
    assert checker.load(reward, task).digest == checker.load(text.replace("gain_2", "SCALE"), task).digest


@pytest.mark.parametrize("given", [3, None, ("a", "b"), (see, 3), (), (see, pay, pay), {"see": see}])
def test_what_is_no_program_at_all_is_told(checker, task, given):
    with pytest.raises(InvalidSetting, match="a path, a text, a function or a pair"):
        checker.load(given, task)


def test_a_rejected_function_is_told_with_its_own_text(checker, task):
    def wrong(state):
        return jnp.dot(state.pos, state.grid)

    with pytest.raises(ProgramRejected, match=r"in `return jnp.dot\(state.pos, state.grid\)`") as error:
        checker.load(wrong, task)
    assert error.value.failure.line is None and error.value.name == "wrong"


def hostile(state):
    sys.modules["os"].system("true")
    return state.pos


def reaches_out(state):
    CALLED.append("reaches out")
    return state.pos


def opens(state):
    open("/etc/passwd")  # noqa: SIM115
    return state.pos


def test_an_untrusted_function_is_never_called_here(checker, task):
    def good(state):
        return state.pos * 2.0

    calls: list[str] = []
    codes = {f.__code__ for f in (good, hostile, reaches_out, opens)}

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            calls.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        assert checker.load(good, task).observation_size == 2
        for function in (hostile, reaches_out, opens):
            with pytest.raises((UnreadableFunction, ProgramRejected)):
                checker.load(function, task)
    finally:
        sys.setprofile(None)
    assert calls == [] and CALLED == []


# ---- fragments


def test_a_fragment_of_a_function_is_one_function_with_all_it_needs():
    made = Fragment(pay, scales=(0.1, 1.0), tags=("shaping",))
    assert (made.name, made.kind, made.doc) == ("pay", "term", "What is paid.")
    assert made.scales == (0.1, 1.0) and made.tags == ("shaping",) and made.source == fragment_text(pay).source
    (node,) = ast.parse(made.source).body
    assert isinstance(node, ast.FunctionDef) and node.name == "pay" and ast.get_docstring(node) == "What is paid."
    assert Fragment(see, size=7).kind == "feature"
    assert Fragment.model_validate(made.model_dump()) == made


def test_a_fragment_computes_what_its_function_does(checker, task):
    text = "import jax\nimport jax.numpy as jnp\n\n" + Fragment(pay).source
    program = checker.load(text + "\ndef compute_reward(state, action, next_state):\n"
                           "    return pay(state, action, next_state)\n", task)  # fmt: skip
    assert program.digest == checker.load(pay, task).digest


def test_a_short_fragment_is_its_own_text():
    def progress(state, action, next_state):
        return next_state.t - state.t

    assert Fragment(progress).source == textwrap.dedent(inspect.getsource(progress))
    with pytest.raises(UnreadableFunction, match="has a name"):
        Fragment(lambda state: state.pos)
