"""A person's vote on two agents, and the remark that may follow it."""

from __future__ import annotations

import re

from jaxreward.proposers.replies.program_reply import REPLY_LIMIT, legible
from jaxreward.records import Failure

REMARK = 1_000
"""Characters of a voter's remark that are kept."""

_VOTES = {
    "first": ("first", "1", "1st", "one", "a", "left"),
    "second": ("second", "2", "2nd", "two", "b", "right"),
    "equal": ("equal", "equally", "tie", "tied", "draw", "same", "both", "neither", "none", "0", "="),
}
_VOTE_OF = {word: vote for vote, words in _VOTES.items() for word in words}
_FILLING = frozenset(
    ["the", "a", "answer", "agent", "program", "option", "vote", "my", "is", "it", "its", "it's", "number",
     "i", "i'd", "prefer", "say", "think", "one", "they", "are", "about", "better", "does", "wins"]
)  # fmt: skip
"""Words that may stand around a vote."""
_NUMBERS = frozenset({"0", "1", "2", "one", "two"})
"""What may follow "no" for "number"; elsewhere it turns a vote into its opposite."""
_PLAIN = frozenset({"first", "second", "left", "right", "equal", "tie", "draw"})
"""Votes after which a remark may follow without a mark between, unless one of `_OF` does: `left one is worse`."""
_OF = frozenset({"one", "is", "was", "agent", "program", "does", "and", "or", "side", "foot", "hand", "picture"})
_CLAUSE = re.compile(r"[.,;:!?\n\u2013\u2014]|\s-\s")
_TOKEN = re.compile(r"[a-z0-9']{1,40}|=", re.IGNORECASE)
_FIRST_LINES = 400
"""Characters of an answer in which its vote must end."""


def read_vote(text: str) -> str | Failure:
    """`first`, `second` or `equal`, and from the second line on the remark, if there is one.

    The first clause is a vote and nothing else, or a plain vote that a remark follows; else a failure of stage `reply`.
    """
    text = legible(text[:REPLY_LIMIT]).strip()
    end = _CLAUSE.search(text, 0, _FIRST_LINES)
    clause = text[: end.start() if end else len(text)]
    tokens = [(m.group().lower(), m.end()) for m in _TOKEN.finditer(clause[:_FIRST_LINES])]
    words = [word.strip("'") for word, _ in tokens]
    words = [
        word for word, after in zip(words, [*words[1:], ""], strict=False) if word != "no" or after not in _NUMBERS
    ]
    votes = [word for word in words if word not in _FILLING] or words[:1]
    at = 0
    if len(votes) == 1 and votes[0] in _VOTE_OF and (votes[0] not in _FILLING or len(words) == 1):
        at = end.end() if end else len(text)
    elif words and words[0] in _PLAIN and (len(words) < 2 or words[1] not in _OF):
        votes, at = words[:1], tokens[0][1]
    if not at:
        message = "the reply does not begin with first, second or equal" if text else "the reply is empty"
        return Failure(stage="reply", message=message, hint="begin with left, right or equal")
    vote = _VOTE_OF[votes[0]]
    remark = re.sub(r"\s+", " ", text[at : at + 4 * REMARK]).lstrip(" -–—:,;.\"'").strip()
    return f"{vote}\n{remark[:REMARK].rstrip()}" if remark else vote
