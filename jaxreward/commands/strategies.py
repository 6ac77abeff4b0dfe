"""`jaxreward strategies`: what there is to search with, and the options of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg, is_file, label_of
from jaxreward.search.option_text import own_options, written
from jaxreward.search.registry import STRATEGIES, load_strategy, strategy_class


@dataclass(frozen=True)
class StrategiesSettings:
    """Describe a search strategy with its options; without a name, list all."""

    strategy: Annotated[str, Arg(positional="NAME")] = ""
    """Name of the strategy, or a Python file that has one."""


def run(resolved: Resolved[StrategiesSettings]) -> int:
    """Print the list or the description."""
    name = resolved.settings.strategy
    if is_file(name):
        load_strategy(name)
    print(description(name) if name else summary())
    return 0


def summary() -> str:
    """One line for each strategy: its name and the first sentence of what it is."""
    width = max(map(len, STRATEGIES))
    return "\n".join(f"{name:{width}}  {_words(cls.__doc__)[0]}" for name, cls in STRATEGIES.items())


def description(name: str) -> str:
    """A strategy in words, and its options with their defaults, as `--option` takes them.

    Raises:
        UserError: there is no such strategy.
    """
    cls = strategy_class(name)
    options = own_options(name)
    width = max(map(len, options), default=0)
    listed = "\n".join(f"  {key:{width}}  {written(value)}" for key, value in options.items())
    text = "\n\n".join(_words(cls.__doc__))
    listing = f"Options (--option KEY=VALUE) and their defaults:\n{listed}" if options else "It has no options."
    return f"{label_of(name)}: evolves {cls.natural} by default\n\n{text}\n\n{listing}"


def _words(doc: str | None) -> list[str]:
    """The paragraphs of a docstring, each on one line."""
    return [" ".join(paragraph.split()) for paragraph in (doc or "").strip().split("\n\n")]


COMMANDS = (Command("strategies", StrategiesSettings, run=run, config=False, examples=("strategies rf-agent",)),)
