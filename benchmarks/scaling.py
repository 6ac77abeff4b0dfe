"""How throughput and memory grow with the number of candidates, as a picture.

    python benchmarks/scaling.py benchmarks/results/cpu.json docs/pictures/scaling.png

draws what `candidate_throughput.py --out` wrote.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import status_of
from jaxreward.errors import UserError, why_unreadable
from jaxreward.reports.plots import panels
from jaxreward.runs.disk import explain_full_disk

_BLUE, _ORANGE, _GREY = "#2a6fb0", "#d1600a", "#6b6b6b"


def draw(report: dict[str, Any], path: Path) -> None:
    """Three panels over the number of candidates: steps a second next to those of the environment alone, seconds a
    candidate from a cold start, and memory."""
    rows = report["rows"]
    at = [row["candidates"] for row in rows]
    figure, (speed, cost, memory) = panels(3)
    speed.plot(at, [row["steps_per_s"] for row in rows], "o-", color=_BLUE, label="training")
    speed.plot(at, [row["ceiling_steps_per_s"] for row in rows], "o-", color=_GREY, label="environment alone")
    speed.set_ylabel("environment steps / s")
    cost.plot(at, [row["wall_s"] / row["candidates"] for row in rows], "o-", color=_BLUE, label="from a cold start")
    cost.plot(at, [row["run_s"] / row["candidates"] for row in rows], "o-", color=_ORANGE,
              label="of these, running")  # fmt: skip
    cost.set_ylabel("seconds / candidate")
    cost.set_ylim(bottom=0)
    memory.plot(at, [row["resident_bytes"] / 1e6 for row in rows], "o-", color=_GREY, label="the process, compiling")
    memory.plot(at, [row["peak_bytes"] / 1e6 for row in rows], "o-", color=_BLUE, label="training, on a device")
    memory.set_ylabel("MB")
    for axes in (speed, cost, memory):
        axes.set_xscale("log", base=2)
        if axes is not cost:
            axes.set_yscale("log")
        axes.set_xticks(at, [str(n) for n in at])
        axes.set_xlabel("candidates")
        axes.legend(frameon=False, fontsize="small")
    s = report["settings"]
    speed.set_title(f"{s['task']}, {s['seeds']} seeds x {s['steps']:,} steps, {report['device']}", fontsize="small")
    with explain_full_disk(path):
        figure.savefig(path, dpi=150)


def main(argv: list[str] | None = None) -> int:
    """The exit status."""
    args = sys.argv[1:] if argv is None else argv

    def drawn() -> int:
        if len(args) != 2:
            raise UserError(
                "scaling.py takes two files: results of candidate_throughput.py, and a picture .png or .svg"
            )
        try:
            report = json.loads(Path(args[0]).read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read {args[0]}: {why_unreadable(error)}") from error
        if not report.get("rows") or "devices" not in report["rows"][0]:
            raise UserError(f"{args[0]} holds no rows of candidate_throughput.py")
        draw(report, Path(args[1]))
        return 0

    return status_of("scaling", drawn)


if __name__ == "__main__":
    sys.exit(main())
