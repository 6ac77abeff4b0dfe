"""Strategies by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from jaxreward.errors import UnknownName, did_you_mean
from jaxreward.search.best_of_n import BestOfN
from jaxreward.search.eureka import Eureka
from jaxreward.search.forge import Forge
from jaxreward.search.limen import Limen
from jaxreward.search.revolve import Revolve
from jaxreward.search.rf_agent import RFAgent
from jaxreward.search.strategy import SearchStrategy

STRATEGIES: dict[str, type[SearchStrategy[Any]]] = {
    cls.name: cls for cls in (Limen, Eureka, Revolve, RFAgent, Forge, BestOfN)
}


def strategy_class(name: str) -> type[SearchStrategy[Any]]:
    """The class of the strategy called `name`; `UnknownName` if there is none."""
    if name not in STRATEGIES:
        raise UnknownName("strategy", name, sorted(STRATEGIES), settings=("strategy",))
    return STRATEGIES[name]


def known_options(name: str, options: Iterable[str]) -> None:
    """`UnknownName` for the first of `options` that the strategy called `name` does not have."""
    known = sorted(field.name for field in dataclasses.fields(strategy_class(name)))
    for option in options:
        if option not in known:
            message = f"strategy {name} has no option '{option}'; {did_you_mean(option, known)}"
            kind = f"option of strategy {name}"
            raise UnknownName(kind, option, known, message=message, settings=(f"strategy.{option}",))


def make_strategy(name: str, **options: Any) -> SearchStrategy[Any]:
    """The strategy called `name` with `options`; `UnknownName` for what does not exist."""
    known_options(name, options)
    return strategy_class(name)(**options)
