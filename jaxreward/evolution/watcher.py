"""Whoever observes a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from jaxreward.records import Result
from jaxreward.runs import Entry, Progress
from jaxreward.training import Progress as TrainingProgress


class Watcher(Protocol):
    """Observes a run; see `jaxreward.reports.live`."""

    def generation(self, index: int, results: Sequence[Result], best: Result | None, spent: Any) -> None: ...
    def training(self, label: str, progress: TrainingProgress) -> None: ...
    def proposing(self, text: str) -> None: ...
    def note(self, text: str) -> None: ...
    def logged(self, entry: Entry, progress: Progress[Any]) -> None: ...
