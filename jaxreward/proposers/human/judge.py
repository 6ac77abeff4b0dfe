"""People who compare trained agents: requests of operator `prefer` (REvolve's human fitness)."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from jaxreward import files
from jaxreward.errors import EndCause, FileProblem, ProposerStopped, UnusableFile
from jaxreward.proposers.human.mailbox import Mailbox
from jaxreward.proposers.human.vote import read_vote
from jaxreward.proposers.judging import Sight
from jaxreward.proposers.proposer import Answers, Context, RngOf
from jaxreward.records import Failure, Proposal, Request, Result

How = Literal["files", "terminal"]
PICTURES = "pictures"
"""Folder of a run with a film and a strip of every agent, `<id>.gif` and `<id>.png`."""

_ASK = "left, right or equal, and a remark if you like: "
_SIDES = ("left", "right")
_POLL_S = 0.25
_UNREADABLE = 5
"""Lines in a row without a vote after which the run stops to ask."""


class Judge:
    """Asks people which of two agents does better.

    Which agent stands left is drawn for every request, and its film is shown under a name that does not say
    which it is, so that the vote is blind. An answer is `left`, `right` or `equal`; what
    follows it is a remark, which later prompts show. The words of a proposal are the verdict alone, or where
    there is a remark

        first              the better parent of the request: first, second or equal
        left: second       the parent that stood left, to which `left` in the remark refers
        it wastes no steps

    Args:
        how: `files`: `votes/<id>.md` in the run's folder, answered in `votes/<id>.txt`; `terminal`: asks
            and waits.
        wait_s: how long to wait for files before the run ends and can be resumed.
        answers: what is typed on the terminal; standard input if omitted.
    """

    operators = frozenset({"prefer"})
    waits = True
    sees: Sight = "films"

    def __init__(self, how: How, wait_s: float, answers: TextIO | None = None) -> None:
        self.how, self.wait_s = how, wait_s
        self.lines = _Lines(answers or sys.stdin)
        self.open(Context(folder=Path()))

    def prepare(self, note: Callable[[str], None]) -> None:
        return None

    def open(self, context: Context) -> None:
        name = context.name or context.folder.name
        self.box = Mailbox(context, "votes", "votes", (".txt",), "vote", "people", self.wait_s,
                           f"jaxreward evolve --name {name} --resume")  # fmt: skip

    def write_requests(self, requests: Sequence[Request], rng_of: RngOf) -> list[Path]:
        """Write the pages of requests that have none yet; returns those of all."""
        for request in requests:
            if not files.is_there(self.box.page_path(request.id)):
                _show(self.box, request.id, _sides(request, rng_of(request)))
        return [self.box.post(request.id, _page(self.box, request.id)) for request in requests]

    def reply_path(self, request: Request) -> Path:
        """Where the vote on a request is expected."""
        return self.box.reply_path(request.id)

    def judge_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        """A proposal with words for every request that was answered."""
        if self.how == "files":
            self.write_requests(requests, rng_of)
            votes, stopped = self.box.collect([request.id for request in requests], lambda _, text: _problem(text))
        else:
            votes, stopped = self._on_terminal(requests, rng_of)
        answered = [request for request in requests if request.id in votes]
        found = [_proposal(r, votes[r.id], _sides(r, rng_of(r))) for r in answered]
        return Answers(tuple(found), stopped=stopped)

    def _on_terminal(self, requests: Sequence[Request], rng_of: RngOf) -> tuple[dict[str, str], ProposerStopped | None]:
        box = self.box
        votes = {request.id: vote for request in requests if (vote := box.kept(request.id)) is not None}
        for number, request in enumerate(requests, 1):
            if request.id in votes:
                continue
            films = _show(box, request.id, _sides(request, rng_of(request)))
            box.context.note(f"\n{number} of {len(requests)}: which agent does better?")
            for side, film in zip(_SIDES, films, strict=True):
                box.context.note(f"  {side}:  {film}")
            try:
                line = self._asked()
            except ProposerStopped as stopped:
                return votes, stopped
            if line is None:
                break
            votes[request.id] = box.keep(request.id, line)
        return votes, None

    def _asked(self) -> str | None:
        """The first line that is a vote; None if the run is asked to stop.

        Raises:
            ProposerStopped: the input ends, or nothing in it can be read.
        """
        context, problem = self.box.context, ""
        for _ in range(_UNREADABLE):
            context.note(_ASK)
            line = self.lines.read(context.should_stop)
            if line is None:
                return None
            if not line:
                raise ProposerStopped(
                    f"nobody answers on the terminal: go on with {self.box.how}", EndCause.PEOPLE, later=True
                )
            problem = _problem(line)
            if not problem:
                return line.strip()
            context.note(f"please {problem}")
        text = f"{_UNREADABLE} lines in a row cannot be read as a vote: {problem}, and go on with {self.box.how}"
        raise ProposerStopped(text, EndCause.PEOPLE, later=True)


class _Lines:
    """Lines of a stream. Where it has a descriptor they are waited for such that the run can be stopped."""

    def __init__(self, source: TextIO | None) -> None:
        self._source = source
        self._rest = b""

    def read(self, should_stop: Callable[[], bool]) -> str | None:
        """The next line; empty at the end of the input, None if the run is asked to stop before."""
        if should_stop():
            return None
        if self._source is None:
            return ""
        try:
            descriptor = self._source.fileno()
        except (OSError, ValueError):  # text in memory
            return self._source.readline()
        # Read past the stream, whose buffer may hold lines that `select` does not know of.
        while b"\n" not in self._rest:
            if should_stop():
                return None
            if not select.select([descriptor], [], [], _POLL_S)[0]:
                continue
            more = os.read(descriptor, 4096)
            if not more:
                line, self._rest = self._rest, b""
                return line.decode(errors="replace")
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode(errors="replace") + "\n"


def _problem(text: str) -> str:
    """What is wrong with a vote."""
    words = read_vote(text)
    return words.hint if isinstance(words, Failure) else ""


def _sides(request: Request, rng: np.random.Generator) -> tuple[Result, Result]:
    """Who stands left and who right."""
    first, second = request.parents
    return (first, second) if rng.random() < 0.5 else (second, first)


def _show(box: Mailbox, id: str, sides: tuple[Result, Result]) -> list[Path]:
    """Copy the pictures of both agents to names that do not say whose they are; returns those of the films."""
    page, run = box.page_path(id), box.context.folder
    try:
        files.make_folder(page.parent, below=run)
        for side, result in zip(_SIDES, sides, strict=True):
            for suffix in (".gif", ".png"):
                picture = run / PICTURES / f"{result.candidate.id}{suffix}"
                if files.is_there(picture):
                    copy = page.with_name(f"{id}-{side}{suffix}")
                    files.replace(copy, files.read_bytes(picture, below=run), below=run)
    except files.NotAFile as error:
        message = f"{error.filename} cannot be used: {error.strerror}; move it away"
        raise UnusableFile(message, error.filename, FileProblem.WRONG_KIND) from error
    return [page.with_name(f"{id}-{side}.gif") for side in _SIDES]


def _page(box: Mailbox, id: str) -> str:
    return "\n".join(
        [
            "Which of these two agents does better? The episodes begin alike.",
            "",
            *(f"- {side}: [film]({id}-{side}.gif), [moments]({id}-{side}.png)" for side in _SIDES),
            "",
            f"Answer in {box.reply_path(id)}: the first word is left, right or equal. What follows it is a remark",
            "(what is good, what is missing); the author of the next program will read it.",
            "",
        ]
    )


def _proposal(request: Request, text: str, sides: tuple[Result, Result]) -> Proposal:
    words = read_vote(text)
    if isinstance(words, Failure):
        return Proposal(request_id=request.id, proposer="people", failure=words)
    verdict, _, remark = words.partition("\n")
    left, right = ("first", "second") if sides[0] is request.parents[0] else ("second", "first")
    verdict = {"first": left, "second": right}.get(verdict, verdict)
    lines = [verdict, f"left: {left}", remark] if remark else [verdict]
    return Proposal(request_id=request.id, proposer="people", words="\n".join(lines))
