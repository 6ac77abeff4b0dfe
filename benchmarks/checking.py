"""Seconds that checking programs takes, with as many workers as there are cores.

    python benchmarks/checking.py --out benchmarks/results/checking.json

Programs are those of `mixture.py`, from a cold start: workers begin, and the functions that judge are compiled.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from benchmarks.machine import machine
from benchmarks.mixture import mixed_programs
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.tasks import make_task


@dataclass(frozen=True)
class CheckingSettings:
    """Time the checks of programs."""

    task: str = "xland-easy"
    """Task whose vocabulary the programs are from."""
    programs: int = 256
    """Programs, no two computing the same."""
    out: Path | None = None
    """File for the results."""


def processor_s() -> float:
    """Of this process and of those that it started and that have ended."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


def run(s: CheckingSettings) -> None:
    if s.programs < 1:
        raise UserError(f"--programs is at least 1, not {s.programs}")
    task, where = make_task(s.task), machine()
    wall, cpu = time.perf_counter(), processor_s()
    mixed_programs(task, s.programs)
    took = {"wall_s": round(time.perf_counter() - wall, 1), "cpu_s": round(processor_s() - cpu, 1)}
    load = os.getloadavg()[1]  # of the last five minutes
    print(f"{s.programs} programs of {s.task} on {where['cores']} cores: {took['wall_s']} s, {took['cpu_s']} s of the "
          f"processor; load average {load:.1f}")  # fmt: skip
    settings = {key: value for key, value in asdict(s).items() if key != "out"}
    save({"benchmark": "checking", **settings, **where, **took, "load_average_end": round(load, 2)}, s.out)


def main(argv: list[str] | None = None) -> int:
    return status_of("checking", lambda: run(parse(CheckingSettings, None, argv, "checking.py")))


if __name__ == "__main__":
    sys.exit(main())
