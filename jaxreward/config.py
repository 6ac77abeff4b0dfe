"""Configuration: TOML and JSON read strictly, settings as dataclasses, names of tasks that are Python files."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
import typing
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from jaxreward import files
from jaxreward.errors import UserError, why_unreadable

D = TypeVar("D")


@dataclasses.dataclass(frozen=True)
class Arg:
    """How a field of settings stands on a command line, where it is not `--name`: put it into `Annotated`."""

    positional: str = ""
    """It stands without a flag; under this name in usage lines."""
    short: str = ""
    """A one-letter flag beside the long one, e.g. `-f`."""
    unit: str = ""
    """What a value is, where its name and type do not tell, e.g. `URL`."""
    flat: bool = False
    """Of nested settings: their flags do without its name before theirs."""
    hidden: bool = False
    """It is not on the command line."""
    adds: bool = False
    """A flag that is given again adds to its values in place of taking their place."""
    keyed: bool = False
    """So do values KEY=VALUE to those that were there before; they take the place of those with the same key."""


def merged_options(base: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Options KEY=VALUE of `base`, those of `given` in place of the ones with the same key; one that is twice in
    `given` is left for its reader to refuse."""

    def key(option: str) -> str:
        return option.partition("=")[0].strip().replace("-", "_")

    return (*(o for o in base if key(o) not in map(key, given)), *given)


_ELSEWHERE = {
    "clip_coef": "clip", "clip_range": "clip", "ent_coef": "entropy", "gamma": "discount",
    "lam": "gae_lambda", "n_epochs": "epochs", "n_steps": "unroll", "num_envs": "envs", "num_epochs": "epochs",
    "num_minibatches": "minibatches", "num_steps": "unroll", "total_timesteps": "steps", "unroll_length": "unroll",
    "update_epochs": "epochs", "vf_coef": "value_coefficient",
}  # fmt: skip
"""What other PPOs (Stable-Baselines3, CleanRL, Brax) call settings of ours."""


def nearest(name: str, known: Collection[str]) -> str | None:
    """The name of an option that was most likely meant by one that there is not.

    An option may be meant by its initials (`lr`), by what another library calls it (`gamma`), or be mistyped.
    Names may be those of flags and of nested settings, `--ppo.learning-rate`.
    """
    head, own = _parts(name)
    for candidate in sorted(known):
        other_head, other = _parts(candidate)
        initials = "".join(word[:1] for word in other.split("_"))
        if head == other_head and (_ELSEWHERE.get(own) == other or (len(own) > 1 and own == initials)):
            return candidate
    return next(iter(difflib.get_close_matches(name, sorted(known), 1)), None)


def _parts(name: str) -> tuple[str, str]:
    """The group of an option and its name there, with underscores."""
    head, _, own = name.removeprefix("--").replace("-", "_").rpartition(".")
    return head, own


def arg_of(hint: Any) -> Arg:
    """What a field says of itself in `Annotated`."""
    return next((said for said in getattr(hint, "__metadata__", ()) if isinstance(said, Arg)), Arg())


def _strict(kind: Any, value: Any) -> Any:
    """`value` as `kind` without guessing: "3" is no number, true is no 1, a date is nothing; lists serve as tuples."""
    return TypeAdapter(kind).validate_json(json.dumps(value, default=lambda other: {}), strict=True)


def _typed(value: Any) -> str:
    """A value of a TOML file, much as it stands there."""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a settings file; UserError where it cannot be read or is not TOML."""
    try:
        return parse_toml(files.read_text(path, links=True))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the settings file {path} cannot be read: {why_unreadable(error)}") from error
    except Malformed as error:
        raise UserError(f"the settings file {path} is not valid TOML: {error}") from error


def apply(base: D, values: Mapping[str, Any], origin: str, prefix: str = "") -> D:
    """`base` with the fields in `values` replaced; tables go to nested dataclasses.

    Keys may be written with dashes, as on the command line.

    Raises:
        UserError: a key that is no field (with the nearest one), or a value of the wrong type.
    """
    hints = typing.get_type_hints(type(base), include_extras=False)
    args = {name: arg_of(hint) for name, hint in typing.get_type_hints(type(base), include_extras=True).items()}
    hints = {name: hint for name, hint in hints.items() if not args[name].hidden}
    flat = {f.name: name for name in hints if args[name].flat for f in dataclasses.fields(getattr(base, name))}
    changes: dict[str, Any] = {}
    for written, value in values.items():
        key = written.replace("-", "_")
        if key not in hints and key in flat:  # as on the command line, where its group has no name
            group = flat[key]
            changes[group] = apply(changes.get(group, getattr(base, group)), {written: value}, origin, prefix)
            continue
        if key not in hints:
            near = nearest(key, hints)
            hint = f"; did you mean '{prefix}{near}'?" if near else f"; known are {', '.join(sorted(hints))}"
            raise UserError(f"{origin}: unknown key '{prefix}{written}'{hint}")
        current = getattr(base, key)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, Mapping):
                raise UserError(f"{origin}: '{prefix}{written}' is a table, write [{prefix}{written}]")
            changes[key] = apply(changes.get(key, current), value, origin, f"{prefix}{written}.")
            continue
        if hints[key] is int and isinstance(value, float) and value.is_integer():
            value = int(value)  # 1e6
        try:
            changes[key] = _strict(hints[key], value)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise UserError(f"{origin}: '{prefix}{written}' cannot be {_typed(value)}: {reason}") from error
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]


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
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    raise Malformed("it nests too deeply")


def _inner(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [v for v in inner if isinstance(v, dict | list)]


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


def lead_to_the_same(said: str, recorded: str) -> bool:
    """Whether two names are of one file, however the paths to it are written, and of one class, which `said` may leave
    out. A link leads to its target."""
    return file_of(said).resolve() == file_of(recorded).resolve() and class_of(said) in ("", class_of(recorded))
