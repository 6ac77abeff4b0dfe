"""Options of a strategy as text: KEY=VALUE, parsed as the type of the option."""

from __future__ import annotations

import dataclasses
import functools
import json
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from jaxreward.errors import InvalidSetting
from jaxreward.search.registry import known_options, strategy_class
from jaxreward.sentences import mention

SHARED = ("evolve", "budget", "bandit", "models", "ablations", "confirm")
"""Options that all strategies have; a run sets them from settings of its own."""


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
_LIST = "numbers with commas between them"


def read_options(strategy: str, texts: Sequence[str]) -> dict[str, Any]:
    """The options in `texts`, e.g. `eta=0.5`, `carry=iteration`, `counts=2,2,2,1,1`, by name.

    Raises:
        UnknownName: no such strategy or option.
        InvalidSetting: a value of another type, an option given twice.
    """
    hints = _hints(strategy_class(strategy))
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            known = ", ".join(own_options(strategy))
            raise InvalidSetting(f"{mention('option', [text])} must be KEY=VALUE; {strategy} has {known}", "option")
        if name in SHARED:
            raise InvalidSetting(
                f"{mention('option', [text])}: {name} is set by the run and not by {mention('option')}",
                f"strategy.{name}",
            )
        known_options(strategy, [name], but=SHARED)
        if name in found:
            raise InvalidSetting(f"{mention('option')} gives {name} twice; give it once", f"strategy.{name}")
        found[name] = _value(strategy, name, value.strip(), hints[name])
    return found


_hints = functools.cache(typing.get_type_hints)


def own_options(strategy: str) -> dict[str, Any]:
    """The options of a strategy that `--option` takes, with their defaults: all but those that every strategy has."""
    return {f.name: f.default for f in dataclasses.fields(strategy_class(strategy)) if f.name not in SHARED}


def write_options(strategy: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """All options of a strategy, those that are not given at their defaults, as `read_options` reads them."""
    return tuple(f"{name}={written(options.get(name, default))}" for name, default in own_options(strategy).items())


def written(value: Any) -> str:
    """A value as it stands after `KEY=`."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(strategy: str, name: str, text: str, kind: Any) -> Any:
    """`text` as `kind`: a word as it stands, all else as JSON, a tuple with or without brackets."""
    adapter = TypeAdapter(kind)
    for candidate in (text, f"[{text}]", json.dumps(text)):
        try:
            return adapter.validate_json(candidate, strict=True)
        except ValidationError:
            continue
    wanted = typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else (_KINDS.get(kind, _LIST),)
    given = mention("option", [f"{name}={text}"])
    message = f"{given}: {strategy} takes {' or '.join(map(str, wanted))} there"
    raise InvalidSetting(message, f"strategy.{name}")
