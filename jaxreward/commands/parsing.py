"""From the words of a command line to settings; every mistake is one sentence."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import itertools
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from jaxreward.commands.fields import Option, options_of
from jaxreward.commands.help_pages import print_page, program, shared_flags
from jaxreward.config import merged_options, nearest
from jaxreward.errors import UserError

D = TypeVar("D")

_HELP = ("-h", "--help")
_SHARED = "shared by commands"
"""Where argparse puts what is read before settings are."""
_NUMBER = re.compile(r"[+-]?(\d[\d_,]*\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+")


class _Parser(argparse.ArgumentParser):
    """argparse, whose complaints are for the caller to print, and to which -1e-3 is a number."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._negative_number_matcher = _NUMBER

    def error(self, message: str) -> NoReturn:
        said = re.fullmatch(r"argument (?:\S*/)?(\S+): (.*)", message)
        if said and said[2].startswith("expected"):
            message = f"{said[1]} needs a value"
        elif said and said[2].startswith("ignored explicit argument"):
            message = f"{said[1]} takes no value"
        raise UserError(message)


def parser_of(kind: type, prog: str) -> argparse.ArgumentParser:
    """A parser whose namespace has the words of the flags that were given, by the path of their options.

    What stands without a flag is left over: argparse takes it as missing where flags come first.
    """
    parser = _Parser(prog=prog, add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for option in options_of(kind):
        if option.flag:
            add_flag(parser, option)
    return parser


def add_flag(parser: argparse.ArgumentParser, option: Option, **more: Any) -> argparse.Action:
    """Add the flag of an option to a parser, of a switch its negation too; returns what stands for it there."""
    flags = [option.arg.short, option.flag] if option.arg.short else [option.flag]
    if option.is_switch:
        parser.add_argument(option.negation, dest=option.path, action="store_const", const=False, **more)
        return parser.add_argument(*flags, dest=option.path, action="store_const", const=True, **more)
    if option.several:
        more |= {"nargs": "*", "action": "extend" if option.arg.adds or option.arg.keyed else "store"}
    return parser.add_argument(*flags, dest=option.path, metavar=option.placeholder, **more)


def help_asked(args: Sequence[str]) -> str | None:
    """What help is asked for: None for none, else the word behind `--help`, which may be none either."""
    for i, arg in enumerate(args):
        if arg in _HELP:
            return args[i + 1] if i + 1 < len(args) and not args[i + 1].startswith("-") else ""
        if arg.startswith("--help="):
            return arg.removeprefix("--help=")
    return None


def without_help(args: Sequence[str]) -> list[str]:
    """The words of a command line but for `--help` and the topic behind it."""
    topic, words = help_asked(args), list(args)
    if topic is not None:
        at = next(i for i, arg in enumerate(words) if arg in _HELP or arg.startswith("--help="))
        del words[at : at + (2 if topic and words[at] in _HELP else 1)]
    return words


def given(args: Sequence[str], flag: str) -> list[str]:
    """The values that a flag is given, in their order.

    Raises:
        UserError: it has no value.
    """
    values = []
    for arg, after in itertools.pairwise([*args, "-"]):
        if arg == flag or arg.startswith(flag + "="):
            values.append(after if arg == flag else arg.removeprefix(flag + "="))
            if not values[-1] or (arg == flag and after.startswith("-")):
                raise UserError(f"{flag} needs a value")
    return values


def last(args: Sequence[str], flag: str) -> str | None:
    """The value that counts of a flag; None where it is not given."""
    return next(reversed(given(args, flag)), None)


def parse(kind: type[D], base: D | None, args: Sequence[str] | None, command: str) -> D:
    """`base` with what the words of a command line say of it.

    `--help` prints a page and leaves with status 0.

    Args:
        kind: the class of settings.
        base: settings that have the defaults; None for the class's own.
        args: the words; None for those that the process was started with.
        command: what is typed before them, without `jaxreward`.

    Raises:
        UserError: an option that there is not, a value that it cannot have, a value too few or too many.
    """
    args = sys.argv[1:] if args is None else args
    topic = help_asked(args)
    if topic is not None:
        print_page(command, topic, kind, base)
        raise SystemExit(0)
    options = {option.path: option for option in options_of(kind)}
    flags = {
        flag for o in options.values() for flag in (o.flag, o.arg.short, o.negation if o.is_switch else "") if flag
    }
    flags |= set(shared_flags(command))
    words = [_dashed(arg) for arg in args]
    _check_flags(words, flags, command)
    parser = parser_of(kind, program(command))
    for flag in shared_flags(command):  # which are read before
        parser.add_argument(flag, dest=_SHARED)
    found, rest = parser.parse_known_args(words)
    said = {path: value for path, value in vars(found).items() if path != _SHARED}
    rest = rest[1:] if rest[:1] == ["--"] else rest
    for option in options.values():
        if not option.flag and rest:
            said[option.path], rest = (rest, []) if option.several else (rest[0], rest[1:])
    if rest:
        meant = "interfaces" in options and rest[0].endswith(".py")
        hint = f"did you mean --interfaces {rest[0]}?" if meant else f"{program(command)} --help shows what there is"
        raise UserError(f"there is no place for '{rest[0]}' here; {hint}")
    values = {path: _value(options[path], words) for path, words in said.items()}
    missing = [o.placeholder for o in options.values() if o.required and o.path not in values and base is None]
    if missing:
        raise UserError(f"say which {missing[0]}: {program(command)} {missing[0]}")
    settings = kind(**{o.path: values[o.path] for o in options.values() if o.required}) if base is None else base
    for path, value in values.items():
        option = options[path]
        value = merged_options(option.of(settings), value) if option.arg.keyed else value
        settings = _with(settings, path.split("."), value)
    return settings


def _dashed(arg: str) -> str:
    """A flag as it is listed: with dashes, however it was written."""
    flag, equals, value = arg.partition("=")
    return flag.replace("_", "-") + equals + value if arg.startswith("--") else arg


def _check_flags(words: Sequence[str], flags: set[str], command: str) -> None:
    """Raise UserError for a flag that there is not, or a value of a flag that is missing; argparse is less clear."""
    for word in words[: words.index("--")] if "--" in words else words:
        flag = word.partition("=")[0]
        attached = not word.startswith("--") and word[:2] in flags  # -n5
        if not word.startswith("-") or flag in flags or attached or word == "-" or _NUMBER.fullmatch(word):
            continue
        near = nearest(flag, [*flags, "--help"])
        hint = f"did you mean {near}?" if near else f"{program(command)} --help lists what there is"
        raise UserError(f"there is no option {flag}; {hint}")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _value(option: Option, said: Any) -> Any:
    if option.is_switch:
        return said
    return tuple(_one(option, word) for word in said) if option.several else _one(option, said)


def _one(option: Option, word: str) -> Any:
    """A word as a value of an option.

    Raises:
        UserError: it is none.
    """
    name = option.flag or option.placeholder
    if option.optional and option.kind in (int, float) and word.lower() == "none":
        return None
    if not word and (option.kind is Path or option.path in ("task", "tasks")):
        raise UserError(f"{name} needs a value")
    if option.choices:
        if word not in option.choices:
            near = difflib.get_close_matches(word, option.choices, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"{name} must be one of {', '.join(option.choices)}, not '{word}'{hint}")
        return word
    if option.kind is int:
        return _whole(name, word, option.several)
    if option.kind is float:
        if not _is_number(word):
            raise UserError(f"{name} must be a number, not '{word}'")
        return float(word)
    return option.kind(word)


def _whole(name: str, word: str, several: bool) -> int:
    """A whole number, also one that is written 1e6, 1_000_000 or 1,000,000."""
    bare = word.replace(",", "") if _GROUPED.fullmatch(word) and not several else word
    try:
        return int(bare)
    except ValueError:
        number = float(bare) if _is_number(bare) else math.nan
    if not number.is_integer():
        hint = "; put blanks between several" if several and "," in word else ""
        raise UserError(f"{name} must be a whole number, not '{word}'{hint}")
    return int(number)


def _with(settings: Any, path: list[str], value: Any) -> Any:
    """Settings in which one value, maybe of nested ones, is another."""
    name, *rest = path
    inner = _with(getattr(settings, name), rest, value) if rest else value
    return dataclasses.replace(settings, **{name: inner})
