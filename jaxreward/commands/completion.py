"""`jaxreward completion`: commands, options and their values for the Tab key."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from jaxreward.commands.fields import options_of
from jaxreward.commands.help_pages import PAGES, Page, topics_of
from jaxreward.commands.parsing import add_flag, parse
from jaxreward.config import Arg
from jaxreward.errors import UserError

Shell = Literal["bash", "zsh", "fish", "tcsh"]


@dataclass(frozen=True)
class CompletionSettings:
    """Print a script that completes commands, options and their values in a shell."""

    shell: Annotated[Shell | None, Arg(positional="SHELL")] = None
    """The shell: bash, zsh, fish or tcsh."""


def completion(args: list[str], commands: Mapping[str, str]) -> int:
    """Print the script; `args` are those of the command line, `commands` say by name what each does."""
    settings = parse(CompletionSettings, CompletionSettings(), args, "completion")
    if settings.shell is None:
        raise UserError("say which shell: jaxreward completion bash, zsh, fish or tcsh")
    print(script(settings.shell, commands))
    return 0


def script(shell: Shell, commands: Mapping[str, str]) -> str:
    """What a shell has to read to complete `jaxreward`."""
    import shtab

    return shtab.complete(command_parser(commands), shell)


def command_parser(commands: Mapping[str, str]) -> argparse.ArgumentParser:
    """All commands as one parser, which says of every option what its values are; nothing is parsed with it."""
    parser = argparse.ArgumentParser(prog="jaxreward", add_help=False)
    parser.add_argument("--help", "-h", action="store_true", help="what commands there are")
    parser.add_argument("--version", action="store_true", help="which version this is")
    parsers = parser.add_subparsers()
    groups: dict[str, Any] = {}
    for name, summary in commands.items():
        inner = parsers.add_parser(name, help=summary.rstrip("."), add_help=False)
        if name not in PAGES:
            groups[name] = inner.add_subparsers()
    for name, page in PAGES.items():
        group, _, last = name.rpartition(" ")
        summary = (page.kind.__doc__ or "").splitlines()[0].rstrip(".")
        inner = groups[group].add_parser(last, help=summary, add_help=False) if group else parsers.choices[name]
        _fill(inner, name, page)
    return parser


def _fill(parser: argparse.ArgumentParser, name: str, page: Page) -> None:
    import shtab

    from jaxreward.comparison.compare_settings import PROPOSERS as COMPARED

    topics = topics_of(name)
    if topics:
        parser.add_argument("--help", "-h", choices=topics, help="what options there are")
    else:
        parser.add_argument("--help", "-h", action="store_true", help="what options there are")
    values = _values()
    for option in options_of(page.kind):
        text = option.brief
        action = add_flag(parser, option, help=text) if option.flag else parser.add_argument(
            option.path, nargs="*" if option.several else "?", help=text
        )  # fmt: skip
        if option.is_switch:
            continue
        choices = option.choices or values.get(option.path.rpartition(".")[2], tuple)()
        if name == "compare" and option.path == "proposers":
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
    from jaxreward.evolve.presets import PRESETS
    from jaxreward.evolve.settings import BASELINES
    from jaxreward.operators import OPERATORS
    from jaxreward.proposers.registry import NAMES
    from jaxreward.search import STRATEGIES
    from jaxreward.tasks import task_names

    return {
        "task": task_names, "tasks": task_names, "baselines": lambda: BASELINES, "preset": lambda: list(PRESETS),
        "strategy": lambda: list(STRATEGIES), "strategies": lambda: list(STRATEGIES),
        "operator": lambda: list(OPERATORS), "activation": lambda: ("tanh", "relu", "swish"),
        "initializer": lambda: ("orthogonal", "lecun"), "proposer": lambda: NAMES,
    }  # fmt: skip
