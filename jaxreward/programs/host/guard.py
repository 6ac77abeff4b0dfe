"""The allow-list of programs on text, decided on their syntax alone.

It runs in the locked-down worker before the program does. What it lets through is also safe to import elsewhere.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import NoReturn

from jaxreward.programs.entries import FILE, Refused
from jaxreward.programs.guard import NODES
from jaxreward.programs.host.names import API, ATTRIBUTES, BUILTINS
from jaxreward.programs.limits import Limits

ENTRIES = {"reward": "(state)", "compute_reward": "(state, action, next_state)"}
"""The functions that a program is asked for, one of them, and their parameters."""

_MORE = {"While", "Try", "ExceptHandler", "NamedExpr"}
_REMEDY = {
    "ClassDef": "use functions and dictionaries",
    "Global": "pass the value as an argument",
    "Nonlocal": "pass the value as an argument, or return it",
    "Raise": "return a reward in every case",
    "With": "remove it",
    "Yield": "build a list",
    "Match": "use if and elif",
}
_DEEPEST = 150
"""Levels of syntax: what reads a program later, in other processes, may go down it by recursion."""
_NO_ATTRIBUTE = {"format": "use an f-string", "format_map": "use an f-string"}
_NO_BUILTIN = {
    "print": "remove it: programs have no side effects",
    "open": "files are out of reach",
    "hash": "it is another number in every process",
    "id": "it is another number in every process",
    "repr": "use an f-string",
    "iter": "loop over the list itself",
}


@dataclass(frozen=True)
class GuardedText:
    """A program that passed: its tree, the name of its reward, and its syntax nodes."""

    tree: ast.Module
    entry: str
    nodes: int


def guard(source: str, limits: Limits) -> GuardedText:
    """Check `source` against the allow-list.

    Raises:
        Refused: with the line and a remedy.
    """
    if len(source.encode("utf-8", "replace")) > limits.source_bytes:
        message = f"the source has more than {limits.source_bytes} bytes"
        raise Refused(message, hint="keep what tells the states apart, drop the rest", stage="limits")
    try:
        tree = ast.parse(source, FILE)
    except SyntaxError as error:
        raise Refused(f"not valid Python: {error.msg}", error.lineno, (error.text or "").strip()[:80]) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"cannot be parsed: {type(error).__name__}", hint="nest less deeply") from error
    nodes = list(ast.walk(tree))
    if deepest := _too_deep(tree):
        hint = "use a loop, or a dictionary in place of a long chain of elif"
        raise Refused(f"it is nested more than {_DEEPEST} deep", deepest, hint, "limits")
    if len(nodes) > limits.syntax_nodes:
        message = f"the source has {len(nodes)} syntax nodes; the limit is {limits.syntax_nodes}"
        raise Refused(message, hint="write loops instead of long expressions", stage="limits")
    _Guard(tree, nodes).check()
    return GuardedText(tree, _entry(tree), len(nodes))


def _too_deep(tree: ast.Module) -> int | None:
    """The line on which the syntax is nested too deeply; None where it is nowhere."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return next((line for node in level if (line := getattr(node, "lineno", None))), None)


def _entry(tree: ast.Module) -> str:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ENTRIES]
    names = [node.name for node in functions]
    if not names:
        raise Refused("the program defines no reward", hint="write def reward(state):", stage="contract")
    if len(set(names)) < len(names):
        raise Refused(f"{names[-1]} is defined twice", functions[-1].lineno, "keep one of them", "contract")
    entry = "compute_reward" if "compute_reward" in names else "reward"
    function = functions[names.index(entry)]
    a, wanted = function.args, ENTRIES[entry]
    arity = -1 if a.vararg or a.kwarg or a.kwonlyargs or a.defaults else len(a.posonlyargs) + len(a.args)
    if arity != wanted.count(",") + 1:
        raise Refused(
            f"{entry} must take {wanted.count(',') + 1} positional argument(s) without defaults", function.lineno,
            f"write def {entry}{wanted}:", "contract",
        )  # fmt: skip
    return entry


class _Guard:
    def __init__(self, tree: ast.Module, nodes: list[ast.AST]) -> None:
        self.tree, self.nodes = tree, nodes
        self.parent = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self.modules: dict[str, str] = {}
        self.own: set[str] = set()
        self.line = 1

    def refuse(self, message: str, hint: str = "", stage: str = "guard") -> NoReturn:
        raise Refused(message, self.line, hint, stage)

    def check(self) -> None:
        for node in self.nodes:
            self.line = getattr(node, "lineno", self.line)
            if type(node).__name__ not in NODES | _MORE:
                kind = type(node).__name__
                self.refuse(f"{kind} is not allowed", _REMEDY.get(kind, ""))
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
            for name in _bound(node):
                self._bind(name)
        for node in self.nodes:
            self.line = getattr(node, "lineno", self.line)
            rule = getattr(self, f"_{type(node).__name__.lower()}", None)
            if rule is not None:
                rule(node)

    def _bind(self, name: str) -> None:
        if name.startswith("__") or hasattr(builtins, name):
            self.refuse(f"nothing may be called '{name}'", "choose another name")
        self.own.add(name)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if self.parent[node] is not self.tree:
            self.refuse("an import inside a function or a condition", "imports stand at the top level of a program")
        only = f"programs may import {', '.join(API)}"
        if isinstance(node, ast.ImportFrom):
            if node.module == "__future__" and not node.level and [a.name for a in node.names] == ["annotations"]:
                return
            for a in node.names:
                known = f"{node.module}.{a.name}"
                if known in API and not node.level:  # from xml.etree import ElementTree
                    self.modules[a.asname or a.name] = known
                elif node.level or node.module not in API:
                    self.refuse(f"import from '{'.' * node.level}{node.module or ''}' is not allowed", only)
                elif a.name not in API[node.module]:
                    self.refuse(f"'{known}' is not available to programs")
            return
        for a in node.names:
            if a.name not in API:
                self.refuse(f"import of '{a.name}' is not allowed", only)
            if "." in a.name and not a.asname:
                self.refuse(f"import of '{a.name}' without a name", f"write import {a.name} as ET")
            self.modules[a.asname or a.name] = a.name

    def _attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.refuse(f"assignment to the attribute '{node.attr}'", "a program changes nothing outside of it")
        module = self.modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if module is not None:
            if node.attr not in API[module]:
                self.refuse(f"'{module}.{node.attr}' is not available to programs")
        elif node.attr not in ATTRIBUTES:
            self.refuse(f"the attribute '{node.attr}' is not allowed", _NO_ATTRIBUTE.get(node.attr, ""))

    def _name(self, node: ast.Name) -> None:
        if node.id in self.modules:
            if not isinstance(node.ctx, ast.Load):
                self.refuse(f"the name '{node.id}' of a module is assigned to", "choose another name")
            if not isinstance(self.parent[node], ast.Attribute):
                self.refuse(f"the module {self.modules[node.id]} is used as a value", "write its names in full")
        elif node.id not in self.own and node.id not in BUILTINS:
            known = hasattr(builtins, node.id)
            message = f"the builtin '{node.id}' is not available" if known else f"the name '{node.id}' is not defined"
            self.refuse(message, _NO_BUILTIN.get(node.id, "" if known else "define or import it"))

    def _functiondef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.refuse("decorators are not allowed", "call the function instead")
        if node.name in ENTRIES and self.parent[node] is not self.tree:
            self.refuse(f"{node.name} must be defined at the top level", stage="contract")

    def _excepthandler(self, node: ast.ExceptHandler) -> None:
        if node.type is None:
            self.refuse("an except without an exception", "name the exception that can happen")

    def _keyword(self, node: ast.keyword) -> None:
        if node.arg and node.arg.startswith("_"):
            self.refuse(f"the keyword '{node.arg}' is not allowed")

    def _compare(self, node: ast.Compare) -> None:
        for op, side in zip(node.ops, node.comparators, strict=True):
            single = isinstance(side, ast.Constant) and (side.value is None or isinstance(side.value, bool))
            if isinstance(op, ast.Is | ast.IsNot) and not single:
                self.refuse("'is' compares two objects, which another run may share or not", "use ==, or 'is None'")


def _bound(node: ast.AST) -> list[str]:
    """The names that a node binds."""
    match node:
        case ast.Name(ctx=ast.Store()):
            return [node.id]
        case ast.arg():
            return [node.arg]
        case ast.FunctionDef():
            return [node.name]
        case ast.ExceptHandler(name=str(name)):
            return [name]
        case ast.Import() | ast.ImportFrom():
            return [a.asname or a.name for a in node.names if "." not in (a.asname or a.name)]
        case _:
            return []
