"""The lineage of a program: its line of first parents, with what each changed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from jaxreward.records import Result
from jaxreward.runs.provenance import without_header

_CONTEXT = 2


@dataclass(frozen=True)
class LineageStep:
    """One ancestor, or the program itself.

    Attributes:
        result: of the candidate.
        parent: its first parent, None where it has none or it is unknown.
        others: ids of its further parents.
        changes: lines of a unified diff from the parent; without one, of the whole source.
    """

    result: Result
    parent: Result | None
    others: tuple[str, ...]
    changes: tuple[str, ...]

    @property
    def gain(self) -> float | None:
        """By how much its score is better than its parent's."""
        mine, before = self.result.score, self.parent.score if self.parent else None
        return mine.merit - before.merit if mine and before else None


def lineage(results: Mapping[str, Result], id: str) -> list[LineageStep]:
    """From the first ancestor to the candidate `id`, by the first parent of each."""
    steps: list[LineageStep] = []
    seen: set[str] = set()
    while id in results and id not in seen:
        seen.add(id)
        result = results[id]
        first, *others = (*result.candidate.parents, "")
        parent = results.get(first)
        steps.append(LineageStep(result, parent, tuple(filter(None, others)), changes(parent, result)))
        id = first
    return steps[::-1]


def changes(parent: Result | None, child: Result) -> tuple[str, ...]:
    """The unified diff from the parent's source to the child's: lines that begin with ` `, `+`, `-` or `@@`."""
    before = _lines(parent) if parent else []
    found = difflib.unified_diff(before, _lines(child), n=_CONTEXT, lineterm="")
    return tuple(found)[2:]  # without file names


def _lines(result: Result) -> list[str]:
    return without_header(result.candidate.source).rstrip().splitlines()
