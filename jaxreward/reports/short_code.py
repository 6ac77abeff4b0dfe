"""A program in a few lines, for pictures and pages: what it observes and what it rewards, without the helpers."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping

HALVES = ("get_observation", "compute_reward")
_WIDTH = 72
"""Columns that a comment ends at: as many as a page shows without scrolling."""


def short_code(source: str, *halves: str, documented: bool = False) -> str:
    """The two functions of a program, or those named, shortened where they have the form in which the genetic proposer
    writes: a concatenation of features, a sum of terms. Arguments of features and terms are left out. A function in
    another form is returned as it stands.

        def compute_reward(state, action, next_state):
            return (
                2.0 * got_pyramid(...)
                + 0.1 * closer(...)
            )

    Args:
        documented: put the first line of the docstring of each feature and term above it as a comment.

    Raises:
        SyntaxError: the source is no Python.
    """
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    docs = {name: (ast.get_docstring(node) or "").partition("\n")[0] for name, node in functions.items()}
    wanted = [functions[name] for name in halves or HALVES if name in functions]
    return "\n\n\n".join(_shortened(function, source, docs if documented else {}) for function in wanted)


def _shortened(function: ast.FunctionDef, source: str, docs: Mapping[str, str]) -> str:
    arguments = ", ".join(argument.arg for argument in function.args.args)
    if function.name == "compute_reward":
        parts, opening, closing, before, after = _terms(function), ["("], [")"], "+ ", ""
    else:
        parts, opening, closing, before, after = _features(function), ["jnp.concatenate(", "["], ["]", ")"], "", ","
    if not parts:
        return ast.get_source_segment(source, function) or ""
    lines, margin = [], "    " * (1 + len(opening))
    for k, part in enumerate(parts):
        if comment := _documentation(part, docs):
            lines.append(f"{margin}# {textwrap.shorten(comment, _WIDTH - len(margin) - 2, placeholder=' ...')}")
        text = ast.unparse(part).replace(f"({arguments})", "(...)")
        lines.append(f"{margin}{before if k else ''}{text}{after}")
    begin = [f"def {function.name}({arguments}):", f"    return {opening[0]}", *(f"        {x}" for x in opening[1:])]
    end = [f"        {x}" for x in closing[:-1]] + [f"    {closing[-1]}"]
    return "\n".join([*begin, *lines, *end])


def _documentation(part: ast.expr, docs: Mapping[str, str]) -> str:
    """The docstring of the one function that `part` calls, "" where there is none."""
    called = [node.func.id for node in ast.walk(part) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return docs.get(called[0], "") if len(called) == 1 else ""


def _terms(function: ast.FunctionDef) -> list[ast.expr]:
    """The values of `terms = {...}` where `sum(terms.values()), terms` is returned, else none."""
    match function.body:
        case [
            ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(values=values)),
            ast.Return(value=ast.Tuple(elts=[ast.Call(func=ast.Name(id="sum"), args=[ast.Call(func=summed)]), _])),
        ] if ast.unparse(summed) == f"{name}.values":
            return values
    return []


def _features(function: ast.FunctionDef) -> list[ast.expr]:
    """The elements of a concatenation that is all that the function returns, else none."""
    match function.body:
        case [ast.Return(value=ast.Call(func=called, args=[ast.List(elts=parts)], keywords=[]))] if (
            ast.unparse(called) == "jnp.concatenate"
        ):
            return parts
    return []
