"""The constants of a reward: float literals that can be changed without changing what is computed with them.

Two rewards that differ in these alone have one skeleton: their reward's tape with a scalar input for every constant.
Skeletons train side by side at the cost of compiling one, and a value that was searched for is written back into the
source at the literal's place.

Not a constant, for it would change more than a number: what float32 takes for zero or for infinite, an exponent,
whatever stands in a format or in an annotation, and all that `get_observation` reaches as well.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

HOLDER = "__constants"
"""What a lifted program calls its constants; no program may use a name that begins with two underscores."""


@dataclass(frozen=True)
class FloatLiteral:
    """A float literal of a source: its line, from 1, the bytes of the line that it takes, and its value."""

    line: int
    start: int
    end: int
    value: float


def literals(tree: ast.Module, reward: str, observation: str | None) -> tuple[FloatLiteral, ...]:
    """The constants of the function called `reward` in a guarded program, in the order of its text."""
    reached = _reached(tree, reward)
    shared = _reached(tree, observation) if observation else set[ast.stmt]()
    found = set[FloatLiteral]()
    for statement in tree.body:
        if statement in reached and statement not in shared:
            _collect(statement, found)
    return tuple(sorted(found, key=lambda c: (c.line, c.start)))


def lift(tree: ast.Module, which: Collection[FloatLiteral]) -> ast.Module:
    """A copy of `tree` with `__constants[i]` for the i-th of `which`."""
    place = {(c.line, c.start, c.end): i for i, c in enumerate(which)}

    class Lift(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.expr:
            at = (node.lineno, node.col_offset, node.end_col_offset or 0)
            if type(node.value) is not float or at not in place:
                return node
            holder = ast.Name(HOLDER, ast.Load())
            return ast.Subscript(holder, ast.Constant(place[at]), ast.Load())

    return ast.fix_missing_locations(Lift().visit(copy.deepcopy(tree)))


class LiteralError(ValueError):
    """A value that cannot take the place of a literal, or a literal that is not at its recorded position.

    Attributes:
        line: of the literal, counted from 1; None where the numbers of values and literals differ.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def write_back(
    source: str, which: Sequence[FloatLiteral], values: Sequence[float]
) -> tuple[str, tuple[FloatLiteral, ...]]:
    """`source` with `values` in the places of its literals `which`, and where they stand then. Each is written so that
    it reads back as the same float32.

    Raises:
        LiteralError: a literal that is not at its recorded position, or a value that is not finite and positive in
            float32: a sign is not part of a literal.
    """
    if len(which) != len(values):
        raise LiteralError(f"{len(values)} values for {len(which)} constants")
    lines, moved = source.encode().split(b"\n"), list[FloatLiteral]()
    shift, last = 0, 0
    for literal, value in sorted(zip(which, values, strict=True), key=lambda pair: (pair[0].line, pair[0].start)):
        if not _positive(value):
            raise LiteralError(f"{value} cannot take the place of a literal", literal.line)
        shift, last = shift if literal.line == last else 0, literal.line
        line = lines[literal.line - 1] if literal.line <= len(lines) else b""
        start, end = literal.start + shift, literal.end + shift
        if not _reads_as(line[start:end], literal.value):
            message = f"line {literal.line} of the source does not have {literal.value} where it should"
            raise LiteralError(message, literal.line)
        new = _spelt(value).encode()
        lines[literal.line - 1] = line[:start] + new + line[end:]
        moved.append(FloatLiteral(literal.line, start, start + len(new), float(new)))
        shift += len(new) - (end - start)
    return b"\n".join(lines).decode(), tuple(moved)


def _positive(value: float) -> bool:
    """Whether `value` is finite and more than zero in float32."""
    with np.errstate(over="ignore", under="ignore"):
        return bool(0 < np.float32(value) < np.inf)


def _spelt(value: float) -> str:
    """The shortest text that is `value` in float32, with a point or an exponent, so that it stays a float."""
    text = str(np.float32(value))
    return text if any(c in text for c in ".en") else f"{text}.0"


def _reads_as(text: bytes, value: float) -> bool:
    try:
        return float(text.decode()) == value
    except ValueError:
        return False


def _reached(tree: ast.Module, entry: str) -> set[ast.stmt]:
    """The top-level statements that bind `entry` or what it reaches by name, imports included."""
    binding: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _bound(statement):
            binding.setdefault(name, []).append(statement)
    todo, reached = [entry], set[ast.stmt]()
    while todo:
        for statement in binding.get(todo.pop(), ()):
            if statement not in reached:
                reached.add(statement)
                todo += {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    return reached


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}  # also what it changes in place


def _collect(node: ast.AST, found: set[FloatLiteral]) -> None:
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Constant) and type(node.value) is float and _positive(node.value):
        if node.end_col_offset and node.lineno == node.end_lineno:
            found.add(FloatLiteral(node.lineno, node.col_offset, node.end_col_offset, node.value))
        return
    for name, child in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or (isinstance(node, ast.Dict) and name == "keys"):
            continue
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow) and name in ("right", "value"):
            continue
        for part in child if isinstance(child, list) else [child]:
            if isinstance(part, ast.AST):
                _collect(part, found)
