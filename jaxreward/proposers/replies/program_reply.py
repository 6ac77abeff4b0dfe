"""What a language model answered, read: the program, wherever it stands, or why there is none.

Nothing is executed, and the time is about linear in the length of the reply, whatever it holds.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.proposers.replies.fences import Fence, fences
from jaxreward.proposers.replies.reasoning import strip_reasoning
from jaxreward.proposers.replies.source import NAMES, bare, dedented, defined, helpers, missing, parsed, solid, whole
from jaxreward.records import Failure

REPLY_LIMIT = 200_000
"""Characters of a reply that are read; a program has at most 32 KB."""

THOUGHT_LIMIT = 1_200
"""Characters of a design thought that are kept, and shown."""

_BLOCKS = 64
"""Fences that are looked at for helpers of a program."""

_CONTROL = {*range(32), *range(127, 160)} - set(map(ord, "\t\n\f"))
_INVISIBLE = dict.fromkeys([*map(ord, "\ufeff\u200b\u200c\u200d\u2060"), *_CONTROL])
_SPACES = dict.fromkeys(map(ord, "\v\u0085\u00a0\u2007\u202f"), " ")
_QUOTED = re.compile(r"^[ \t]*>[ \t]*def[ \t]", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^[ \t]*>[ ]?", re.MULTILINE)
_DIFF = re.compile(r"^(?:@@|\+\+\+ |\+[ \t]*(?:def|return|import|from)\b)", re.MULTILINE)
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


def read_reply(text: str, finish: str = "", *, thought: bool = False, shown: Sequence[str] = ()) -> Reply | Failure:
    """The program in a reply, or a failure of stage `reply`.

    A refusal by the provider's content filter, which leaves nothing, is of stage `refused`.

    Args:
        text: the reply; its first `REPLY_LIMIT` characters are read.
        finish: the provider's reason for its end; `length` is the token limit.
        thought: whether to keep the design thought: the text in `<thought>`, in braces before the
            program, or else the prose before it, of at most `THOUGHT_LIMIT` characters.
        shown: programs that the prompt showed; one of them, quoted, counts only where there is no other.

    A program need not be valid Python, so that its checks can say what is wrong and where; it must
    define `get_observation`, `compute_reward` or `reward`. Of several complete programs the last
    counts; functions in separate blocks are put together. Outlines, functions without a body, count
    only where there is nothing else.
    """
    plain = legible(text[:REPLY_LIMIT])
    if program := whole(plain):  # fences in it are words of its docstrings
        return Reply(program + "\n", _thought(plain, program, {}) if thought else "")
    said = strip_reasoning(plain)
    if not defined(said) and _QUOTED.search(said):
        said = _QUOTE_MARK.sub("", said)
    cut = finish == "length"
    if not said.strip():
        return empty_reply(finish, _FORM, thinking=bool(plain.strip()))
    fields = _fields(said) if said.lstrip()[0] in "{[" else {}
    old = frozenset(map(_squeezed, shown))
    source = _picked(_of_fields(fields), old)
    if source is None:
        source = _of_text(said, cut, old)
    if isinstance(source, Failure):
        return source
    if source is None:
        return _no_program(text, said, cut)
    if _in_class(source):
        message = "the functions are methods of a class: define them at the top level, without self"
        return Failure(stage="reply", message=message, hint=_FORM)
    return Reply(source + "\n", _thought(said, source, fields) if thought else "")


def legible(text: str) -> str:
    """Without control and invisible characters and halves of surrogate pairs; with plain spaces and line ends."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_INVISIBLE | _SPACES)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters; an ellipsis marks a cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _squeezed(source: str) -> str:
    return "".join(source.split())


def _in_class(source: str) -> bool:
    """Whether the wanted functions are all methods."""
    tree = parsed(source)

    def has(body: Sequence[ast.stmt]) -> bool:
        return any(isinstance(node, ast.FunctionDef) and node.name in NAMES for node in body)

    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)] if tree is not None else []
    return tree is not None and not has(tree.body) and any(has(node.body) for node in classes)


def _is_diff(text: str) -> bool:
    return _DIFF.search(text) is not None and parsed(text) is None


def _of_text(said: str, cut: bool, old: Collection[str]) -> str | Failure | None:
    """The program in fences, in tags, in a JSON object among prose, or bare."""
    found = fences(said)
    blocks = [block for fence in found for block in _of_fence(fence)]
    last = found[-1] if found and not found[-1].closed else None
    if last is not None and blocks[-1:] == [last.text] and defined(last.text) and parsed(last.text) is None:
        if not cut:
            return _picked([*blocks[:-1], bare(last.text) or last.text], old)
        blocks = blocks[:-1]
        if not any(len(defined(block)) == 2 for block in blocks):
            return _cut_off()
    source = _picked(blocks, old)
    if source is None:
        source = _picked([dedented(match[1].strip("\n")) for match in _TAGGED.finditer(said)], old)
    if source is None:
        source = _picked(_of_fields(_fields(said)), old)
    if source is None and any(map(_is_diff, [said] if not found else [fence.text for fence in found])):
        return Failure(stage="reply", message="the reply is a diff: send the complete program", hint=_FORM)
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
    if fence.tag in ("diff", "patch") or _is_diff(fence.text):
        return []
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
        elif isinstance(value, list) and key.lower() in _CODE_KEYS and len(value) > 1 and all(map(_is_line, value)):
            yield key, "\n".join(line.rstrip("\n") for line in value)
        elif isinstance(value, list):
            waiting += [(key, v) for v in reversed(value)]


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value[:-1]


def _of_fields(fields: dict[str, list[str]]) -> list[str]:
    """Code in JSON strings, fenced or not; of keys that promise code, or else of any."""
    values = [v for key in _CODE_KEYS for v in fields.get(key, ())]
    if not any(map(defined, map(_unescaped, values))):
        values = [v for several in fields.values() for v in several]
    blocks: list[str] = []
    for value in map(legible, map(_unescaped, values)):
        fenced = [fence.text for fence in fences(value)]
        blocks += fenced if any(map(defined, fenced)) else [dedented(value)]
    return blocks


def _unescaped(text: str) -> str:
    """A string whose line ends were escaped once too often."""
    if "\n" in text or "\\n" not in text:
        return text
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')


def _picked(blocks: Sequence[str], old: Collection[str]) -> str | None:
    """The last block with both functions, or the last of each; and the helpers that it misses.

    Programs that are `old`, and outlines, are left out where something else remains.
    """
    new = [block for block in blocks if not old or _squeezed(block) not in old]
    blocks = new if any(map(defined, new)) else blocks
    solids = list(map(solid, blocks))
    blocks = solids if any(map(defined, solids)) else blocks
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
    return shortened(re.sub(r"\n\s*\n", "\n\n", legible(text)).strip(), THOUGHT_LIMIT)


def empty_reply(finish: str, form: str, thinking: bool = False) -> Failure:
    """The failure of a reply without an answer; `form` says how to reply."""
    if finish == "content_filter":
        return Failure(stage="refused", message="the provider's content filter emptied the reply")
    but = " but thinking" if thinking else ""
    if finish == "length":
        message, form = f"the token limit was reached before the reply held anything{but}", f"think less: {form}"
    else:
        message = f"the reply holds nothing{but}" if thinking else "the reply is empty"
    return Failure(stage="reply", message=message, hint=form)


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
