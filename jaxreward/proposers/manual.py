"""A person, or a cluster without a network, as proposer: requests out as files, programs back in."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from jaxreward.errors import ProposerStopped, UserError
from jaxreward.proposers.halves import read_answer
from jaxreward.proposers.llm_settings import LlmSettings
from jaxreward.proposers.prompt import PromptBook
from jaxreward.proposers.proposer import Answers, Desk, RngOf, Unplanned
from jaxreward.proposers.reply import REPLY_LIMIT
from jaxreward.records import Exchange, Failure, Proposal, Request, TaskCard

REPLY_SUFFIXES = (".py", ".md", ".txt")
_POLL_S = 0.25
# A file that was touched more recently may still be half written.
_SETTLED_S = 0.5


class ManualProposer(Unplanned):
    """Writes `requests/<id>.md` in the run's folder and reads `replies/<id>.py` (or .md, .txt).

    A request is the prompt that a language model would get. A reply is a program, or text with a
    program in a fence. It waits `settings.wait_s` seconds for the replies that are missing; then the
    run ends and can be resumed when they are there. A reply that was read is kept in the transcript:
    changing its file later changes nothing.
    """

    name = "manual"
    mends = True

    def __init__(self, card: TaskCard, settings: LlmSettings | None = None) -> None:
        self.settings = settings or LlmSettings()
        self.book = PromptBook(card, self.settings.prompts)
        self.desk = Desk(folder=Path())

    def open(self, desk: Desk) -> None:
        self.desk = desk

    def write_requests(self, requests: Sequence[Request], rng_of: RngOf) -> list[Path]:
        """Write the files of requests that have none yet; returns those of all."""
        folder = self.desk.folder / "requests"
        folder.mkdir(exist_ok=True)
        (self.desk.folder / "replies").mkdir(exist_ok=True)
        paths = []
        for request in requests:
            path = folder / f"{request.id}.md"
            if not path.exists():
                _write(path, self._text(request, rng_of))
            paths.append(path)
        return paths

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        self.write_requests(requests, rng_of)
        stopped = self._wait_for(requests)
        found = [self._proposal(request) for request in requests]
        return Answers(tuple(proposal for proposal in found if proposal is not None), stopped=stopped)

    def _text(self, request: Request, rng_of: RngOf) -> str:
        reply = self.desk.folder / "replies" / f"{request.id}.py"
        parts = [f"<!-- Answer in {reply} (Python), or beside it as .md with the program in a fence. -->"]
        for message in self.book.messages(request, rng_of(request)):
            parts.append(f"<!-- {message['role']} -->\n\n{message['content'].strip()}")
        return "\n\n".join(parts) + "\n"

    def _wait_for(self, requests: Sequence[Request]) -> ProposerStopped | None:
        """Until every request has a reply or the run is asked to stop; why no longer, after `wait_s`."""
        deadline = time.monotonic() + self.settings.wait_s
        while missing := [r.id for r in requests if not self._answered(r, deadline)]:
            if self.desk.should_stop():
                return None
            folder = self.desk.folder / "replies"
            if time.monotonic() >= deadline:
                name, more = self.desk.name or self.desk.folder.name, " and so on" if len(missing) > 1 else ""
                return ProposerStopped(
                    f"{len(missing)} of {len(requests)} requests in {self.desk.folder / 'requests'} wait for a "
                    f"program: put {missing[0]}.py{more} into {folder}, then go on with jaxreward tell --name {name}, "
                    f"or evolve --name {name} --resume",
                    later=True,
                )
            self.desk.status(f"waiting for {len(missing)} of {len(requests)} programs in {folder}")
            time.sleep(_POLL_S)
        return None

    def _answered(self, request: Request, deadline: float) -> bool:
        """Whether there is a reply; until the deadline only one that has settled counts."""
        if self.desk.transcript.of(request.id):
            return True
        path = self._reply(request)
        if path is None:
            return False
        status = path.stat()
        settled = time.time() - status.st_mtime > _SETTLED_S or time.monotonic() >= deadline
        return status.st_size > 0 and settled

    def _reply(self, request: Request) -> Path | None:
        paths = [self.desk.folder / "replies" / f"{request.id}{suffix}" for suffix in REPLY_SUFFIXES]
        found = [path for path in paths if path.is_file()]
        if len(found) > 1:
            raise UserError(f"{found[0]} and {found[1].name} answer the same request: keep one of them")
        return found[0] if found else None

    def _proposal(self, request: Request) -> Proposal | None:
        recorded = self.desk.transcript.of(request.id)
        if recorded:
            text = recorded[-1].reply
        else:
            path = self._reply(request)
            if path is None:
                return None
            text = path.read_text(encoding="utf-8", errors="replace")[:REPLY_LIMIT]
            self.desk.transcript.add(Exchange(request_id=request.id, turn=0, model=self.name, reply=text))
        answer = read_answer(request, text)
        if isinstance(answer, Failure):
            return Proposal(request_id=request.id, proposer=self.name, failure=answer)
        return Proposal(request_id=request.id, proposer=self.name, source=answer.source, thought=answer.thought)


def _write(path: Path, text: str) -> None:
    """So that a reader sees the whole file or none."""
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
