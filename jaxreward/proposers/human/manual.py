"""A person, or a cluster without a network, as proposer: requests out as files, programs and words back in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jaxreward.errors import ProposerStopped
from jaxreward.operators import OF_JUDGES, WORDS
from jaxreward.proposers.human.mailbox import Mailbox
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.prompts.prompt_builder import PromptBook
from jaxreward.proposers.proposer import Answers, Context, Proposer, RngOf
from jaxreward.proposers.replies.answer import proposal_in
from jaxreward.records import Failure, Proposal, Request, TaskCard

PROGRAMS, TEXTS = (".py", ".md", ".txt"), (".txt", ".md", ".py")
"""Endings of the files that answer requests for programs and for words, the likeliest first."""

_WHAT = {
    "plan": "the plan, a line for each component: - name: what it rewards",
    "divide": "the subtasks, a line for each: - name: what is to be done",
    "revise": "the subtasks, a line for each: - name: what is to be done",
    "align": "the description, in at most four sentences",
    "verify": "the judgement, a number from -1 to 1 in square brackets",
}
"""What a person writes in place of the JSON object that the page asks for."""


class ManualProposer(Proposer):
    """Writes `requests/<id>.md` in the run's folder and reads `replies/<id>.py`, or `.txt` for words.

    A request is the prompt that a language model would get. A reply is a program, text with a program in
    a fence, or the words asked for. It waits `settings.wait_s` seconds for the replies that are missing;
    then the run ends and can be resumed when they are there. A reply that was read is kept in the
    transcript: changing its file later changes nothing.
    """

    name = "manual"
    accepts_repairs = True
    reads_data = True

    def __init__(self, card: TaskCard, settings: LlmSettings | None = None) -> None:
        self.settings = settings or LlmSettings()
        self.book = PromptBook(card, self.settings.prompts)
        self.open(Context(folder=Path()))

    def open(self, context: Context) -> None:
        how = context.goes_on("jaxreward tell {0}, or evolve {0} --resume")

        def box(suffixes: tuple[str, ...], what: str) -> Mailbox:
            return Mailbox(context, "requests", "replies", suffixes, what, self.name, self.settings.wait_s, how)

        self._programs, self._texts = box(PROGRAMS, "program"), box(TEXTS, "text")

    def write_requests(self, requests: Sequence[Request], rng_of: RngOf) -> list[Path]:
        """Write the files of requests that have none yet; returns those of all. Votes are not asked for here."""
        asked = [request for request in requests if request.operator not in OF_JUDGES]
        return [self._box(request).post(request.id, self._text(request, rng_of)) for request in asked]

    def reply_path(self, request: Request) -> Path:
        """Where the answer to a request is expected."""
        return self._box(request).reply_path(request.id)

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        self.write_requests(requests, rng_of)
        texts: dict[str, str] = {}
        stopped: ProposerStopped | None = None
        for box in (self._programs, self._texts):  # a generation asks for either
            asked = {r.id: r for r in requests if r.operator not in OF_JUDGES and self._box(r) is box}
            found, why = box.collect(list(asked), lambda id, text, asked=asked: _problem(asked[id], text))
            texts, stopped = texts | found, stopped or why
        proposals = [self._proposal(request, texts.get(request.id)) for request in requests]
        return Answers(tuple(proposal for proposal in proposals if proposal is not None), stopped=stopped)

    def _box(self, request: Request) -> Mailbox:
        return self._texts if request.operator in WORDS else self._programs

    def _text(self, request: Request, rng_of: RngOf) -> str:
        where = self.reply_path(request)
        if request.operator in WORDS:
            head = f"<!-- Write {_WHAT[request.operator]}, into {where}, or the JSON object asked for. -->"
        else:
            head = f"<!-- Answer in {where} (Python), or beside it as .md with the program in a fence. -->"
        messages = self.book.messages(request, rng_of(request))
        return "\n\n".join([head, *(f"<!-- {m['role']} -->\n\n{m['content'].strip()}" for m in messages)]) + "\n"

    def _proposal(self, request: Request, text: str | None) -> Proposal | None:
        if request.operator in OF_JUDGES:
            failure = Failure(
                stage="declined", message="requests by hand are for programs and words, not for what judges see"
            )
            return Proposal(request_id=request.id, proposer=self.name, failure=failure)
        if text is None:
            return None
        return proposal_in(request, text, proposer=self.name)


def _problem(request: Request, text: str) -> str:
    """What is wrong with words; programs are left to the checker, whose verdict goes back."""
    failure = proposal_in(request, text).failure if request.operator in WORDS else None
    return f"{failure.message}; {failure.hint}" if failure else ""
