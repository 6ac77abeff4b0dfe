"""Scopes of Python on its syntax: which names a statement reads from its module, and which it binds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping


class GlobalNames(ast.NodeTransformer):
    """Collects, and optionally replaces, names that refer to the module's scope."""

    def __init__(self, names: Mapping[str, str] | None = None):
        self.names = names or {}
        self.read: list[str] = []
        self.local: list[set[str]] = []

    def is_global(self, name: str) -> bool:
        return not any(name in scope for scope in self.local)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self.is_global(node.id):
            if isinstance(node.ctx, ast.Load):
                self.read.append(node.id)
            node.id = self.names.get(node.id, node.id)
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            if alias.asname and alias.asname in self.names:
                alias.asname = self.names[alias.asname]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        for alias in node.names:
            bound = alias.asname or alias.name
            if bound in self.names:
                alias.asname = self.names[bound]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if self.is_global(node.name):
            node.name = self.names.get(node.name, node.name)
        outside = [*node.decorator_list, *node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]]
        for child in outside:
            self.visit(child)
        self.local.append(parameters(node.args) | {n for statement in node.body for n in bound_in(statement)})
        for child in node.body:
            self.visit(child)
        self.local.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        for default in (*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]):
            self.visit(default)
        self.local.append(parameters(node.args))
        self.visit(node.body)
        self.local.pop()
        return node

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.AST:
        self.local.append({n for g in node.generators for n in bound_in(g.target)})
        self.generic_visit(node)
        self.local.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def parameters(arguments: ast.arguments) -> set[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {a.arg for a in every if a is not None}


def bound_in(node: ast.AST) -> list[str]:
    """Names bound by a node in its own scope: assignments, loops, functions; not inside functions."""
    bound: list[str] = []

    def visit(child: ast.AST) -> None:
        if isinstance(child, ast.FunctionDef):
            bound.append(child.name)
            return
        if isinstance(child, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            bound.append(child.id)
        for grandchild in ast.iter_child_nodes(child):
            visit(grandchild)

    visit(node)
    return bound


def fresh_name(name: str, taken: Iterable[str]) -> str:
    """`name`, or name_2, name_3, ... : the first that is not taken."""
    taken = set(taken)
    if name not in taken:
        return name
    stem, _, tail = name.rpartition("_")
    counted = stem and tail.isdecimal() and len(tail) < 10
    stem, number = (stem, int(tail) + 1) if counted else (name, 2)
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"
