"""Checks put into a program before it is traced, where a run outside the sandbox could differ from the trace.

An array that is traced, a function and an object print as text that no other run gives; a set of strings has another
order in every process; a state has another type outside. The guard sees syntax alone, so what depends on a type is
refused while the program is traced. The source itself is not changed: what passes needs no checks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from jaxreward.programs.entries import Refused

_PLAIN = (bool, int, float, str)
_NUMBERS = (bool, int, float)
_UNORDERED = (set, frozenset)
_INDIFFERENT = {"all", "any", "bool", "isinstance", "len", "set"}
_INDIFFERENT_WITHOUT_KEY = {"max", "min", "sorted"}
"""Builtins whose result does not depend on the order of a set."""
_ITERATING = {"dict", "enumerate", "filter", "list", "map", "max", "min", "reversed", "sorted", "sum", "tuple", "zip"}


def plain(value: Any) -> Any:
    """`value`, which is turned into text."""
    if type(value) not in _PLAIN:
        message = f"a value of {type(value).__name__} is turned into text"
        raise Refused(message, hint="only plain numbers and strings have a text of their own", stage="trace")
    return value


def remainder(value: Any) -> Any:
    """`value`, which stands on the left of `%`."""
    if isinstance(value, str):
        raise Refused("a string is formatted with %", hint="use an f-string of plain numbers", stage="trace")
    return value


def ordered(value: Any) -> Any:
    """`value`, whose order may matter."""
    if isinstance(value, _UNORDERED) and not all(type(x) in _NUMBERS and x == x for x in value):
        hint = "use a tuple, or sorted(...)"
        raise Refused("the order of a set is used, and every process has another", hint=hint, stage="trace")
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, _UNORDERED):
                ordered(item)
    return value


def unpacked(value: Any) -> Any:
    """`value`, which is assigned to several names: its elements may be unpacked as well."""
    ordered(value)
    if isinstance(value, list | tuple):
        for item in value:
            unpacked(item)
    return value


def each(values: Any) -> Any:
    """`values`, each of which is assigned to several names."""
    return (unpacked(value) for value in ordered(values))


def iterating(function: Any) -> Any:
    """`function`, a builtin that goes over its arguments: it is passed to another, such as `map`, that calls it."""

    def called(*arguments: Any, **named: Any) -> Any:
        return function(*map(ordered, arguments), **{name: ordered(a) for name, a in named.items()})

    return called


def known(value: Any) -> Any:
    """`value`, whose type is asked for."""
    from jaxreward.programs.namespace import Fields  # here, so that programs on text are checked without JAX

    if isinstance(value, Fields):
        hint = "read its fields"
        raise Refused("the type of the state is asked for, and it is another outside", hint=hint, stage="trace")
    return value


_ALL = (plain, remainder, ordered, unpacked, each, iterating, known)
CHECKS: dict[str, Callable[[Any], Any]] = {f"__{f.__name__}": f for f in _ALL}
"""By the names that stand for them in a program, which no program may use."""


def add_checks(tree: ast.Module) -> ast.Module:
    """Put the checks into a guarded program, in place; lines and columns stay what they were."""
    nodes = list(ast.walk(tree))
    own = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)} | {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    own |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
    for node in nodes:
        match node:
            case ast.AugAssign(op=ast.Add()):
                node.value = _checked(ordered, node.value)
            case ast.FormattedValue():
                node.value = _checked(plain, node.value)
            case ast.BinOp(op=ast.Mod()):
                node.left = _checked(remainder, node.left)
            case ast.For() | ast.comprehension():
                node.iter = _checked(ordered if isinstance(node.target, ast.Name) else each, node.iter)
            case ast.Starred(ctx=ast.Load()) | ast.Attribute(attr="pop"):
                node.value = _checked(ordered, node.value)
            case ast.Assign() if not all(_is_one(target) for target in node.targets):
                node.value = _checked(unpacked, node.value)
            case ast.Call():
                _add_to_call(node, own)
            case _:
                pass
    return _Passed(own).visit(tree)


class _Passed(ast.NodeTransformer):
    """Finds builtins that are passed to another function, or assigned to another name, in place of being called."""

    def __init__(self, own: set[str]) -> None:
        self.names = _ITERATING - own

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _checked(iterating, node) if node.id in self.names else node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        elif node.func.id == "isinstance":
            return node
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.value = node.value and self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [self.visit(statement) for statement in node.body]
        node.args.defaults = [self.visit(value) for value in node.args.defaults]
        node.args.kw_defaults = [value and self.visit(value) for value in node.args.kw_defaults]
        return node


def _is_one(target: ast.expr) -> bool:
    """Whether what is assigned to `target` stays one object, unlike with a slice of a list."""
    return isinstance(target, ast.Name) or (
        isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)
    )


def _add_to_call(call: ast.Call, own: set[str]) -> None:
    name = call.func.id if isinstance(call.func, ast.Name) and call.func.id not in own else ""
    if name == "str":
        call.args = [_checked(plain, a) for a in call.args]
    elif name == "isinstance":
        call.args[:1] = [_checked(known, a) for a in call.args[:1]]
    elif name not in _INDIFFERENT and (name not in _INDIFFERENT_WITHOUT_KEY or call.keywords or len(call.args) > 1):
        call.args = [a if isinstance(a, ast.Starred) else _checked(ordered, a) for a in call.args]
        for keyword in call.keywords:
            keyword.value = _checked(ordered, keyword.value)


def _checked(check: Callable[[Any], Any], value: ast.expr) -> ast.expr:
    name = ast.copy_location(ast.Name(f"__{check.__name__}", ast.Load()), value)
    return ast.copy_location(ast.Call(name, [value], []), value)
