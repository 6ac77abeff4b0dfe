"""Plans as language models write them: named components in lists of many kinds, read line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jaxreward.records import Failure

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
_RULE = re.compile(r"\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?[ \t]*)?")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_BAR = re.compile(r"(?<!\\)\|")
_WORD = re.compile(r"[^\W\d_]{2}")
_JSON = re.compile(r"^[ \t]*([{\[])", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)
_TRIES, _DEEP = 64, 6
"""Places that look like the beginning of JSON and are none before the search for it ends, and how deep it is read."""

_NAME_KEYS = ("name", "component", "term", "feature", "id")
_TEXT_KEYS = frozenset(
    ["description", "rewards", "shows", "punishes", "purpose", "what", "when", "form", "text", "why", "reason",
     "rationale"]
)  # fmt: skip
_HOLDERS = frozenset({"components", "terms", "features", "plan"})
"""What keys end with whose values are components, so that the object is a plan or a group and no component."""

_Found = list[tuple[str, str]]
"""Components: names, and what is said of each."""


class _Line(NamedTuple):
    """A line of a list: its kind of mark, how far it is indented, the name it gives, and the rest."""

    kind: str
    indent: int
    name: str
    rest: str


def read_plan(text: str) -> str | Failure:
    """The components in a text, one a line as `- name: what is said`; empty where none has a name.

    Names become identifiers, equal ones count once. Read are lists with bullets, numbers or headings, where the kind
    of mark with names that differ is the one that counts and what stands below belongs to it; and JSON and tables of
    Markdown, with prose around them. What names most counts; a table without a column for names does only where
    nothing else is named. Several documents or tables are parts of one plan if they share no name, and the same plan
    if they share all; anything else is several plans that differ, a failure of stage `reply`.
    """
    text = "\n".join(line for line in text.split("\n") if not _FENCE.match(line))
    documents, text = _of_json(text)
    tables, others, text = _of_tables(text)
    parts = max((documents, tables, [_of_lines(text)]), key=lambda found: len(_named(found)))
    parts = parts if _named(parts) else others
    if _differ([_named([part]).keys() for part in parts]):
        hint = "reply with one plan, one line for each component"
        return Failure(stage="reply", message="the reply holds several plans that differ", hint=hint)
    return "\n".join(f"- {name}: {said}" for name, said in list(_named(parts).items())[:COMPONENTS])


def _named(found: Iterable[_Found]) -> dict[str, str]:
    """Components by identifier; of equal ones the first."""
    components: dict[str, str] = {}
    for name, said in (component for part in found for component in part):
        identifier = _identifier(name)
        if identifier and identifier not in components:
            components[identifier] = _tidy(said) or _tidy(name)
    return components


def _differ(parts: Sequence[Collection[str]]) -> bool:
    """Whether some names are in several parts, which are not equal."""
    names = [name for part in parts for name in part]
    return len(set(names)) < len(names) and any(set(part) != set(parts[0]) for part in parts)


def _of_lines(text: str) -> list[tuple[str, str]]:
    lines = [_line(line[:_LINE]) for line in text.split("\n") if line.strip()]
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


def _of_json(text: str) -> tuple[list[_Found], str]:
    """What each JSON document in a text names, and the text without these documents.

    A document begins with a line; prose may stand before and after it. Those with nothing between them count as one, so
    that an array that was cut off, or has a comma too many, is read by its objects.
    """
    found: list[_Found] = []
    rest: list[str] = []
    at, seen, tries = 0, 0, _TRIES
    for begin in _JSON.finditer(text):
        start = begin.start(1)
        if start < seen or not tries:
            continue
        try:
            document, seen = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            tries -= 1
            continue
        components = list(_components(document))
        if not components:
            continue
        if found and not text[at:start].strip(" \t\n,"):
            found[-1] += components
        else:
            found.append(components)
        rest.append(text[at:start])
        at = seen
    return found, "".join([*rest, text[at:]])


def _components(document: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The components in a JSON document: objects with names in lists, `{name: text}` and `{name: {...}}`, also as parts
    of other objects."""
    if depth > _DEEP:
        return
    if isinstance(document, list):
        for item in document:
            line = _line(f"- {item[:_LINE]}") if isinstance(item, str) and "\n" not in item else None
            if line is not None and line.name and line.rest:
                yield line.name, line.rest
            yield from _components(item, depth + 1)
    if not isinstance(document, dict):
        return
    texts = {key: value for key, value in document.items() if isinstance(value, str)}
    parts = {key: value for key, value in document.items() if isinstance(value, list | dict)}
    held = {key: value for key, value in parts.items() if _identifier(key).split("_")[-1] in _HOLDERS}
    name = _name_key(texts)
    if name and len(texts) > 1 and not held:
        yield texts[name], _said(texts, name)
    elif parts:
        for key, value in (held or parts).items():
            within = {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}
            if not _name_key(within) and _TEXT_KEYS & {k.lower() for k in within}:
                yield key, _said(within)  # one component, named by its key
            else:
                yield from _components(value, depth + 1)
    elif len(texts) == len(document) and (depth or len(texts) > 1):
        yield from texts.items()


def _name_key(texts: Mapping[str, str]) -> str:
    """The key under which an object has its name, if it has one."""
    return next((key for wanted in _NAME_KEYS for key in texts if key.lower() == wanted), "")


def _said(texts: Mapping[str, str], name: str = "") -> str:
    """What an object says about its component, in its own order: under keys that promise words, or under any."""
    words = [key for key in texts if key.lower() in _TEXT_KEYS and key != name]
    return _sentence([texts[key] for key in words or texts if key != name])


def _of_tables(text: str) -> tuple[list[_Found], list[_Found], str]:
    """What each table of Markdown in a text names that has a column for names, the same of the others, which may be
    about stages or weights, and the text without tables."""
    lines = text.split("\n")
    tables: list[_Found] = []
    others: list[_Found] = []
    rest: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1
        if "|" in lines[at] and end < len(lines) and _RULE.fullmatch(lines[end][:_LINE].strip()):
            while end < len(lines) and "|" in lines[end]:
                end += 1
            named, components = _table([_cells(line) for line in (lines[at], *lines[at + 2 : end])])
            if components:
                (tables if named else others).append(components)
        else:
            rest.append(lines[at])
        at = end
    return tables, others, "\n".join(rest)


def _table(rows: Sequence[Sequence[str]]) -> tuple[bool, _Found]:
    """Whether a table has a column for names, and its components, named by that column or the first with words."""
    body = rows[1:]
    words = [k for k in range(len(rows[0])) if any(_WORD.search(row[k]) for row in body if k < len(row))]
    titles = {k: {word.removesuffix("s") for word in _identifier(rows[0][k]).split("_")} for k in words}
    named = next((k for wanted in _NAME_KEYS for k in words if wanted in titles[k]), None)
    at = named if named is not None else words[0] if words else 0
    found: _Found = []
    for row in body:
        # Cells beyond the head are what a bar within a cell has cut off.
        said = _sentence([cell for k, cell in enumerate(row) if k != at and (k in words or k >= len(rows[0]))])
        if at < len(row) and _WORD.search(row[at]) and _WORD.search(said):
            found.append((row[at], said))
    return named is not None, found


def _cells(line: str) -> list[str]:
    line = _BREAK.sub(" ", line[:_LINE]).strip().removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in _BAR.split(line)]


def _sentence(parts: Iterable[str]) -> str:
    """What several fields say, in one line."""
    said = ""
    for part in filter(None, map(str.strip, parts)):
        said += ("" if not said else " " if said[-1] in ".,;:!?" else "; ") + part
    return said


def _identifier(name: str) -> str:
    """A name in snake case; empty where it has no letters of its own."""
    name = re.sub(r"\([^()]{0,80}\)", " ", name[: 2 * _NAME])
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name) if " " not in name else name
    return re.sub(r"[^a-z0-9]+", "_", name.lower())[:_NAME].strip("_")


def _tidy(text: str) -> str:
    """One line without marks of Markdown."""
    text = " ".join(text.replace("**", "").replace("`", "").split()).strip("-–—: ")
    return text if len(text) <= _TEXT else text[: _TEXT - 1].rstrip() + "…"
