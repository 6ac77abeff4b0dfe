"""People who judge trained agents by films, through files or on the terminal: what all questions have in common."""

from __future__ import annotations

import os
import select
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from jaxreward import files
from jaxreward.errors import EndCause, FileProblem, ProposerStopped, UnusableFile
from jaxreward.proposers.human.mailbox import Mailbox
from jaxreward.proposers.proposer import Answers, Context, RngOf
from jaxreward.records import Proposal, Request

How = Literal["files", "terminal"]
PICTURES = "pictures"
"""Folder of a run with a film and a strip of every agent, `<id>.gif` and `<id>.png`."""

_POLL_S = 0.25
_UNREADABLE = 5
"""Lines in a row that cannot be read after which the run stops to ask."""


class People:
    """Base of judges who are people. An answer that cannot be read is left to be corrected.

    Args:
        how: `files`: `votes/<id>.md` in the run's folder, answered in `votes/<id>.txt`; `terminal`: asks
            and waits.
        wait_s: how long to wait for files before the run ends and can be resumed.
        answers: what is typed on the terminal; standard input if omitted.
    """

    operators: frozenset[str]
    waits = True
    films = True

    def __init__(self, how: How, wait_s: float, answers: TextIO | None = None) -> None:
        self.how, self.wait_s = how, wait_s
        self.lines = _Lines(answers or sys.stdin)
        self.open(Context(folder=Path()))

    # ---- what a question is

    @abstractmethod
    def _shown(self, request: Request, rng: np.random.Generator) -> Mapping[str, str]:
        """The ids of the candidates whose agents are shown, by what they are called."""

    @abstractmethod
    def _page(self, request: Request, films: Sequence[str]) -> list[str]:
        """The lines of a page, without those that say where to answer; `films` are Markdown links, one an agent."""

    @abstractmethod
    def _questions(self, request: Request) -> Mapping[str, str]:
        """What is asked on the terminal, by what the line of the answer begins with."""

    @abstractmethod
    def _problem(self, request: Request, text: str) -> str:
        """What is wrong with an answer; empty where nothing is."""

    @abstractmethod
    def _line_problem(self, line: str) -> str:
        """What is wrong with a line that was typed to one question; empty where nothing is."""

    @abstractmethod
    def _proposal(self, request: Request, text: str, rng: np.random.Generator) -> Proposal:
        """What an answer amounts to."""

    # ---- the judge

    def prepare(self, note: Callable[[str], None]) -> None:
        return None

    def open(self, context: Context) -> None:
        how = context.goes_on("jaxreward evolve {} --resume")
        self.box = Mailbox(context, "votes", "votes", (".txt",), "vote", "people", self.wait_s, how)

    def write_requests(self, requests: Sequence[Request], rng_of: RngOf) -> list[Path]:
        """Write the pages of requests that have none yet; returns those of all."""
        pages = []
        for request in requests:
            shown = self._shown(request, rng_of(request))
            if not files.is_there(self.box.page_path(request.id)):
                self._copy(request.id, shown)
            links = [f"- {name}: [film]({request.id}-{name}.gif), [moments]({request.id}-{name}.png)" for name in shown]
            lines = [*self._page(request, links), ""]
            text = "\n".join(lines).replace("{reply}", str(self.box.reply_path(request.id)))
            pages.append(self.box.post(request.id, text))
        return pages

    def reply_path(self, request: Request) -> Path:
        """Where the answer to a request is expected."""
        return self.box.reply_path(request.id)

    def judge_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        """A proposal with words for every request that was answered."""
        by_id = {request.id: request for request in requests}
        if self.how == "files":
            self.write_requests(requests, rng_of)
            votes, stopped = self.box.collect(list(by_id), lambda id, text: self._problem(by_id[id], text))
        else:
            votes, stopped = self._on_terminal(requests, rng_of)
        answered = [request for request in requests if request.id in votes]
        return Answers(tuple(self._proposal(r, votes[r.id], rng_of(r)) for r in answered), stopped=stopped)

    def _on_terminal(self, requests: Sequence[Request], rng_of: RngOf) -> tuple[dict[str, str], ProposerStopped | None]:
        box = self.box
        votes = {request.id: vote for request in requests if (vote := box.kept(request.id)) is not None}
        for number, request in enumerate(requests, 1):
            if request.id in votes:
                continue
            films = self._copy(request.id, self._shown(request, rng_of(request)))
            box.context.note(f"\n{number} of {len(requests)}: {self._page(request, ())[0]}")
            for name, film in films.items():
                box.context.note(f"  {name}:  {film}")
            try:
                text = self._typed(request)
            except ProposerStopped as stopped:
                return votes, stopped
            if text is None:
                break
            votes[request.id] = box.keep(request.id, text)
        return votes, None

    def _typed(self, request: Request) -> str | None:
        """An answer to all questions; None if the run is asked to stop.

        Raises:
            ProposerStopped: the input ends, or nothing in it can be read.
        """
        found = list[str]()
        for begin, question in self._questions(request).items():
            line = self._asked(question)
            if line is None:
                return None
            found.append(begin + line)
        return "\n".join(found)

    def _asked(self, question: str) -> str | None:
        """The first line that can be read; None if the run is asked to stop."""
        context, problem = self.box.context, ""
        for _ in range(_UNREADABLE):
            context.note(question)
            line = self.lines.read(context.should_stop)
            if line is None:
                return None
            if not line:
                raise ProposerStopped(
                    f"nobody answers on the terminal: go on with {self.box.how}", EndCause.PEOPLE, later=True
                )
            problem = self._line_problem(line)
            if not problem:
                return line.strip()
            context.note(f"please {problem}")
        text = f"{_UNREADABLE} lines in a row cannot be read as a vote: {problem}, and go on with {self.box.how}"
        raise ProposerStopped(text, EndCause.PEOPLE, later=True)

    def _copy(self, id: str, shown: Mapping[str, str]) -> dict[str, Path]:
        """Copy the pictures of agents to names that do not say whose they are; returns the films by these."""
        page, run = self.box.page_path(id), self.box.context.folder
        try:
            files.make_folder(page.parent, below=run)
            for name, candidate in shown.items():
                for suffix in (".gif", ".png"):
                    picture = run / PICTURES / f"{candidate}{suffix}"
                    if files.is_there(picture):
                        copy = page.with_name(f"{id}-{name}{suffix}")
                        files.replace(copy, files.read_bytes(picture, below=run), below=run)
        except files.NotAFile as error:
            message = f"{error.filename} cannot be used: {error.strerror}; move it away"
            raise UnusableFile(message, error.filename, FileProblem.WRONG_KIND) from error
        return {name: page.with_name(f"{id}-{name}.gif") for name in shown}


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
