"""Fenced blocks in text, also where fences are not as Markdown has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt

from jaxreward.proposers.replies.source import EXTEND, PARSE_LIMIT, WORK, dedented, defined, parsed

_MARKDOWN = MarkdownIt("zero").enable("fence").disable(["normalize", "inline", "text_join"])
_OPENER = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`]*)$")
_CODE_TAGS = frozenset({"", "python", "python3", "py", "jax", "tool_code"})
_CODE_IN_INFO = re.compile(r"(?:import|from|def|@)\b|@")


@dataclass(frozen=True)
class Fence:
    """A fenced block: the word after the opening fence, the text, and whether the fence was closed."""

    tag: str
    text: str
    closed: bool = True


def fences(text: str) -> list[Fence]:
    """The fenced blocks of a text, in order; only the last can be open.

    A fence that names a language closes the one before it, which a writer forgot to close. A block of code
    that does not parse goes on to a later fence if it does parse then: a string in it holds fences.
    """
    found: list[Fence] = []
    lines = text.split("\n")
    start, work = 0, WORK
    while start < len(lines):
        begin, start = start, len(lines)
        for first, last, closed in _blocks(lines, begin):
            mark, info, _ = _opening(lines[first])
            tag, code = _split_info(info)
            body = [*filter(None, [code]), *lines[first + 1 : last]]
            plain = "\n".join(body)
            if not closed and (end := re.search(re.escape(mark) + r"[ \t]*$", plain, re.MULTILINE)):
                plain, closed = plain[: end.start()], True  # closed at the end of a line of code
            block = dedented(plain)
            if closed and work > 0 and tag in _CODE_TAGS and block and parsed(block) is None:
                longer, resume, cost = _extended(body, mark, lines, last)
                work -= cost
                if resume:
                    found.append(Fence(tag, longer))
                    start, work = resume, work - len(lines)
                    break
            found.append(Fence(tag, block, closed))
    return found


def fenced_lines(text: str) -> frozenset[int]:
    """The numbers of the lines that stand in fenced blocks, from 0."""
    blocks = _blocks(text.split("\n"))
    return frozenset(line for first, last, _ in blocks for line in range(first + 1, last))


def _blocks(lines: list[str], start: int = 0) -> Iterator[tuple[int, int, bool]]:
    """Fenced blocks from a line on: the line that opens each, the line after its text, and whether it is closed."""
    # A fence after words opens a block and closes none: to Markdown it has an info string, which is no language.
    marks = [mark + (" after words" if at else info) for mark, info, at in map(_opening, lines[start:])]
    for token in _MARKDOWN.parse("".join(f"{mark}\n" for mark in marks)):
        first, end = token.map or (0, 0)
        inner = [i for i in range(first + 1, end) if marks[i].startswith(token.markup)]
        closed = inner[-1:] == [end - 1] and not marks[end - 1].strip("`~")
        stops = [first, *(i for i in inner if _is_tag(marks[i].lstrip("`~"))), end - closed]
        for one, other in pairwise(stops):
            yield one + start, other + start, closed or other != stops[-1]


def _extended(body: list[str], mark: str, lines: list[str], at: int) -> tuple[str, int, int]:
    """A block that goes on after the fence in line `at`, the line to go on with (0 for no such block), characters read.

    The body begins `len(body)` lines before that fence.
    """
    cost, fences_seen = 0, 0
    for end in range(at + 1, len(lines)):
        if not lines[end].strip().startswith(mark):
            continue
        text = dedented("\n".join([*body, *lines[at:end]]))
        cost, fences_seen = cost + len(text) + 100, fences_seen + 1
        if len(text) > PARSE_LIMIT or fences_seen > EXTEND:
            break
        if defined(text) and parsed(text) is not None:
            return text, end + 1, cost
    return "", 0, cost


def _opening(line: str) -> tuple[str, str, int]:
    """The fence in a line (empty for none), what follows it, and where it begins: 0, or after words."""
    if found := _OPENER.match(line):
        return found[1], found[2].strip(), 0
    at = line.find("```")
    found = _OPENER.match(line[at:]) if at > 0 else None
    info = found[2].strip() if found else ""
    return (found[1], info, at) if found and (not info or _is_tag(info)) else ("", "", 0)


def _is_tag(info: str) -> bool:
    return re.fullmatch(r"\{?\.?\w+\}?", info) is not None


def _split_info(info: str) -> tuple[str, str]:
    """The language of a fence, and code that stands on the fence's own line."""
    if _CODE_IN_INFO.match(info):
        return "", info
    tag, _, rest = info.partition(" ")
    return tag.strip("{.}").lower(), rest if _CODE_IN_INFO.match(rest) else ""
