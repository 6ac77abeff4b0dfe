"""How a program came about: the line of its first parents, with what each step changed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from jaxreward.records import Result
from jaxreward.runs.provenance import without_header

_CONTEXT = 2


@dataclass(frozen=True)
class Step:
    """One generation of a pedigree.

    Attributes:
        result: of the candidate.
        parent: that it started from, None of the founder or where the parent is unknown.
        others: ids of its further parents.
        changes: lines of a unified difference to the parent, each with its sign; of the founder the whole source.
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


def pedigree(results: Mapping[str, Result], id: str) -> list[Step]:
    """From the founder to the candidate `id`, by the first parent of each."""
    steps: list[Step] = []
    seen: set[str] = set()
    while id in results and id not in seen:
        seen.add(id)
        result = results[id]
        first, *others = (*result.candidate.parents, "")
        steps.append(
            Step(result, results.get(first), tuple(o for o in others if o), changes(results.get(first), result))
        )
        id = first
    return steps[::-1]


def changes(parent: Result | None, child: Result) -> tuple[str, ...]:
    """The child's source as a unified difference to the parent's: lines that begin with ` `, `+`, `-` or `@@`."""
    before = _lines(parent) if parent else []
    found = difflib.unified_diff(before, _lines(child), n=_CONTEXT, lineterm="")
    return tuple(found)[2:]  # without the names of files


def _lines(result: Result) -> list[str]:
    return without_header(result.candidate.source).rstrip().splitlines()
