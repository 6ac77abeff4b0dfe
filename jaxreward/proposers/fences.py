"""Where code stands in text: fenced blocks, and bare code among prose. Nothing is executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

PARSE_LIMIT = 65_536
"""Longest text that is parsed, in characters: twice what a program may have."""

_WORK, _EXTEND = 1_000_000, 20
"""Characters parsed in search of bare code, and how many unindented lines one statement may go over."""

_OPENER = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`]*)$")
_CODE_IN_INFO = re.compile(r"(?:import|from|def|@)\b|@")
_STATEMENT = re.compile(
    r"(import|from|def|class|if|for|while|with|try|async)\b|@|\"\"\"|'''|[A-Za-z_][\w, .\[\]:]*=(?!=)"
)
_CONTINUES = re.compile(r"(else|elif|except|finally)\b")
_DEFINITE = re.compile(r"def\s+\w+\s*\(|@\w|import\s+\w+|from\s+[\w.]+\s+import\b")
_WANTED = re.compile(r"^[ \t]*def[ \t]+(get_observation|compute_reward|reward)[ \t]*\(", re.MULTILINE)


@dataclass(frozen=True)
class Fence:
    """A fenced block: the word after the opening fence, the text, and whether the fence was closed."""

    tag: str
    text: str
    closed: bool = True


def parsed(text: str) -> ast.Module | None:
    """The syntax tree, or None for what is not Python, or too long or too deep to tell."""
    if len(text) > PARSE_LIMIT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in somebody's strings
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def defined(text: str) -> frozenset[str]:
    """`observation` and `reward`, as far as the text defines functions for them."""
    return frozenset("observation" if m[1] == "get_observation" else "reward" for m in _WANTED.finditer(text))


def dedented(text: str) -> str:
    """The text with the indentation of its first line taken from every line, blank lines around it dropped."""
    lines = text.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    if not lines:
        return ""
    width = _indent(lines[0])
    return "\n".join(line[min(width, _indent(line)) :] for line in lines).rstrip()


def fences(text: str) -> list[Fence]:
    """The fenced blocks of a text, in order; only the last can be open.

    A fence that names a language closes the one before it, which a writer forgot to close.
    """
    found: list[Fence] = []
    mark, tag, body = "", "", []
    for line in text.split("\n"):
        opener = _opening(line, anywhere=not mark)
        if mark and opener and opener[0].startswith(mark) and (not opener[1] or _is_tag(opener[1])):
            found.append(Fence(tag, dedented("\n".join(body))))
            mark = ""
            if not opener[1]:
                continue
        if mark:
            body.append(line)
        elif opener:
            mark, (tag, first) = opener[0], _split_info(opener[1])
            body = [first] if first else []
    if mark:
        rest = "\n".join(body)
        end = re.search(re.escape(mark) + r"[ \t]*$", rest, re.MULTILINE)  # closed at the end of a line of code
        found.append(Fence(tag, dedented(rest[: end.start()] if end else rest), closed=end is not None))
    return found


def bare(text: str) -> str:
    """Code that stands unfenced among prose; empty where no wanted function is defined.

    The statements from the first to the last that a program can be made of; prose between is left
    out. A definition that does not parse is kept, for the checker says better what is wrong.
    """
    start = _WANTED.search(text)
    if start is None:
        return ""
    width = len(start[0]) - len(start[0].lstrip(" \t"))
    lines = [line[width:] if _indent(line) >= width else line.lstrip() for line in text.split("\n")]
    groups = list(_groups(lines))
    kinds = _kinds(groups)
    halves = [i for i, group in enumerate(groups) if kinds[i] and defined(group)]
    if not halves:
        return ""
    for i, group in enumerate(groups[halves[-1] + 1 :], halves[-1] + 1):
        tree = parsed(group) if kinds[i] else None
        if tree is not None and not _only_definitions(tree):
            kinds[i] = ""  # an example of use
    code = [i for i, kind in enumerate(kinds) if kind == "code"]
    first = code[0]
    while first and kinds[first - 1] == "comment" and not groups[first - 1].endswith("\n"):
        first -= 1
    return "\n".join(groups[i] for i in range(first, code[-1] + 1) if kinds[i]).rstrip()


def helpers(tree: ast.Module) -> frozenset[str]:
    """The names that a block of definitions alone binds; empty if it holds anything else."""
    return _bound(tree) if _only_definitions(tree) else frozenset()


def missing(tree: ast.Module) -> frozenset[str]:
    """Names that are read somewhere and bound nowhere at the top level."""
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)) - _bound(tree)


def _bound(tree: ast.Module) -> frozenset[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.Assign):
            names |= {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return frozenset(names)


def _only_definitions(tree: ast.Module) -> bool:
    """Imports, functions and constants in capitals, as they stand beside an interface."""

    def fits(node: ast.stmt) -> bool:
        if isinstance(node, ast.Assign):
            return all(n.id.isupper() for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name))
        return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)

    return all(fits(node) for node in tree.body)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _opening(line: str, anywhere: bool) -> tuple[str, str] | None:
    """The fence that a line opens, or closes, and what follows it."""
    found = _OPENER.match(line)
    if found is None and anywhere and (at := line.find("```")) > 0:
        found = _OPENER.match(line[at:])  # after words on the same line
        if found is not None and found[2].strip() and not _is_tag(found[2].strip()):
            return None
    return (found[1], found[2].strip()) if found else None


def _is_tag(info: str) -> bool:
    return re.fullmatch(r"\{?\.?\w+\}?", info) is not None


def _split_info(info: str) -> tuple[str, str]:
    """The language of a fence, and code that stands on the fence's own line."""
    if _CODE_IN_INFO.match(info):
        return "", info
    tag, _, rest = info.partition(" ")
    return tag.strip("{.}").lower(), rest if _CODE_IN_INFO.match(rest) else ""


def _groups(lines: list[str]) -> Iterator[str]:
    """Unindented lines, each with the indented and blank ones after it."""
    group: list[str] = []
    for line in lines:
        if line[:1].strip() and group:
            yield "\n".join(group)
            group = []
        group.append(line)
    yield "\n".join(group)


def _kinds(groups: list[str]) -> list[str]:
    """`code`, `comment` or nothing for each group; a statement may go over several."""
    kinds = [""] * len(groups)
    work, i = _WORK, 0
    while i < len(groups):
        if groups[i].startswith("#"):
            kinds[i] = "comment"
        elif _STATEMENT.match(groups[i]):
            length = 0
            while work > 0 and length < _EXTEND and i + length < len(groups):
                length += 1
                text = "\n".join(groups[i : i + length])
                work -= len(text) + 100
                if any(map(_CONTINUES.match, groups[i + length : i + length + 1])):
                    continue
                tree = parsed(text)
                if tree is not None and tree.body:
                    break
            else:
                length = 1 if _DEFINITE.match(groups[i]) else 0
            kinds[i : i + length] = ["code"] * length
            i += max(0, length - 1)
        i += 1
    return kinds
