"""Questions to people as files in a run's folder, and their answers as files beside them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxreward.errors import ProposerStopped, UserError
from jaxreward.proposers.proposer import Desk
from jaxreward.proposers.reply import REPLY_LIMIT
from jaxreward.records import Exchange

_POLL_S = 0.25
# A file that was touched more recently may still be half written.
_SETTLED_S = 0.5


@dataclass(frozen=True)
class Mailbox:
    """Two folders of a run: `questions/<id>.md` go out, `answers/<id>` with one of `suffixes` come in.

    An answer that was read is kept in the transcript: changing its file later changes nothing.

    Attributes:
        desk: what the run lends.
        questions, answers: names of the folders.
        suffixes: of the files that count as answers, the likeliest first.
        what: what an answer is, e.g. `program`.
        who: the name under which answers stand in the transcript.
        wait_s: how long to wait for the answers that are missing.
        how: what to type when they are there.
    """

    desk: Desk
    questions: str
    answers: str
    suffixes: tuple[str, ...]
    what: str
    who: str
    wait_s: float
    how: str

    def reply_path(self, id: str) -> Path:
        """Where the answer to a question is expected."""
        return self.desk.folder / self.answers / f"{id}{self.suffixes[0]}"

    def post(self, id: str, text: str) -> Path:
        """Write a question, unless it was written before."""
        folder = self.desk.folder / self.questions
        folder.mkdir(exist_ok=True)
        (self.desk.folder / self.answers).mkdir(exist_ok=True)
        path = folder / f"{id}.md"
        if not path.exists():
            _write(path, text)
        return path

    def wait_for(self, ids: Sequence[str]) -> ProposerStopped | None:
        """Until every question has an answer or the run is asked to stop; why no longer, after `wait_s`."""
        deadline = time.monotonic() + self.wait_s
        while missing := [id for id in ids if not self._answered(id, deadline)]:
            if self.desk.should_stop():
                return None
            folder = self.desk.folder / self.answers
            if time.monotonic() >= deadline:
                more = " and so on" if len(missing) > 1 else ""
                return ProposerStopped(
                    f"{len(missing)} of {len(ids)} requests in {self.desk.folder / self.questions} wait for a "
                    f"{self.what}: put {self.reply_path(missing[0]).name}{more} into {folder}, then go on with "
                    f"{self.how}",
                    later=True,
                )
            self.desk.status(f"waiting for {len(missing)} of {len(ids)} {self.what}s in {folder}")
            time.sleep(_POLL_S)
        return None

    def read(self, id: str) -> str | None:
        """The answer to a question, None while there is none.

        Raises:
            UserError: two files answer it.
        """
        recorded = self.desk.transcript.of(id)
        if recorded:
            return recorded[-1].reply
        path = self._file(id)
        if path is None:
            return None
        text = path.read_text(encoding="utf-8", errors="replace")[:REPLY_LIMIT]
        self.keep(id, text)
        return text

    def keep(self, id: str, text: str) -> None:
        """Put an answer into the transcript."""
        self.desk.transcript.add(Exchange(request_id=id, turn=0, model=self.who, reply=text))

    def _answered(self, id: str, deadline: float) -> bool:
        """Whether there is an answer; until the deadline only one that has settled counts."""
        if self.desk.transcript.of(id):
            return True
        path = self._file(id)
        if path is None:
            return False
        status = path.stat()
        settled = time.time() - status.st_mtime > _SETTLED_S or time.monotonic() >= deadline
        return status.st_size > 0 and settled

    def _file(self, id: str) -> Path | None:
        paths = [self.desk.folder / self.answers / f"{id}{suffix}" for suffix in self.suffixes]
        found = [path for path in paths if path.is_file()]
        if len(found) > 1:
            raise UserError(f"{found[0]} and {found[1].name} answer the same request: keep one of them")
        return found[0] if found else None


def _write(path: Path, text: str) -> None:
    """So that a reader sees the whole file or none."""
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
