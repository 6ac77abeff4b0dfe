"""Progress of a search on the terminal: one bar for what trains now, one line a generation."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from jaxreward.operators import WORDS
from jaxreward.records import Measure, Result
from jaxreward.reports.tables import figure
from jaxreward.runs.fold import Spent


class Live:
    """Shows how a run goes; a context manager around `jaxreward.evolve.evolve` or a training."""

    def __init__(self, console: Console, candidates: int = 0) -> None:
        self.console, self.candidates = console, candidates
        columns = (
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}", markup=False), TimeElapsedColumn(), TimeRemainingColumn(compact=True),
        )  # fmt: skip
        self._bars = Bars(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task: TaskID | None = None
        self._label = ""
        self._latest: dict[int, float] = {}

    def __enter__(self) -> Live:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def note(self, text: str) -> None:
        """A line of its own."""
        self.console.print(text)

    def proposing(self, text: str) -> None:
        """What the proposer is doing, on a line that the next one replaces."""
        if self._task is None or self._label != "proposing":
            self._show("proposing")
        assert self._task is not None
        self._bars.update(self._task, detail=text)

    def _show(self, label: str) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task, self._label, self._latest = self._bars.add_task(label, detail="", total=None), label, {}

    def training(self, label: str, progress: Any) -> None:
        """`progress` is a `jaxreward.training.Progress`, counted here in thousands of steps."""
        if self._task is None or label != self._label:
            self._show(label)
        assert self._task is not None
        self._latest |= progress.success
        values, measure = self._latest.values(), progress.measure
        best = f"best {_short(max(values, key=measure.oriented), measure)}" if values else ""
        where = f"chunk {progress.chunk + 1}/{progress.chunks}" if progress.chunks > 1 else ""
        doing = "compiling" if progress.phase == "compile" else ""
        self._bars.update(
            self._task,
            description=f"{label}, thousand steps",
            completed=progress.steps // 1000,
            total=max(1, progress.total // 1000),
            detail=" ".join(filter(None, (doing, where, best))),
        )

    def generation(self, index: int, results: Sequence[Result], best: Result | None, spent: Spent) -> None:
        """One line for a complete generation."""
        if results and all(r.candidate.operator in WORDS for r in results):
            self.note(_said(index, results))
            return
        trained = sorted((r.score for r in results if r.score), key=lambda score: score.merit, reverse=True)
        failed = [r.failure.stage for r in results if r.failure]
        text = f"generation {index}: {len(trained)} trained"
        if trained:
            text += f", {trained[0].measure.name} {' '.join(_short(s.mean, s.measure) for s in trained)}"
        if failed:
            text += f"; without a score: {', '.join(sorted(failed))}"
        if best is not None and best.score is not None:
            text += f"; best so far {figure(best.score.mean, rate=best.score.measure.rate)} ({best.candidate.id})"
        if self.candidates:
            text += f"; {spent.trained}/{self.candidates} candidates, {spent.compile_s + spent.run_s:.0f} device s"
        if spent.calls:
            text += f"; {bill(spent)}"
        self.note(text)


def _short(value: float, measure: Measure) -> str:
    """A value for a line of many; a rate needs no third digit, a distance may."""
    return figure(value, 2 if measure.rate else 3, rate=measure.rate)


def _said(index: int, results: Sequence[Result]) -> str:
    """One line for a generation of words."""
    asked = ", ".join(sorted({r.candidate.operator for r in results}))
    failed = [r.failure for r in results if r.failure]
    if len(failed) == len(results):
        return f"generation {index}: {asked}: {failed[0].message}; the search goes on without"
    return f"generation {index}: {asked}: {len(results) - len(failed)} of {len(results)} answered"


def bill(spent: Spent) -> str:
    """What language models have cost so far."""
    text = f"${spent.cost_usd:.4f}, {spent.tokens:,} tokens, {spent.calls} requests"
    return text + (f" ({spent.unpriced_tokens:,} tokens of unknown price)" if spent.unpriced_tokens else "")


class Silent:
    """A watcher that says nothing."""

    def note(self, text: str) -> None: ...
    def training(self, label: str, progress: Any) -> None: ...
    def proposing(self, text: str) -> None: ...
    def generation(self, index: int, results: Sequence[Result], best: Result | None, spent: Spent) -> None: ...
