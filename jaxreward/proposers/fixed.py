"""An observation that is given and not searched for, put into every program of a reward."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile, problem_of, why_unreadable
from jaxreward.function_source.statements import Statement, fresh_name, joined, split
from jaxreward.proposers.replies.source import without
from jaxreward.sentences import mention

_ENTRY = "get_observation"
_REWARDS = ("compute_reward", "reward")

_FRAMES = 50_000
"""Calls within calls that renaming may take: some six for each level of an expression, of which Python reads 3,000."""

MARK = "# ---- the observation, which is given"
"""The line from which on a completed program is the observation."""


class FixedObservation:
    """The `get_observation` of a file, with everything else in it but its reward.

    The file is parsed and never executed.

    Args:
        path: the file.
        links: whether it may be a link, as one that the user names may.

    Raises:
        UnusableFile: the file cannot be read or parsed, or has no get_observation.
    """

    def __init__(self, path: Path, *, links: bool = True) -> None:
        try:
            statements = split(files.read_text(path, links=links))
        except (OSError, UnicodeDecodeError) as error:
            problem = problem_of(error)
            message = f"{mention('observation', path)} cannot be read: {why_unreadable(error)}"
            raise UnusableFile(message, path, problem) from error
        except SyntaxError as error:
            where = f" (line {error.lineno})" if error.lineno else ""
            message = f"{mention('observation', path)} is not a Python file: {error.msg}{where}"
            raise UnusableFile(message, path, FileProblem.DAMAGED, error.lineno) from error
        except (ValueError, RecursionError) as error:
            message = f"{mention('observation', path)} is not a Python file: {error}"
            raise UnusableFile(message, path, FileProblem.DAMAGED) from error
        self.path = path
        self.statements = tuple(s for s in statements if not _defines(s, *_REWARDS))
        if not any(_defines(s, _ENTRY) for s in self.statements):
            message = f"{mention('observation', path)} has no {_ENTRY} at its top level"
            raise UnusableFile(message, path, FileProblem.WRONG_KIND)

    @property
    def source(self) -> str:
        """It alone, as a program without a reward."""
        return joined(self.statements)

    def complete(self, source: str) -> str:
        """`source` with this observation in place of any it has.

        The rest of it stays as it is: what both call by the same name has a new one in the observation. Source that
        cannot be parsed is returned unchanged, for its check to say where.

        Raises:
            UnusableFile: the observation nests too deeply to be renamed.
        """
        source = source.partition(f"\n{MARK}\n")[0]
        try:
            tree = ast.parse(source)
            theirs = split(source)
        except (SyntaxError, ValueError, RecursionError):
            return source
        entries = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == _ENTRY]
        imported = {s.shape for s in theirs if s.is_import}
        taken = {name for node in ast.walk(tree) for name in _names(node)} - {_ENTRY}
        try:
            with _deep_calls():
                observation = self._without_clashes(imported, taken)
        except RecursionError as error:
            message = f"{mention('observation', self.path)} nests too deeply: write long sums in several statements"
            raise UnusableFile(message, self.path, FileProblem.TOO_LARGE) from error
        return f"{without(source, entries).rstrip()}\n\n\n{MARK}\n{observation}"

    def _without_clashes(self, imported: Collection[str], taken: Collection[str]) -> str:
        """The observation without what is imported already, its own names being none of those that are taken."""
        mine = [s for s in self.statements if not (s.is_import and s.shape in imported)]
        names: dict[str, str] = {}
        for name in dict.fromkeys(name for s in mine for name in s.binds if name in taken and name != "jax"):
            others = {*taken, *(bound for s in mine for bound in s.binds), *names.values()}
            names[name] = fresh_name(name, others)
        return joined([s.renamed(names) for s in mine])


@contextmanager
def _deep_calls() -> Iterator[None]:
    """A sum of 300 terms is 300 levels deep, and each takes several calls."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def _defines(statement: Statement, *names: str) -> bool:
    return statement.is_function and statement.binds[0] in names


def _names(node: ast.AST) -> list[str]:
    """The names that a node binds or reads."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.alias):
        return [node.asname or node.name.split(".")[0]]
    return []
