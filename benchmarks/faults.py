"""What happens to a search when its disk is full, its processes are killed, its machine or its clock gives out.

    python benchmarks/faults.py --out benchmarks/results/faults.json
    python benchmarks/faults.py --page                  # its table in docs/appendix/faults.md

A small search runs undisturbed; then the same search meets each fault, is resumed, and its end is compared. What is
lost are complete lines of its log that are not at their place afterwards; what the user saw is the end of what the
command wrote. What an asynchronous search finds depends on what its devices finish first; so its end is compared with
that of its own recording, replayed undisturbed. Full and read-only disks are file systems in memory, in a namespace of
their own: where the system allows none, these are said to be left out. Those of Ray need the extra `ray`. The same
command goes on with the faults that its file lacks.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import begun, save, status_of
from benchmarks.fault_scenarios import FAULTS, ROOT, Victim, of_ray
from benchmarks.markdown import between, grid, results
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.formatting import counted
from jaxreward.runs import Trained, read_log

RESULTS = ROOT / "benchmarks" / "results" / "faults.json"
PAGE = ROOT / "docs" / "appendix" / "faults.md"
START, END = "<!-- results -->", "<!-- /results -->"


@dataclass(frozen=True)
class FaultSettings:
    """Have a search meet faults, resume it, and say what was lost."""

    faults: tuple[str, ...] = tuple(FAULTS)
    """Which."""
    steps: int = 300_000
    """Environment steps of each candidate; a training must take some seconds, to be hit."""
    page: bool = False
    """Write the results that are there into the page of the documentation."""
    out: Path | None = None
    """File for the results, written after every fault."""


def suffered(name: str, undisturbed: Victim) -> dict[str, Any]:
    """What became of a search that met a fault."""
    how, fault = FAULTS[name]
    if "Ray" in name and importlib.util.find_spec("ray") is None:
        return {"fault": name, "how": how, "left_out": 'the extra "ray" is not installed'}
    with tempfile.TemporaryDirectory() as folder:
        victim = dataclasses.replace(undisturbed, folder=Path(folder) / "it")
        try:
            then = fault(victim)
        except UserError as error:
            return {"fault": name, "how": how, "left_out": str(error)}
        seen = then.seen.replace(folder, "...")
        resumed = victim.run("--resume") if then.resume else then.resumed
        lines = victim.lines()
        lost = sum(k >= len(lines) or line != lines[k] for k, line in enumerate(then.lines))
        return {
            "fault": name, "how": how, "status": then.status, "seen": seen, "events": len(then.lines),
            "resumed": resumed, "resumed_seen": victim.seen.replace(folder, "...") if resumed else "", "lost": lost,
            "same": victim.substance() == (victim.replayed() if victim.asynchronous else undisturbed).substance(),
        }  # fmt: skip


def run(s: FaultSettings) -> dict[str, Any]:
    """Every fault that the file of results lacks."""
    from benchmarks.machine import machine

    unknown = [name for name in s.faults if name not in FAULTS]
    if unknown:
        raise UserError(f"there is no fault {unknown[0]!r}: choose from {', '.join(FAULTS)}")
    how = {"benchmark": "faults", "steps": s.steps}
    report = begun(s.out, how) or {**how, **machine(), "rows": []}
    known = {row["fault"] for row in report["rows"]}
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Victim(Path(folder), s.steps, Path(folder) / "cache")
        if set(s.faults) - known:
            if undisturbed.run():
                raise UserError(f"the undisturbed search failed: {undisturbed.seen}")
            trained = [e.event for e in read_log(undisturbed.log) if isinstance(e.event, Trained)]
            undisturbed.training_s = trained[0].run_s
        on_ray: Victim | None = None  # where chunks are others, which round differently
        for name in (name for name in s.faults if name not in known):
            if "Ray" in name and on_ray is None and importlib.util.find_spec("ray") is not None:
                on_ray = dataclasses.replace(undisturbed, folder=Path(folder) / "ray")
                of_ray(lambda nodes, process: None)(on_ray)
                on_ray.more = ()
            beside = on_ray if "Ray" in name and on_ray is not None else undisturbed
            report["rows"].append(row := suffered(name, beside))
            print(f"{name}: {row.get('left_out') or row}", flush=True)
            save(report, s.out)
    return report


def markdown(report: dict[str, Any]) -> str:
    """The table of a report."""
    cells = []
    for row in report["rows"]:
        if "left_out" in row:
            cells.append([row["fault"], row["how"], "", f"left out: {row['left_out']}", "", ""])
            continue
        status = {-9: "killed", 0: "0"}.get(row["status"], str(row["status"]))
        ended = "same end" if row["same"] else "**another end**"
        after = "" if row["resumed"] is None else f"resumed (status {row['resumed']}), "
        said = row["seen"].replace("|", "\\|").replace("<", "&lt;")
        cells.append([row["fault"], row["how"], status, said, after + ended, f"{row['lost']} of {row['events']}"])
    columns = ("fault", "", "exit status", "the last line that the user saw", "then", "events lost")
    where = f"{report['cpu']}, {counted(report['cores'], 'core')}"
    about = f"{where}; jax {report['versions']['jax']}; commit {report['commit']}."
    return "\n".join([about, "", *grid(columns, cells, left=5), ""])


def page(path: Path = RESULTS) -> None:
    """Write the table into the page."""
    PAGE.write_text(between(PAGE.read_text(), START, END, markdown(results(path, "faults"))))


def main(argv: list[str] | None = None) -> int:
    s = parse(FaultSettings, None, argv, "faults.py")
    return status_of("faults", lambda: page(s.out or RESULTS) if s.page else run(s) and 0)


if __name__ == "__main__":
    sys.exit(main())
