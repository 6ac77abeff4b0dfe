"""The options of a command, read from the dataclass of its settings; parsing, help and completion use them."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import textwrap
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from jaxreward.config import Arg, fields_of

_MEASURES = {"_s": ("SECONDS", "s"), "_gb": ("GB", "GB"), "_usd": ("USD", "USD")}
"""Suffixes of names that give the unit of a value: as a placeholder, and after a number."""
_COUNTED = ("tokens", "steps", "seeds", "episodes", "frames", "requests", "candidates", "envs")
"""Words of names that give what an integer counts."""


@dataclass(frozen=True)
class Option:
    """An option of a command: one field of its settings.

    Attributes:
        path: its place in the settings, nested ones after a dot: `ppo.learning_rate`.
        flag: `--ppo.learning-rate`; empty for a positional argument.
        kind: type of a value, or of each of `several`; None is a value too where it is `optional`.
        choices: the values of a `Literal`.
        required: there is no default.
        text: what it means, in sentences.
    """

    path: str
    flag: str
    kind: type
    several: bool
    optional: bool
    choices: tuple[str, ...]
    required: bool
    text: str
    arg: Arg

    @property
    def is_switch(self) -> bool:
        return self.kind is bool

    @property
    def flags(self) -> list[str]:
        """Every flag of it, a switch's negation last."""
        found = [self.arg.short, self.flag, self.negation if self.is_switch else ""]
        return [flag for flag in found if flag] if self.flag else []

    @property
    def negation(self) -> str:
        """The flag that turns a switch off."""
        group, dot, name = self.flag.removeprefix("--").rpartition(".")
        return f"--{group}{dot}no-{name}"

    @cached_property
    def brief(self) -> str:
        """What it means, in a line."""
        return self.text.split(". ")[0].removesuffix(".")

    @cached_property
    def placeholder(self) -> str:
        """What stands for a value in usage lines."""
        name = self.path.rpartition(".")[2]
        if self.arg.positional or self.arg.unit:
            return self.arg.positional or self.arg.unit
        if self.is_switch:
            return ""
        if self.choices and len(every := "|".join(self.choices)) <= 25:
            return every
        for end, (unit, _) in _MEASURES.items():
            if name.endswith(end):
                return unit
        if self.kind in (int, float):
            return "N" if self.kind is int else "X"
        if "KEY=VALUE" in self.text:
            return "KEY=VALUE"
        if issubclass(self.kind, Path):
            return "DIR" if self.text.startswith("Folder") else "FILE"
        return re.sub("ies$", "y", name.split("_")[-1]).removesuffix("s").upper()

    def shown(self, value: Any) -> str:
        """A default with its unit; empty for None, empty values and switches."""
        if value is None or value == "" or value == () or isinstance(value, bool):
            return ""
        name = self.path.rpartition(".")[2]
        if isinstance(value, tuple):
            return " ".join(map(str, value))
        if not isinstance(value, int | float):
            return str(value)
        if value == 0:
            return "0"
        number = f"{value:,}" if isinstance(value, int) else f"{value:,g}"
        units = [short for end, (_, short) in _MEASURES.items() if name.endswith(end)]
        counted = [word for word in _COUNTED if word in name.split("_")] if isinstance(value, int) else []
        unit = (units or counted)[:1]
        return " ".join([number, *(u.removesuffix("s") if value == 1 and u in counted else u for u in unit)])

    def of(self, settings: Any) -> Any:
        """Its value in some settings."""
        for name in self.path.split("."):
            settings = getattr(settings, name)
        return settings


def words_between(base: Any, settings: Any, path: str) -> list[str]:
    """The words of a command line that turn settings into others of the same class, of those under `path`."""
    words: list[str] = []
    for option in options_of(type(settings)):
        before, now = option.of(base), option.of(settings)
        if before == now or not option.path.startswith(path) or not option.flag:
            continue
        if option.is_switch:
            words.append(option.flag if now else option.negation)
        elif now is not None:
            words += [option.flag, *(map(str, now) if option.several else [str(now)])]
    return words


@cache
def options_of(kind: type) -> tuple[Option, ...]:
    """The options of a class of settings, in the order of its fields; those of nested settings in their place."""
    return tuple(_options(kind, "", ""))


def _options(kind: type, path: str, prefix: str) -> Iterator[Option]:
    fields, texts = fields_of(kind), field_texts(kind)
    for field in dataclasses.fields(kind):
        if field.name not in fields:
            continue
        hint, arg = fields[field.name]
        if dataclasses.is_dataclass(hint):
            nested = prefix if arg.flat else f"{prefix}{field.name}."
            yield from _options(typing.cast(type, hint), f"{path}{field.name}.", nested)
            continue
        value, several, optional, choices = _value_type(hint)
        yield Option(
            path + field.name, "" if arg.positional else f"--{prefix}{field.name.replace('_', '-')}", value, several,
            optional, choices, field.default is field.default_factory is dataclasses.MISSING,
            texts.get(field.name, ""), arg,
        )  # fmt: skip


def _value_type(hint: Any) -> tuple[type, bool, bool, tuple[str, ...]]:
    """The type of one value, whether there may be several, whether there may be none, and the choices."""
    several = optional = False
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (part for part in typing.get_args(hint) if part is not type(None))
        optional = True
    if typing.get_origin(hint) is tuple:
        hint, several = typing.get_args(hint)[0], True
    if typing.get_origin(hint) is typing.Literal:
        return str, several, optional, typing.get_args(hint)
    if hint not in (bool, int, float, str, Path):
        raise TypeError(f"settings cannot have a field of type {hint}")
    return hint, several, optional, ()


def field_texts(kind: type) -> dict[str, str]:
    """The strings under the fields of a class and of those that it inherits from, each as one line."""
    texts: dict[str, str] = {}
    for cls in reversed(kind.__mro__[:-1]):
        if not dataclasses.is_dataclass(cls) or not inspect.get_annotations(cls):
            continue
        body = typing.cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]).body
        for node, after in itertools.pairwise(body):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(after, ast.Expr):
                texts[node.target.id] = " ".join(ast.literal_eval(after.value).split())
    return texts
