"""Plans as language models write them: named components in lists of many kinds, read line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

COMPONENTS = 30
"""Components of a plan that are kept."""

_NAME, _TEXT, _LINE = 60, 400, 2_000
"""Characters of a component's name and of what is said about it that are kept, and of a line that are read."""

_LEVELS = 4
"""Depths of a list that are looked at."""

_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_MARKED = re.compile(r"([ \t]*)(?:([-*+•])|(\d{1,3}[.)])|(#{1,6}(?:[ \t]+\d{1,3}[.)])?))[ \t]+(\S.*)")
_NAMED = re.compile(r"[*_`\"']{0,4}([A-Za-z][^:\n]{0,79}?)[*_`\"']{0,4}[ \t]*(?::|[ \t][-–—]{1,2}[ \t])[*_` \t]*(.*)")
_BOLD = re.compile(r"[*_`]{1,4}([A-Za-z][^*`:]{0,79})[*_`]{1,4}[.:]?")
_NAME_KEYS = ("name", "component", "term", "id")
_TEXT_KEYS = ("description", "rewards", "what", "text", "why", "reason", "rationale")


class _Line(NamedTuple):
    """A line of a list: its kind of mark, how far it is indented, the name it gives, and the rest."""

    kind: str
    indent: int
    name: str
    rest: str


def read_plan(text: str) -> str:
    """The components in a text, one a line as `- name: what is said`; empty where none has a name.

    Names become identifiers, equal ones count once. Read are lists with bullets, numbers or headings, where the kind
    of mark with names that differ is the one that counts and what stands below belongs to it, and JSON.
    """
    found = _of_json(text) or _of_lines(text)
    components: dict[str, str] = {}
    for name, said in found:
        identifier = _identifier(name)
        if identifier and identifier not in components:
            components[identifier] = _tidy(said) or _tidy(name)
    return "\n".join(f"- {name}: {said}" for name, said in list(components.items())[:COMPONENTS])


def _of_lines(text: str) -> list[tuple[str, str]]:
    lines = [_line(line[:_LINE]) for line in text.split("\n") if line.strip() and not _FENCE.match(line)]
    chosen = _level(lines)
    if chosen is None:
        return []
    kind, indent = chosen
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.kind == kind and line.indent <= indent:
            if line.name:
                group = line.indent < indent and not line.rest
                found.append(("" if group else line.name, [line.rest]))
                continue
        elif line.kind == "#" or (line.kind == "" and line.indent == 0 and kind == "-"):
            found.append(("", []))  # a heading, or prose between lists: it belongs to no component
            continue
        if found:
            found[-1][1].append(f"{line.name}: {line.rest}" if line.name else line.rest)
    return [(name, " ".join(said)) for name, said in found if name]


def _level(lines: Sequence[_Line]) -> tuple[str, int] | None:
    """The kind of mark and the indent at which components are named, if any are."""
    best: tuple[str, int] | None = None
    most, bare = 0, False
    for kind in ("1", "-", "#", ""):
        for indent in sorted({line.indent for line in lines if line.kind == kind and line.name})[:_LEVELS]:
            here = [line for line in lines if line.kind == kind and line.indent <= indent and line.name]
            distinct = len({_identifier(line.name) for line in here})
            # Labels such as "Why:" below each component repeat; a lone `word: ...` in prose is no list.
            if distinct < 0.6 * len(here) or (kind == "" and distinct < 2):
                continue
            # What comes first counts, unless it is groups: names with nothing said, and more names below.
            if best is None or (bare and distinct > most) or (distinct > 2 * most and kind not in ("", best[0])):
                best, most = (kind, indent), distinct
                bare = sum(not line.rest for line in here if line.indent == indent) > 0.6 * distinct
    return best


def _line(text: str) -> _Line:
    marked = _MARKED.match(text)
    if marked is None:
        named = _NAMED.fullmatch(text.strip())
        plain = named is not None and len(named[1].split()) == 1
        indent = len(text) - len(text.lstrip())
        return _Line("", indent, named[1] if named and plain else "", named[2] if named and plain else text.strip())
    indent, bullet, number, _, rest = marked.groups()
    kind = "-" if bullet else "1" if number else "#"
    named = _NAMED.fullmatch(rest)
    if named is not None and len(named[1].split()) <= 6:
        return _Line(kind, len(indent), named[1], named[2])
    bold = _BOLD.match(rest)
    if bold is not None:
        return _Line(kind, len(indent), bold[1], rest[bold.end() :])
    alone = re.fullmatch(r"[A-Za-z]\w*(?: \w+){0,3}", rest)
    whole = alone is not None and (kind == "#" or "_" in rest)
    return _Line(kind, len(indent), rest if whole else "", "" if whole else rest)


def _of_json(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.split("\n") if not _FENCE.match(line)]
    text = "\n".join(lines).strip()
    if not text.startswith(("{", "[")):
        return []
    try:
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return []
    return list(_components(document))


def _components(document: object) -> Iterator[tuple[str, str]]:
    """Of a list of objects with names, of `{name: text}`, and of either one level down."""
    if isinstance(document, dict):
        if all(isinstance(value, str) for value in document.values()):
            yield from document.items()
            return
        document = next((value for value in document.values() if isinstance(value, list | dict)), None)
        if isinstance(document, dict):
            yield from ((name, said) for name, said in document.items() if isinstance(said, str))
            return
    for item in document if isinstance(document, list) else ():
        if isinstance(item, dict):
            name = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str)), "")
            yield name, " ".join(item[key] for key in _TEXT_KEYS if isinstance(item.get(key), str))


def _identifier(name: str) -> str:
    """A name in snake case; empty where it has no letters of its own."""
    name = re.sub(r"\([^()]{0,80}\)", " ", name[: 2 * _NAME])
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name) if " " not in name else name
    return re.sub(r"[^a-z0-9]+", "_", name.lower())[:_NAME].strip("_")


def _tidy(text: str) -> str:
    """One line without marks of Markdown."""
    text = " ".join(text.replace("**", "").replace("`", "").split()).strip("-–—: ")
    return text if len(text) <= _TEXT else text[: _TEXT - 1].rstrip() + "…"
