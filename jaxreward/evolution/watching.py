"""What watches a search that Python code started: the progress, a watcher of the caller's, and its function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.errors import InvalidSetting, UserError
from jaxreward.evolution.watcher import Watcher
from jaxreward.records import Result
from jaxreward.reports.console import PlainConsole
from jaxreward.reports.live import Live
from jaxreward.runs import Entry, Progress, Spent


@dataclass(frozen=True)
class CompletedGeneration:
    """A generation of a search that is complete.

    Attributes:
        index: its number, from 0.
        results: of its candidates, in the order in which they were asked for: each has a score, or a failure.
        best: the best candidate of the search so far; None while none has a score.
        spent: of the budgets so far: `trained`, `env_steps`, `cost_usd` and others.
    """

    index: int
    results: tuple[Result, ...]
    best: Result | None
    spent: Spent


OnGeneration = Callable[[CompletedGeneration], Any]


class Watchers:
    """Several watchers as one, and a function that is called after every generation of the search of `strategy`.

    `raised` is the exception of that function: the search is then paused.
    """

    def __init__(self, watchers: Sequence[Watcher], strategy: str, on_generation: OnGeneration | None) -> None:
        self.watchers, self.strategy, self.on_generation = watchers, strategy, on_generation
        self.raised: Exception | None = None
        self._searching = strategy

    def generation(self, index: int, results: Sequence[Result], best: Result | None, spent: Spent) -> None:
        for watcher in self.watchers:
            watcher.generation(index, results, best, spent)
        if self.on_generation is None or self._searching != self.strategy:  # the best-of-n search inside
            return
        try:
            self.on_generation(CompletedGeneration(index, tuple(results), best, spent))
        except Exception as error:
            self.raised = error
            raise UserError(f"on_generation raised {type(error).__name__}: {error}") from error

    def training(self, label: str, progress: Any) -> None:
        for watcher in self.watchers:
            watcher.training(label, progress)

    def proposing(self, text: str) -> None:
        for watcher in self.watchers:
            watcher.proposing(text)

    def note(self, text: str) -> None:
        for watcher in self.watchers:
            watcher.note(text)

    def logged(self, entry: Entry, progress: Progress[Any]) -> None:
        if progress.started is not None:
            self._searching = progress.started.strategy
        for watcher in self.watchers:
            watcher.logged(entry, progress)


def require_watching(on_generation: Any, watcher: Any) -> None:
    """Require that what a caller gives to watch a search can be called, before there is a run."""
    if on_generation is not None and not callable(on_generation):
        message = f"on_generation is called after every generation: give a function, not {on_generation!r}"
        raise InvalidSetting(message, "on_generation")
    methods = [name for name in vars(Watcher) if not name.startswith("_")]
    lacking = [name for name in methods if not callable(getattr(watcher, name, None))]
    if watcher is not None and lacking:
        kind = type(watcher).__name__
        raise InvalidSetting(f"{kind} is no watcher yet: it lacks {', '.join(lacking)} (docs/python.md)", "watcher")


def shown(progress: bool, candidates: int) -> Live:
    """The progress on standard error or in a notebook, or nowhere."""
    quiet = {} if progress else {"quiet": True, "force_terminal": False}
    return Live(PlainConsole(stderr=True, **quiet), candidates)
