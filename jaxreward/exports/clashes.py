"""Names that a program and the module around it would share: those of the module give way."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Mapping

from jaxreward.function_source.statements import fresh_name


def bound(source: str) -> dict[str, str]:
    """The names that a module binds at its top, each with the import that does it; empty for what is none."""
    found = {s.get_name(): "" for s in _top(source).get_symbols() if s.is_assigned() or s.is_namespace()}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                one = ast.ImportFrom(node.module, [name], 0) if isinstance(node, ast.ImportFrom) else ast.Import([name])
                found[name.asname or name.name.partition(".")[0]] = ast.unparse(one)
    return found


def clashes(program: str, wrapper: str) -> dict[str, str]:
    """New names for those that `wrapper` binds, or has from Python, and that `program` uses for something else.

    Both stand in one module, and a program looks its names up whenever it is called.
    """
    theirs, ours = bound(program), bound(wrapper)
    names: dict[str, str] = {}
    for name in sorted(theirs.keys() & ours.keys()):
        if not ours[name] or ours[name] != theirs[name]:
            names[name] = fresh_name(name, {*theirs, *ours, *names.values()})
    for name in sorted((theirs.keys() - ours.keys()) & _read(wrapper) & vars(builtins).keys()):
        names[name] = f"builtins.{name}"
    return names


def renamed(text: str, names: Mapping[str, str]) -> str:
    """`text`, a module of ours, with those names in place of its own."""
    if not names:
        return text
    pattern = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, names))})(?!\w)")
    lines = [
        _import(line, names) if line.startswith(("import ", "from ")) else pattern.sub(lambda m: names[m[1]], line)
        for line in text.splitlines()
    ]
    needs_builtins = any(new.startswith("builtins.") for new in names.values())
    return "\n".join(["import builtins", *lines] if needs_builtins else lines)


def _import(line: str, names: Mapping[str, str]) -> str:
    (node,) = ast.parse(line).body
    assert isinstance(node, ast.Import | ast.ImportFrom)
    for name in node.names:
        name.asname = names.get(name.asname or name.name, name.asname)
    return ast.unparse(node)


def _top(source: str) -> symtable.SymbolTable:
    return symtable.symtable(source, "<export>", "exec")


def _read(source: str) -> set[str]:
    """Names that any part of a module reads from its top, or from Python."""
    found: set[str] = set()
    tables = [top := _top(source)]
    for table in tables:
        tables += table.get_children()
        found |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (table is top or s.is_global())}
    return found
