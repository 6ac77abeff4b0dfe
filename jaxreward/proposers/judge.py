"""People who compare trained agents: requests of operator `prefer` (REvolve's human fitness)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from jaxreward.errors import ProposerStopped
from jaxreward.proposers.mailbox import Mailbox
from jaxreward.proposers.proposer import Answers, Desk, RngOf
from jaxreward.proposers.words import read_words
from jaxreward.records import Failure, Proposal, Request, Result

How = Literal["files", "terminal"]
PICTURES = "pictures"
"""Folder of a run with a film and a strip of every agent, `<id>.gif` and `<id>.png`."""

_ASK = "left, right or equal, and a remark if you like: "


class Judge:
    """Asks people which of two agents does better.

    Which agent stands left is drawn for every request, so that nobody learns that the new one does. An
    answer is `left`, `right` or `equal`; what follows it is a remark, which later prompts show.

    Args:
        how: `files`: `votes/<id>.md` in the run's folder, answered in `votes/<id>.txt`; `terminal`: asks
            and waits.
        wait_s: how long to wait for files before the run ends and can be resumed.
    """

    def __init__(self, how: How, wait_s: float, answers: TextIO | None = None) -> None:
        self.how, self.wait_s, self.answers = how, wait_s, answers
        self.box: Mailbox | None = None

    def open(self, desk: Desk) -> None:
        name = desk.name or desk.folder.name
        self.box = Mailbox(desk, "votes", "votes", (".txt",), "vote", "people", self.wait_s,
                           f"jaxreward evolve --name {name} --resume")  # fmt: skip

    def write_requests(self, requests: Sequence[Request], rng_of: RngOf) -> list[Path]:
        """Write the pages of requests that have none yet; returns those of all."""
        assert self.box is not None
        sides = {request.id: _sides(request, rng_of(request)) for request in requests}
        return [self.box.post(id, _page(self.box, id, left, right)) for id, (left, right) in sides.items()]

    def judge_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        """A proposal with words for every request that was answered."""
        assert self.box is not None
        sides = {request.id: _sides(request, rng_of(request)) for request in requests}
        if self.how == "files":
            self.write_requests(requests, rng_of)
            stopped = self.box.wait_for(list(sides))
        else:
            stopped = self._on_terminal(self.box, sides)
        found = [_proposal(self.box, request, sides[request.id]) for request in requests]
        return Answers(tuple(proposal for proposal in found if proposal is not None), stopped=stopped)

    def _on_terminal(self, box: Mailbox, sides: dict[str, tuple[Result, Result]]) -> ProposerStopped | None:
        source = self.answers or sys.stdin
        for number, (id, (left, right)) in enumerate(sides.items(), 1):
            if box.desk.transcript.of(id):
                continue
            box.desk.note(f"\n{number} of {len(sides)}: which agent does better?")
            for side, result in (("left", left), ("right", right)):
                box.desk.note(f"  {side}:  {box.desk.folder / PICTURES / result.candidate.id}.gif")
            line = _asked(source, box.desk.note)
            if line is None:
                name = box.desk.name or box.desk.folder.name
                text = f"nobody answers on the terminal: go on with jaxreward evolve --name {name} --resume"
                return ProposerStopped(text, later=True)
            box.keep(id, line)
        return None


def _asked(source: TextIO, note: Callable[[str], None]) -> str | None:
    """The first line that is a vote; None at the end of the input."""
    while True:
        note(_ASK)
        line = source.readline()
        if not line:
            return None
        if isinstance(read_words("prefer", line), str):
            return line.strip()
        note("please begin with left, right or equal")


def _sides(request: Request, rng: np.random.Generator) -> tuple[Result, Result]:
    first, second = request.parents
    return (first, second) if rng.random() < 0.5 else (second, first)


def _page(box: Mailbox, id: str, left: Result, right: Result) -> str:
    rows = [
        f"- {side}: [film](../{PICTURES}/{r.candidate.id}.gif), [moments](../{PICTURES}/{r.candidate.id}.png)"
        for side, r in (("left", left), ("right", right))
    ]
    return "\n".join(
        [
            "Which of these two agents does better? The episodes begin alike.",
            "",
            *rows,
            "",
            f"Answer in {box.reply_path(id)}: the first word is left, right or equal. What follows it is a remark",
            "(what is good, what is missing); the author of the next program will read it.",
            "",
        ]
    )


def _proposal(box: Mailbox, request: Request, sides: tuple[Result, Result]) -> Proposal | None:
    text = box.read(request.id)
    if text is None:
        return None
    words = read_words("prefer", text)
    if isinstance(words, Failure):
        return Proposal(request_id=request.id, proposer="people", failure=words)
    side, _, remark = words.partition("\n")
    new_is_left = sides[0].candidate.id == request.parents[0].candidate.id
    if side != "equal" and not new_is_left:
        side = "second" if side == "first" else "first"
    if remark:
        remark += f" [left was the {'first' if new_is_left else 'second'}]"
    return Proposal(request_id=request.id, proposer="people", words=f"{side}\n{remark}" if remark else side)
