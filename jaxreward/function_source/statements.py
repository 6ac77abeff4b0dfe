"""Top-level statements of a program as movable units: what each binds, what it needs, its text.

A program is taken apart into statements, the ones that a function needs are found by name, and
statements of two programs are combined with name clashes resolved. Sources are only parsed,
never executed.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from jaxreward.function_source.scopes import GlobalNames, bound_in, fresh_name

IMPORTS = ("import jax", "import jax.numpy as jnp")
_KEPT = 1024
"""Size of the parse caches: the programs of a search share most of their statements."""


@dataclass(frozen=True)
class Statement:
    """One top-level statement: its text, with the comment lines right above it."""

    text: str

    @cached_property
    def node(self) -> ast.stmt:
        return _parsed(self.text)

    @cached_property
    def binds(self) -> tuple[str, ...]:
        """Module-level names that the statement binds."""
        if isinstance(self.node, ast.FunctionDef):
            return (self.node.name,)
        if isinstance(self.node, ast.Import | ast.ImportFrom):
            return tuple(a.asname or a.name.split(".")[0] for a in self.node.names)
        return tuple(dict.fromkeys(bound_in(self.node)))

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Names that it reads from the module, in order of appearance."""
        return _needs(self.text)

    @cached_property
    def shape(self) -> str:
        """Equal for statements that differ in layout and comments only."""
        return _shape(self.text)

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, ast.FunctionDef)

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    def renamed(self, names: Mapping[str, str]) -> Statement:
        """The statement with module-level names replaced; comments are lost if anything changes."""
        if not set(names) & {*self.binds, *self.needs}:
            return self
        node = GlobalNames(names).visit(copy.deepcopy(self.node))
        return Statement(_as_text(ast.unparse, ast.fix_missing_locations(node)))


@lru_cache(_KEPT)
def _parsed(text: str) -> ast.stmt:
    """Shared by all statements of this text: not to be changed."""
    return ast.parse(text).body[0]


@lru_cache(_KEPT)
def _needs(text: str) -> tuple[str, ...]:
    walker = GlobalNames()
    walker.visit(_parsed(text))
    return tuple(dict.fromkeys(walker.read))


@lru_cache(_KEPT)
def _shape(text: str) -> str:
    return _as_text(ast.dump, _parsed(text))


def split(source: str) -> tuple[Statement, ...]:
    """The top-level statements of a source, without docstrings and other bare constants.

    Raises:
        SyntaxError or ValueError: if the source cannot be parsed.
    """
    lines = lines_of(source)
    statements, previous_end = [], 0
    for node in ast.parse(source).body:
        start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        end = node.end_lineno or node.lineno
        alone = start > previous_end and not lines[end - 1][node.end_col_offset or 0 :].strip().startswith(";")
        comments = start - 1
        while comments > previous_end and lines[comments - 1].startswith("#"):
            comments -= 1
        whole = alone and lines[start - 1][:1].strip()
        text = "\n".join(lines[comments:end]) if whole else _as_text(ast.unparse, node)
        previous_end = end
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):  # one statement a name, so that unused ones can be dropped
            for name in node.names:
                one: ast.stmt = ast.Import([name])
                if isinstance(node, ast.ImportFrom):
                    one = ast.ImportFrom(node.module, [name], node.level)
                statements.append(Statement(ast.unparse(one)))
            continue
        statements.append(Statement(text.rstrip()))
    return tuple(statements)


def joined(statements: Iterable[Statement]) -> str:
    """Statements as a file: functions stand apart."""
    text, before = "", None
    for statement in statements:
        apart = before is not None and (statement.is_function or before.is_function)
        text += ("\n\n\n" if apart else "\n" if before is not None else "") + statement.text
        before = statement
    return text + "\n"


def arranged(statements: Sequence[Statement], last: Collection[str], entries: Sequence[str] = ()) -> str:
    """Statements as readable source: imports, constants, helpers, the functions called as in `last`, and the texts of
    functions that stand after all others. Of `jax` and `jnp`, what these texts use is imported as well."""
    imports = [s.text for s in statements if s.is_import]
    words = {n for s in statements for n in s.needs} | {n for e in entries for n in Statement(e).needs}
    imports += [text for text in IMPORTS if Statement(text).binds[0] in words]
    imports = sorted(dict.fromkeys(imports), key=lambda text: (text.startswith("from"), text))
    rest = [s for s in statements if not s.is_import]
    plain = [s for s in rest if not s.is_function and not any(f.is_function for f in closure(s.needs, rest))]
    helpers = [s for s in rest if s not in plain and s.binds[0] not in last]
    named = [s for s in rest if s not in plain and s not in helpers]
    blocks = ["\n".join(imports), "\n".join(s.text for s in plain)]
    text = "\n\n".join(block for block in blocks if block)
    functions = [*(s.text for s in (*helpers, *named)), *entries]
    return "\n\n\n".join(block for block in (text, *functions) if block) + "\n"


def closure(roots: Iterable[str], statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements needed by names, each after those that it needs; roots in the order given."""
    binders: dict[str, list[Statement]] = {}
    for statement in statements:
        for name in statement.binds:
            binders.setdefault(name, []).append(statement)
    done: dict[Statement, None] = {}
    visiting: set[Statement] = set()

    def visit(name: str, until: Statement | None = None) -> None:
        for statement in binders.get(name, ()):
            if statement is until:  # a rebinding, `T = T + 1`, needs what came before it
                return
            if statement in visiting:
                continue
            visiting.add(statement)
            for needed in statement.needs:
                visit(needed, statement if needed in statement.binds else None)
            done[statement] = None

    for root in roots:
        visit(root)
    return tuple(done)


def disentangled(mine: Sequence[Statement], theirs: Sequence[Statement]) -> dict[str, str]:
    """New names for those of `theirs` that mean something else in `mine`."""
    meaning, others = _meanings(mine), _meanings(theirs)
    shared = [n for n in others if n in meaning and n != "jax"]
    clashing = [n for n in shared if others[n] != meaning[n]]
    # A function that is the same text but calls a renamed one is another function: rename it too.
    changed = True
    while changed:
        changed = False
        for statement in theirs:
            for name in statement.binds:
                if name in shared and name not in clashing and set(statement.needs) & set(clashing):
                    clashing.append(name)
                    changed = True
    names: dict[str, str] = {}
    taken = {n for s in (*mine, *theirs) for n in (*s.binds, *_all_names(s.node))} if clashing else set()
    for name in clashing:
        names[name] = fresh_name(name, taken)
        taken.add(names[name])
    return names


def _meanings(statements: Sequence[Statement]) -> dict[str, set[str]]:
    """The shapes of the statements that bind each name."""
    found: dict[str, set[str]] = {}
    for statement in statements:
        for name in statement.binds:
            found.setdefault(name, set()).add(statement.shape)
    return found


def lines_of(text: str) -> list[str]:
    """The lines of a source as its syntax tree counts them: no other character than these ends one."""
    return re.split(r"\r\n|\r|\n", text)


def _as_text(form: Callable[[ast.AST], str], node: ast.AST) -> str:
    """`ast.dump` or `ast.unparse` of a node; integers too long for decimal digits are written in hexadecimal ones."""
    try:
        return form(node)
    except ValueError:
        return form(_InHexadecimal().visit(copy.deepcopy(node)))


class _InHexadecimal(ast.NodeTransformer):
    """Replaces integers that Python refuses to print by names that read like them."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, int):
            return node
        try:
            str(node.value)
            return node
        except ValueError:
            return ast.copy_location(ast.Name(hex(node.value), ast.Load()), node)


def _all_names(node: ast.AST) -> set[str]:
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found | {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
