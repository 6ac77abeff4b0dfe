"""Finds the line of a user's file that a mistake in a task stands in."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import CodeType
from typing import Any

from jaxreward.tasks.finding import Location

ADAPTERS = "jaxreward.tasks.adapters."
"""Modules of tasks that consist of others' code."""

_PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARIES = tuple({str(Path(sysconfig.get_path(k)).resolve()) for k in ("stdlib", "platstdlib", "purelib", "platlib")})


class SourceLocator:
    """The lines of user code that a mistake in a task stands in; lines of libraries are skipped.

    Args:
        task: the task, an instance, or a metric of its own.
        default: the location of a mistake whose line is unknown; by default where the class begins.
    """

    def __init__(self, task: Any, default: Location | None = None) -> None:
        self.kind = type(task)
        self._adapter = self.kind.__module__.startswith(ADAPTERS)  # none of its lines is the mistake
        self.file = self._file_of_function(task) if self._adapter else _file_of(self.kind)
        self._default = default

    def _file_of_function(self, task: Any) -> str:
        """The user's file that the step of a task is from, where that is a function; else empty."""
        code = _code_of(getattr(task, "__dict__", {}).get("step"))
        return code.co_filename if code and not _of_library(code.co_filename) else ""

    def is_user_code(self, file: str | None) -> bool:
        """Whether `file` is user code: that of the task's class, or another that is of no library."""
        if not file or file.startswith("<"):
            return False
        return file == self.file or not _of_library(file)

    def is_user_class(self, metric: Any) -> bool:
        """Whether the class of `metric` is user code, not a library's."""
        return self.is_user_code(_file_of(type(metric)))

    def is_user_function(self, function: Callable[..., Any]) -> bool:
        """Whether `function` is user code, not a library's."""
        code = _code_of(function)
        return code is not None and self.is_user_code(code.co_filename)

    def line_of_error(self, error: BaseException) -> Location:
        """The innermost line of user code that an exception passed through."""
        frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        own = (Location(file, line) for file, line in reversed(frames) if self.is_user_code(file))
        return next(own, self.line_of_class())

    def line_of_value(self, equation: Any, function: Callable[..., Any]) -> Location:
        """The innermost line of user code that made an equation of a jaxpr; where that is unknown, the line of
        what `function` returns."""
        try:
            frames = [Location(frame.file_name, frame.line_num) for frame in equation.source_info.traceback.frames]
        except AttributeError:
            frames = []
        return next((x for x in frames if self.is_user_code(x.file)), None) or self.line_of_result(function)

    def line_of_result(self, function: Callable[..., Any]) -> Location:
        """The last `return` of a function, or its `def` where it has none; the class, if a library defines it."""
        code = _code_of(function)
        if code is None or not self.is_user_code(code.co_filename):
            return self.line_of_class()
        found = _function(code.co_filename, code.co_name, code.co_firstlineno)
        returns = [node.lineno for node in _own_nodes(found) if isinstance(node, ast.Return)] if found else []
        return Location(code.co_filename, max(returns, default=found.lineno if found else code.co_firstlineno))

    def line_of_name(self, name: str) -> Location:
        """Where the body of the class, or of one that it derives from, binds `name`; else the class."""
        for kind in self.kind.__mro__:
            file = _file_of(kind)
            if not self.is_user_code(file):
                continue
            for node in getattr(_class(file, kind), "body", ()):
                if name in _binds(node):
                    return Location(file, node.lineno)
        return self.line_of_class()

    def line_of_definition(self, function: Callable[..., Any], name: str) -> Location:
        """Where a method is defined: where the class binds `name`, or the first line of a function that was given."""
        code = _code_of(function) if self._adapter else None
        own = code is not None and self.is_user_code(code.co_filename)
        return Location(code.co_filename, code.co_firstlineno) if code and own else self.line_of_name(name)

    def line_of_text(self, text: str) -> Location | None:
        """The first string of the task's file that is `text`, or holds it where none is just that."""
        strings = [
            (node.value, node.lineno, (node.end_lineno or node.lineno) - node.lineno)
            for node in _nodes(self.file)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        exact = [line for value, line, _ in strings if value == text]
        # Of a text over several lines, the line of the part; one on a line of its own may have escaped line breaks.
        holders = ((value[: value.index(text)], line, span) for value, line, span in strings if text in value)
        holding = [line + min(before.count("\n"), span) for before, line, span in holders]
        return Location(self.file, (exact or holding)[0]) if exact or holding else None

    def line_of_class(self) -> Location:
        """Where the class of the task begins, or what was given in place of that."""
        if self._default is not None:
            return self._default
        node = None if self._adapter else _class(self.file, self.kind)
        return Location(self.file, node.lineno) if node else Location()

    def calls_in(self, function: Callable[..., Any]) -> Iterator[tuple[str, Location]]:
        """The names of what a function of user code calls, as it writes them, with their lines."""
        code = _code_of(function)
        found = _function(code.co_filename, code.co_name, code.co_firstlineno) if code else None
        if code is None or found is None or not self.is_user_code(code.co_filename):
            return
        for node in ast.walk(found):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func), Location(code.co_filename, node.lineno)


def _code_of(function: Any) -> CodeType | None:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)


def _of_library(file: str) -> bool:
    path = Path(file).resolve()
    ours = path.is_relative_to(_PACKAGE) or "site-packages" in path.parts  # of this environment, or one that it extends
    return ours or any(path.is_relative_to(folder) for folder in _LIBRARIES)


def _file_of(kind: type) -> str:
    """The file that defines a class: that of its module, or of one of its functions where no module is known."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    codes = (getattr(value, "__code__", None) for value in vars(kind).values())
    return file or next((code.co_filename for code in codes if code and not code.co_filename.startswith("<")), "")


@cache
def _parsed_at(file: str, _stamp: float) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None


def _nodes(file: str) -> Iterator[ast.AST]:
    """The nodes of a file's syntax tree; none of a file that cannot be read."""
    try:
        tree = _parsed_at(file, Path(file).stat().st_mtime)
    except OSError:
        return iter(())
    return ast.walk(tree) if tree else iter(())


def _class(file: str, kind: type) -> ast.ClassDef | None:
    return next((n for n in _nodes(file) if isinstance(n, ast.ClassDef) and n.name == kind.__name__), None)


def _function(file: str, name: str, first: int) -> ast.FunctionDef | ast.Lambda | None:
    """The function whose code begins at a line, which may be that of its first decorator."""
    for node in _nodes(file):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            if first in (node.lineno, *(d.lineno for d in node.decorator_list)):
                return node
        elif isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == first:
            return node
    return None


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function that are not of one inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield node
            yield from _own_nodes(node)


def _binds(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}
