"""A program on text that passed its check: its source, and what it pays on the data that it was checked with."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxreward.records import ProgramSummary

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class TextProgram:
    """A reward of texts. There is nothing to call: it executes in the worker alone.

    Attributes:
        source: the text of the program.
        digest: of its syntax, without comments, layout and docstrings.
        rewards: of every transition of the data, float32 (n,).
        terms: the names of its terms, where it returns them.
        nodes: syntax nodes.
    """

    source: str
    digest: str
    rewards: Array = field(repr=False)
    terms: tuple[str, ...] = ()
    nodes: int = 0

    @property
    def summary(self) -> ProgramSummary:
        return ProgramSummary(digest=self.digest, observation_size=0, terms=self.terms, reward_nodes=self.nodes)


def digest_of(source: str) -> str:
    """A digest of the syntax of a program that passed the guard."""
    tree, words = ast.parse(source), list[str]()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1 and _is_docstring(body[0]):
            del body[0]
    left: list[Any] = [tree]
    while left:  # a loop: how deep a recursion may go depends on who calls
        match left.pop():
            case ast.AST() as node:
                words.append(type(node).__name__)
                left += [getattr(node, name, None) for name in node._fields]
            case list() as items:
                words.append(f"list of {len(items)}")
                left += items
            case value:
                words.append(repr(value))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
