"""`jaxreward completion`: commands, options and their values for the Tab key."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from jaxreward.commands.command_line import add_flag
from jaxreward.commands.help import Page
from jaxreward.commands.options import options_of
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.commands.table import SUMMARIES, commands_of
from jaxreward.comparison.compare_settings import PROPOSERS as COMPARED
from jaxreward.config import Arg
from jaxreward.errors import UserError
from jaxreward.evolution.presets import PRESETS
from jaxreward.evolution.settings import BASELINES
from jaxreward.operators import OPERATORS
from jaxreward.proposers.registry import NAMES
from jaxreward.search import STRATEGIES
from jaxreward.tasks import task_names

Shell = Literal["bash", "zsh", "fish", "tcsh"]


@dataclass(frozen=True)
class CompletionSettings:
    """Print a script that completes commands, options and their values in a shell."""

    shell: Annotated[Shell | None, Arg(positional="SHELL")] = None
    """The shell: bash, zsh, fish or tcsh."""


def run(resolved: Resolved[CompletionSettings]) -> int:
    """Print the script."""
    shell = resolved.settings.shell
    if shell is None:
        raise UserError("say which shell: jaxreward completion bash, zsh, fish or tcsh")
    print(script(shell))
    return 0


def script(shell: Shell) -> str:
    """What a shell has to read to complete `jaxreward`."""
    import shtab

    return shtab.complete(command_parser(), shell)


def command_parser() -> argparse.ArgumentParser:
    """All commands as one parser, with the values of every option; nothing is parsed with it."""
    parser = argparse.ArgumentParser(prog="jaxreward", add_help=False)
    parser.add_argument("--help", "-h", action="store_true", help="what commands there are")
    parser.add_argument("--version", action="store_true", help="which version this is")
    parsers = parser.add_subparsers()
    for name, summary in SUMMARIES.items():
        pages = commands_of(name)
        inner = parsers.add_parser(name, help=summary.rstrip("."), add_help=False)
        if name in pages:
            _fill(inner, pages[name])
            continue
        group = inner.add_subparsers()
        for page in pages.values():
            line = page.description().partition(". ")[0].rstrip(".")
            _fill(group.add_parser(page.name.partition(" ")[2], help=line, add_help=False), page)
    return parser


def _fill(parser: argparse.ArgumentParser, page: Page) -> None:
    import shtab

    topics = page.topic_names()
    if topics:
        parser.add_argument("--help", "-h", choices=topics, help="what options there are")
    else:
        parser.add_argument("--help", "-h", action="store_true", help="what options there are")
    values = _values()
    for option in options_of(page.settings):
        text = option.brief
        action = add_flag(parser, option, help=text) if option.flag else parser.add_argument(
            option.path, nargs="*" if option.several else "?", help=text
        )  # fmt: skip
        if option.is_switch:
            continue
        choices = option.choices or values.get(option.path.rpartition(".")[2], tuple)()
        if page.name == "compare" and option.path == "proposers":
            choices = COMPARED
        if choices:
            action.choices = list(choices)
        elif option.placeholder == "RUN":
            action.complete = shtab.cmd("ls runs 2>/dev/null")  # type: ignore[attr-defined]
        elif issubclass(option.kind, Path) or "|" in option.placeholder:
            action.complete = shtab.DIRECTORY if option.placeholder == "DIR" else shtab.FILE  # type: ignore[attr-defined]
    if page.presets:
        parser.add_argument("--preset", choices=values["preset"](), help="defaults for the task")
    if page.config:
        action = parser.add_argument("--config", help="options from a TOML file")
        action.complete = shtab.FILE  # type: ignore[attr-defined]


def _values() -> Mapping[str, Callable[[], Sequence[str]]]:
    """Values of options that take a name, by the last part of the option's path."""
    return {
        "task": task_names, "tasks": task_names, "baselines": lambda: BASELINES, "preset": lambda: list(PRESETS),
        "strategy": lambda: list(STRATEGIES), "strategies": lambda: list(STRATEGIES),
        "operator": lambda: list(OPERATORS), "activation": lambda: ("tanh", "relu", "swish"),
        "initializer": lambda: ("orthogonal", "lecun"), "proposer": lambda: NAMES,
    }  # fmt: skip


COMMANDS = (
    Command("completion", CompletionSettings, run=run, config=False, examples=("completion bash >> ~/.bashrc",)),
)
