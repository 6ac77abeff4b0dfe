"""The console on which everything is shown as text."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from jaxreward.formatting import printable


class PlainConsole(Console):
    """What models, servers, programs and logs say is shown as it is: brackets are no markup, and what a terminal would
    obey is spelt out."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(soft_wrap=True, markup=False, highlight=False, **settings)

    def render_str(self, text: str, **how: Any) -> Text:  # type: ignore[override]
        """Every string that is printed comes by here, cells of tables included."""
        return super().render_str(printable(text), **how)
