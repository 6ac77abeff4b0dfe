"""Options of strategies as people type them."""

from __future__ import annotations

import pytest

from jaxreward.commands.strategies import description, summary
from jaxreward.errors import UserError
from jaxreward.search import make_strategy
from jaxreward.search.option_text import own_options, read_options
from jaxreward.search.registry import STRATEGIES


def test_values_are_read_as_the_types_of_the_options():
    found = read_options("limen", ["islands=2", "global-share = 0.5", "initial=0"])
    assert found == {"islands": 2, "global_share": 0.5, "initial": 0}
    assert read_options("rf-agent", ["counts=1,1,1,1,1", "align=false"]) == {"counts": (1, 1, 1, 1, 1), "align": False}
    assert read_options("eureka", ["carry=iteration"]) == {"carry": "iteration"}


@pytest.mark.parametrize(
    ("strategy", "text", "says"),
    [
        ("limen", "islands", "must be KEY=VALUE"),
        ("limen", "ilands=2", "did you mean 'islands'"),
        ("limen", "islands=two", "limen takes a whole number there"),
        ("limen", "islands=2.5", "limen takes a whole number there"),
        ("eureka", "carry=globl", "global or iteration"),
        ("rf-agent", "align=maybe", "takes true or false there"),
        ("best-of-n", "islands=2", "no option"),
        ("limn", "islands=2", "did you mean 'limen'"),
    ],
)
def test_a_mistake_is_named(strategy, text, says):
    with pytest.raises(UserError, match=says):
        read_options(strategy, [text])


def test_an_option_given_twice_is_a_mistake():
    with pytest.raises(UserError, match="twice"):
        read_options("limen", ["islands=2", "islands=3"])


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_describes_itself_and_its_options_are_read_back(name):
    text = description(name)
    assert name in summary() and STRATEGIES[name].natural in text
    for option, default in own_options(name).items():
        line = next(line for line in text.splitlines() if line.split()[:1] == [option])
        assert read_options(name, [f"{option}={line.split()[1]}"]) == {option: default}
    make_strategy(name)
