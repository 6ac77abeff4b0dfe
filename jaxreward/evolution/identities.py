"""What a run records of objects that Python code gives it, so that it is resumed with the same ones."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from jaxreward.errors import FILE_OF_USER
from jaxreward.evolution.fingerprint import Fingerprint, attributes, digest_of, package_of

_LONGEST = 60
"""Characters of a value that is shown."""


def identity_of(given: Any, *, private: bool = True) -> str:
    """An object by class, options and digests: `__main__.Docking(wind=0.5), source 1f0c22b3a9d4, values 77b0e1c2d3f4`.

    The digest of the source is of all functions that the object, its class and what it holds consist of, that of the
    values of everything else that it stores and that these functions read; `Fingerprint` says what counts. Both are the
    same in every process. Classes of this package have neither, as far as nothing of the user's is in them: its version
    is in the log.

    Args:
        private: whether attributes whose names begin with an underscore count. Those of a proposer are its state.
    """
    kind = given if inspect.isclass(given) or inspect.isroutine(given) else type(given)
    found, package, own = Fingerprint(), package_of(kind.__module__ or ""), ""
    parts = [] if package else [str(found.of(kind))]
    if kind is not given:
        stored = {name: v for name, v in _stored(given).items() if private or not name.startswith("_")}
        shown = _shown(given, stored)
        own = f"({', '.join(f'{name}={value!r}' for name, value in shown.items())})"
        parts += found.parts({name: value for name, value in stored.items() if name not in shown}, package)
    values = digest_of(*parts) if parts else ""
    digests = {"source": found.source, "values": values}
    named = f"{_module_of(kind)}.{kind.__qualname__}{own}"
    return ", ".join([named, *(f"{name} {digest}" for name, digest in digests.items() if digest)])


def _module_of(kind: Any) -> str:
    """The module of a class or function; of one in a file that this package imported, the file, since the module has
    another name in every process."""
    file = vars(sys.modules.get(kind.__module__, object)).get(FILE_OF_USER)
    return Path(str(file)).name if file else kind.__module__


def _stored(given: Any) -> dict[str, Any]:
    """The attributes of an object, and the model of one that computes it, as a `MuJoCoTask` does."""
    made = isinstance(getattr(type(given), "xml", None), property | cached_property)
    return attributes(given) | ({"xml": given.xml} if made else {})


def _shown(given: Any, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an object that are short: numbers, words or tuples of them. One that is None is left out."""
    names = [f.name for f in dataclasses.fields(given)] if dataclasses.is_dataclass(given) else ()
    if not names and (options := getattr(given, "options", ())):
        values = {name: getattr(given, name) for name in options}
    else:
        values = {name: stored[name] for name in names or stored if name in stored and not name.startswith("_")}
    short = {name: value for name, value in values.items() if _is_plain(value) and len(repr(value)) <= _LONGEST}
    return {name: value for name, value in short.items() if value is not None}


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)
