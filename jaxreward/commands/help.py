"""`--help`: a first page that fits a terminal of 80 x 24, and pages by topic."""

from __future__ import annotations

import pydoc
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shutil import get_terminal_size
from typing import Any

from jaxreward.commands.options import Option, options_of
from jaxreward.errors import UnknownName, nearest

WIDEST = 110
"""Characters of a line; longer ones are hard to read, however wide the terminal."""
_JOINT = "\N{NO-BREAK SPACE}"
_INDENT = 27
"""Where the text of an option begins; a longer flag has a line of its own."""


@dataclass(frozen=True)
class Page:
    """What `--help` shows of a command, or of a script.

    Attributes:
        name: what is typed, `runs list`; of a script its file, `gpu.py`.
        settings: the dataclass of its settings; every field is an option.
        main: the options on the first page, by path; none means all.
        topics: the other pages by name: their options by path; the name of a group of nested settings stands for those
            that no topic has by path. Paths that the settings do not have are left out.
        examples: command lines without `jaxreward`.
        config: whether it takes `--config`.
        presets: whether it takes `--preset`.
        summary: what it does, where it differs from the docstring of the settings.
        refused: flags of the settings that it has no use for, and what to do instead.
    """

    name: str
    settings: type
    main: tuple[str, ...] = ()
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    config: bool = True
    presets: bool = False
    summary: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """The command as people type it."""
        return self.name if self.name.endswith(".py") else f"jaxreward {self.name}"

    def description(self) -> str:
        """What it does, in a line of any length."""
        return self.summary or " ".join((self.settings.__doc__ or "").split("\n\n")[0].split())

    def shared_flags(self) -> list[str]:
        """Its flags that are no settings."""
        return ["--config"] * self.config + ["--preset"] * self.presets

    def topic_names(self) -> Sequence[str]:
        """Words that may follow `--help`."""
        return [*self.topics, "all"] if self.topics else []

    def options(self, topic: str = "") -> list[Option]:
        """The options of a topic; `all` has those of all topics, "" those of the first page."""
        known = options_of(self.settings)
        every = [path for paths in self.topics.values() for path in paths]
        wanted = every if topic == "all" else self.topics[topic] if topic else self.main
        if not wanted:
            return list(known)
        of_group = lambda o, name: o.path not in every and o.path.partition(".")[0] == name  # noqa: E731
        return [o for name in wanted for o in known if o.path == name or of_group(o, name)]


def overview(summaries: Mapping[str, str], title: str, last: str) -> str:
    """Commands by name, with a line on each."""
    widest = max(map(len, summaries))
    rows = [f"  {name:{widest}}  {summary}" for name, summary in summaries.items()]
    return "\n".join([f"usage: {title} COMMAND [options]", *rows, last])


def print_page(page: Page, topic: str, defaults: Any) -> None:
    """Print the help of a command, or one topic of it, through a pager where it is too long for the terminal.

    Raises:
        UserError: there is no such topic.
    """
    width = max(30, min(get_terminal_size((80, 24)).columns, WIDEST))
    lines = page_lines(page, topic, defaults, width)
    if sys.stdout.isatty() and len(lines) >= get_terminal_size().lines:
        pydoc.pager("\n".join(lines))
    else:
        print("\n".join(lines))


def page_lines(page: Page, topic: str, defaults: Any, width: int) -> list[str]:
    """The lines of a page of help, none longer than `width` but for words that are.

    Args:
        topic: empty for the first page, `all` for every option, or a topic of the page.
        defaults: settings that have the defaults; None for the class's own.
        width: characters of a line.
    """
    every = options_of(page.settings)
    if defaults is None:
        defaults = page.settings if any(o.required for o in every) else page.settings()
    if topic not in ("", "all", *page.topics):
        if nearest(topic, page.topics) or all(option.flag for option in every):
            raise UnknownName("help topic", topic, page.topic_names())
        topic = ""  # the word is an argument of the command
    positional = [
        (o.placeholder if o.required else f"[{o.placeholder}]") + " ..." * o.several for o in every if not o.flag
    ]
    lines = [f"usage: {' '.join([page.program, *positional])} [options]", ""]
    lines += [*textwrap.wrap(page.description(), width), ""]
    whole = bool(topic) or not page.main
    for option in page.options(topic):
        lines += option_lines(option, defaults, width, whole=whole)
    if not topic:
        lines += _shared(page, width)
        lines += ["", *(f"  jaxreward {example}" for example in page.examples)] if page.examples else []
        if page.topics:
            lines += ["", *textwrap.wrap(f"--help TOPIC tells more: {', '.join(page.topic_names())}", width)]
    return lines


def option_lines(option: Option, defaults: Any, width: int, *, whole: bool) -> list[str]:
    """An option with its meaning and its default; not `whole`: only the first sentence of the meaning."""
    name = ", ".join(filter(None, [option.arg.short, option.flag or option.placeholder]))
    values = f"{option.placeholder} ..." if option.several else option.placeholder
    head = f"{name} {values}".rstrip() if option.flag else name
    text = option.text if whole else f"{option.brief}."
    if any(choice not in text + head for choice in option.choices):
        text += f" One of {', '.join(option.choices)}."
    default = "" if option.required else option.shown(option.of(defaults))
    if option.is_switch and option.of(defaults) is True:
        default = f"on; {option.negation} turns it off"
    text += f" [{default}]".replace(" ", _JOINT).replace(_JOINT, " ", 1) if default else ""
    return _row(head, text, width)


def _row(head: str, text: str, width: int) -> list[str]:
    first = f"  {head}"
    if width < 60:  # too narrow for two columns
        return [first, *textwrap.wrap(text.replace(_JOINT, " "), width, initial_indent=" " * 6,
                                      subsequent_indent=" " * 6, break_on_hyphens=False)]  # fmt: skip
    lines = textwrap.wrap(text, width - _INDENT, break_on_hyphens=False) or [""]
    lines = [line.replace(_JOINT, " ") for line in lines]
    rows = [f"{first:{_INDENT}}{lines[0]}"] if len(first) < _INDENT else [first, " " * _INDENT + lines[0]]
    return rows + [" " * _INDENT + line for line in lines[1:]]


def _shared(page: Page, width: int) -> Iterator[str]:
    """The options that are no settings."""
    if page.presets:
        from jaxreward.evolution.presets import PRESETS

        yield from _row("--preset NAME", f"Defaults: {', '.join(PRESETS)}. [quick]", width)
    if page.config:
        yield from _row("--config FILE", "Any of these, from a TOML file.", width)
