"""Functions by what their syntax says: equal whatever they, their variables and what they call are named.

Layout, comments, docstrings and annotations make no difference either. Names from outside of a function stand for what
they are bound to: another function for its own normal form, a constant for its value, a name of a module for its path.
Sources are parsed and never executed.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from jaxreward.function_source.scopes import bound_in
from jaxreward.function_source.statements import Statement, closure, split

_DEEPEST = 100
"""Levels of syntax of a program that is read: each takes several calls."""


class Definition(NamedTuple):
    """A statement of a program: a digest of its normal form, the names that it binds, and its text."""

    key: str
    names: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Helper:
    """A function that the reward of a program calls, itself or through others.

    Attributes:
        key: a digest of its normal form.
        name: in the program.
        definitions: the functions and constants that it needs, each after those that it needs itself, and itself last.
    """

    key: str
    name: str
    definitions: tuple[Definition, ...]


@lru_cache(maxsize=4096)
def helpers_of(source: str) -> tuple[Helper, ...]:
    """The functions that `compute_reward`, or else `reward`, of a program reaches, in the order of their definitions;
    of two with one normal form the first. None for a source that cannot be parsed or nests very deeply."""
    try:
        return _helpers(source) if _depth(ast.parse(source)) <= _DEEPEST else ()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _helpers(source: str) -> tuple[Helper, ...]:
    statements = split(source)
    program = _Program(statements)
    entry = next((name for name in ("compute_reward", "reward") if name in program.functions), "")
    reached = {s.binds[0] for s in closure([entry], statements) if s.is_function} - {entry}
    found = dict[str, Helper]()
    for statement in statements:
        name = statement.binds[0] if statement.is_function else ""
        if name in reached and name not in ("get_observation", "debug") and program.key(name) not in found:
            found[program.key(name)] = Helper(program.key(name), name, program.definitions(name))
    return tuple(found.values())


class _Meaning(NamedTuple):
    """What stands in a normal form for a name from outside: a `form`, or the text of a `value`; `parameters` are those
    of a function."""

    form: str = ""
    value: str = ""
    parameters: tuple[str, ...] = ()


class _Program:
    """The statements of a program, and the normal forms of what they bind."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.binders = dict[str, list[Statement]]()
        for statement in statements:
            for name in statement.binds:
                self.binders.setdefault(name, []).append(statement)
        self.functions = {s.binds[0] for s in statements if s.is_function}
        self._keys = dict[str, str]()

    def key(self, name: str) -> str:
        """A digest of what a name of the module stands for; of functions that call one another without end, one that
        holds for them alone."""
        if name not in self._keys:
            self._keys[name] = f"cycle:{name}"  # while it is computed
            text = "|".join(f"{s.binds.index(name)} {self._normal(s)}" for s in self.binders[name])
            self._keys[name] = hashlib.sha256(text.encode()).hexdigest()
        return self._keys[name]

    def _normal(self, statement: Statement) -> str:
        own = statement.binds[0] if statement.is_function else ""
        outside = tuple((name, self._meaning(name)) for name in statement.needs if name != own)
        return _normal_form(statement.text, own, outside)

    def _meaning(self, name: str) -> _Meaning:
        binders = self.binders.get(name, [])
        if not binders:
            return _Meaning(name)  # a builtin
        if len(paths := {_path(s.node, name) for s in binders}) == 1 and (path := paths.pop()):
            return _Meaning(f"@{path}")
        if len(binders) > 1:
            return _Meaning(f"#{self.key(name)}")
        node = binders[0].node
        if value := _literal(node):
            return _Meaning(value=value)
        parameters = _parameters(node.args, named=False) if isinstance(node, ast.FunctionDef) else []
        return _Meaning(f"#{self.key(name)}", parameters=tuple(parameters))

    def definitions(self, name: str) -> tuple[Definition, ...]:
        needed = [s for s in closure([name], self.statements) if not s.is_import]
        return tuple(Definition(self.key(s.binds[0]), s.binds, s.text) for s in needed)


@lru_cache(maxsize=8192)
def _normal_form(text: str, own: str, outside: tuple[tuple[str, _Meaning], ...]) -> str:
    """A statement in normal form; programs of a search have most of them from one another.

    Args:
        own: the name of the function that it defines, if it does.
        outside: what the names mean that it reads from the module.
    """
    return ast.dump(_Normal(own, dict(outside)).visit(ast.parse(text).body[0]))


class _Normal(ast.NodeTransformer):
    """Rewrites a statement to its normal form: variables are numbered in the order in which scopes bind them."""

    def __init__(self, own: str, outside: Mapping[str, _Meaning]) -> None:
        self.own, self.outside, self.count = own, outside, 0
        self.scopes = list[dict[str, str]]()

    def _open(self, names: Iterable[str]) -> None:
        fresh = list(dict.fromkeys(names))
        self.scopes.append({name: f"v{self.count + k}" for k, name in enumerate(fresh)})
        self.count += len(fresh)

    def _local(self, name: str) -> str | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        local = self._local(node.id)
        if local is not None or not isinstance(node.ctx, ast.Load):
            return ast.Name(local or "bound", node.ctx)
        meaning = self.outside.get(node.id, _Meaning("self" if node.id == self.own else node.id))
        return ast.parse(meaning.value, mode="eval").body if meaning.value else ast.Name(meaning.form, node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id.startswith("@"):
            return ast.Name(f"{node.value.id}.{node.attr}", node.ctx)  # a name of a module
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        places: dict[str | None, str] = {}
        if isinstance(node.func, ast.Name) and self._local(node.func.id) is None:
            parameters = self.outside.get(node.func.id, _Meaning()).parameters
            places = {name: f"#{k}" for k, name in enumerate(parameters)}
        self.generic_visit(node)
        for keyword in node.keywords:
            keyword.arg = places.get(keyword.arg, keyword.arg)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        target = self.visit(node.target)
        return ast.Assign([target], self.visit(node.value)) if node.value is not None else ast.Pass()

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._local(node.arg) or node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        name = self._local(node.name) or "self"
        decorators = [self.visit(decorator) for decorator in node.decorator_list]
        self._defaults(node.args)
        body = node.body[1:] if _is_docstring(node.body[0]) else node.body
        self._open([*_parameters(node.args), *(name for statement in body for name in bound_in(statement))])
        arguments = self._arguments(node.args)
        body = [self.visit(statement) for statement in body] or [ast.Pass()]
        self.scopes.pop()
        return ast.FunctionDef(name, arguments, body, decorators)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self._defaults(node.args)
        self._open(_parameters(node.args))
        arguments, body = self._arguments(node.args), self.visit(node.body)
        self.scopes.pop()
        return ast.Lambda(arguments, body)

    def _defaults(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visit(default) for default in arguments.defaults]
        arguments.kw_defaults = [default and self.visit(default) for default in arguments.kw_defaults]

    def _arguments(self, arguments: ast.arguments) -> ast.arguments:
        """With the parameters renamed; the defaults are visited already."""
        for name in ("posonlyargs", "args", "kwonlyargs"):
            setattr(arguments, name, [self.visit(a) for a in getattr(arguments, name)])
        for name in ("vararg", "kwarg"):
            if (argument := getattr(arguments, name)) is not None:
                setattr(arguments, name, self.visit(argument))
        return arguments

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.AST:
        self._open(name for g in node.generators for name in bound_in(g.target))
        self.generic_visit(node)
        self.scopes.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def _parameters(arguments: ast.arguments, named: bool = True) -> list[str]:
    """In their order; without those that keywords alone can give, unless `named`."""
    every = [*arguments.posonlyargs, *arguments.args]
    every += [arguments.vararg, *arguments.kwonlyargs, arguments.kwarg] if named else []
    return [a.arg for a in every if a is not None]


def _path(node: ast.stmt, name: str) -> str:
    """What an import binds a name to, as a dotted path; empty for another statement."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return ""
    alias = next(a for a in node.names if name in (a.asname, a.name.split(".")[0]))
    if isinstance(node, ast.ImportFrom):
        return f"{node.module}.{alias.name}"
    return alias.name if alias.asname else name


def _literal(node: ast.stmt) -> str:
    """The number or text that a statement binds its one name to; empty for another statement."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        return ""
    inner = node.value.operand if isinstance(node.value, ast.UnaryOp) else node.value
    return ast.unparse(node.value) if isinstance(inner, ast.Constant) else ""


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _depth(tree: ast.AST) -> int:
    """Levels of a syntax tree."""
    level, deep = [tree], 0
    while level:
        level, deep = [child for node in level for child in ast.iter_child_nodes(node)], deep + 1
    return deep
