"""A watcher of a search that shows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxreward.records import Result
from jaxreward.runs import Entry, Progress


class Silent:
    """The methods of `jaxreward.evolution.watcher.Watcher`, which do nothing."""

    def note(self, text: str) -> None: ...
    def training(self, label: str, progress: Any) -> None: ...
    def proposing(self, text: str) -> None: ...
    def generation(self, index: int, results: Sequence[Result], best: Result | None, spent: Any) -> None: ...
    def logged(self, entry: Entry, progress: Progress[Any]) -> None: ...
