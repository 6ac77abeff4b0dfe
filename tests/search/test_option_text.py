"""Options of strategies as people type them."""

from __future__ import annotations

import pytest

from jaxreward.commands.strategies import description, summary
from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.search import make_strategy
from jaxreward.search.option_text import own_options, read_options
from jaxreward.search.registry import STRATEGIES


def test_values_are_read_as_the_types_of_the_options():
    found = read_options("limen", ["islands=2", "global-share = 0.5", "initial=0"])
    assert found == {"islands": 2, "global_share": 0.5, "initial": 0}
    assert read_options("rf-agent", ["counts=1,1,1,1,1", "align=false"]) == {"counts": (1, 1, 1, 1, 1), "align": False}
    assert read_options("eureka", ["carry=iteration"]) == {"carry": "iteration"}


@pytest.mark.parametrize(
    ("strategy", "text", "settings", "says"),
    [
        ("limen", "islands", ("option",), "must be KEY=VALUE"),
        ("limen", "islands=two", ("strategy.islands",), "limen takes a whole number there"),
        ("limen", "islands=2.5", ("strategy.islands",), "limen takes a whole number there"),
        ("limen", "evolve=both", ("strategy.evolve",), "is set by the run"),
        ("eureka", "carry=globl", ("strategy.carry",), "global or iteration"),
        ("rf-agent", "align=maybe", ("strategy.align",), "takes true or false there"),
    ],
)
def test_a_value_that_cannot_be_read_is_named(strategy, text, settings, says):
    with pytest.raises(InvalidSetting, match=says, check=lambda e: e.settings == settings):
        read_options(strategy, [text])


@pytest.mark.parametrize(
    ("strategy", "text", "name", "nearest"),
    [
        ("limen", "ilands=2", "ilands", "islands"),
        ("best-of-n", "islands=2", "islands", None),
        ("limn", "islands=2", "limn", "limen"),
        ("limen", "budgte=2", "budgte", None),
    ],
)
def test_an_unknown_name_comes_with_the_nearest(strategy, text, name, nearest):
    """Of those that can be given."""
    with pytest.raises(UnknownName, check=lambda e: (e.name, e.nearest) == (name, nearest)):
        read_options(strategy, [text])


def test_an_option_given_twice_is_a_mistake():
    with pytest.raises(InvalidSetting, match="twice", check=lambda e: e.settings == ("strategy.islands",)):
        read_options("limen", ["islands=2", "islands=3"])


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_describes_itself_and_its_options_are_read_back(name):
    text = description(name)
    assert name in summary() and STRATEGIES[name].natural in text
    for option, default in own_options(name).items():
        line = next(line for line in text.splitlines() if line.split()[:1] == [option])
        assert read_options(name, [f"{option}={line.split()[1]}"]) == {option: default}
    make_strategy(name)
