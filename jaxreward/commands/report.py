"""`jaxreward report`: a run as one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jaxreward.commands.output import console_of, print_json
from jaxreward.errors import UserError


@dataclass(frozen=True)
class ReportSettings:
    """Write the report of a run, also of one that goes on: one page that needs a browser and no network."""

    out: Path | None = None
    """Where to write it; by default report.html in the run's folder."""
    json: bool = False
    """Print one JSON object as the last line of standard output: run, report, bytes."""


def report(args: list[str]) -> int:
    """Write the page and say where it is; `args` are those of the command line."""
    from jaxreward.commands.arguments import configured, parse
    from jaxreward.reports.page import write_report
    from jaxreward.runs.folders import find_run

    said = "" if not args or args[0].startswith("-") else args[0]
    rest = args[1:] if said else args
    settings = parse(ReportSettings, configured(ReportSettings(), rest), rest, "report RUN")
    if not said:
        raise UserError("say which run: `jaxreward report RUN`, its folder or its name in runs/")
    run = find_run(said, Path("runs"))
    target = write_report(run, settings.out)
    size = target.stat().st_size
    console_of(settings.json).print(f"{target}, {size / 1e6:.1f} MB")
    if settings.json:
        print_json({"run": str(run), "report": str(target), "bytes": size})
    return 0
