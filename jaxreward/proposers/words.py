"""What was answered to a request for words, brought into the form that strategies read.

Nothing is executed, and the time is about linear in the length of the answer, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from jaxreward.proposers.plans import read_plan
from jaxreward.proposers.reply import REPLY_LIMIT, legible
from jaxreward.proposers.thinking import spoken
from jaxreward.records import Failure

SENTENCES = 4
"""Sentences of a thought that are kept."""

THOUGHT, REMARK = 1_200, 1_000
"""Characters of a thought and of a voter's remark that are kept."""

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
     "i", "prefer", "they", "are", "about"]
)  # fmt: skip
"""Words that may come before a vote."""
_WORD = re.compile(r"\s{0,99}[\"'*`(\[#]{0,9}([a-z0-9']{1,20}|=)[\"'*`)\].:,;!]{0,9}(?=\s|$|[-–—])", re.IGNORECASE)


def read_words(operator: str, text: str, finish: str = "") -> str | Failure:
    """An answer to `plan`, `align`, `verify` or `prefer` in its canonical form, or a failure of stage `reply`.

    - `plan`: named components, one a line, `- name: what it rewards and why`
    - `align`: at most `SENTENCES` sentences of plain text
    - `verify`: a decimal number in [-1, 1]: the last that stands alone in brackets, else one alone on the last line
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
    return thought if len(thought) <= THOUGHT else thought[: THOUGHT - 1].rstrip() + "…"


def _judgement(text: str) -> str:
    text = re.sub(r"[*`$\\_]", "", text.replace("\N{MINUS SIGN}", "-"))
    found = [match[1] for match in _BRACKETED.finditer(text)]
    if not found:
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        alone = _ALONE.fullmatch(lines[-1]) if lines else None
        found = [alone[1]] if alone else []
    return f"{min(1.0, max(-1.0, float(found[-1]))) + 0.0:g}" if found else ""


def _vote(text: str) -> str:
    at, vote = 0, ""
    for _ in range(6):
        match = _WORD.match(text, at)
        if match is None:
            break
        word, at = match[1].lower().strip("'"), match.end()
        following = _WORD.match(text, at)
        if word == "a" and following and following[1].lower() in ("tie", "draw"):
            continue
        if word in _VOTE_OF:
            vote = _VOTE_OF[word]
            break
        if word not in _FILLING:
            break
    if not vote:
        return ""
    remark = re.sub(r"\s+", " ", text[at : at + 4 * REMARK]).lstrip(" -–—:,;.").strip()
    return f"{vote}\n{remark[:REMARK].rstrip()}" if remark else vote


_READERS: Mapping[str, Callable[[str], str]] = {
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
    "plan": "reply with one line for each component: - name: what it rewards, when, and why",
    "align": "reply with the description alone, in at most three sentences",
    "verify": "end the reply with a number from -1 to 1 in square brackets, e.g. [0.5]",
    "prefer": "begin with left, right or equal",
}
