"""Python source in text: whether it parses, what it defines, and bare code among prose. Nothing is executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator

PARSE_LIMIT = 65_536
"""Longest text that is parsed, in characters: twice what a program may have."""

WORK, EXTEND = 1_000_000, 20
"""Characters parsed in search of bare code, or of the end of a block with fences in its strings; and how many
unindented lines a statement, or fences a block, may go over."""

NAMES = ("get_observation", "compute_reward", "reward")
_STATEMENT = re.compile(
    r"(import|from|def|class|if|for|while|with|try|async|assert)\b|@|\"\"\"|'''|[A-Za-z_(\[][\w, .()\[\]:]*=(?!=)"
)
_CONTINUES = re.compile(r"(else|elif|except|finally)\b")
_DEFINITE = re.compile(r"def\s+\w+\s*\(|@\w|import\s+\w+|from\s+[\w.]+\s+import\b")
_WANTED = re.compile(rf"^[ \t]*def[ \t]+({'|'.join(NAMES)})[ \t]*\(", re.MULTILINE)


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


def solid(text: str) -> str:
    """The text without functions that are outlines: whose body is `...`, `pass` or a docstring alone."""
    tree = parsed(text) if defined(text) else None
    return text if tree is None else without(text, filter(_is_outline, tree.body))


def _is_outline(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and all(
        isinstance(part, ast.Pass) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in node.body
    )


def without(text: str, nodes: Iterable[ast.stmt]) -> str:
    """The text without top-level statements, the comments directly above them and the blank lines after them."""
    lines: list[str | None] = list(text.split("\n"))
    for node in nodes:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1
        last = node.end_lineno or node.lineno
        while first and (lines[first - 1] or "").startswith("#"):
            first -= 1
        while last < len(lines) - 1 and not (lines[last] or "").strip():
            last += 1
        lines[first:last] = [None] * (last - first)
    left = [line for line in lines if line is not None]
    return text if len(left) == len(lines) else "\n".join(left).rstrip() + "\n" * text.endswith("\n")


def dedented(text: str) -> str:
    """The text with the indentation of its first line taken from every line, blank lines around it dropped.

    Code with lines of less is dedented as far as its first such line only, unless it parses the other way.
    """
    lines = text.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    if not lines:
        return ""
    width = _indent(lines[0])
    all_lines = "\n".join(line[min(width, _indent(line)) :] for line in lines).rstrip()
    less = next((i for i, line in enumerate(lines) if line.strip() and _indent(line) < width), None)
    if less is None or parsed(all_lines) is not None:
        return all_lines
    return "\n".join([*(line[min(width, _indent(line)) :] for line in lines[:less]), *lines[less:]]).rstrip()


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


def whole(text: str) -> str:
    """A text that is a program from its first to its last line, verbatim; empty for any other.

    Statements at its end that call the interface are examples of its use, and no part of it.
    """
    text = dedented(text)
    tree = parsed(text) if defined(text) else None
    if tree is None or not any(isinstance(node, ast.FunctionDef) and node.name in NAMES for node in tree.body):
        return ""
    examples: list[ast.stmt] = []
    for node in reversed(tree.body):
        if isinstance(node, ast.FunctionDef) or not _calls_interface(node):
            break
        examples.append(node)
    return without(text, examples)


def helpers(tree: ast.Module) -> frozenset[str]:
    """The names that a block of definitions alone binds; empty if it holds anything else, or uses the interface."""
    kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Assign | ast.AnnAssign
    fits = all(isinstance(node, kinds) for node in tree.body)
    return _bound(tree) if fits and not _read(tree) & {"get_observation", "compute_reward"} else frozenset()


def missing(tree: ast.Module) -> frozenset[str]:
    """Names that are read somewhere and bound nowhere."""
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    arguments = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    return _read(tree) - _bound(tree) - stored - arguments


def _read(tree: ast.Module) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _bound(tree: ast.Module) -> frozenset[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(names)


def _only_definitions(tree: ast.Module) -> bool:
    """Imports, functions, constants in capitals and assertions about them, as they stand next to an interface."""

    def fits(node: ast.stmt) -> bool:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return all(n.id.isupper() for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
        if isinstance(node, ast.Assert):
            return not _calls_interface(node)
        return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)

    return all(fits(node) for node in tree.body)


def _calls_interface(node: ast.stmt) -> bool:
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(isinstance(called, ast.Name) and called.id in NAMES for called in calls)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


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
    work, i = WORK, 0
    while i < len(groups):
        if groups[i].startswith("#"):
            kinds[i] = "comment"
        elif _STATEMENT.match(groups[i]):
            length = 0
            while work > 0 and length < EXTEND and i + length < len(groups):
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
