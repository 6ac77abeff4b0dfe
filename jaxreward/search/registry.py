"""Strategies by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from typing import Any

from jaxreward.config import is_file, label_of
from jaxreward.errors import InvalidSetting, UnknownName, UserError, did_you_mean
from jaxreward.search.best_of_n import BestOfN
from jaxreward.search.eureka import Eureka
from jaxreward.search.forge import Forge
from jaxreward.search.grace import Grace
from jaxreward.search.limen import Limen
from jaxreward.search.rda import RDA
from jaxreward.search.revolve import Revolve
from jaxreward.search.rf_agent import RFAgent
from jaxreward.search.strategy import SearchStrategy
from jaxreward.sentences import mention
from jaxreward.user_files import Wanted, class_from_file

STRATEGIES: dict[str, type[SearchStrategy[Any]]] = {
    cls.name: cls for cls in (Limen, Eureka, Revolve, RFAgent, Forge, RDA, Grace, BestOfN)
}


_own: dict[str, type[SearchStrategy[Any]]] = {}
"""Strategies of the user's by name: those in files by the name of the file, those of Python by their own."""


def load_strategy(name: str) -> None:
    """Import the strategy in a file, `FILE.py` or `FILE.py:Class`, which is then one by that name.

    The file is executed: the name must be the user's own, not that of a run's folder alone.

    Raises:
        UserError: as `user_files.class_from_file`.
    """
    _own[name] = class_from_file(name, _WANTED)


def add_strategy(kind: type) -> str:
    """Make a class of the user's a strategy by its `name`, in place of an earlier one; returns the name.

    Raises:
        UserError: it is no strategy, or has the name of one of this package.
    """
    if lacking := _lacking(kind):
        raise UserError(f"{kind.__name__} is no strategy yet: it lacks {', '.join(lacking)} (see {_WANTED.page})")
    if STRATEGIES.get(kind.name, kind) is not kind or is_file(kind.name):
        raise InvalidSetting(
            f"the strategy {kind.__name__} has the name {kind.name}: give it one of its own", "strategy"
        )
    if kind.name not in STRATEGIES:
        _own[kind.name] = kind
    return kind.name


def own_strategy(name: str) -> type[SearchStrategy[Any]] | None:
    """The strategy of that name, if it is one of the user's that was given in Python."""
    return None if is_file(name) else _own.get(name)


def strategy_class(name: str) -> type[SearchStrategy[Any]]:
    """The class of the strategy called `name`.

    Raises:
        UnknownName: there is none.
        UserError: it is a file that `load_strategy` has not imported.
    """
    if found := STRATEGIES.get(name) or _own.get(name):
        return found
    if is_file(name):
        raise UserError(
            f"the strategy is the Python file {name}, which would be executed: look at it first, then say "
            f"{mention('strategy', name)}"
        )
    raise UnknownName("strategy", name, sorted(STRATEGIES), settings=("strategy",))


def known_options(name: str, options: Iterable[str], but: Collection[str] = ()) -> None:
    """`UnknownName` for the first of `options` that the strategy called `name` does not have, or has among `but`."""
    known = sorted(field.name for field in dataclasses.fields(strategy_class(name)) if field.name not in but)
    for option in options:
        if option not in known:
            kind = f"option of strategy {label_of(name)}"
            message = f"strategy {label_of(name)} has no option '{option}'; {did_you_mean(option, known)}"
            raise UnknownName(kind, option, known, message=message, settings=(f"strategy.{option}",))


def make_strategy(name: str, **options: Any) -> SearchStrategy[Any]:
    """The strategy called `name` with `options`; `UnknownName` for what does not exist."""
    known_options(name, options)
    return strategy_class(name)(**options)


def _lacking(kind: type) -> list[str]:
    """What a class lacks to be a strategy."""
    if not issubclass(kind, SearchStrategy):
        return ["the base class jaxreward.search.SearchStrategy", *sorted(SearchStrategy.__abstractmethods__)]
    lacking = [] if isinstance(getattr(kind, "name", None), str) else ["name"]
    lacking += sorted(kind.__abstractmethods__)
    own = {n for n, hint in vars(kind).get("__annotations__", {}).items() if "ClassVar" not in str(hint)}
    if own and "__dataclass_fields__" not in vars(kind):
        lacking.append("the decorator @dataclass(frozen=True)")
    without = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING]
    return lacking + [f"a default of its option {name}" for name in without]


_WANTED = Wanted("strategy", "strategies", _lacking, "strategy", "docs/search.md")
