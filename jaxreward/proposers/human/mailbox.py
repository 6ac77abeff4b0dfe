"""Questions to people and their answers as files in the folder of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jaxreward import files
from jaxreward.errors import EndCause, FileProblem, ProposerStopped, UnusableFile, why_unreadable
from jaxreward.proposers.proposer import Context
from jaxreward.proposers.replies.program_reply import REPLY_LIMIT
from jaxreward.records import Exchange
from jaxreward.secrets import Secrets

_POLL_S = 0.25
# A file that was touched more recently may still be half written.
_SETTLED_S = 0.5


@dataclass(frozen=True)
class Mailbox:
    """Two folders of a run: `questions/<id>.md` go out, `answers/<id>` with one of `suffixes` come in.

    An answer that was read is kept in the transcript, without the keys that stand in it: changing its file
    later changes nothing. A file that is empty or still being written is no answer yet.

    Attributes:
        context: of the run.
        questions, answers: names of the folders.
        suffixes: of the files that count as answers, the likeliest first.
        what: what an answer is, e.g. `program`.
        who: the name under which answers stand in the transcript.
        wait_s: how long to wait for the answers that are missing.
        how: what to type when they are there.
    """

    context: Context
    questions: str
    answers: str
    suffixes: tuple[str, ...]
    what: str
    who: str
    wait_s: float
    how: str

    def page_path(self, id: str) -> Path:
        """Where a question is written."""
        return self.context.folder / self.questions / f"{id}.md"

    def reply_path(self, id: str) -> Path:
        """Where the answer to a question is expected."""
        return self.context.folder / self.answers / f"{id}{self.suffixes[0]}"

    def post(self, id: str, text: str) -> Path:
        """Write a question, unless it was written before."""
        path = self.page_path(id)
        with _explained():
            for folder in (self.questions, self.answers):
                files.make_folder(self.context.folder / folder, below=self.context.folder)
            if not files.is_file(path, below=self.context.folder):
                files.replace(path, text.encode(), below=self.context.folder)
        return path

    def collect(
        self, ids: Sequence[str], problem_of: Callable[[str, str], str] = lambda id, text: ""
    ) -> tuple[dict[str, str], ProposerStopped | None]:
        """Wait until every question has an answer or the run is asked to stop, `wait_s` at most.

        Args:
            ids: the questions.
            problem_of: of a question and the text of its answer, what is wrong with it, empty where nothing is; an
                answer with a problem is left to be corrected.

        Returns:
            The answers by the ids of their questions, and why it waited no longer for those that are missing.

        Raises:
            UserError: two files answer a question.
        """
        kept = {id: said for id in ids if (said := self.kept(id)) is not None}
        deadline = time.monotonic() + self.wait_s
        noted, asked = set[str](), False
        while True:
            stopping, late = self.context.should_stop(), time.monotonic() >= deadline
            open_ids = [id for id in ids if id not in kept]
            found, problems = self._found(open_ids, problem_of, unsettled=late and not stopping)
            for said in problems:
                if said not in noted:
                    self.context.note(said)
            noted.update(problems)
            missing = [id for id in ids if id not in kept and id not in found]
            if stopping or late or not missing:
                break
            folder = self.context.folder / self.answers
            waiting = f"waiting for {len(missing)} of {len(ids)} {self.what}s in {folder}"
            self.context.status(waiting)
            if not asked:  # a status is drawn on terminals alone
                asked = True
                first = self.reply_path(missing[0]).name
                self.context.note(f"{waiting}: {self.page_path(missing[0])} says what to put into {first}")
            time.sleep(_POLL_S)
        answers = kept | {id: self.keep(id, text) for id, text in found.items()}
        return answers, None if stopping or not missing else self._missing(missing, len(ids), problems)

    def kept(self, id: str) -> str | None:
        """The answer to a question in the transcript, None while there is none."""
        recorded = self.context.transcript.of(id)
        return recorded[-1].reply if recorded else None

    def keep(self, id: str, text: str) -> str:
        """Put an answer into the transcript; returns what it holds now, which has no keys in it."""
        said = Secrets().redact(text)[:REPLY_LIMIT]
        self.context.transcript.add(Exchange(request_id=id, turn=0, model=self.who, reply=said))
        return said

    def _found(
        self, ids: Sequence[str], problem_of: Callable[[str, str], str], *, unsettled: bool
    ) -> tuple[dict[str, str], list[str]]:
        """The texts of the files that answer, and what is wrong with the others."""
        found, problems = {}, []
        for id in ids:
            path = self._file(id)
            text = self._text(path, unsettled) if path is not None else ""
            problem = problem_of(id, text) if text else ""
            if problem:
                problems.append(f"{path} cannot be read as a {self.what}: {problem}")
            elif text:
                found[id] = text
        return found, problems

    def _missing(self, missing: Sequence[str], asked: int, problems: Sequence[str]) -> ProposerStopped:
        first, more = self.reply_path(missing[0]), " and so on" if len(missing) > 1 else ""
        text = (
            f"{len(missing)} of {asked} requests in {self.context.folder / self.questions} wait for a {self.what}: put "
            f"{first.name}{more} into {first.parent}, then go on with {self.how}"
        )
        return ProposerStopped("; ".join([text, *problems]), EndCause.PEOPLE, later=True)

    def _file(self, id: str) -> Path | None:
        paths = [self.context.folder / self.answers / f"{id}{suffix}" for suffix in self.suffixes]
        found = [path for path in paths if files.is_there(path)]
        if len(found) > 1:
            message = f"{found[0]} and {found[1].name} answer the same request: keep one of them"
            raise UnusableFile(message, found[1], FileProblem.EXISTS)
        return found[0] if found else None

    def _text(self, path: Path, unsettled: bool) -> str:
        """The text of a file; empty if it was changed just now and `unsettled` does not count."""
        try:
            with _explained():
                data = files.read_bytes(path, below=self.context.folder)
            # The time is taken after the text, so that what was read is what has settled.
            touched = path.stat().st_mtime
        except FileNotFoundError:  # an editor puts another in its place
            return ""
        if not unsettled and time.time() - touched <= _SETTLED_S:
            return ""
        text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        return text if text.strip() else ""


@contextmanager
def _explained() -> Iterator[None]:
    """Turns a path that is refused into an UnusableFile."""
    try:
        yield
    except files.NotAFile as error:
        message = f"{error.filename} cannot be used: {why_unreadable(error)}; move it away"
        raise UnusableFile(message, error.filename, FileProblem.WRONG_KIND) from error
