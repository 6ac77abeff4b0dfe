"""How fast every task runs and compiles: random actions alone, and training, with 1 and with 16 candidates.

    python benchmarks/task_speed.py --out benchmarks/results/tasks.json

Every task is measured in a process of its own: what one compiled serves no other, and one that hangs or fails costs
its own row. docs/appendix/robot_results.md has the table.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.tasks import make_task, simulation, task_names

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class SpeedSettings:
    """Steps a second and seconds of compiling of tasks."""

    tasks: tuple[str, ...] = ()
    """Names of tasks; all but the probes if none are given."""
    candidates: tuple[int, ...] = (1, 16)
    """Numbers of candidates that are trained together."""
    updates: int = 4
    """Updates that are timed, of which the median counts."""
    whole: bool = False
    """Step all environments together, where tasks would have them in slices on CPU."""
    limit_s: float = 900.0
    """Give a task up after so long."""
    out: Path | None = None
    """File for the results, written after every task."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if not self.candidates or min(self.candidates) < 1 or self.updates < 1:
            raise UserError("--candidates and --updates are at least 1")
        for name in self.tasks:
            make_task(name)

    @property
    def names(self) -> tuple[str, ...]:
        return self.tasks or tuple(name for name in task_names() if not name.startswith("probe-"))


def of_task(name: str, candidates: tuple[int, ...], updates: int) -> dict[str, Any]:
    """The row of a task: `random` (lanes, steps_per_s, compile_s) and `training`, with one entry for each number."""
    from benchmarks.measure import ceiling, forget, training
    from benchmarks.mixture import mixed_programs
    from jaxreward.programs import Program
    from jaxreward.training import quick

    task = make_task(name)
    ppo = quick(task)
    row: dict[str, Any] = {"task": name, "random": [], "training": []}
    known = bool(task.vocabulary().fragments)
    programs = mixed_programs(task, max(candidates)) if known else [Program.default(task)] * max(candidates)
    for n in candidates:
        forget()
        row["random"].append({"candidates": n, **ceiling(task, n, 1, ppo.envs, ppo.length)})
        row["training"].append({"candidates": n, **dataclasses.asdict(training(task, programs[:n], ppo, 1, updates))})
    return row


def run(s: SpeedSettings) -> dict[str, Any]:
    """All tasks, one after the other; a task that fails has an `error` in place of figures."""
    from benchmarks.machine import machine

    s.check()
    report: dict[str, Any] = {
        "benchmark": "task_speed",
        "updates": s.updates,
        "whole": s.whole,
        **machine(),
        "rows": [],
    }
    how = "whole" if s.whole else "sliced"
    for name in s.names:
        words = [sys.executable, str(Path(__file__)), "one", how, name, str(s.updates), *map(str, s.candidates)]
        try:
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=s.limit_s)
            row = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
            row = row or {"task": name, "error": _reason(done.stderr)}
        except subprocess.TimeoutExpired:
            row = {"task": name, "error": f"not done within {s.limit_s:g} s"}
        report["rows"].append(row)
        print(_line(row), flush=True)
        save(report, s.out)
    return report


def _reason(stderr: str) -> str:
    """The line of a traceback that says what was wrong; JAX writes others after it."""
    lines = stderr.strip().splitlines() or ["no message"]
    return next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)), lines[-1])


def _line(row: dict[str, Any]) -> str:
    """A row of the table in docs/appendix/robot_results.md."""
    if "error" in row:
        return f"| `{row['task']}` | {row['error']} |"
    cells = list[str]()
    for measured in (*row["random"], *row["training"]):
        cells += [f"{measured['steps_per_s']:,.0f}", f"{measured['compile_s']:.0f}"]
    return f"| `{row['task']}` | {' | '.join(cells)} |"


def main(argv: list[str] | None = None) -> int:
    args = sys.argv[1:] if argv is None else argv
    if args[:1] == ["one"]:
        if args[1] == "whole":
            simulation.ENVS_PER_CORE = 0
        print(json.dumps(of_task(args[2], tuple(map(int, args[4:])), int(args[3]))))
        return 0
    return status_of("task_speed", lambda: run(parse(SpeedSettings, None, args, "task_speed.py")))


if __name__ == "__main__":
    sys.exit(main())
