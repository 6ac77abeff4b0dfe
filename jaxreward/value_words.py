"""What a setting takes, and what it was given, in words."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any

_SHORT = 60
"""Characters of a value that is shown."""

_KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a text", Path: "a path"}
_MANY = {int: "whole numbers", float: "numbers", str: "texts", Path: "paths"}


def kind_in_words(hint: Any) -> str:
    """The values of a type as part of a sentence: `a whole number`, `a list of texts`, `one of 'both', 'reward'`."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return f"one of {', '.join(map(repr, inner))}"
    if origin is tuple:
        if typing.get_origin(inner[0]) is typing.Literal:
            return f"a list of some of {', '.join(map(repr, typing.get_args(inner[0])))}"
        return f"a list of {_MANY[inner[0]]}"
    if origin in (types.UnionType, typing.Union):
        return " or ".join("None" if part is type(None) else kind_in_words(part) for part in inner)
    return _KINDS.get(hint, getattr(hint, "__name__", str(hint)))


def short(value: Any) -> str:
    """A value in a sentence: in one line, what is long cut."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."
