"""Settings as dataclasses: how a field stands on a command line, and TOML onto it, strict about names and types."""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from jaxreward import files
from jaxreward.documents import Malformed, parse_toml
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
