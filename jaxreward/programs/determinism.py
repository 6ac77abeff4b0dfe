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
from jaxreward.programs.world import Fields

_PLAIN = (bool, int, float, str)
_UNORDERED = (set, frozenset)
_INDIFFERENT = {"all", "any", "bool", "isinstance", "len", "set"}
_INDIFFERENT_WITHOUT_KEY = {"max", "min", "sorted"}
"""Builtins to which the order of a set means nothing."""


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
    if isinstance(value, _UNORDERED) and not all(type(x) in (bool, int, float) for x in value):
        hint = "use a tuple, or sorted(...)"
        raise Refused("the order of a set is used, and every process has another", hint=hint, stage="trace")
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, _UNORDERED):
                ordered(item)
    return value


def known(value: Any) -> Any:
    """`value`, whose type is asked for."""
    if isinstance(value, Fields):
        hint = "read its fields"
        raise Refused("the type of the state is asked for, and it is another outside", hint=hint, stage="trace")
    return value


CHECKS: dict[str, Callable[[Any], Any]] = {f"__{f.__name__}": f for f in (plain, remainder, ordered, known)}
"""By the names that stand for them in a program, which no program may use."""


def add_checks(tree: ast.Module) -> ast.Module:
    """Put the checks into a guarded program, in place; lines and columns stay what they were."""
    nodes = list(ast.walk(tree))
    own = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)} | {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    own |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
    for node in nodes:
        match node:
            case ast.FormattedValue():
                node.value = _checked(plain, node.value)
            case ast.BinOp(op=ast.Mod()):
                node.left = _checked(remainder, node.left)
            case ast.For() | ast.comprehension():
                node.iter = _checked(ordered, node.iter)
            case ast.Starred(ctx=ast.Load()) | ast.Attribute(attr="pop"):
                node.value = _checked(ordered, node.value)
            case ast.Assign() if not all(isinstance(t, ast.Name | ast.Subscript) for t in node.targets):
                node.value = _checked(ordered, node.value)
            case ast.Call():
                _add_to_call(node, own)
            case _:
                pass
    return tree


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
