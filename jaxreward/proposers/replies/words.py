"""What was answered to a request for words, brought into the form that strategies read.

Nothing is executed, and the time is about linear in the length of the answer, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from jaxreward.proposers.replies.plans import read_plan
from jaxreward.proposers.replies.program_reply import REPLY_LIMIT, THOUGHT_LIMIT, legible
from jaxreward.proposers.replies.reasoning import spoken
from jaxreward.records import Failure

SENTENCES = 4
"""Sentences of a thought that are asked for, and kept."""

REMARK = 1_000
"""Characters of a voter's remark that are kept."""

_THINKING_ENDS = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_FENCED = re.compile(r"^[ \t]*(?:```|~~~)")
_TAGS = re.compile(r"</?(?:thought|answer|description)>", re.IGNORECASE)
_LABEL = re.compile(r"^(?:the )?(?:new |revised )?(?:design )?(?:idea|thought|description)[ \t]*:[ \t]*", re.IGNORECASE)
_LEAD_IN = re.compile(r"^(?:here is|here's|sure|certainly|of course|okay|ok)\b.{0,200}[:!]$", re.IGNORECASE)
_END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<=[.!?]) (?=[^a-z])")

_NUMBER = r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?"
_BRACKETED = re.compile(rf"(?<![\w\])])\[ {{0,9}}({_NUMBER}) {{0,9}}\]", re.IGNORECASE)
_ALONE = re.compile(rf"(?:[a-z' -]{{1,60}}(?::|=| is) {{0,9}})?({_NUMBER})[.!]?", re.IGNORECASE)

_VOTES = {
    "first": ("first", "1", "1st", "one", "a", "left"),
    "second": ("second", "2", "2nd", "two", "b", "right"),
    "equal": ("equal", "equally", "tie", "tied", "draw", "same", "both", "neither", "none", "0", "="),
}
_VOTE_OF = {word: vote for vote, words in _VOTES.items() for word in words}
_FILLING = frozenset(
    ["the", "a", "answer", "agent", "program", "option", "vote", "my", "is", "it", "its", "it's", "number", "no",
     "i", "i'd", "prefer", "say", "think", "one", "they", "are", "about", "better", "does", "wins"]
)  # fmt: skip
"""Words that may stand around a vote."""
_PLAIN = frozenset({"first", "second", "left", "right", "equal", "tie", "draw"})
"""Votes after which a remark may follow without a mark between, unless one of `_OF` does: `left one is worse`."""
_OF = frozenset({"one", "is", "was", "agent", "program", "does", "and", "or", "side", "foot", "hand", "picture"})
_CLAUSE = re.compile(r"[.,;:!?\n\u2013\u2014]|\s-\s")
_TOKEN = re.compile(r"[a-z0-9']{1,40}|=", re.IGNORECASE)
_FIRST_LINES = 400
"""Characters of an answer in which its vote must end."""


def read_words(operator: str, text: str, finish: str = "") -> str | Failure:
    """An answer to `plan`, `align`, `verify` or `prefer` in its canonical form, or a failure of stage `reply`.

    - `plan`: named components, one a line, `- name: what it rewards and why`
    - `align`: at most `SENTENCES` sentences of plain text
    - `verify`: a decimal number in [-1, 1]: on the last line, alone in brackets or alone altogether
    - `prefer`: `first`, `second` or `equal`, and from the second line on the remark, if there is one

    Args:
        operator: what was asked for.
        text: the answer; its first `REPLY_LIMIT` characters are read.
        finish: the provider's reason for its end; `content_filter` makes an empty reply a refusal.
    """
    said = legible(text[:REPLY_LIMIT])
    said = said if operator == "prefer" else _answer(said)
    if not said.strip():
        if finish == "content_filter":
            return Failure(stage="refused", message="the provider's content filter emptied the reply")
        cut = ": the token limit was reached before it held anything" if finish == "length" else ""
        return Failure(stage="reply", message=f"the reply is empty{cut}", hint=_HINTS[operator])
    found = _READERS[operator](said)
    if found:
        return found
    message = _WITHOUT[operator] + (": it was cut off at the token limit" if finish == "length" else "")
    return Failure(stage="reply", message=message, hint=_HINTS[operator])


def _answer(text: str) -> str:
    """What follows the last block of thinking, also where its beginning is missing."""
    ends = list(_THINKING_ENDS.finditer(text))
    rest = text[ends[-1].end() :] if ends else ""
    return spoken(rest if rest.strip() else text)


def _thought(text: str) -> str:
    """Plain sentences: without fenced code, marks of Markdown, labels and lead-ins."""
    lines, fenced = [], False
    for line in _TAGS.sub(" ", text).split("\n"):
        if _FENCED.match(line):
            fenced = not fenced
        elif not fenced:
            line = re.sub(r"^[ \t]*(?:#{1,6}|[-*+•>]|\d{1,2}[.)])[ \t]+", "", line).replace("**", "").replace("`", "")
            line = _LABEL.sub("", line.strip())
            if line and not (not lines and _LEAD_IN.match(line)):
                lines.append(line)
    sentences = _END.split(" ".join(" ".join(lines).split()), maxsplit=SENTENCES)
    thought = " ".join(sentences[:SENTENCES])
    return thought if len(thought) <= THOUGHT_LIMIT else thought[: THOUGHT_LIMIT - 1].rstrip() + "…"


def _judgement(text: str) -> str:
    """The number in brackets that ends the answer, or one alone on the last line; empty if it is not in [-1, 1]."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    last = re.sub(r"[*`$\\_]", "", lines[-1].replace("\N{MINUS SIGN}", "-")) if lines else ""
    found = [match for match in _BRACKETED.finditer(last) if not last[match.end() :].strip(" .!]")]
    number = found[0] if found else _ALONE.fullmatch(last)
    if number is None or last[: number.start(1)].rstrip(" [").endswith((" of", "/")):  # out of [1]
        return ""
    value = float(number[1])
    return f"{value + 0.0:g}" if -1.0 <= value <= 1.0 else ""


def _vote(text: str) -> str:
    """A first clause that is a vote and nothing else, or a plain vote that a remark follows."""
    text = text.strip()
    end = _CLAUSE.search(text, 0, _FIRST_LINES)
    clause = text[: end.start() if end else len(text)]
    tokens = [(m.group().lower(), m.end()) for m in _TOKEN.finditer(clause[:_FIRST_LINES])]
    words = [word.strip("'") for word, _ in tokens]
    votes = [word for word in words if word not in _FILLING] or words[:1]
    at = 0
    if len(votes) == 1 and votes[0] in _VOTE_OF and (votes[0] not in _FILLING or len(words) == 1):
        at = end.end() if end else len(text)
    elif words and words[0] in _PLAIN and (len(words) < 2 or words[1] not in _OF):
        votes, at = words[:1], tokens[0][1]
    if not at:
        return ""
    vote = _VOTE_OF[votes[0]]
    remark = re.sub(r"\s+", " ", text[at : at + 4 * REMARK]).lstrip(" -–—:,;.\"'").strip()
    return f"{vote}\n{remark[:REMARK].rstrip()}" if remark else vote


_READERS: Mapping[str, Callable[[str], str | Failure]] = {
    "plan": read_plan,
    "align": _thought,
    "verify": _judgement,
    "prefer": _vote,
}
_WITHOUT = {
    "plan": "the reply names no components",
    "align": "the reply holds no description",
    "verify": "the reply holds no number in square brackets",
    "prefer": "the reply does not begin with first, second or equal",
}
_HINTS = {
    "plan": "reply with one line for each component: - name: what it rewards or shows, and why",
    "align": "reply with the description alone, in at most four sentences",
    "verify": "end the reply with a number from -1 to 1 in square brackets, e.g. [0.5]",
    "prefer": "begin with left, right or equal",
}
