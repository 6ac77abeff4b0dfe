"""What it saves that held-out episodes end a round when the last of them is over: training beside playing on to the
horizon, which gives the same figures.

    python benchmarks/held_out.py --out benchmarks/results/held_out.json

docs/appendix/benchmarks.md has the table.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.tasks import make_task


@dataclass(frozen=True)
class HeldOutSettings:
    """Seconds of training with and without the early end of held-out rounds."""

    tasks: tuple[str, ...] = ("flappy-bird", "hopper", "xland-easy")
    """Names of tasks."""
    steps: tuple[int, ...] = (50_000, 200_000)
    """Budgets of a candidate."""
    candidates: int = 4
    """Candidates that are trained together."""
    repeats: int = 3
    """Trainings of each kind, of which the median counts."""
    out: Path | None = None
    """File for the results, written after every task."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if min(self.candidates, self.repeats, *self.steps) < 1:
            raise UserError("--candidates, --repeats and --steps are at least 1")
        for name in self.tasks:
            make_task(name)


def of_task(name: str, steps: int, candidates: int, repeats: int) -> dict[str, Any]:
    """The row of a task and budget: seconds of the wall clock and of the processor, medians, without compiling."""
    from jaxreward.programs import Program
    from jaxreward.training import chunk, quick, train
    from jaxreward.training.plan import curve_points

    task = make_task(name)
    ppo, programs = quick(task), [Program.default(task)] * candidates
    points = curve_points(task, ppo, steps)
    over, taken, found = chunk._over, dict[str, list[tuple[float, float]]](), dict[str, Any]()
    ways = {"early": over, "horizon": lambda *_: False}
    try:
        for repeat in range(repeats + 1):  # the first compiles
            for way, ends in ways.items():
                chunk._over = ends
                begin = time.perf_counter(), time.process_time()
                found[way] = train(task, programs, ppo, seeds=1, steps=steps, checkpoints=points)
                if repeat:
                    now = time.perf_counter() - begin[0], time.process_time() - begin[1]
                    taken.setdefault(way, []).append(now)
    finally:
        chunk._over = over
    row: dict[str, Any] = {"task": name, "steps": steps, "points": points, "held_out_steps": found["early"].eval_steps}
    for way, pairs in taken.items():
        row[way] = {"wall_s": statistics.median(p[0] for p in pairs), "cpu_s": statistics.median(p[1] for p in pairs)}
    row["alike"] = bool((found["early"].success_curve == found["horizon"].success_curve).all())
    row["ratio"] = row["horizon"]["cpu_s"] / row["early"]["cpu_s"]
    return row


def run(s: HeldOutSettings) -> dict[str, Any]:
    """All tasks and budgets, one after the other."""
    from benchmarks.machine import machine

    s.check()
    report: dict[str, Any] = {
        "benchmark": "held_out", "candidates": s.candidates, "repeats": s.repeats, **machine(), "rows": [],
    }  # fmt: skip
    for name in s.tasks:
        for steps in s.steps:
            row = of_task(name, steps, s.candidates, s.repeats)
            report["rows"].append(row)
            print(_line(row, s.candidates), flush=True)
            save(report, s.out)
    return report


def _line(row: dict[str, Any], candidates: int) -> str:
    """A row of the table in docs/appendix/benchmarks.md."""
    seconds = [f"{row[way]['cpu_s']:.1f}" for way in ("horizon", "early")]
    steps = f"{row['steps']:,}", f"{row['held_out_steps'] / candidates:,.0f}"
    return f"| `{row['task']}` | {' | '.join((*steps, *seconds))} | {row['ratio']:.2f} |"


def main(argv: list[str] | None = None) -> int:
    args = sys.argv[1:] if argv is None else argv
    return status_of("held_out", lambda: run(parse(HeldOutSettings, None, args, "held_out.py")))


if __name__ == "__main__":
    sys.exit(main())
