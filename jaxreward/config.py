"""Configuration: TOML and JSON read strictly, settings as dataclasses, names of tasks that are Python files."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import tomllib
import typing
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from jaxreward import files
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile, nearest, problem_of, why_unreadable
from jaxreward.sentences import mention
from jaxreward.value_words import kind_in_words, short

D = TypeVar("D")


@dataclasses.dataclass(frozen=True)
class Arg:
    """How a field of settings is written on a command line, if not as `--name`, and its bounds; part of `Annotated`."""

    positional: str = ""
    """A positional argument; its name in usage lines."""
    short: str = ""
    """A one-letter flag as well, e.g. `-f`."""
    unit: str = ""
    """Placeholder of a value where name and type do not give one, e.g. `URL`."""
    flat: bool = False
    """Of nested settings: their flags have no prefix."""
    hidden: bool = False
    """It is not on the command line."""
    adds: bool = False
    """A flag that is given twice has the values of both; else the last one counts."""
    keyed: bool = False
    """Values KEY=VALUE are added to the defaults and replace those with the same key; `adds` is implied."""
    least: int | None = None
    """The smallest value; a number is finite too."""
    positive: bool = False
    """The value is a positive number."""
    renamed: Mapping[str | bool, str] = dataclasses.field(default_factory=dict)
    """Values of earlier versions, and the value of today for each."""
    formerly: str = ""
    """What earlier versions called it."""


def merged_options(base: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Options KEY=VALUE of `base`, those of `given` in place of the ones with the same key; one that is twice in
    `given` is left for its reader to refuse."""

    return (*(o for o in base if key_of(o) not in map(key_of, given)), *given)


def key_of(option: str) -> str:
    """The key of an option KEY=VALUE, with underscores."""
    return option.partition("=")[0].strip().replace("-", "_")


_ELSEWHERE = {
    "clip_coef": "clip", "clip_range": "clip", "ent_coef": "entropy", "gamma": "discount",
    "lam": "gae_lambda", "n_epochs": "epochs", "n_steps": "unroll", "num_envs": "envs", "num_epochs": "epochs",
    "num_minibatches": "minibatches", "num_steps": "unroll", "total_timesteps": "steps", "unroll_length": "unroll",
    "update_epochs": "epochs", "vf_coef": "value_coefficient",
}  # fmt: skip
"""What other PPOs (Stable-Baselines3, CleanRL, Brax) call settings of ours."""


def nearest_option(name: str, known: Collection[str]) -> str | None:
    """The option that a mistyped name most likely means, or None.

    An option may be meant by its initials (`lr`), by what another library calls it (`gamma`), or be mistyped.
    Names may be those of flags and of nested settings, `--ppo.learning-rate`.
    """
    head, own = _parts(name)
    for candidate in sorted(known):
        other_head, other = _parts(candidate)
        initials = "".join(word[:1] for word in other.split("_"))
        if head == other_head and (_ELSEWHERE.get(own) == other or (len(own) > 1 and own == initials)):
            return candidate
    return nearest(name, sorted(known))


def _parts(name: str) -> tuple[str, str]:
    """The group of an option and its name there, with underscores."""
    head, _, own = name.removeprefix("--").replace("-", "_").rpartition(".")
    return head, own


@functools.cache
def fields_of(kind: type) -> Mapping[str, tuple[Any, Arg]]:
    """The fields of a class of settings that are on a command line: the type of each and its `Arg`."""
    hints = typing.get_type_hints(kind), typing.get_type_hints(kind, include_extras=True)
    found = {}
    for field in dataclasses.fields(kind):
        hint, marks = hints[0][field.name], getattr(hints[1][field.name], "__metadata__", ())
        found[field.name] = hint, next((mark for mark in marks if isinstance(mark, Arg)), Arg())
    return MappingProxyType({name: (hint, arg) for name, (hint, arg) in found.items() if not arg.hidden})


def check_bounds(settings: Any) -> None:
    """Raise `InvalidSetting` for the first of its own values that is out of bounds, or of a list of them; None is
    never."""
    for name, (_, arg) in fields_of(type(settings)).items():
        given, named = getattr(settings, name), mention(name)
        for value in given if isinstance(given, tuple) else (given,):
            if value is None:
                continue
            if arg.positive and not 0 < value < math.inf:
                raise InvalidSetting(f"{named} must be a positive number, not {value}", name)
            if arg.least is not None and not arg.least <= value < math.inf:
                what = f"be at least {arg.least}" if arg.least else "not be negative"
                raise InvalidSetting(f"{named} must {what}, not {value}", name)


def _strict(kind: Any, value: Any) -> Any:
    """`value` as `kind` without guessing: "3" is no number, true is no 1, a date is nothing; lists serve as tuples."""
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)  # 1e6
    return TypeAdapter(kind).validate_json(json.dumps(value, default=lambda other: {}), strict=True)


def _toml(value: Any) -> str:
    """A value of a TOML file, much as it is written there."""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a settings file; UserError where it cannot be read or is not TOML."""
    try:
        return parse_toml(files.read_text(path, links=True))
    except (OSError, UnicodeDecodeError) as error:
        problem = problem_of(error)
        raise UnusableFile(
            f"the settings file {path} cannot be read: {why_unreadable(error)}", path, problem
        ) from error
    except Malformed as error:
        raise UnusableFile(f"the settings file {path} is not valid TOML: {error}", path, FileProblem.DAMAGED) from error


class TableWords:
    """The sentences of `values_of` about the TOML table of `origin`, a file."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def unknown(self, path: str, near: str, known: Collection[str]) -> str:
        """There is no setting `path`; `near` is the most similar one, or empty."""
        hint = f"did you mean '{near}'?" if near else f"known are {', '.join(sorted(known))}"
        return f"{self.origin}: unknown key '{path}'; {hint}"

    def no_group(self, path: str, hint: type, value: Any) -> str:
        """The value of nested settings is not their values by name."""
        return f"{self.origin}: '{path}' is a table, write [{path}]"

    def wrong(self, path: str, hint: Any, value: Any, reason: str) -> str:
        """A value that is not of the type `hint`; `reason` says why."""
        return f"{self.origin}: '{path}' cannot be {_toml(value)}: {reason}"


class KeywordWords(TableWords):
    """Those about the keyword arguments of the function `origin`."""

    @property
    def command(self) -> str:
        """The command that does the same as the function."""
        return self.origin.replace(".", " ")

    def unknown(self, path: str, near: str, known: Collection[str]) -> str:
        hint = f"did you mean '{near}'?" if near else f"`{self.command} --help` lists them"
        return f"there is no setting '{path}'; {hint}"

    def no_group(self, path: str, hint: type, value: Any) -> str:
        example = f"{{{next(iter(fields_of(hint)))!r}: ...}}"
        return f"{path} must be a {hint.__name__}, or a dictionary such as {example}, not {short(value)}"

    def wrong(self, path: str, hint: Any, value: Any, reason: str) -> str:
        return f"{path} must be {kind_in_words(hint)}, not {short(value)}"


def values_of(kind: type, table: Mapping[str, Any], origin: str | TableWords, prefix: str = "") -> dict[str, Any]:
    """The values of a TOML table by their path in the settings, nested ones after a dot: `ppo.learning_rate`.

    Keys may be written with dashes, and without the group that `Arg.flat` leaves out, as on the command line.

    Args:
        origin: the file that it is of, or how to tell mistakes in it.

    Raises:
        InvalidSetting: a key that is no field (with the nearest one), or a value of the wrong type.
    """
    words = TableWords(origin) if isinstance(origin, str) else origin
    fields, found = fields_of(kind), dict[str, Any]()
    flat = {f.name: name for name, (hint, arg) in fields.items() if arg.flat for f in dataclasses.fields(hint)}
    today = _new_keys(kind)
    for written, value in table.items():
        key, inside = written.replace("-", "_"), f"{prefix}{written}."
        key = today.get(key, key)
        if key in found and key in today.values():
            former = next(old for old, new in today.items() if new == key)
            message = f"'{former}' and '{key}' are names of one setting, the first of an earlier version"
            raise InvalidSetting(f"{words.origin}: {message}; keep '{key}'", f"{prefix}{written}")
        if key not in fields and key in flat:
            key, value, inside = flat[key], {written: value}, prefix
        if key not in fields:
            near = nearest_option(key, fields)
            message = words.unknown(f"{prefix}{written}", f"{prefix}{near}" if near else "", fields)
            raise InvalidSetting(message, f"{prefix}{written}")
        hint, arg = fields[key]
        value = _new_name(arg, value)
        if dataclasses.is_dataclass(hint):
            if not isinstance(value, Mapping):
                message = words.no_group(f"{prefix}{written}", typing.cast(type, hint), value)
                raise InvalidSetting(message, f"{prefix}{written}")
            nested = values_of(typing.cast(type, hint), value, words, inside)
            found |= {f"{key}.{path}": v for path, v in nested.items()}
            continue
        try:
            found[key] = _strict(hint, value)
        except ValidationError as error:
            message = words.wrong(f"{prefix}{written}", hint, value, error.errors()[0]["msg"])
            raise InvalidSetting(message, f"{prefix}{written}") from error
    return found


def with_new_names(kind: type, table: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as written, those of earlier versions by what they are called today."""
    fields, today = fields_of(kind), _new_keys(kind)
    named = {today.get(key, key): value for key, value in table.items()}
    return {key: _new_name(fields[key][1], value) if key in fields else value for key, value in named.items()}


def _new_keys(kind: type) -> dict[str, str]:
    return {arg.formerly: name for name, (_, arg) in fields_of(kind).items() if arg.formerly}


def _new_name(arg: Arg, value: Any) -> Any:
    return arg.renamed.get(value, value) if isinstance(value, str | bool) else value


def with_values(settings: D, values: Mapping[str, Any]) -> D:
    """`settings` with the values at these paths replaced."""
    groups: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name, _, rest = path.partition(".")
        groups.setdefault(name, {})[rest] = value
    changes = {n: g[""] if "" in g else with_values(getattr(settings, n), g) for n, g in groups.items()}
    return dataclasses.replace(settings, **changes)  # type: ignore[type-var]


def apply(base: D, table: Mapping[str, Any], origin: str) -> D:
    """`base` with the values of a TOML table; raises as `values_of` does."""
    return with_values(base, values_of(type(base), table, origin))


DEEPEST = 64
"""Lists and tables within each other."""

_LARGEST_INT = 1 << 63


class Malformed(ValueError):
    """Why a document is refused, as part of a sentence: `it nests too deeply`."""


class Garbled(Malformed):
    """It is no text, or not of the format at all: what a crash leaves of a line."""


def parse_json(text: str | bytes) -> Any:
    """The value that a JSON document is.

    Raises:
        Malformed: it is not text or not JSON, nests more than `DEEPEST` levels deep, or has a number that is not
            finite or an integer beyond 64 bits.
    """
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise Garbled("it is not text") from None
    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_float, parse_int=_int)
    except RecursionError:
        raise Malformed("it nests too deeply") from None
    except json.JSONDecodeError:
        raise Garbled("it is not JSON") from None
    _require_shallow(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """The table that a TOML document is.

    Raises:
        Malformed: it is not TOML, with the reason, or nests more than `DEEPEST` levels deep.
    """
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise Malformed("it nests too deeply") from None
    except ValueError as error:  # TOMLDecodeError, or an integer of too many digits
        raise Malformed(str(error)) from None
    _require_shallow(value)
    return value


def _require_shallow(value: Any) -> None:
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 2):
        inner = (v for outer in level for v in (outer.values() if isinstance(outer, dict) else outer))
        level = [v for v in inner if isinstance(v, dict | list)]
        if not level:
            return
    raise Malformed("it nests too deeply")


def _constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is no number of JSON")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise Malformed(f"the number {digits[:20]} is too large")
    return value


def _int(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else _LARGEST_INT
    if abs(value) >= _LARGEST_INT:
        raise Malformed(f"the number {digits[:20]} is too large")
    return value


def is_file(name: str) -> bool:
    """Whether the name of a task is that of a file."""
    return name.partition(":")[0].endswith(".py")


def file_of(name: str) -> Path:
    """The file in the name of such a task."""
    return Path(name.partition(":")[0])


def class_of(name: str) -> str:
    """The class in the name of such a task; empty where it is left out."""
    return name.partition(":")[2]


def named(file: Path, kind: str) -> str:
    """The name of the task that is the class `kind` in `file`, or its only one."""
    return f"{file}:{kind}" if kind else str(file)


def label_of(name: str) -> str:
    """The name of a task for people: of one in a file without the folders, `swing_up.py:SwingUp`."""
    return named(Path(file_of(name).name), class_of(name)) if is_file(name) else name


def lead_to_the_same(typed: str, recorded: str) -> bool:
    """Whether two names are of one file, however the paths to it are written, and of one class, which `typed` may leave
    out. A link leads to its target."""
    return file_of(typed).resolve() == file_of(recorded).resolve() and class_of(typed) in ("", class_of(recorded))
