"""The words of a command line as values of options: one pass of argparse, and a sentence for every mistake."""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from jaxreward.commands.help import Page
from jaxreward.commands.options import Option, options_of
from jaxreward.config import nearest_option
from jaxreward.errors import InvalidSetting, UnknownName, UserError, nearest

_NUMBER = re.compile(r"[+-]?(\d[\d_,]*\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+")


@dataclass(frozen=True)
class CommandLine:
    """What a command line says.

    Attributes:
        words: all of it.
        values: values of options by path, those of KEY=VALUE options not yet merged with the defaults.
        topic: the word after `--help`, empty without one; None where no help is asked for.
        config: the file of `--config`; None without.
        preset: the name of `--preset`; empty without.
        mistake: what is wrong with the other words where help is asked for.
    """

    words: Sequence[str] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    topic: str | None = None
    config: Path | None = None
    preset: str = ""
    mistake: UserError | None = None

    @property
    def text(self) -> str:
        """The command as it was typed, without the keys that it may contain."""
        from jaxreward.secrets import Secrets

        return Secrets().redact(shlex.join(self.words))


def read(page: Page, words: Sequence[str]) -> CommandLine:
    """Read the words after the name of a command.

    Raises:
        UserError: an unknown option, a value of the wrong type, a value too few or too many. Where help is asked for,
            it is kept, to be printed after the page.
    """
    topic, rest = _without_help(words)
    mistake = None
    try:
        values = _values(page, [_dashed(word) for word in rest])
    except UserError as error:
        if topic is None:
            raise
        mistake, values = error, {}
    shared = {flag: values.pop(flag, "") for flag in ("--config", "--preset")}
    config = Path(shared["--config"]) if shared["--config"] else None
    return CommandLine([*page.program.split(), *words], values, topic, config, shared["--preset"], mistake)


def _without_help(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The topic that `--help` asks for, None without it, and the other words."""
    for i, word in enumerate(words):
        if word.startswith("--help="):
            return word.removeprefix("--help="), [*words[:i], *words[i + 1 :]]
        if word in ("-h", "--help"):
            topic = next((after for after in words[i + 1 : i + 2] if not after.startswith("-")), "")
            return topic, [*words[:i], *words[i + 1 + bool(topic) :]]
    return None, list(words)


def _dashed(word: str) -> str:
    """A flag as it is listed: with dashes, however it was written."""
    flag, equals, value = word.partition("=")
    return flag.replace("_", "-") + equals + value if word.startswith("--") else word


def _values(page: Page, words: Sequence[str]) -> dict[str, Any]:
    """The value of every option and shared flag in `words`, by path or flag."""
    options = {option.path: option for option in options_of(page.settings)}
    renamed = {f"--{o.arg.formerly.replace('_', '-')}": o.flag for o in options.values() if o.arg.formerly}
    _check_flags(words, {*page.shared_flags(), *(f for o in options.values() for f in o.flags)}, renamed, page)
    parser = _Parser(prog=page.program, add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for option in options.values():
        if option.flag:  # argparse takes positional arguments as missing where flags come first
            add_flag(parser, option)
    for flag in page.shared_flags():
        parser.add_argument(flag, dest=flag)
    namespace, rest = parser.parse_known_args(words)
    given = vars(namespace)
    rest = rest[1:] if rest[:1] == ["--"] else rest
    for option in options.values():
        if not option.flag and rest:
            given[option.path], rest = (rest, []) if option.several else (rest[0], rest[1:])
    if rest:
        meant = "interfaces" in options and rest[0].endswith(".py")
        hint = f"did you mean --interfaces {rest[0]}?" if meant else f"{page.program} --help shows what there is"
        raise UserError(f"there is no place for '{rest[0]}' here; {hint}")
    empty = [flag for flag in page.shared_flags() if given.get(flag) == ""]
    empty += [o.flag for o in options.values() if o.kind is Path and o.several and given.get(o.path) == []]
    if empty:
        raise UserError(f"{empty[0]} needs a value")
    return {path: _value(options[path], value) if path in options else value for path, value in given.items()}


class _Parser(argparse.ArgumentParser):
    """argparse with errors as UserError, and -1e-3 as a number."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._negative_number_matcher = _NUMBER

    def error(self, message: str) -> NoReturn:
        found = re.fullmatch(r"argument (?:\S*/)?(\S+): (.*)", message)
        if found and found[2].startswith("expected"):
            message = f"{found[1]} needs a value"
        elif found and found[2].startswith("ignored explicit argument"):
            message = f"{found[1]} takes no value"
        raise UserError(message)


def add_flag(parser: argparse.ArgumentParser, option: Option, **more: Any) -> argparse.Action:
    """Add the flag of an option to a parser, of a switch its negation too; returns its action."""
    flags = [option.arg.short, option.flag] if option.arg.short else [option.flag]
    if option.is_switch:
        parser.add_argument(option.negation, dest=option.path, action="store_const", const=False, **more)
        return parser.add_argument(*flags, dest=option.path, action="store_const", const=True, **more)
    if option.several:
        more |= {"nargs": "*", "action": "extend" if option.arg.adds or option.arg.keyed else "store"}
    return parser.add_argument(*flags, dest=option.path, metavar=option.placeholder, **more)


def _check_flags(words: Sequence[str], flags: set[str], renamed: Mapping[str, str], page: Page) -> None:
    """Raise UserError for an unknown flag; argparse's message has no suggestion. `renamed` are those of earlier
    versions, and the flag of today for each."""
    for word in words[: words.index("--")] if "--" in words else words:
        flag = word.partition("=")[0]
        if flag in page.refused:
            raise UserError(f"{page.name} has no use for {flag}: leave it out, or {page.refused[flag]}")
        attached = not word.startswith("--") and word[:2] in flags  # -n5
        if not word.startswith("-") or flag in flags or attached or word == "-" or _NUMBER.fullmatch(word):
            continue
        near = renamed.get(flag) or nearest_option(flag, [*flags, "--help"])
        hint = f"did you mean {near}?" if near else f"{page.program} --help lists what there is"
        hint = f"it is called {near} now" if flag in renamed else hint
        raise UnknownName("option", flag, sorted(flags), near=near, message=f"there is no option {flag}; {hint}")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _value(option: Option, given: Any) -> Any:
    if option.is_switch:
        return given
    return tuple(_one(option, word) for word in given) if option.several else _one(option, given)


def _one(option: Option, word: str) -> Any:
    """A word as a value of an option; UserError where it cannot be one."""
    name = option.flag or option.placeholder
    if option.optional and option.kind in (int, float) and word.lower() == "none":
        return None
    if not word and (option.kind is Path or option.path in ("task", "tasks")):
        raise InvalidSetting(f"{name} needs a value", option.path)
    if option.choices:
        word = option.arg.renamed.get(word, word)
        if word not in option.choices:
            hint = f"; did you mean {near}?" if (near := nearest(word, option.choices)) else ""
            raise InvalidSetting(f"{name} must be one of {', '.join(option.choices)}, not '{word}'{hint}", option.path)
        return word
    if option.kind is int:
        return _whole(option, word)
    if option.kind is float:
        if not _is_number(word):
            raise InvalidSetting(f"{name} must be a number, not '{word}'", option.path)
        return float(word)
    return option.kind(word)


def _whole(option: Option, word: str) -> int:
    """A whole number, also one that is written 1e6, 1_000_000 or 1,000,000."""
    bare = word.replace(",", "") if _GROUPED.fullmatch(word) and not option.several else word
    try:
        return int(bare)
    except ValueError:
        number = float(bare) if _is_number(bare) else math.nan
    if not number.is_integer():
        hint = "; put blanks between several" if option.several and "," in word else ""
        name = option.flag or option.placeholder
        raise InvalidSetting(f"{name} must be a whole number, not '{word}'{hint}", option.path)
    return int(number)
