"""Keys: where they come from, and that their values stay out of everything a run writes."""

from __future__ import annotations

import base64
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile, why_unreadable
from jaxreward.extras import missing

_SECRET_NAME = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|PASS$|^PGPASS|_PAT$|SECRET|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|"
    r"(ACCESS|AUTH|API|BEARER|REFRESH|SESSION)_?TOKEN"
)
"""Names of variables that hold secrets."""

_POSSIBLE_NAME = re.compile(r"KEY|TOKEN|AUTH(?!OR(?!I))")
"""Names of variables that hold secrets, or something else: SORT_KEY, MAX_TOKENS, AUTH_MODE."""

_KEY = re.compile(r"(API_?KEY|_KEY|_TOKEN|_API_SECRET)$|^AWS_(ACCESS_KEY_ID|BEARER_TOKEN_BEDROCK)$")
"""Names of the variables in which providers of language models, or litellm, look for a key."""

_LARGEST = 1 << 20
_NAMED = 8
_REPORTED: set[tuple[object, ...]] = set()

SHORTEST = 8
"""Characters; shorter values are no secrets but switches and numbers, and would match everywhere. A key
of a provider that is asked is hidden from `SHORTEST_KEY` on."""

SHORTEST_KEY = 4

_LONGEST_WORD = 24

PLACEHOLDERS = frozenset({"none", "null", "empty", "dummy", "fake", "test", "unused", "anything", "local", "no-key"})
"""What people set as the key of a server that wants none."""

_OF_PROVIDER = {"gemini": ("GEMINI", "GOOGLE"), "vertex_ai": ("VERTEX", "GOOGLE"), "bedrock": ("AWS", "BEDROCK")}
"""What the variables of a provider begin with, where that is not its name."""

HIDDEN = "***"


class Secrets:
    """The secrets of the process environment and of a `.env` file, of which only keys are used.

    A value is a secret if the name of its variable and its look say so (words of letters are none, and
    would match in programs), or if it is the key of a provider that is asked, whatever it looks like.

    Args:
        folder: where `.env` lies, by default the working directory; there need not be one.
        models: names of models whose providers are asked, e.g. `openai/x`.

    Raises:
        UserError: `.env` cannot be read.
    """

    def __init__(self, folder: Path | None = None, models: Iterable[str] = ()) -> None:
        self._file = (folder or Path.cwd()) / ".env"
        self._values = _read(self._file)
        self._providers: set[str] = set()
        self._names: set[str] = set()
        for model in models:
            self.guard(model.partition("/")[0])

    def install(self) -> list[str]:
        """Set the keys of `.env` that the environment lacks; the environment wins.

        Returns:
            A sentence if the file has anything else: whoever wrote it could send keys elsewhere with that, so it is
            ignored. Once a process for each file.
        """
        ignored = []
        for name, value in self._values.items():
            if _KEY.search(name):
                os.environ.setdefault(name, value)
            elif os.environ.get(name) != value:
                ignored.append(name)
        if not ignored or (self._file, *ignored) in _REPORTED:
            return []
        _REPORTED.add((self._file, *ignored))
        names = ", ".join(ignored[:_NAMED]) + (f" and {len(ignored) - _NAMED} more" if len(ignored) > _NAMED else "")
        return [f"{self._file} may set keys alone: {names} in it is ignored; set it in the environment if you want it"]

    def guard(self, provider: str, *names: str) -> None:
        """Hide the keys of a provider, e.g. `openai`, in variables that begin with its name or are named."""
        prefixes = _OF_PROVIDER.get(provider.lower(), (re.sub(r"\W", "_", provider.upper()),))
        self._providers.update(prefix for prefix in prefixes if prefix)
        self._names.update(filter(None, names))

    def redact(self, text: str) -> str:
        """The text with every secret in it, plain, escaped, URL-encoded or in base64, replaced by `***`."""
        return self.redact_all(text)

    def redact_all(self, value: Any) -> Any:
        """JSON data with `redact` applied to every string in it."""
        pattern = self._pattern()
        return _mapped(value, pattern) if pattern else value

    def _pattern(self) -> re.Pattern[str] | None:
        # Read anew each time: a library may set variables of its own once it is imported.
        forms: set[str] = set()
        short: set[str] = set()
        for variables in (os.environ, self._values):
            for name, value in variables.items():
                for given in {value, value.strip()}:
                    if _is_secret(name.upper(), given):
                        forms |= _spellings(given)
                    elif self._is_key(name.upper(), given):
                        short |= {form for form in _spellings(given) if len(form) >= SHORTEST_KEY}
        if not forms and not short:
            return None
        # Short keys are hidden where they stand alone, not within words.
        parts = [(form, re.escape(form)) for form in forms]
        parts += [(form, rf"(?<!\w){re.escape(form)}(?!\w)") for form in short - forms]
        parts.sort(key=lambda part: len(part[0]), reverse=True)
        return re.compile("|".join(part for _, part in parts))

    def _is_key(self, name: str, value: str) -> bool:
        """Whether it is a key of a provider that is asked."""
        if len(value.strip()) < SHORTEST_KEY or value.strip().lower() in PLACEHOLDERS:
            return False
        asked = any(name.startswith(f"{provider}_") for provider in self._providers)
        return name in self._names or (asked and bool(_SECRET_NAME.search(name) or _POSSIBLE_NAME.search(name)))


def _read(path: Path) -> dict[str, str]:
    # Keys in it are for language models alone: without their packages none is ever read, and none needs hiding.
    if not path.is_file() or missing("llm"):
        return {}
    from dotenv import dotenv_values

    try:
        text = files.read_text(path, links=True, largest=_LARGEST)
        return {name: value for name, value in dotenv_values(stream=io.StringIO(text)).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the keys in {path}: {why_unreadable(error)}"
        raise UnusableFile(message, path, FileProblem.UNREADABLE) from None


def names_secret(name: str) -> bool:
    """Whether a value of that name may be a secret: `api_key`, `max_tokens`, `password`."""
    return any(pattern.search(name.upper()) for pattern in (_SECRET_NAME, _POSSIBLE_NAME))


def looks_secret(value: str) -> bool:
    """Whether a text may be a secret by its look: one that is not made of words and numbers."""
    return not _of_words(value, digits=True)


def _is_secret(name: str, value: str) -> bool:
    """By its name and its look."""
    if len(value.strip()) < SHORTEST:
        return False
    return (_SECRET_NAME.search(name) is not None and not _of_words(value)) or (
        _POSSIBLE_NAME.search(name) is not None and not _of_words(value, digits=True)
    )


def _of_words(value: str, *, digits: bool = False) -> bool:
    """Whether it consists of words, as identifiers and settings do; with `digits` also of numbers, and words that
    end in a digit or two."""
    for word in re.split(r"[\s._,;:/\-]+", value.strip()):
        letters = word.rstrip("0123456789") if digits else word
        turns = len(re.findall("[a-z][A-Z]", letters))
        if letters and not (letters.isalpha() and len(letters) <= _LONGEST_WORD and turns <= 3):
            return False
        if letters and len(word) - len(letters) > 2:
            return False
    return True


def _spellings(value: str) -> set[str]:
    raw = value.encode(errors="surrogateescape")
    found = {value, quote(raw, safe=""), quote(raw), quote_plus(raw), json.dumps(value)[1:-1]}
    found |= {encode(raw).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)}
    return found


def _mapped(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(HIDDEN, value)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, pattern) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(inner, pattern) for inner in value)
    return value
