"""Keys: where they come from, and that their values stay out of everything a run writes."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from jaxreward.errors import UserError

MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
"""A variable whose name contains one of these holds a secret."""

SHORTEST = 8
"""Characters; shorter values are no secrets but switches and numbers, and would match everywhere."""

HIDDEN = "***"


class Secrets:
    """The secrets of the process environment and of a `.env` file.

    Args:
        folder: where `.env` lies, by default the working directory; there need not be one.

    Raises:
        UserError: `.env` cannot be read.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._values = _read(folder or Path.cwd())

    def install(self) -> None:
        """Set the variables of `.env` that the environment lacks; the environment wins."""
        for name, value in self._values.items():
            os.environ.setdefault(name, value)

    def redact(self, text: str) -> str:
        """The text with every secret in it, plain, URL-encoded or in base64, replaced by `***`."""
        for form in self._forms():
            text = text.replace(form, HIDDEN)
        return text

    def redact_all(self, value: Any) -> Any:
        """JSON data with `redact` applied to every string in it."""
        forms = self._forms()
        return _mapped(value, forms) if forms else value

    def _forms(self) -> list[str]:
        # Read anew each time: a library may set variables of its own once it is imported.
        values = {*_secret(os.environ), *_secret(self._values)}
        return sorted({form for value in values for form in _spellings(value)}, key=len, reverse=True)


def _read(folder: Path) -> dict[str, str]:
    path = folder / ".env"
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    try:
        return {name: value for name, value in dotenv_values(path).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the keys in {path}: {error}") from None


def _secret(variables: Mapping[str, str]) -> Iterable[str]:
    for name, value in variables.items():
        if len(value.strip()) >= SHORTEST and any(mark in name.upper() for mark in MARKS):
            yield value
            yield value.strip()


def _spellings(value: str) -> Iterable[str]:
    raw = value.encode(errors="surrogateescape")
    yield from (value, quote(raw, safe=""), quote(raw), quote_plus(raw))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode().rstrip("=")


def _mapped(value: Any, forms: list[str]) -> Any:
    if isinstance(value, str):
        for form in forms:
            value = value.replace(form, HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {key: _mapped(inner, forms) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(inner, forms) for inner in value)
    return value
