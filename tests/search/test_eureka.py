"""Eureka: what is carried from iteration to iteration."""

from __future__ import annotations

import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng


def ask(strategy, state, n=3):
    return strategy.ask(state, n, derive_rng(0, "ask", state.generation))


def carried(strategy, state):
    requests = ask(strategy, state)
    assert len(requests) == 3 and all(
        request == requests[0].model_copy(update={"id": request.id}) for request in requests
    )
    assert {request.operator for request in requests} == {"reflect"}
    (parent,) = requests[0].parents
    return parent.candidate.id


@pytest.mark.parametrize(("carry", "expected"), [("global", ["a", "a", "a", "d"]), ("iteration", ["a", "b", "b", "d"])])
def test_the_best_of_its_range_is_carried_on(result, carry, expected):
    strategy = make_strategy("eureka", carry=carry)
    generations = [
        [("a", 0.5), ("x", 0.1)],
        [("b", 0.3), ("y", 0.2)],
        [("c", None), ("z", None)],
        [("d", 0.6), ("e", 0.5)],
    ]
    state = strategy.init()
    assert {request.operator for request in ask(strategy, state)} == {"scratch"}
    found = []
    for generation in generations:
        state = strategy.tell(state, [result(id, mean) for id, mean in generation])
        found.append(carried(strategy, state))
    assert found == expected


@pytest.mark.parametrize("carry", ["global", "iteration"])
def test_programs_start_from_scratch_until_one_has_a_score(result, carry):
    strategy = make_strategy("eureka", carry=carry, show_failures=1)
    state = strategy.tell(strategy.init(), [result("a", None), result("b", None)])
    requests = ask(strategy, state)
    assert [request.operator for request in requests] == ["scratch"] * 3
    assert [failure.candidate.id for failure in requests[0].failures] == ["b"]


def test_options_are_checked():
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("strategy.carry",)):
        make_strategy("eureka", carry="both")
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("strategy.show_failures",)):
        make_strategy("eureka", show_failures=-1)
