"""Questions to the person at the terminal."""

from __future__ import annotations

import sys

from jaxreward.formatting import printable


def confirmed(question: str) -> bool | None:
    """Whether a person says yes; None where nobody can be asked."""
    if not sys.stdin.isatty():
        return None
    print(printable(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
