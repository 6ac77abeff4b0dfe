"""A mistake in a task, and the line of the user's file that it stands in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Location(NamedTuple):
    """A line of a file; an empty name and 0 where it is not known."""

    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Finding:
    """A mistake in a task: one sentence that says what is wrong and what to do, and where, as far as that is known.

    Attributes:
        message: the sentence, without its end.
        file: the file that holds the mistake; empty if unknown.
        line: its line, counted from 1; 0 if unknown.
    """

    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.message} ({Path(self.file).name}, line {self.line})" if self.line else self.message
