"""A configuration as TOML, which `tomllib` of the standard library reads back, and by the names of its settings."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(config: Mapping[str, Any]) -> str:
    """`config` as a TOML document: strings, booleans, integers, floats, lists and tables.

    Keys whose value is None are left out, for TOML has no such value; TypeError for any other type.
    """
    return "\n".join(_table(config, ())).strip("\n") + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in table.items() if value is not None and not isinstance(value, Mapping)}
    nested = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    if path and (lines or not nested):
        lines = ["", f"[{'.'.join(map(_key, path))}]", *lines]
    for key, value in nested.items():
        lines += _table(value, (*path, key))
    return lines


def _key(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a TOML key is a string, not {key!r}")
    return key if BARE_KEY.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(float(value)) if math.isfinite(value) else str(value)
        case str():
            return _string(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            pairs = (f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
            return f"{{{', '.join(pairs)}}}"
    raise TypeError(f"TOML has no form for {value!r} of type {type(value).__name__}")


def _string(text: str) -> str:
    # JSON escapes what a basic TOML string must escape, except DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by name, those in tables after a dot."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
