"""Changes to the text of a function that leave its comments and layout as they are."""

from __future__ import annotations

import ast
import re


class Edits:
    """Replacements in a text by the nodes of its syntax tree."""

    def __init__(self, text: str) -> None:
        self.bytes = text.encode()
        self.starts = [0]
        for line in re.split(rb"(?<=\n)", self.bytes):
            self.starts.append(self.starts[-1] + len(line))
        self.changes: list[tuple[int, int, bytes]] = []

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def stands(self, node: ast.expr) -> bool:
        """Whether the text has a name or an attribute where its node says; in f-strings of Python 3.11 some do not."""
        start, end = self._span(node)
        return re.sub(rb"\s|[()]", b"", self.bytes[start:end]) == ast.unparse(node).encode()

    def replace(self, node: ast.expr, text: str) -> None:
        self.changes.append((*self._span(node), text.encode()))

    def rename(self, function: ast.FunctionDef, name: str) -> None:
        """Give the function another name, where it is defined."""
        start = self._at(function.lineno, function.col_offset)
        found = re.compile(rb"def\s+([^\s(\[]+)").match(self.bytes, start)
        assert found is not None
        self.changes.append((*found.span(1), name.encode()))

    def drop_annotations(self, function: ast.FunctionDef) -> None:
        """Leave out annotations of arguments, results and variables, which may name what a program does not have."""
        for node in ast.walk(function):
            if isinstance(node, ast.arg) and node.annotation is not None:
                start, end = self._span(node)
                default = re.compile(rb"\s*=\s*").match(self.bytes, end)
                self.changes.append(
                    (start, default.end() if default else end, node.arg.encode() + b"=" * bool(default))
                )
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                first, last = self._span(node.returns)
                self.changes.append((self._before(b"->", first), self.bytes.index(b":", last), b""))
            elif isinstance(node, ast.AnnAssign):
                start, end = self._span(node)
                if node.value is None:
                    self.changes.append((start, end, b"pass"))
                else:
                    self.changes.append((self._span(node.target)[1], self._span(node.value)[0], b" = "))

    def _before(self, word: bytes, end: int) -> int:
        """Where `word` stands before `end`, with the blanks in front of it."""
        return len(self.bytes[: self.bytes.rindex(word, 0, end)].rstrip())

    def applied(self) -> str:
        text = self.bytes
        for start, end, new in sorted(self.changes, reverse=True):
            text = text[:start] + new + text[end:]
        return text.decode()
