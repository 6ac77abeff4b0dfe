"""Results of benchmarks in pages of the documentation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxreward.errors import UserError, why_unreadable


def results(path: Path, benchmark: str) -> dict[str, Any]:
    """The results of a benchmark in a file.

    Raises:
        UserError: it cannot be read, or is of another benchmark.
    """
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as results of a benchmark: {why_unreadable(error)}") from error
    if not isinstance(report, dict) or report.get("benchmark") != benchmark:
        raise UserError(f"{path} does not hold results of {benchmark}.py")
    return report


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """The lines of a table; all but the first `left` columns are aligned to the right."""
    head, *body = (f"| {' | '.join(cells)} |" for cells in (columns, *rows))
    return [head, f"|{'---|' * left}{'--:|' * (len(columns) - left)}", *body]


def between(page: str, start: str, end: str, text: str) -> str:
    """`page` with `text` between its markers.

    Raises:
        UserError: a marker is missing, or is there twice.
    """
    if page.count(start) != 1 or page.count(end) != 1:
        raise UserError(f"the page must have exactly one {start} and one {end}")
    before, rest = page.split(start)
    return f"{before}{start}\n\n{text}\n{end}{rest.split(end)[1]}"
