"""`jaxreward report`: a run as one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg
from jaxreward.errors import UserError
from jaxreward.extras import require
from jaxreward.reports.page import write_report
from jaxreward.runs.folders import find_run


@dataclass(frozen=True)
class ReportSettings:
    """Write the report of a run, also of one that goes on: one page that needs a browser and no network."""

    run: Annotated[str, Arg(positional="RUN")] = ""
    """Folder of a run, or its name in runs/."""
    out: Path | None = None
    """The page. By default report.html in the run's folder."""
    json: bool = False
    """End standard output with one JSON object."""


def run(resolved: Resolved[ReportSettings]) -> int:
    """Write the page and print where it is."""
    settings = resolved.settings
    if not settings.run:
        raise UserError("say which run: `jaxreward report RUN`, its folder or its name in runs/")
    require("reports", "a report")
    path = find_run(settings.run)
    target = write_report(path, settings.out)
    size = target.stat().st_size
    console_of(settings.json).print(f"{target}, {size / 1e6:.1f} MB")
    if settings.json:
        print_json({"run": str(path), "report": str(target), "bytes": size})
    return 0


COMMANDS = (Command("report", ReportSettings, run=run, examples=("report runs/first --out page.html",)),)
