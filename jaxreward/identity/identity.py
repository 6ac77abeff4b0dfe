"""What a run records of objects, those that Python code gives it and those of Python files, so that it is resumed with
the same ones."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jaxreward.errors import FILE_OF_USER
from jaxreward.identity.fingerprint import Fingerprint, attributes, digest_of, package_of
from jaxreward.secrets import Secrets, names_secret

_LONGEST = 60
"""Characters of a value that is shown."""


@dataclass(frozen=True)
class Identity:
    """What is recorded of an object.

    Attributes:
        text: equal for equal objects.
        parts: what it consists of, as `Parts` has it, to say what differs where `text` does.
    """

    text: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any, *, private: bool = True) -> Identity:
        """An object by class, options and digests: `__main__.Docking(wind=0.5), source 1f0c22b3a9d4, values 77b0e1c2`.

        The digest of the source is of all functions that the object, its class and what it holds consist of, that of
        the values of everything else that it stores and that these functions read; `Fingerprint` says what counts. Both
        are the same in every process. Classes of this package have neither, as far as nothing of the user's is in them:
        its version is in the log.

        Args:
            private: whether attributes whose names begin with an underscore count. Those of a proposer are its state.
        """
        kind, stored = _kind(given), _stored(given, private)
        shown = _shown(given, stored)
        found, digests = _digests(kind, {name: value for name, value in stored.items() if name not in shown})
        for name, value in shown.items():
            with found.shown.at(f".{name}"):
                found.of(value)
        options = "" if kind is given else f"({', '.join(f'{name}={value!r}' for name, value in shown.items())})"
        named = f"{_module_of(kind)}.{kind.__qualname__}{options}"
        return cls(
            ", ".join([named, *(f"{name} {digest}" for name, digest in digests.items() if digest)]), _kept(found)
        )

    @classmethod
    def of_code(cls, given: Any) -> Identity:
        """An object, or a class, by digests alone: the same wherever the file lies that it is from. Attributes of the
        user's objects whose names begin with an underscore do not count, unless they are fields: using the object may
        change them."""
        kind = _kind(given)
        private = dataclasses.is_dataclass(kind) or bool(package_of(kind.__module__ or ""))
        found, digests = _digests(kind, _stored(given, private))
        return cls(digest_of(*digests.values()), _kept(found))


def _kind(given: Any) -> Any:
    return given if inspect.isclass(given) or inspect.isroutine(given) else type(given)


def _digests(kind: Any, stored: Mapping[str, Any]) -> tuple[Fingerprint, dict[str, str]]:
    """What was found in a class or function, and in what an object of it stores, with digests of source and values."""
    found, package = Fingerprint(), package_of(kind.__module__ or "")
    parts = [] if package else [str(found.of(kind))]
    parts += found.parts(stored, package)
    return found, {"source": found.source, "values": digest_of(*parts) if parts else ""}


def _kept(found: Fingerprint) -> dict[str, str]:
    return Secrets().redact_all(found.shown.kept())


def _module_of(kind: Any) -> str:
    """The module of a class or function; of one in a file that this package imported, the file, since the module has
    another name in every process."""
    file = vars(sys.modules.get(kind.__module__, object)).get(FILE_OF_USER)
    return Path(str(file)).name if file else kind.__module__


def _stored(given: Any, private: bool) -> dict[str, Any]:
    """The attributes of an object, and the model of one that computes it, as a `MuJoCoTask` does; none of a class."""
    if _kind(given) is given:
        return {}
    made = isinstance(getattr(type(given), "xml", None), property | cached_property)
    found = attributes(given) | ({"xml": given.xml} if made else {})
    return {name: value for name, value in found.items() if private or not name.startswith("_")}


def _shown(given: Any, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an object that are short: numbers, words or tuples of them. One that is None, or a word that may
    be a secret by its name, is left out."""
    if _kind(given) is given:
        return {}
    names = [f.name for f in dataclasses.fields(given)] if dataclasses.is_dataclass(given) else ()
    if not names and (options := getattr(given, "options", ())):
        values = {name: getattr(given, name) for name in options}
    else:
        values = {name: stored[name] for name in names or stored if name in stored and not name.startswith("_")}
    short = {name: value for name, value in values.items() if _is_plain(value) and len(repr(value)) <= _LONGEST}
    secret = {name for name, value in short.items() if names_secret(name) and _has_words(value)}
    return {name: value for name, value in short.items() if value is not None and name not in secret}


def _has_words(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple) and any(map(_has_words, value)))


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)
