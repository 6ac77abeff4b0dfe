"""What a second worker of a Ray cluster on this machine gains, and what Ray itself costs.

    python benchmarks/ray_speed.py --out benchmarks/results/ray_speed.json

The same population trains on one device of this process, then on one worker, then on several; every way has compiled
before, and the fastest of its turns counts. `cost_of_ray` is the time of one worker over that of this
process, `speed_up` that of one worker over that of several. Starting the cluster and compiling are said apart.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

os.environ["JAX_NUM_CPU_DEVICES"] = "1"  # as a worker has
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds


@dataclass(frozen=True)
class RaySpeedSettings:
    """Train a population here, on one worker and on several."""

    task: str = "xland-easy"
    """What to train on."""
    programs: Annotated[int, Arg(least=1)] = 16
    """Programs from scratch, in chunks of half of them."""
    steps: Annotated[int, Arg(least=1)] = 100_000
    """Environment steps of each program, with one training seed."""
    workers: Annotated[int, Arg(least=2)] = 2
    """Workers beside one."""
    repeat: Annotated[int, Arg(least=1)] = 3
    """Turns of each way; the fastest counts."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox. For systems that have none."""
    out: Path | None = None
    """File for the results."""


def run(s: RaySpeedSettings) -> dict[str, Any]:
    """All ways, one after another."""
    check_bounds(s)
    from benchmarks.machine import machine
    from benchmarks.random_programs import sources_of
    from jaxreward.programs import Checker
    from jaxreward.tasks import card, make_task
    from jaxreward.training import Execution, quick, train
    from jaxreward.training.local import LocalExecutor
    from jaxreward.training.ray_executor import RayExecutor

    task, begin = make_task(s.task), time.perf_counter()
    with Checker(unsafe_no_sandbox=s.unsafe_no_sandbox) as checker:
        checked = checker.check_many(sources_of(card(task), "blocks", s.programs), task)
    programs = [program for _, program in checked if program is not None]
    ppo, half, rows = quick(task), -(-len(programs) // 2), dict[str, dict[str, Any]]()
    ways: dict[str, Any] = {
        "this process": LocalExecutor,
        "1 worker": lambda: RayExecutor(workers=1),
        f"{s.workers} workers": lambda: RayExecutor(workers=s.workers),
    }
    for name, made in ways.items():
        begin = time.perf_counter()
        with made() as executor:
            started = time.perf_counter() - begin
            if isinstance(executor, RayExecutor):
                executor.wait_for(executor.slots)
            execution, seconds = Execution(executor=executor, chunk=half), list[float]()
            first = train(task, programs, ppo, seeds=1, steps=s.steps, checkpoints=1, execution=execution)
            for _ in range(s.repeat):
                begin = time.perf_counter()
                result = train(task, programs, ppo, seeds=1, steps=s.steps, checkpoints=1, execution=execution)
                seconds.append(time.perf_counter() - begin)
        rows[name] = {
            "started_s": round(started, 2), "compile_s": round(first.compile_s, 2), "seconds": seconds,
            "env_steps_per_s": result.env_steps / min(seconds),
        }  # fmt: skip
        print(f"{name}: {rows[name]['env_steps_per_s']:,.0f} environment steps a second", flush=True)
    here, one, several = (min(row["seconds"]) for row in rows.values())
    report = {
        "benchmark": "ray_speed", **machine(), "task": s.task, "programs": len(programs), "steps": s.steps,
        "rows": rows, "cost_of_ray": one / here, "speed_up": one / several,
    }  # fmt: skip
    print(
        f"one worker takes {one / here:.2f} of the time of this process, {s.workers} take {several / one:.2f} of that"
    )
    save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("ray_speed", lambda: run(parse(RaySpeedSettings, None, argv, "ray_speed.py")))


if __name__ == "__main__":
    sys.exit(main())
