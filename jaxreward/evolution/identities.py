"""What a run records of objects that Python code gives it, so that it is resumed with the same ones."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import textwrap
from typing import Any


def identity_of(given: Any) -> str:
    """The class or function of an object by module and name, its options, and a digest of its source, where there is
    one: `__main__.Docking(wind=0.5), source 1f0c22b3a9d4`.

    Options are the fields of a dataclass, or what `options` names, that are numbers, words or tuples of them. Classes
    of this package have no digest: its version is in the log.
    """
    kind = given if inspect.isclass(given) or inspect.isroutine(given) else type(given)
    own = "" if kind is given else ", ".join(f"{name}={value!r}" for name, value in _options(given).items())
    name = f"{kind.__module__}.{kind.__qualname__}" + ("" if kind is given else f"({own})")
    digest = "" if kind.__module__.startswith("jaxreward.") else _digest(kind)
    return f"{name}, source {digest}" if digest else name


def _options(given: Any) -> dict[str, Any]:
    names = [f.name for f in dataclasses.fields(given)] if dataclasses.is_dataclass(given) else ()
    values = {name: getattr(given, name) for name in names or getattr(given, "options", ())}
    return {name: value for name, value in values.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def _digest(kind: Any) -> str:
    """Of the source; empty where it cannot be read, as of what was typed into an interpreter."""
    parts = [kind]
    try:
        inspect.getsource(kind)
    except (OSError, TypeError):  # of a class in a notebook only the functions are known
        parts = [value for _, value in sorted(vars(kind).items()) if inspect.isfunction(value)]
    try:
        text = "\n".join(textwrap.dedent(inspect.getsource(part)) for part in parts)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else ""
