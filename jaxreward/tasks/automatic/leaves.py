"""Which arrays of a view a text reads, by the paths that programs write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxreward.tasks.automatic.expressions import paths_of
from jaxreward.tasks.automatic.fields import names_of
from jaxreward.tasks.automatic.texts import AFTER, BEFORE, UNKNOWN

_PLACE = re.compile(f"[{BEFORE}{AFTER}]")
_ELEMENT = re.compile(r"\[(\d+(?:, \d+)*)\]")
_AS_IS = re.compile(r"(?:\[[\d:, ]*\]|\.astype\(jnp\.\w+\))*")


@dataclass(frozen=True)
class Leaves:
    """The arrays of a view: how programs write them after the name of a state, and names to speak of them.

    Attributes:
        hidden: those that no text may read.
    """

    paths: tuple[str, ...]
    names: tuple[str, ...]
    hidden: frozenset[int] = frozenset()

    @classmethod
    def of(cls, view: Any, hidden: frozenset[int] = frozenset()) -> Leaves:
        return cls(tuple(paths_of("", view)), tuple(names_of(view)), hidden)

    def written(self, place: str) -> list[str]:
        """The texts of all of them in the state of this place, `UNKNOWN` for hidden ones."""
        return [UNKNOWN if k in self.hidden else place + path for k, path in enumerate(self.paths)]

    def _longest(self, text: str) -> int | None:
        """The array whose path `text` begins with."""
        fitting = [k for k, path in enumerate(self.paths) if text.startswith(path) and k not in self.hidden]
        return max(fitting, key=lambda k: len(self.paths[k]), default=None)

    def whole(self, text: str) -> int | None:
        """The array that a text is, or some elements of it, in either state; None where it is more."""
        if not text or not _PLACE.match(text):
            return None
        k = self._longest(text[1:])
        return k if k is not None and _AS_IS.fullmatch(text[1 + len(self.paths[k]) :]) else None

    def read_by(self, text: str) -> Iterator[str]:
        """The names of what a text reads, in order: `ball_position_0`."""
        for place in _PLACE.finditer(text):
            rest = text[place.end() :]
            k = self._longest(rest)
            if k is not None:
                element = _ELEMENT.match(rest[len(self.paths[k]) :])
                yield "_".join([self.names[k], *(element[1].split(", ") if element else ())])
