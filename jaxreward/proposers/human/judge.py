"""People who compare trained agents: requests of operator `prefer` (REvolve's human fitness)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxreward.proposers.human.people import People
from jaxreward.proposers.human.vote import read_vote
from jaxreward.records import Failure, Proposal, Request, Result

_ASK = "left, right or equal, and a remark if you like: "


class Judge(People):
    """Asks people which of two agents does better.

    Which agent stands left is drawn for every request, and its film is shown under a name that does not say
    which it is, so that the vote is blind. An answer is `left`, `right` or `equal`; what
    follows it is a remark, which later prompts show. The words of a proposal are the verdict alone, or where
    there is a remark

        first              the better parent of the request: first, second or equal
        left: second       the parent that stood left, to which `left` in the remark refers
        it wastes no steps
    """

    operators = frozenset({"prefer"})

    def _shown(self, request: Request, rng: np.random.Generator) -> Mapping[str, str]:
        left, right = _sides(request, rng)
        return {"left": left.candidate.id, "right": right.candidate.id}

    def _page(self, request: Request, films: Sequence[str]) -> list[str]:
        of_two = "Which of these two agents does better? The episodes begin alike."
        return [
            of_two if films else "which agent does better?",
            "",
            *films,
            "",
            "Answer in {reply}: the first word is left, right or equal. What follows it is a remark",
            "(what is good, what is missing); the author of the next program will read it.",
        ]

    def _questions(self, request: Request) -> Mapping[str, str]:
        return {"": _ASK}

    def _problem(self, request: Request, text: str) -> str:
        return self._line_problem(text)

    def _line_problem(self, line: str) -> str:
        words = read_vote(line)
        return words.hint if isinstance(words, Failure) else ""

    def _proposal(self, request: Request, text: str, rng: np.random.Generator) -> Proposal:
        words = read_vote(text)
        if isinstance(words, Failure):
            return Proposal(request_id=request.id, proposer="people", failure=words)
        verdict, _, remark = words.partition("\n")
        sides = _sides(request, rng)
        left, right = ("first", "second") if sides[0] is request.parents[0] else ("second", "first")
        verdict = {"first": left, "second": right}.get(verdict, verdict)
        lines = [verdict, f"left: {left}", remark] if remark else [verdict]
        return Proposal(request_id=request.id, proposer="people", words="\n".join(lines))


def _sides(request: Request, rng: np.random.Generator) -> tuple[Result, Result]:
    """Who stands left and who right."""
    first, second = request.parents
    return (first, second) if rng.random() < 0.5 else (second, first)
