"""The functions that rewards share: found by their syntax, counted by generation, and chosen for prompts."""

from __future__ import annotations

import pytest

from jaxreward.function_source.normal_form import helpers_of
from jaxreward.records import Candidate, Failure, FunctionLibrary, ProgramSummary, Result, Score

PAY = "def compute_reward(state, action, next_state):\n    return {call} * {weight}\n"

NEAR = '''
GOAL = 5


def near(place, other):
    """Whether they are close."""
    gap = jnp.abs(place - other)  # in cells
    return gap.sum() < GOAL
'''

SAME = {
    "another name and other variables": "def close(a, b):\n    g = jnp.abs(a - b)\n    return g.sum() < 5\n",
    "annotations": "def near(a: Array, b) -> Array:\n    g: Array = jnp.abs(a - b)\n    return g.sum() < 5\n",
    "another module's name": "import jax\nimport jax.numpy\n"
    "def near(a, b):\n    g = jax.numpy.abs(a - b)\n    return g.sum() < 5\n",
    "an imported name": "from jax.numpy import abs as size\n"
    "def near(a, b):\n    g = size(a - b)\n    return g.sum() < 5\n",
    "another constant": "LIMIT = 5\ndef near(a, b):\n    g = jnp.abs(a - b)\n    return g.sum() < LIMIT\n",
}

OTHER = {
    "another number": "def near(a, b):\n    g = jnp.abs(a - b)\n    return g.sum() < 6\n",
    "another order of parameters": "def near(b, a):\n    g = jnp.abs(a - b)\n    return g.sum() < 5\n",
    "another attribute": "def near(a, b):\n    g = jnp.abs(a - b)\n    return g.max() < 5\n",
    "another function": "def near(a, b):\n    g = jnp.square(a - b)\n    return g.sum() < 5\n",
}


def program(helpers: str, call: str = "near(state.place, 6)", weight: float = 1.0) -> str:
    return f"import jax.numpy as jnp\n{helpers}\n\n{PAY.format(call=call, weight=weight)}"


def keys(source: str) -> set[str]:
    return {helper.key for helper in helpers_of(source)}


@pytest.mark.parametrize("name", SAME)
def test_functions_are_equal_up_to_names(name: str) -> None:
    call = "close(state.place, 6)" if "close" in SAME[name] else "near(state.place, 6)"
    assert keys(program(SAME[name], call)) == keys(program(NEAR)) != set()


@pytest.mark.parametrize("name", OTHER)
def test_functions_that_compute_otherwise_are_not(name: str) -> None:
    assert keys(program(OTHER[name])).isdisjoint(keys(program(NEAR)))


def test_what_a_function_calls_is_part_of_it() -> None:
    reached = "def reached(state):\n    return near(state.place, other=6)\n"
    renamed = SAME["another name and other variables"] + "def at(s):\n    return close(s.place, b=6)\n"
    one, two = program(NEAR + reached, "reached(next_state)"), program(renamed, "at(next_state)")
    assert len(keys(one)) == 2 and keys(one) == keys(two)
    three = program(OTHER["another number"] + reached, "reached(next_state)")
    assert keys(three).isdisjoint(keys(one))


def test_variables_of_inner_scopes_are_told_from_outer_ones() -> None:
    one = "def near(a, b):\n    return sum([a * x for x in (1, 2)]) + (lambda y: a - y)(b)\n"
    two = "def near(p, q):\n    return sum([p * k for k in (1, 2)]) + (lambda z: p - z)(q)\n"
    three = "def near(a, b):\n    return sum([x * x for x in (1, 2)]) + (lambda y: a - y)(b)\n"
    assert keys(program(one)) == keys(program(two)) != keys(program(three))


def test_names_bound_together_are_not_mixed_up() -> None:
    pair = "LEFT, RIGHT = 1, 2\ndef near(a, b):\n    return a + {}\n"
    assert keys(program(pair.format("LEFT"))) != keys(program(pair.format("RIGHT")))


def test_only_functions_that_the_reward_reaches_count() -> None:
    helpers = f"{NEAR}\n\ndef unused(x):\n    return x\n\n\ndef shown(x):\n    return x + 1\n\n\n"
    source = (
        program(helpers) + "\n\ndef debug(state):\n    return {'x': shown(state.place), 'n': near(state.place, 6)}\n"
    )
    assert [helper.name for helper in helpers_of(source)] == ["near"]
    assert [d.names for d in helpers_of(source)[0].definitions] == [("GOAL",), ("near",)]


@pytest.mark.parametrize(
    "source", ["", "def f(:", "x = 1\n", "def compute_reward(s, a, n):\n    return " + "(" * 99 + "n" + ")" * 99]
)
def test_sources_without_functions_have_none(source: str) -> None:
    assert helpers_of(source) == ()


def test_functions_that_call_one_another_and_deep_ones_end() -> None:
    mutual = "def near(a, b):\n    return far(a, b)\ndef far(a, b):\n    return near(a, b)\n"
    assert len(keys(program(mutual))) == 2
    assert helpers_of(program(NEAR, "+".join(["near(state.place, 6)"] * 400))) == ()


# ---- the library of a search


def result(
    id: str, generation: int, source: str, mean: float | None, digest: str = "", proposer: str = "llm"
) -> Result:
    summary = ProgramSummary(digest=digest or id, observation_size=1)
    candidate = Candidate(
        id=id, generation=generation, operator="improve", source=source, summary=summary, proposer=proposer
    )
    if mean is None:
        return Result(candidate=candidate, failure=Failure(stage="trace", message="wrong"))
    return Result(candidate=candidate, score=Score(mean=mean, se=0.1, n=1, episodes=8))


FAR = "def far(a):\n    return a > 9\n"
CLOSE = SAME["another name and other variables"]

RESULTS = [
    result("a", 0, program(NEAR), 0.3),
    result("b", 0, program(FAR, "far(state.place)"), 0.1),
    result("c", 1, program(CLOSE, "close(state.place, 6)", 2.0), 0.9),
    result("d", 1, program(NEAR + FAR, "near(far(state.place), 6)"), 0.2),
    result("e", 1, program(NEAR, weight=3.0), None),
    result("f", 2, program(NEAR, weight=4.0), 0.8),
    result("g", 2, program(NEAR, weight=5.0), 0.9, proposer="genetic"),
    result("h", 2, program(NEAR), 0.1, digest="a"),
]


def test_functions_are_counted_by_program_and_generation() -> None:
    library = FunctionLibrary.of(RESULTS)
    assert [(f.name, f.programs, f.good, f.generation) for f in library.functions] == [
        ("near", 4, 3, 0),
        ("far", 2, 1, 0),
    ]
    assert library.functions[0].source == CLOSE.strip(), "it is shown as the best program has it"
    assert [tuple(g) for g in library.generations] == [(0, 2, 0), (1, 0, 2), (2, 0, 1)]
    assert FunctionLibrary.of([]) == FunctionLibrary((), ())


def test_functions_of_several_good_programs_are_offered() -> None:
    library = FunctionLibrary.of(RESULTS)
    assert library.texts() == (f"# in 4 programs\n{CLOSE.strip()}",)
    assert library.texts(besides=program(NEAR)) == (), "the program has it, if under another name"
    assert library.texts(characters=20) == () and library.texts(lines=2) == () and library.texts(most=0) == ()


def test_what_an_offered_function_needs_is_offered_with_it_once() -> None:
    home = "\n\ndef home(state):\n    return near(state.place, 6)\n"
    both = f"{NEAR}{home}\n\ndef away(state):\n    return ~near(state.place, 0)\n"
    calls = [program(both, f"(home(state) & away(next_state)) * {k}") for k in (1, 2)]
    library = FunctionLibrary.of([result(str(k), 0, source, 0.5) for k, source in enumerate(calls)])
    text = "\n".join(library.texts())
    assert {name: text.count(f"def {name}(") for name in ("near", "home", "away")} == {"near": 1, "home": 1, "away": 1}
    assert text.count("GOAL = 5") == 1 and text.index("GOAL = 5") < text.index("def near") < text.index("def home")


def test_two_functions_of_one_name_have_two_names_and_one_of_them_is_offered() -> None:
    texts = [program(text, weight=k) for text in (NEAR, *OTHER.values()) for k in (1.0, 2.0)]
    library = FunctionLibrary.of([result(str(k), 0, source, 0.5) for k, source in enumerate(texts)])
    assert [f.name for f in library.functions[:3]] == ["near", "near_2", "near_3"]
    assert len(library.texts()) == 1
