"""Lines in the output of a notebook's cell that are redrawn."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable
from typing import Any

from rich.text import Text

_EVERY_S = 1.0


class NotebookScreen:
    """Shows what `draw` returns, once a second between `start` and `stop`, which takes it away; needs IPython alone."""

    def __init__(self, draw: Callable[[], Text]) -> None:
        self._draw = draw
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._handle: Any = None

    @property
    def is_started(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        if self._thread is not None:
            return
        from IPython.display import display  # type: ignore[import-not-found]

        self._handle = self._handle or display(self._shown(), display_id=True)
        self._ended.clear()
        self._thread = threading.Thread(target=self._run, daemon=True, name="notebook")
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None
            self._handle.update(_Html(""))

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._handle.update(self._shown())

    def _shown(self) -> _Html:
        return _Html(f"<pre>{html.escape(self._draw().plain)}</pre>")


class _Html:
    """A text that a notebook shows as HTML."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:  # for what shows no HTML
        return html.unescape(self.text.removeprefix("<pre>").removesuffix("</pre>"))

    def _repr_html_(self) -> str:
        return self.text
