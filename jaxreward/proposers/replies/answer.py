"""What was replied to a request, read as the request asks: a program, or words."""

from __future__ import annotations

from typing import Any

from jaxreward.operators import WORDS
from jaxreward.proposers.replies.program_reply import Reply, read_reply
from jaxreward.proposers.replies.requested_halves import fit
from jaxreward.proposers.replies.words import read_words
from jaxreward.records import Failure, Proposal, Request


def read_answer(request: Request, text: str, finish: str = "") -> Reply | str | Failure:
    """The program, or the words, that a request asked for, out of a reply to it.

    Args:
        request: what was asked.
        text: the reply.
        finish: the provider's reason for its end; `length` is the token limit.
    """
    if request.operator in WORDS:
        return read_words(request.operator, text, finish)
    shown = [result.candidate.source for result in (*request.parents, request.failed) if result is not None]
    reply = read_reply(text, finish, thought=request.thought, shown=shown)
    return fit(reply, request.evolve) if isinstance(reply, Reply) else reply


def proposal_with(read: Reply | str | Failure, **about: Any) -> Proposal:
    """A proposal that holds what was read; `about` are its other fields."""
    if isinstance(read, Failure):
        return Proposal(failure=read, **about)
    if isinstance(read, str):
        return Proposal(words=read, **about)
    return Proposal(source=read.source, thought=read.thought, **about)
