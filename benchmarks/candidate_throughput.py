"""Candidates trained side by side against the same candidates trained one after another.

    python benchmarks/candidate_throughput.py --candidates 1 4 16 64 --seeds 2 --out benchmarks/results/cpu.json

docs/benchmarks.md says what each column means and how the comparison is kept fair.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tyro

from benchmarks.command import save, status_of
from benchmarks.table import show
from jaxreward.errors import UserError
from jaxreward.tasks import Task, make_task
from jaxreward.training import PPO, paper, quick


@dataclass(frozen=True)
class ThroughputSettings:
    """Time candidates trained fused, the same one by one, and environment steps alone."""

    candidates: tuple[int, ...] = (1, 4, 16, 64)
    """Numbers of candidates, one row each."""
    seeds: int = 2
    """Training seeds of a candidate."""
    steps: int = 100_000
    """Environment steps of each seed."""
    task: str = "xland-easy"
    """The task: a name of `jaxreward tasks`, or xland/<environment>/<ruleset>."""
    repeat: int = 1
    """Repeat everything so often and report medians."""
    one_by_one_limit: int = 16
    """Train at most so many programs one by one; larger rows are extrapolated and say so. 0: none."""
    separate_limit: int = 4
    """The same for programs trained as if each had a process of its own."""
    second_pass: bool = True
    """Train everything again with all compiled, to time running alone; else as the trainer reports it."""
    chunking: int = 0
    """Also train so many candidates whole and in chunks under --memory-gb, and compare; 0: no."""
    memory_gb: float | None = None
    """Memory that training may take on a device; with --chunking, the limit of its second training
    only, by default 0.4 of what the whole takes."""
    chunk: int | None = None
    """Candidates compiled together, at most; by default what fits."""
    checkpoints: int = 10
    """Points of the curves; each costs held-out episodes, whose time is in the running time."""
    eval_episodes: int = 256
    """Held-out episodes of each agent at the end."""
    time_limit_s: float = 0.0
    """Leave out rows that would probably end later than this after the start; 0 for no limit."""
    ppo: PPO = field(default_factory=PPO)
    """What is given here takes the place of the settings of --learner."""
    learner: Literal["quick", "paper"] = "quick"
    """Which learner of the task: that for two cores, or LIMEN's."""
    out: Path | None = None
    """File for the results, written after every row."""
    dry_run: bool = False
    """Print what would be measured, and do nothing."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print one JSON object as the last line of standard output; all else goes to standard error."""

    def check(self) -> None:
        """Raise a UserError for the first setting that cannot be."""
        if not self.candidates or min(self.candidates) < 1:
            raise UserError("--candidates lists numbers of candidates, each at least 1")
        for name in ("seeds", "steps", "repeat", "checkpoints", "eval_episodes"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}")
        for name in ("one_by_one_limit", "separate_limit", "chunking", "time_limit_s"):
            if getattr(self, name) < 0:
                raise UserError(f"--{name.replace('_', '-')} must not be negative")
        if self.out is not None and self.out.suffix != ".json":
            raise UserError(f"--out {self.out} must end in .json")
        self.ppo.check()

    @property
    def rows(self) -> list[int]:
        return sorted(set(self.candidates))

    def options(self) -> dict[str, Any]:
        """What every training of the benchmark is given."""
        return {
            "ppo": self.ppo, "seeds": self.seeds, "steps": self.steps, "checkpoints": self.checkpoints,
            "eval_episodes": self.eval_episodes, "chunk": self.chunk,
        }  # fmt: skip

    def plan(self) -> list[str]:
        alone, separate = (min(n, max(self.rows)) for n in (self.one_by_one_limit, self.separate_limit))
        sizes, twice = ", ".join(map(str, self.rows)), ", each twice" if self.second_pass else ""
        lines = [
            f"{self.task}: {sizes} candidates x {self.seeds} seeds x {self.steps:,} steps fused{twice}",
            f"the first {alone} one by one, the first {separate} as separate processes; environment steps alone",
        ]
        if self.chunking:
            lines.append(f"{self.chunking} candidates whole and in chunks under a memory limit")
        return lines + ([f"everything {self.repeat} times"] if self.repeat > 1 else [])


class Measurement:
    """The rows of one benchmark, in the making."""

    def __init__(self, settings: ThroughputSettings, task: Task, note: Any) -> None:
        from benchmarks.machine import machine
        from benchmarks.mixture import mixed_programs

        self.settings, self.task, self.note, self.begin = settings, task, note, time.perf_counter()
        self.report: dict[str, Any] = {
            "benchmark": "candidate_throughput", "settings": _plain(settings), **machine(),
            "rows": [], "ceiling": None, "chunking": [], "left_out": [],
        }  # fmt: skip
        self.programs = mixed_programs(self.task, max([*settings.rows, settings.chunking]))
        note(f"{len(self.programs)} different programs checked in {self.elapsed:.0f} s, which is not counted")

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.begin

    def run(self) -> dict[str, Any]:
        from benchmarks.measure import combine, one_by_one

        s = self.settings
        largest = max(s.rows)
        apart: dict[bool, Any] = {}
        for shared, limit in ((True, s.one_by_one_limit), (False, s.separate_limit)):
            programs = self.programs[: min(limit, largest)]
            if programs:
                apart[shared] = combine(
                    [one_by_one(self.task, programs, shared, s.second_pass, **s.options()) for _ in range(s.repeat)]
                )
                how = "one by one" if shared else "as separate processes"
                self.note(f"{len(programs)} {how}: {apart[shared].total(len(programs)).wall:.1f} s")
        seconds_each = 0.0
        for n in s.rows:
            if self._too_long(n, seconds_each * n):
                continue
            start = self.elapsed
            self.report["rows"].append(self._row(n, apart))
            seconds_each = (self.elapsed - start) / n
            self._save()
        if s.chunking and not self._too_long(s.chunking, 2 * seconds_each * s.chunking):
            self.report["chunking"].append(self._chunking())
        self._save()
        return self.report

    def _too_long(self, n: int, seconds: float) -> bool:
        """Whether a measurement of `seconds` would pass the limit of time; says so."""
        limit = self.settings.time_limit_s
        if not limit or self.elapsed + seconds <= limit:
            return False
        self.report["left_out"].append({"candidates": n, "reason": f"the limit of {limit:g} s"})
        self.note(f"{n} candidates left out: the limit of {limit:g} s")
        return True

    def _row(self, n: int, apart: dict[bool, Any]) -> dict[str, Any]:
        from benchmarks.measure import ceiling, fused, median

        s = self.settings
        limit = None if s.chunking else s.memory_gb
        passes = [
            fused(self.task, self.programs[:n], s.second_pass, memory_gb=limit, **s.options()) for _ in range(s.repeat)
        ]
        time_s, result = median([p.seconds for p in passes]), passes[0].result
        top = ceiling(self.task, max(result.chunks), s.seeds, s.ppo.envs, s.ppo.length)
        if self.report["ceiling"] is None or top["steps_per_s"] > self.report["ceiling"]["steps_per_s"]:
            self.report["ceiling"] = top
        row: dict[str, Any] = {
            "candidates": n, "seeds": s.seeds, "steps": s.steps, "chunks": list(result.chunks),
            "compile_s": time_s.compile, "run_s": time_s.run, "wall_s": time_s.wall,
            "steps_per_s": result.env_steps / time_s.run,
            "steps_per_s_per_candidate": result.env_steps / time_s.run / n,
            "candidates_per_hour": 3600 * n / time_s.wall,
            "env_steps": result.env_steps, "eval_steps": result.eval_steps,
            "wall_s_repeats": [p.seconds.wall for p in passes], "peak_bytes": result.peak_bytes,
            "resident_bytes": max(p.resident for p in passes), "success_mean": float(result.success.mean()),
            "ceiling_lanes": top["lanes"], "ceiling_steps_per_s": top["steps_per_s"],
        }  # fmt: skip
        for shared, name in ((True, "one_by_one"), (False, "separate")):
            if shared in apart:
                total = apart[shared].total(n)
                row[f"{name}_measured"] = min(n, len(apart[shared].times))
                row[f"{name}_extrapolated"] = n > len(apart[shared].times)
                row |= {f"{name}_compile_s": total.compile, f"{name}_run_s": total.run, f"{name}_wall_s": total.wall}
        row["wall_ratio"] = row["one_by_one_wall_s"] / row["wall_s"] if True in apart else None
        row["run_ratio"] = row["one_by_one_run_s"] / row["run_s"] if True in apart else None
        row["separate_wall_ratio"] = row["separate_wall_s"] / row["wall_s"] if False in apart else None
        self.note(
            f"{n} fused: compile {time_s.compile:.1f} s, run {time_s.run:.1f} s, wall {time_s.wall:.1f} s, "
            f"{row['steps_per_s']:,.0f} steps/s in chunks of {', '.join(map(str, result.chunks))}"
        )
        return row

    def _chunking(self) -> dict[str, Any]:
        """The same candidates whole and cut to fit a limit: the memory, and what it does to the result."""
        import numpy as np

        from benchmarks.measure import fused

        s, programs = self.settings, self.programs[: self.settings.chunking]
        whole = fused(self.task, programs, False, **s.options()).result
        limit = s.memory_gb or round(0.4 * whole.peak_bytes / 1e9, 4)
        cut = fused(self.task, programs, False, memory_gb=limit, **s.options()).result
        difference = np.abs(cut.success - whole.success)
        found = {
            "candidates": len(programs), "seeds": s.seeds, "steps": s.steps, "memory_gb": limit,
            "whole_chunks": list(whole.chunks), "whole_peak_bytes": whole.peak_bytes, "whole_wall_s": whole.wall_s,
            "chunks": list(cut.chunks), "peak_bytes": cut.peak_bytes, "wall_s": cut.wall_s,
            "under_limit": cut.peak_bytes <= limit * 1e9,
            "max_success_difference": float(difference.max()), "mean_success_difference": float(difference.mean()),
        }  # fmt: skip
        self.note(
            f"{len(programs)} under {limit:g} GB: chunks of {', '.join(map(str, cut.chunks))}, peak "
            f"{cut.peak_bytes / 1e9:.3f} GB, success differs by at most {difference.max():.4f}"
        )
        return found

    def _save(self) -> None:
        save(self.report, self.settings.out)


def _plain(settings: ThroughputSettings) -> dict[str, Any]:
    values = dataclasses.asdict(dataclasses.replace(settings, ppo=None))  # type: ignore[arg-type]
    learner = {f.name: getattr(settings.ppo, f.name) for f in dataclasses.fields(settings.ppo)}
    for skip in ("out", "dry_run", "json"):
        del values[skip]
    # JSON has no infinity
    return {**values, "ppo": {k: str(v) if v == float("inf") else v for k, v in learner.items()}}


def measure(args: list[str]) -> int:
    """Run the benchmark; returns the exit status."""
    from rich.console import Console

    from jaxreward.options import apply, read_toml

    base, args = ThroughputSettings(), list(args)
    origin, values = "", dict[str, Any]()
    if "--config" in args:
        at = args.index("--config")
        if at + 1 == len(args):
            raise UserError("--config needs a value")
        origin, values = args[at + 1], read_toml(Path(args[at + 1]))
        del args[at : at + 2]
    text = (ThroughputSettings.__doc__ or "") + "\n\n--config FILE.toml reads any of these; the command line wins."

    def typed(ppo: PPO) -> ThroughputSettings:
        default = apply(dataclasses.replace(base, ppo=ppo), values, origin)
        prog = "candidate_throughput.py"
        return tyro.cli(ThroughputSettings, args=args, default=default, prog=prog, description=text)

    settings = typed(base.ppo)
    task = make_task(settings.task)
    # Read again onto the learner of the task, for what is not said is as that has it.
    settings = typed(quick(task) if settings.learner == "quick" else paper(settings.task))
    settings.check()
    console = Console(stderr=settings.json, soft_wrap=True)
    for line in settings.plan():
        console.print(line, highlight=False)
    if settings.dry_run:
        report: dict[str, Any] = {"dry_run": True, "settings": _plain(settings)}
    else:
        report = Measurement(settings, task, lambda text: console.print(text, highlight=False)).run()
        show(report, console)
    if settings.json:
        print(json.dumps(report), flush=True)
    return 0


def main(argv: list[str] | None = None) -> int:
    return status_of("candidate_throughput", lambda: measure(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
