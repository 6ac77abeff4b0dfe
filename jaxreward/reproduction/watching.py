"""Progress of a reproduction: a bar over its cells on a terminal, a line for each cell everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jaxreward.formatting import printable
from jaxreward.reports.tables import figure


class CellWatcher:
    """Shows cells; also the `Watcher` of the searches and trainings inside one, whose generations are no lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("cells", total=None)
        self._total = self._done = 0
        self._label = ""
        self._said = set[str]()

    def __enter__(self) -> CellWatcher:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    # ---- cells

    def begin(self, total: int, done: int) -> None:
        """There are so many cells, and so many of them are done already."""
        self._total, self._done = total, done
        self._bar.update(self._task, total=total, completed=done)
        if done:
            self.note(f"{done} of {total} cells are done already")

    def cell(self, label: str) -> None:
        """A cell begins."""
        self._label = label
        self._show(label)

    def finished(self, label: str, numbers: Mapping[str, Sequence[float]], seconds: float) -> None:
        """It is finished, with the numbers to be shown, one or several under a name."""
        self._count()
        told = ", ".join(f"{name.replace('_', ' ')} {figure(mean(values))}" for name, values in numbers.items())
        self.note(f"{self._done} of {self._total}: {label}: {told + ', ' if told else ''}{seconds:.1f} s")

    def failed(self, label: str, reason: str) -> None:
        """It could not be finished."""
        self._count()
        self.note(f"{label} is not finished: {reason}")

    def _count(self) -> None:
        self._done += 1
        self._bar.update(self._task, completed=self._done)

    def _show(self, text: str) -> None:
        self._bar.update(self._task, description=printable(text))

    # ---- a search or a training inside a cell

    def note(self, text: str) -> None:
        """Of a search; what many of them say is said once."""
        if text not in self._said:
            self._said.add(text)
            self._console.print(text)

    def proposing(self, text: str) -> None:
        self._show(f"{self._label}: {text}")

    def training(self, label: str, progress: Any) -> None:
        share = progress.steps / max(1, progress.total)
        self._show(f"{self._label}: {label} {share:.0%}")

    def generation(self, index: int, results: Sequence[Any], best: Any, spent: Any) -> None:
        self._show(f"{self._label}: {spent.trained} candidates")

    def logged(self, entry: Any, progress: Any) -> None:
        pass
