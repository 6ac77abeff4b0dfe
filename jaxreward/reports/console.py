"""A rich console that prints untrusted text literally."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from jaxreward.formatting import printable


class PlainConsole(Console):
    """Brackets are no markup and control characters are escaped: text may come from models, servers, programs, logs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(soft_wrap=True, markup=False, highlight=False, **settings)

    def render_str(self, text: str, **how: Any) -> Text:  # type: ignore[override]
        """Called for every string that is printed, cells of tables included."""
        return super().render_str(printable(text), **how)
