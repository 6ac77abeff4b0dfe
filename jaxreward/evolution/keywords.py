"""Sentences about options of the command line in the words of Python: `--final-seeds 3` is `final_seeds=3` there."""

from __future__ import annotations

import re
import typing
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from jaxreward.config import fields_of
from jaxreward.errors import UserError
from jaxreward.evolution.presets import PRESETS
from jaxreward.evolution.settings import BASELINES
from jaxreward.proposers.registry import NAMES
from jaxreward.search import STRATEGIES

_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)*)(?![\w-])(?: (?!--)(\S+))?")
_TYPED = re.compile(r"(`[^`]*`|\bjaxreward [a-z]+ [^;:)]*)")
"""What is for a terminal, and stays as it is."""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_SPECIAL = re.compile(r"\w.*[=/\\]|[=/\\].*\w|\w\.py$")
"""A path, a language model, or KEY=VALUE."""
_NAMED: dict[str, Collection[str]] = {
    **dict.fromkeys(("strategy", "strategies"), STRATEGIES), **dict.fromkeys(("proposer", "proposers"), NAMES),
    "preset": PRESETS, "baselines": BASELINES,
}  # fmt: skip


@contextmanager
def keywords_of(settings: type) -> Iterator[None]:
    """Let the errors raised inside name options as keyword arguments of a function with these settings."""
    try:
        yield
    except UserError as error:
        error.args = (as_keywords(str(error), settings), *error.args[1:])
        raise


def as_keywords(text: str, settings: type) -> str:
    """A sentence that names options as keyword arguments in place of flags."""
    known = _hints(settings)

    def keyword(match: re.Match[str]) -> str:
        name, token = match[1].replace("-", "_"), match[2] or ""
        if name.partition(".")[0] not in known:
            return match[0]
        hint, after = known.get(name), f" {token}" if token else ""
        if hint is None:
            return f"{name}{after}"
        if hint is bool:
            return f"{name}=True{after}"
        value = token.rstrip(",;:.)")
        written = _value(value, hint, _NAMED.get(name, ()))
        return f"{name}={written}{token[len(value) :]}" if written else f"{name}={after}"

    parts = _TYPED.split(text)
    parts[::2] = [_FLAG.sub(keyword, part.replace("on with --resume", "on with the same call")) for part in parts[::2]]
    return "".join(parts)


def _value(text: str, hint: Any, names: Collection[str]) -> str:
    """A word after a flag as Python writes it; empty where it is no value, but the next word of the sentence."""
    several = typing.get_origin(hint) is tuple
    if _NUMBER.fullmatch(text):
        written = text
    elif text in names or text in _choices(hint) or _SPECIAL.search(text):
        written = repr(text)
    else:
        return ""
    return f"[{written}]" if several else written


def _choices(hint: Any) -> set[str]:
    """The words that a type allows."""
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return {str(choice) for choice in inner}
    return set().union(*(_choices(part) for part in inner if part is not ...))


@cache
def _hints(settings: type) -> dict[str, Any]:
    """The types of the keyword arguments by name."""
    found: dict[str, Any] = {"preset": str, "resume": bool}
    for name, (hint, arg) in fields_of(settings).items():
        inner = fields_of(hint) if arg.flat else {}
        found |= {name: hint, **{key: of for key, (of, _) in inner.items()}}
    return found
