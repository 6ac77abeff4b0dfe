"""The runs in the folders that are served, by name, read again when their files have changed."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.errors import UserError
from jaxreward.formatting import printable
from jaxreward.reports.run_view import RunView, is_written
from jaxreward.runs.folders import LOG, runs_under
from jaxreward.runs.malformed import explain_malformed
from jaxreward.serving.run_row import key_of, run_row

COMPARISON = ("comparison.md", "comparison.png")
"""Files of a comparison that are shown."""

_WATCHED = (
    LOG, "best_interface.py", "transcripts/exchanges.jsonl", "best-of-n/events.jsonl", "film.gif", "film.json",
)  # fmt: skip
_REST = 9.0
"""A row is not made again before this many times the seconds that it took have passed: a run that grows all the time
costs a tenth of a core at most."""
_PATIENCE_S = 2.0
_PAGES = 6


class Catalogue:
    """The runs below some folders; its methods may be called from several threads.

    A run, or a comparison, behind a link that leads out of its folder is left out. Files are opened as `files` does.

    Args:
        folders: of runs, or runs themselves. They may be links.
        clock: monotonic seconds.
    """

    def __init__(self, folders: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self.folders = tuple(folders)
        self._clock = clock
        self._rows = dict[Path, _Row]()
        self._lock = threading.Lock()
        self._pages = lru_cache(_PAGES)(_page)

    def runs(self) -> dict[str, Path]:
        """The folder of every run by its name: relative to the folder that is served, with that in front if there are
        several.

        Raises:
            UserError: a folder is gone.
        """
        found: dict[str, Path] = {}
        for folder in self.folders:
            root = folder.resolve()
            for path in runs_under(folder):
                if path == folder:
                    name = root.name if root.name not in found else str(folder)
                elif path.resolve().is_relative_to(root):
                    inner = path.relative_to(folder)
                    name = str(inner if len(self.folders) == 1 else folder / inner)
                else:
                    continue
                found[name] = path
        return found

    def comparisons(self) -> dict[str, Path]:
        """The folders of comparisons that have a table, by name; searches lie in a folder of each task."""
        found: dict[str, Path] = {}
        for name, path in self.runs().items():
            for folder in self.folders:
                out = path.parent.parent
                if path != folder and out.is_relative_to(folder) and files.is_file(out / COMPARISON[0]):
                    found[out.resolve().name if out == folder else name.rsplit("/", 2)[0]] = out
        return found

    def listing(self, patience_s: float = _PATIENCE_S) -> dict[str, Any]:
        """The runs for the list, the last one that was worked on first.

        Runs that were not read before are read until `patience_s` have passed, at least one; the others are `waiting`.
        """
        runs, began, read = self.runs(), self._clock(), 0
        rows, unreadable, waiting = list[dict[str, Any]](), list[dict[str, str]](), 0
        for name, path in runs.items():
            known = self._row(name, path)
            if not known.made:
                if read and self._clock() - began >= patience_s:
                    waiting += 1
                    continue
                read += 1
            if (row := known.get()) is not None:
                rows.append(row)
            else:
                unreadable.append({"run": printable(name), "reason": known.problem})
        rows.sort(key=lambda row: row["last_at"], reverse=True)
        return {
            "now": time.time(),
            "folders": [str(folder) for folder in self.folders],
            "runs": rows,
            "unreadable": unreadable,
            "waiting": waiting,
            "comparisons": [{"name": printable(name), "key": key_of(name)} for name in self.comparisons()],
        }

    def state(self, name: str, path: Path) -> dict[str, Any]:
        """The row of a run; where it cannot be read `problem` says why."""
        known = self._row(name, path)
        row = known.get()
        return {"now": time.time(), "problem": known.problem if row is None else "", **(row or {})}

    def page(self, path: Path) -> bytes:
        """The report of a run as HTML.

        Raises:
            UserError: it cannot be read, or what draws it is not installed.
            ImportError: as well.
        """
        return self._pages(path, stamp_of(path))

    def _row(self, name: str, path: Path) -> _Row:
        with self._lock:
            if path not in self._rows:
                self._rows[path] = _Row(name, path, self._clock)
            return self._rows[path]


class _Row:
    """The row of a run, made again when its files have changed."""

    def __init__(self, name: str, path: Path, clock: Callable[[], float]) -> None:
        self.name, self.path, self._clock = name, path, clock
        self.made, self.problem = False, ""
        self._row: dict[str, Any] | None = None
        self._stamp, self._not_before = "", 0.0
        self._lock = threading.Lock()

    def get(self) -> dict[str, Any] | None:
        """None where the run cannot be read; `problem` says why."""
        with self._lock:
            stamp, now = stamp_of(self.path), self._clock()
            if not self.made or (stamp != self._stamp and now >= self._not_before):
                self._make(stamp)
                self._not_before = self._clock() + _REST * (self._clock() - now)
            return self._row

    def _make(self, stamp: str) -> None:
        try:
            self._row, self.problem = {**run_row(self.path, self.name), "version": stamp}, ""
        except (UserError, OSError, MemoryError) as error:
            self._row, self.problem = None, printable(" ".join(str(error).split()) or type(error).__name__)
        self.made, self._stamp = True, stamp


def stamp_of(path: Path) -> str:
    """What changes when the files of a run do, or when a process begins or ceases to write it."""
    parts = list[object]()
    for name in _WATCHED:
        try:
            status = os.lstat(path / name)
            parts.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            parts.append(None)
    try:
        parts.append(is_written(path))
    except UserError:
        parts.append(None)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _page(path: Path, stamp: str) -> bytes:
    from jaxreward.reports.page import render

    with explain_malformed(path):
        return render(RunView.read(path)).encode()
