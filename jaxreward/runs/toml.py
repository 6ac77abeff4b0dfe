"""Settings as TOML, and flattened to dotted names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def to_toml(config: Mapping[str, Any]) -> str:
    """`config` as a TOML document that `tomllib` reads back: strings, booleans, numbers, lists and tables.

    Keys whose value is None are left out, for TOML has no such value; TypeError for any other type.
    """
    import tomli_w

    return tomli_w.dumps(_without_none(config))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by name, those in tables as `table.name`."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
