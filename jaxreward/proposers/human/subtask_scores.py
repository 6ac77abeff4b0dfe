"""People who score the subtasks of an instruction: requests of operator `watch`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TextIO

import numpy as np

from jaxreward.proposers.human.people import How, People
from jaxreward.proposers.human.vote import REMARK
from jaxreward.proposers.replies.program_reply import REPLY_LIMIT, legible
from jaxreward.records import Failure, Instruction, Proposal, Request, Seen, Subtask, Watched

MOST = 5
"""The score of a subtask that is done; 0 is not done at all."""

_NUMBER = r"(\d{1,3}(?:\.\d{1,6})?)(?:[ \t]*/[ \t]*5)?(?![\w.,%/+-]*[\w%/+-])(?![ \t]*(?:/|%|of\b|out\b))"
"""A score, and nothing behind it that would make it another number."""
_LINE = re.compile(
    rf"^[ \t]*(?:[-+][ \t]+)?([a-z_][a-z0-9_]*)[ \t]*[:=][ \t]*{_NUMBER}(.*)$", re.MULTILINE | re.IGNORECASE
)
_TYPED = re.compile(rf"[ \t]*{_NUMBER}")
_MARKS = str.maketrans("", "", "*`")
"""Marks of Markdown."""


class SubtaskScores(People):
    """Asks people how well an agent does every subtask of its instruction, from 0 to 5.

    An answer has a line `name: score` for each subtask, with a remark behind it if there is one, which later prompts
    show.
    """

    operators = frozenset({"watch"})

    def __init__(self, instruction: Instruction, how: How, wait_s: float, answers: TextIO | None = None) -> None:
        self.instruction = instruction
        super().__init__(how, wait_s, answers)

    def _subtasks(self, request: Request) -> tuple[Subtask, ...]:
        return self.instruction.divided(request.plan.words if request.plan is not None else "")

    def _shown(self, request: Request, rng: np.random.Generator) -> Mapping[str, str]:
        return {"agent": request.parents[0].candidate.id}

    def _page(self, request: Request, films: Sequence[str]) -> list[str]:
        subtasks = self._subtasks(request)
        return [
            "How well does this agent do what it was told?",
            "",
            f"It was told: {self.instruction.words}",
            "",
            *films,
            "",
            "Of each of the following, is it done in the episodes?",
            "",
            *(f"- {subtask.name}: {subtask.words}" for subtask in subtasks),
            "",
            f"Answer in {{reply}}, a line for each: `{subtasks[0].name}: 3`, from 0, not done at all, to {MOST},",
            "done in every episode. What follows the number is a remark; the author of the next program will read it.",
        ]

    def _questions(self, request: Request) -> Mapping[str, str]:
        return {
            f"{s.name}: ": f"{s.name} ({s.words}), from 0 to {MOST}, and a remark if you like: "
            for s in self._subtasks(request)
        }

    def _problem(self, request: Request, text: str) -> str:
        found = _read(text, self._subtasks(request))
        return found.hint if isinstance(found, Failure) else ""

    def _line_problem(self, line: str) -> str:
        found = _TYPED.match(line)
        return "" if found and float(found[1]) <= MOST else f"begin with a number from 0 to {MOST}"

    def _proposal(self, request: Request, text: str, rng: np.random.Generator) -> Proposal:
        found = _read(text, self._subtasks(request))
        if isinstance(found, Failure):
            return Proposal(request_id=request.id, proposer="people", failure=found)
        return Proposal(request_id=request.id, proposer="people", words=found.as_words())


def _read(text: str, subtasks: Sequence[Subtask]) -> Watched | Failure:
    """The scores in an answer; of two lines on a subtask the last one counts."""
    given = {
        name.lower(): (float(score), why)
        for name, score, why in _LINE.findall(legible(text[:REPLY_LIMIT]).translate(_MARKS))
    }
    for name in (subtask.name for subtask in subtasks):
        if name not in given or not given[name][0] <= MOST:
            message = f"there is no score from 0 to {MOST} for the subtask '{name}'"
            return Failure(stage="reply", message=message, hint=f"give a line `{name}: 3`, from 0 to {MOST}")
    seen = {name: (Seen(score=given[name][0] / MOST, why=_remark(given[name][1])),) for name in
            (subtask.name for subtask in subtasks)}  # fmt: skip
    return Watched(subtasks=seen)


def _remark(text: str) -> str:
    return re.sub(r"\s+", " ", text).lstrip(" -–—:,;.").strip()[:REMARK]
