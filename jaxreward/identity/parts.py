"""The parts of an object in words, so that a refusal of another object can say what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

from jaxreward.secrets import looks_secret, names_secret

MOST = 300
"""Parts that are kept of an object."""
LONGEST = 60
"""Characters of a value that is kept as it is; of a longer one a digest is."""
LONGEST_PATH = 100
ITEMS = 20
"""Items of a container that are parts of their own; of a longer container only a digest is kept."""
_SMALL = 4
"""Elements of an array that is kept with its values."""
SOURCE = "the source of "
BYTECODE = "bytecode"

_DIGEST = re.compile(r" #[0-9a-f]{12}$")


class Parts:
    """Short texts by path: `.wind` is an attribute of the object, `own_simulator.GRAVITY` a global that its functions
    read, `own_simulator.make_step(wind)` what a function holds or has as a default.

    A text is a value (`0.5`), what is there (`function own_simulator.fall`), or a kind and a digest (`values #77b0`).
    Values whose names or whose look say that they may be secrets are no parts.
    """

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._named: dict[str, int] = {}
        self._root = ""
        self._steps: tuple[str, ...] | None = ()

    @contextmanager
    def at(self, step: str | None) -> Iterator[None]:
        """Inside is what `step` leads to from here; what None leads to is not recorded, but for what has a name of its
        own."""
        before = self._steps
        self._steps = None if before is None or step is None else (*before, step)
        try:
            yield
        finally:
            self._steps = before

    @contextmanager
    def under(self, name: str, *steps: str) -> Iterator[None]:
        """Inside is what has a name of its own, wherever it was found."""
        before = self._root, self._steps
        self._root, self._steps = name, steps
        try:
            yield
        finally:
            self._root, self._steps = before

    def named(self, name: str) -> str:
        """The name of a function or class, with a number where another one has it already."""
        number = self._named[name] = self._named.get(name, 0) + 1
        return name if number == 1 else f"{name} ({number})"

    def note(self, text: str) -> None:
        """Record what is here, unless something is recorded already."""
        steps = None if self._steps is None else "".join(self._steps)
        if steps is not None and len(path := self._root + steps) <= LONGEST_PATH and not names_secret(steps):
            self._found.setdefault(path, text)

    def source(self, name: str, kind: str, digest: str) -> None:
        """Record the source of a function, or its bytecode in place of it."""
        if len(name) <= LONGEST_PATH:
            self._found.setdefault(SOURCE + name, f"{kind} #{digest}")

    def value(self, value: Any, digest: str, text: str = "") -> None:
        """Record a number, a word or the like; `text` is how it is written, by default as Python writes it."""
        if self._steps is not None and not _may_be_secret(value):
            text = text or repr(value)
            self.note(text if len(text) <= LONGEST else f"values #{digest}")

    def array(self, array: Any, digest: str) -> None:
        """Record a NumPy array."""
        shown = f"array {array.dtype} {array.shape}"
        is_shown = array.size <= _SMALL and array.dtype.kind in "biufc"
        self.note(f"{shown} {array.tolist()}" if is_shown else f"{shown} #{digest}")

    def kept(self) -> dict[str, str]:
        """The first `MOST` parts, those of the object itself before all others."""
        ordered = sorted(self._found.items(), key=lambda item: not item[0].startswith("."))
        return dict(ordered[:MOST])


def difference(what: str, before: Mapping[str, str], now: Mapping[str, str], *, shared: bool = False) -> str:
    """The first part that differs in words, such as `task.size was 7 and is 9`; empty where none is known to.

    Args:
        what: what the object is called.
        shared: only parts that both have count, and no bytecode: they were made by other versions of packages.
    """
    for path, text in sorted(before.items(), key=lambda item: item[0].startswith(SOURCE)):  # a value says more
        if path in now and now[path] != text and not (shared and text.startswith(BYTECODE)):
            return _in_words(what, path, text, now[path])
    if shared or max(len(before), len(now)) >= MOST:  # what is missing may lie beyond
        return ""
    for path in (*before, *now):
        if (path in before) != (path in now):
            return f"{_name(what, path)} is {'gone' if path in before else 'new'}"
    return ""


def _in_words(what: str, path: str, before: str, now: str) -> str:
    name, was, given = _name(what, path), _DIGEST.sub("", before), _DIGEST.sub("", now)
    if path.startswith(SOURCE):
        return f"{name} has changed"
    return f"{name} has other values" if was == given else f"{name} was {was} and is {given}"


def _name(what: str, path: str) -> str:
    """A path as a person writes it; that of an attribute of the object begins with a dot or a bracket."""
    return f"{what}{path}" if not path or path[0] in ".[(" else path


def _may_be_secret(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_may_be_secret, value))
    if isinstance(value, PurePath):
        return looks_secret(value.as_posix())
    return isinstance(value, bytes) or (isinstance(value, str) and len(value) <= LONGEST and looks_secret(value))
