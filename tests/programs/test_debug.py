"""`debug(state)` of a program: taped beside the rest where a check asks for it, and no part of what is trained."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from pointtask import PointTask
from suite_parts import HEAD, OBSERVE, PAY

from jaxreward.programs import Checker, Program
from jaxreward.programs.debug_values import BATCH, debug_values

DISTANCE = "def distance(state):\n    return jnp.sum(jnp.abs(state.goal - state.pos))\n\n\n"
DEBUG = (
    "def debug(state):\n"
    "    return {'distance': distance(state), 'close to it': distance(state) < 1, 'grid': state.grid, 't': state.t,\n"
    "            'half': state.pos.astype(jnp.float16), 'always': 3, 'undefined': jnp.log(-1 - state.pos[0] ** 2)}\n"
)


def program(debug: str, top: str = "") -> str:
    return f"{HEAD}{top}{DISTANCE}{OBSERVE}{PAY}\n\n{debug}"


def body(text: str, top: str = "") -> str:
    """A program whose `debug` has this body."""
    return program("def debug(state):\n" + "".join(f"    {line}\n" for line in text.split("\n")), top)


@pytest.fixture(scope="module")
def checked(checker: Checker, task: PointTask) -> Program:
    verdict, found = checker.check(program(DEBUG), task, debug=True)
    assert found is not None, str(verdict.failure)
    return found


@pytest.mark.long
def test_its_arrays_are_computed_on_states_as_the_source_says(checked: Program, task: PointTask) -> None:
    count = BATCH + 3
    views = jax.vmap(lambda key: task.view(task.reset(key)))(jax.random.split(jax.random.key(0), count))
    found = debug_values(checked, [np.asarray(x) for x in jax.tree.leaves(views)])
    distance = np.abs(np.asarray(views.goal) - np.asarray(views.pos)).sum(-1)
    np.testing.assert_allclose(found["distance"], distance, rtol=1e-6)
    np.testing.assert_array_equal(found["close to it"], distance < 1)
    np.testing.assert_array_equal(found["grid"], np.asarray(views.grid))
    assert found["half"].dtype == np.float32 and (found["always"] == 3).all() and np.isnan(found["undefined"]).all()
    assert [*found] == ["distance", "close to it", "grid", "t", "half", "always", "undefined"]
    assert all(len(array) == count for array in found.values())


def test_programs_that_differ_in_it_alone_are_one(checked: Program, checker: Checker, task: PointTask) -> None:
    others = [program(""), body("return {'x': state.pos}"), body("return 1 / 0")]
    found = [found for _, found in checker.check_many(others, task)]
    assert all(p is not None and p.debug is None for p in found)
    assert {p.digest for p in found if p} == {checked.digest}
    summary = found[0] and found[0].summary
    assert checked.summary == summary, "it is in no size and no cost of the program"
    assert debug_values(found[1], []) == {}  # type: ignore[arg-type]


BROKEN = {
    "prints": (body("print(state)\nreturn {'x': 1}"), "guard", ["line 16", "'print' is not available"]),
    "raises": (body("return {'x': 1 / 0}"), "trace", ["line 16", "ZeroDivisionError"]),
    "unknown field": (body("return {'x': state.pocket}"), "guard", ["'pocket' is neither"]),
    "no dictionary": (body("return distance(state)"), "contract", ["dictionary of named arrays, not an array"]),
    "nothing": (body("x = 1"), "contract", ["not None", "end with a return statement"]),
    "empty": (body("return {}"), "contract", ["not an empty one"]),
    "text": (body("return {'x': 'far'}"), "contract", ["'x' of debug is a str"]),
    "nested": (body("return {'x': {'y': 1}}"), "contract", ["'x' of debug is a "]),
    "a number as a name": (body("return {1: state.pos}"), "contract", ["1 is not the name of an array"]),
    "a long name": (body("return {'x' * 65: state.pos}"), "contract", ["is not the name of an array"]),
    "many names": (body("return {f'x{k}': k for k in range(33)}"), "contract", ["33 arrays; the limit is 32"]),
    "huge": (body("return {'x': jnp.ones((33, 32))}"), "contract", ["1,056 numbers; the limit is 1,024"]),
    "another signature": (program("def debug(state, data):\n    return {}\n"), "contract", ["write def debug(state):"]),
    "defined twice": (program(DEBUG + DEBUG), "contract", ["debug is defined twice"]),
    "assigned": (program(DEBUG + "debug = distance\n"), "contract", ["debug is assigned to"]),
    "changes the module": (
        body("SEEN.append(1)\nreturn {'x': len(SEEN)}", "SEEN = []\n"), "trace", ["changes a list that outlives"]
    ),
    "loops in Python": (body("return {'x': sum(k for k in range(10**12))}"), "killed", ["processor time"]),
    "costs much": (
        body("x = jnp.ones((200, 200)) * state.pos[0]\nreturn {'x': (x @ x @ x).sum()}"),
        "limits", ["debug: ", "floating-point operations"],
    ),
    "computes what it does not return": (
        body("x = jnp.ones((1000, 1000)) * state.pos[0]\ny = x @ x\nreturn {'x': state.pos}"), "limits", ["not used"]
    ),
    "does not end": (
        body("return {'x': jax.lax.while_loop(lambda x: x >= 0, lambda x: x + 1, state.t)}"),
        "limits", ["debug: a while loop has not ended"],
    ),
    "opens a file": (body("return {'x': open('/etc/passwd')}"), "guard", ["'open' is not available"]),
}  # fmt: skip
"""Of each: the source, the stages at which it may fail, and pieces of the failure."""


@pytest.fixture(scope="module")
def verdicts(checker: Checker, task: PointTask):
    sources = [source for source, *_ in BROKEN.values()]
    return dict(zip(BROKEN, checker.check_many(sources, task, debug=True), strict=True))


@pytest.mark.parametrize("name", BROKEN)
def test_one_that_is_broken_is_a_failure_of_the_program(name: str, verdicts) -> None:
    _, stages, pieces = BROKEN[name]
    verdict, found = verdicts[name]
    assert found is None and verdict.failure is not None
    assert verdict.failure.stage in stages.split("|"), str(verdict.failure)
    for piece in pieces:
        assert piece in str(verdict.failure)


def test_a_failure_on_its_tape_has_the_line_of_its_return(verdicts) -> None:
    verdict, _ = verdicts["costs much"]
    assert verdict.failure.line == BROKEN["costs much"][0].splitlines().index("    return {'x': (x @ x @ x).sum()}") + 1


def test_without_being_asked_for_it_is_a_function_like_any_other(checker: Checker, task: PointTask) -> None:
    helper = "def debug(place, scale):\n    return place * scale\n"
    source = f"{HEAD}{helper}{OBSERVE.replace('state.pos,', 'debug(state.pos, 2),')}{PAY}"
    assert checker.check(source, task)[0].ok
    verdict, _ = checker.check(source, task, debug=True)
    assert verdict.failure is not None and "debug must take 1 positional argument" in verdict.failure.message
