"""Plans as language models write them: named components in lists of many kinds, read line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jaxreward.proposers.replies.program_reply import legible
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
_JSON = re.compile(r'^[ \t]*(?=\{\s*+"|\[\s*+["{\[])', re.MULTILINE)
"""Where JSON may begin that can name something."""
_TOKEN = re.compile(r'"(?:[^"\\\n]++|\\.|\n(?!```))*+"|["{}\[\]]|\n```|,(?=\s*+[}\]])', re.DOTALL)
"""Strings, brackets, and what is not JSON: a string without an end, a fence, a comma before a closing bracket."""
_DEEP = 6
"""How deep JSON is read."""

_NAME_KEYS = ("name", "component", "term", "feature", "id")
_TEXT_KEYS = frozenset(
    ["description", "rewards", "shows", "punishes", "purpose", "what", "when", "form", "text", "why", "reason",
     "rationale"]
)  # fmt: skip
_HOLDERS = frozenset(
    ["components", "terms", "features", "plan", "rewards", "penalties", "bonuses", "observations", "stages", "items",
     "parts"]
)  # fmt: skip
"""What keys end with whose values are components."""
_DETAILS = frozenset({"parameters", "params", "hyperparameters", "settings", "arguments", "inputs"})
"""What keys end with whose values describe the component that has them."""

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
    Markdown, with prose around them. What names most counts; a table without a column for names, and then JSON that
    maps words to words, which may be settings, do only where nothing else is named. Several documents or tables are
    parts of one plan if they share no name, and the same plan if they share all; a table whose names are all in a
    larger one is its summary. Anything else is several plans that differ, a failure of stage `reply`.
    """
    text = "\n".join("```" if _FENCE.match(line) else line for line in text.split("\n"))
    documents, loose, text = _of_json(text)
    tables, others, text = _of_tables("\n".join(line for line in text.split("\n") if line != "```"))
    most = max((documents, tables, [_of_lines(text)]), key=lambda found: len(_named(found)))
    parts = next((found for found in (most, others, loose) if _named(found)), [])
    if _differ([names for part in parts if (names := _named([part]).keys())]):
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


def _of_json(text: str) -> tuple[list[_Found], list[_Found], str]:
    """What each JSON document in a text names for sure, what each may name, and the text without JSON.

    A document begins with a line; prose may stand before and after it. Those with nothing between them count as one.
    Where one is broken, none counts: what it lacks is not known.
    """
    found: list[list[tuple[bool, str, str]]] = []
    rest: list[str] = []
    at, broken = 0, False
    for begin in _JSON.finditer(text):
        if begin.end() < at:
            continue
        rest.append(text[at : begin.end()])
        whole, complete, depth, at = _extent(text, begin.end())
        try:
            document = _loaded(whole, complete, depth)
        except (ValueError, RecursionError):
            broken = True
            continue
        if not found or rest[-1].strip(" \t\n,`"):
            found.append([])
        found[-1] += _components(document)
    found = [] if broken else found
    sure, loose = ([[(name, said) for s, name, said in part if s is kind] for part in found] for kind in (True, False))
    return sure, loose, "".join([*rest, text[at:]])


def _extent(text: str, start: int) -> tuple[str, str, int, int]:
    """The JSON document that begins at a place, without commas before closing brackets, and the part of it that is
    complete, closed, with the depth at which it was; and where what follows begins.

    A document ends with its last bracket, or is cut off by the end of its fence or of the text. Each character is
    looked at a few times, whatever follows.
    """
    kept: list[str] = []
    closing: list[str] = []
    at, end, complete = start, len(text), (0, start, start, 0)
    for token in _TOKEN.finditer(text, start):
        mark = token[0]
        if mark in "{[":
            closing.append("}" if mark == "{" else "]")
        elif mark == ",":
            kept.append(text[at : token.start()])
            at = token.end()
        elif mark in "}]":
            matches = mark == closing.pop()
            if not (closing and matches):
                whole = "".join(kept) + text[at : token.end()]
                return whole, whole, 0, token.end() if matches else _fence(text, token.end())
            complete = (len(kept), at, token.end(), len(closing))
        elif len(mark) == 1 or mark == "\n```":
            end = token.start()
            break
    parts, since, until, depth = complete
    part = "".join(kept[:parts]) + text[since:until] + "".join(reversed(closing[:depth]))
    return "".join(kept) + text[at:end].rstrip(), part, depth, _fence(text, end)


def _fence(text: str, at: int) -> int:
    """Where the next fence begins, or the text ends."""
    return end if (end := text.find("\n```", at)) >= 0 else len(text)


def _loaded(whole: str, complete: str, depth: int) -> object:
    """A JSON document or, of one that is cut off, what is complete.

    Raises:
        ValueError or RecursionError: it is broken elsewhere than at its end.
    """
    try:
        return json.loads(whole, strict=False)
    except json.JSONDecodeError as error:
        if error.pos < len(whole) - len("false"):  # a word, too, may be cut off
            raise
    document = inner = json.loads(complete, strict=False) if complete else None
    for _ in range(depth):  # what an object that was cut off says of itself is not complete
        if isinstance(inner, dict):
            for key in [key for key, value in inner.items() if isinstance(value, str)]:
                del inner[key]
            inner = next(reversed(inner.values()), None)
        elif isinstance(inner, list):
            inner = inner[-1]
    return document


def _components(
    document: object, called: str = "", held: bool = False, depth: int = 0
) -> Iterator[tuple[bool, str, str]]:
    """The components in a JSON document, and whether each is one for sure.

    Sure are objects with a name, or words under keys that promise them; and `{name: text}` and `name: text` where a
    key says that it holds components. Setup that are sure count in place of the object that they are parts of.
    """
    if depth > _DEEP:
        return
    if isinstance(document, list):
        for item in document:
            line = _line(f"- {item[:_LINE]}") if isinstance(item, str) and "\n" not in item else None
            if line is not None and line.name and line.rest:
                yield held, line.name, line.rest
            yield from _components(item, "", held, depth + 1)
    if not isinstance(document, dict):
        return
    texts = {key: value for key, value in document.items() if isinstance(value, str)}
    parts = {key: value for key, value in document.items() if isinstance(value, list | dict)}
    name = _name_key(texts)
    promised = not name and called and _TEXT_KEYS & {key.lower() for key in texts}
    own = [(True, texts[name] if name else called, _said(texts, name))] if promised or (name and len(texts) > 1) else []
    last = {key: _identifier(key).split("_")[-1] for key in parts}
    holders = [key for key in parts if last[key] in _HOLDERS]
    below = {
        key: list(_components(value, key, key in holders or (held and not own), depth + 1))
        for key, value in parts.items()
    }
    for keys in (holders, [key for key in parts if last[key] not in _DETAILS], [] if own else parts):
        found = [component for key in keys for component in below[key]]
        if any(sure for sure, _, _ in found):
            yield from found
            return
    if own or parts:
        yield from own or [component for key in parts for component in below[key]]
    elif len(texts) == len(document) and (depth or len(texts) > 1):
        yield from ((held, key, value) for key, value in texts.items())


def _name_key(texts: Mapping[str, str]) -> str:
    """The key under which an object has its name, if it has one."""
    return next((key for wanted in _NAME_KEYS for key in texts if key.lower() == wanted), "")


def _said(texts: Mapping[str, str], name: str = "") -> str:
    """What an object says about its component, in its own order: under keys that promise words, or under any."""
    words = [key for key in texts if key.lower() in _TEXT_KEYS and key != name]
    return _sentence([texts[key] for key in words or texts if key != name])


def _of_tables(text: str) -> tuple[list[_Found], list[_Found], str]:
    """What each table of Markdown in a text names that has a column for names, the same of the others, which may be
    about stages or weights, both without summaries; and the text without tables."""
    lines = text.split("\n")
    tables: list[_Found] = []
    others: list[_Found] = []
    rest: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1
        if _is_head(lines, at):
            while end < len(lines) and "|" in lines[end] and not (_is_head(lines, end) and _is_title(lines[end])):
                end += 1
            named, components = _table([_cells(line) for line in (lines[at], *lines[at + 2 : end])])
            if components:
                (tables if named else others).append(components)
        else:
            rest.append(lines[at])
        at = end
    return _without_summaries(tables), _without_summaries(others), "\n".join(rest)


def _is_head(lines: Sequence[str], at: int) -> bool:
    """Whether a line is followed by the rule below a head."""
    return "|" in lines[at] and at + 1 < len(lines) and _RULE.fullmatch(lines[at + 1][:_LINE].strip()) is not None


def _is_title(line: str) -> bool:
    """Whether a line within a table is the head of the next one: a rule below it may also part rows."""
    titles = [_identifier(cell).split("_") for cell in _cells(line)]
    words = {word for title in titles for word in title}
    return all(len(title) <= 4 for title in titles) and not words.isdisjoint(_TEXT_KEYS.union(_NAME_KEYS, _HOLDERS))


def _without_summaries(tables: Sequence[_Found]) -> list[_Found]:
    """Tables without those that name nothing but what a larger one names, or one that says more."""
    names = [_named([table]).keys() for table in tables]
    sizes = [(len(names[k]), sum(len(said) for _, said in table)) for k, table in enumerate(tables)]
    owner: dict[str, int] = {}
    kept: list[int] = []
    for k in sorted(range(len(tables)), key=lambda k: sizes[k], reverse=True):
        owners = {owner.get(name) for name in names[k]}
        if len(owners) != 1 or None in owners:
            kept.append(k)
            owner |= {name: k for name in names[k] if name not in owner}
    return [tables[k] for k in sorted(kept)]


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
    """One legible line without marks of Markdown: JSON may spell out characters that the reply did not hold."""
    text = " ".join(legible(text).replace("**", "").replace("`", "").split()).strip("-–—: ")
    return text if len(text) <= _TEXT else text[: _TEXT - 1].rstrip() + "…"
