"""What a language model answered, read: the program, wherever it stands, or why there is none.

Nothing is executed, and the time is about linear in the length of the reply, whatever it holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.proposers.fences import Fence, bare, dedented, defined, fences, helpers, missing, parsed
from jaxreward.records import Failure

REPLY_LIMIT = 200_000
"""Characters of a reply that are read; a program has at most 32 KB."""

THOUGHT_LIMIT = 2_000
"""Characters of a design thought that are kept."""

_BLOCKS = 64
"""Fences that are looked at for helpers of a program."""

_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b\u200c\u200d\u2060\0"))
_SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u202f"), " ")
_THINKING = re.compile(r"^[ \t]*<(think|thinking|reasoning)>", re.IGNORECASE | re.MULTILINE)
_END_OF_THINKING = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_TAGGED = re.compile(r"<(?:code|program|python)>(.*?)(?:</(?:code|program|python)>|\Z)", re.IGNORECASE | re.DOTALL)
_THOUGHT = re.compile(r"<thought>(.*?)(?:</thought>|\Z)", re.IGNORECASE | re.DOTALL)
_BRACES = re.compile(r"\{([^{}]{12,})\}")
_CODE_KEYS = ("code", "program", "source", "get_observation", "compute_reward", "reward")
_THOUGHT_KEYS = ("thought", "design", "idea", "reasoning", "explanation")
_CODE_FIELD = re.compile(rf'"(?:{"|".join(_CODE_KEYS)})"\s*:\s*("(?:[^"\\]|\\.)*+")', re.DOTALL)
_FORM = "reply with one fenced Python block that defines the functions asked for"


@dataclass(frozen=True)
class Reply:
    """A program as a model wrote it, and what it said about its design where that was asked for."""

    source: str
    thought: str = ""


def read_reply(text: str, finish: str = "", *, thought: bool = False) -> Reply | Failure:
    """The program in a reply, or a failure of stage `reply`.

    Args:
        text: the reply; its first `REPLY_LIMIT` characters are read.
        finish: the provider's reason for its end; `length` is the token limit.
        thought: whether to keep the design thought: the text in `<thought>`, in braces before the
            program, or else the prose before it, of at most `THOUGHT_LIMIT` characters.

    A program need not be valid Python, so that its checks can say what is wrong and where; it must
    define `get_observation`, `compute_reward` or `reward`. Of several complete programs the last
    counts; functions in separate blocks are put together.
    """
    plain = _plain(text[:REPLY_LIMIT])
    said = _spoken(plain)
    cut = finish == "length"
    if not said.strip():
        return _empty(plain, finish)
    fields = _fields(said) if said.lstrip()[0] in "{[" else {}
    source = _picked(_of_fields(fields))
    if source is None:
        source = _of_text(said, cut)
    if isinstance(source, Failure):
        return source
    if source is None:
        return _no_program(text, said, cut)
    return Reply(source + "\n", _thought(said, source, fields) if thought else "")


def _plain(text: str) -> str:
    """Without carriage returns, invisible characters and halves of surrogate pairs; with plain spaces."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_INVISIBLE | _SPACES)


def _spoken(text: str) -> str:
    """Without the blocks in which a model thinks aloud."""
    parts, at = [], 0
    while start := _THINKING.search(text, at):
        end = _END_OF_THINKING.search(text, start.end())
        if end is None:
            if not text[: start.start()].strip():
                return ""
            break
        parts.append(text[at : start.start()])
        at = end.end()
    end = None if at else _END_OF_THINKING.search(text)
    if end is not None and defined(text[end.end() :]):  # some endpoints swallow the opening tag
        at = end.end()
    return "".join(parts) + text[at:]


def _of_text(said: str, cut: bool) -> str | Failure | None:
    """The program in fences, in tags, in a JSON object among prose, or bare."""
    found = fences(said)
    blocks = [block for fence in found for block in _of_fence(fence)]
    last = found[-1] if found and not found[-1].closed else None
    if last is not None and blocks[-1:] == [last.text] and defined(last.text) and parsed(last.text) is None:
        if not cut:
            return _picked([*blocks[:-1], bare(last.text) or last.text])
        blocks = blocks[:-1]
        if not any(len(defined(block)) == 2 for block in blocks):
            return _cut_off()
    source = _picked(blocks)
    if source is None:
        source = _picked([dedented(match[1].strip("\n")) for match in _TAGGED.finditer(said)])
    if source is None:
        source = _picked(_of_fields(_fields(said)))
    if source is None:
        source = bare(said) or None
        if source is not None and cut and parsed(source) is None:
            return _cut_off()
    return source


def _of_fence(fence: Fence) -> list[str]:
    if fence.tag == "json" or (fence.text[:1] in ("{", "[") and not defined(fence.text)):
        return _of_fields(_fields(fence.text))
    if fence.tag in ("markdown", "md") or fence.text.startswith(("```", "~~~")):
        return [inner.text for inner in fences(fence.text)]
    return [fence.text]


def _fields(text: str) -> dict[str, list[str]]:
    """The strings in a JSON document by key; of one that is broken, those that hold code."""
    found: dict[str, list[str]] = {}
    try:
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        for match in _CODE_FIELD.finditer(text):
            try:
                found.setdefault("code", []).append(json.loads(match[1], strict=False))
            except ValueError:
                continue
        return found
    for key, value in _strings(document):
        found.setdefault(key.lower(), []).append(value)
    return found


def _strings(document: Any) -> Iterator[tuple[str, str]]:
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, dict):
            waiting += [(str(k), v) for k, v in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(key, v) for v in reversed(value)]


def _of_fields(fields: dict[str, list[str]]) -> list[str]:
    """Code in JSON strings, fenced or not; of keys that promise code, or else of any."""
    values = [v for key in _CODE_KEYS for v in fields.get(key, ())]
    if not any(map(defined, map(_unescaped, values))):
        values = [v for several in fields.values() for v in several]
    blocks: list[str] = []
    for value in map(_plain, map(_unescaped, values)):
        fenced = [fence.text for fence in fences(value)]
        blocks += fenced if any(map(defined, fenced)) else [dedented(value)]
    return blocks


def _unescaped(text: str) -> str:
    """A string whose line ends were escaped once too often."""
    if "\n" in text or "\\n" not in text:
        return text
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')


def _picked(blocks: Sequence[str]) -> str | None:
    """The last block with both functions, or the last of each; and the helpers that it misses."""
    halves = [defined(block) for block in blocks]
    both = [i for i, half in enumerate(halves) if len(half) == 2]
    last = {part: i for i, half in enumerate(halves) for part in half}
    chosen = set(both[-1:] or last.values())
    if not chosen:
        return None
    tree = parsed(_joined(blocks, chosen))
    wanting = missing(tree) if tree is not None else frozenset()
    for i, block in enumerate(blocks[:_BLOCKS]):
        tree = parsed(block) if wanting and not halves[i] else None
        if tree is not None and helpers(tree) & wanting:
            chosen.add(i)
            wanting |= missing(tree)
    return _joined(blocks, chosen)


def _joined(blocks: Sequence[str], chosen: Collection[int]) -> str:
    joined = "\n\n\n".join(blocks[i].strip("\n") for i in sorted(chosen))
    if len(chosen) > 1:  # an import from __future__ may stand at the very top only, and does nothing for a program
        joined = re.sub(r"^from __future__ import annotations *\n", "", joined, flags=re.MULTILINE)
    return joined


def _thought(said: str, source: str, fields: dict[str, list[str]]) -> str:
    explicit = [v for key in _THOUGHT_KEYS for v in fields.get(key, ())] or [m[1] for m in _THOUGHT.finditer(said)]
    text = explicit[0] if explicit else ""
    if not text and not fields:
        first = source.split("\n", 1)[0]
        before = said[
            : min((at for at in (said.find("```"), said.find("~~~"), said.find(first)) if at >= 0), default=0)
        ]
        braces = _BRACES.search(before)
        text = braces[1] if braces else before
    text = re.sub(r"\n\s*\n", "\n\n", _plain(text)).strip()
    return text if len(text) <= THOUGHT_LIMIT else text[: THOUGHT_LIMIT - 1].rstrip() + "…"


def _empty(text: str, finish: str) -> Failure:
    thinking = " but thinking" if text.strip() else ""
    if finish == "length":
        message = f"the token limit was reached before the reply held anything{thinking}"
        return Failure(stage="reply", message=message, hint=f"think less: {_FORM}")
    if finish == "content_filter":
        return Failure(stage="reply", message="the provider's content filter emptied the reply", hint=_FORM)
    message = f"the reply holds nothing{thinking}" if thinking else "the reply is empty"
    return Failure(stage="reply", message=message, hint=_FORM)


def _cut_off() -> Failure:
    message = "the reply was cut off at the token limit before the program was complete"
    return Failure(stage="reply", message=message, hint=f"write less: {_FORM}, without explanations, and keep it short")


def _no_program(text: str, said: str, cut: bool) -> Failure:
    if cut:
        return _cut_off()
    names = "neither get_observation nor compute_reward"
    if len(text) > REPLY_LIMIT:
        message = f"the first {REPLY_LIMIT:,} characters of the reply define {names}"
    elif fences(said):
        message = f"the code in the reply defines {names}"
    else:
        message = "there is no program in the reply: no fenced code block, and no definition of get_observation"
        message += " or compute_reward"
    return Failure(stage="reply", message=message, hint=_FORM)
