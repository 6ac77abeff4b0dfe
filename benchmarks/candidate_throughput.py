"""Candidates trained side by side against the same candidates trained one after another.

    python benchmarks/candidate_throughput.py --candidates 1 4 16 64 --seeds 2 --out benchmarks/results/cpu.json

docs/appendix/benchmarks.md says what each column means and how the comparison is made fair.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from benchmarks.table import show
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.tasks import Task, make_task
from jaxreward.training import PPO, Execution, paper, quick
from jaxreward.training.hyperparameters import CollectorOption, CompileOption, PopulationOption

_GENERATION = 16
"""Programs of a generation where generations are measured."""

_SHORT = 8
"""By the budget over this the weight settings of a structure are judged, and collectors compared."""

_WAYS = {"one_by_one": "one by one", "separate": "as separate processes", "naive": "so, each seed by itself"}


@dataclass(frozen=True)
class ThroughputSettings:
    """Time candidates trained together, the same one by one, and environment steps alone. --config FILE.toml reads any
    of these options; the command line wins."""

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
    peers: bool = True
    """On a task of Brax, also train with the PPO of Brax."""
    second_pass: bool = True
    """Train everything again with all compiled, to time running alone; else as the trainer reports it."""
    generations: int = 0
    """Also train so many generations of 16 new programs by each collector, and one more of the last one's structures
    with other constants, to see what compiling costs a search; 0: no."""
    tune: int = 0
    """Also compile 16 structures, and then so many weight settings of each, with an eighth of --steps; 0: no."""
    agree: int = 0
    """Also train so many programs for an eighth of --steps by each collector, and compare the agents; 0: no."""
    collector: CollectorOption = "auto"
    """How experience is collected in the rows: fused, stepwise, or as the trainer chooses."""
    compile: CompileOption = "auto"
    """Of the fused collector on a CPU: full optimisation, or fast compilation to slower code."""
    population: PopulationOption = "auto"
    """Whether programs are code (rows) or data (bank) in the rows of the table."""
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
    plot: Path | None = None
    """Picture of throughput and memory by the number of candidates, .png or .svg."""
    dry_run: bool = False
    """Print what would be measured, and do nothing."""
    json: bool = False
    """Print one JSON object as the last line of standard output; all else goes to standard error."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if not self.candidates or min(self.candidates) < 1:
            raise UserError("--candidates lists numbers of candidates, each at least 1")
        for name in ("seeds", "steps", "repeat", "checkpoints", "eval_episodes"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}")
        for name in ("one_by_one_limit", "separate_limit", "chunking", "generations", "tune", "agree", "time_limit_s"):
            if getattr(self, name) < 0:
                raise UserError(f"--{name.replace('_', '-')} must not be negative")
        if self.out is not None and self.out.suffix != ".json":
            raise UserError(f"--out {self.out} must end in .json")
        if self.plot is not None and self.plot.suffix not in (".png", ".svg"):
            raise UserError(f"--plot {self.plot} must end in .png or .svg")
        self.ppo.check()
        Execution(collector=self.collector, compile=self.compile, population=self.population).check(self.ppo)

    @property
    def rows(self) -> list[int]:
        return sorted(set(self.candidates))

    def options(self, memory_gb: float | None = None) -> dict[str, Any]:
        """What every training of the benchmark is given."""
        return {
            "ppo": self.ppo, "seeds": self.seeds, "steps": self.steps, "checkpoints": self.checkpoints,
            "eval_episodes": self.eval_episodes, "execution": self.execution(memory_gb),
        }  # fmt: skip

    def execution(self, memory_gb: float | None) -> Execution:
        """Where and how its trainings run."""
        return Execution(memory_gb, self.chunk, self.collector, self.compile, self.population)

    def plan(self) -> list[str]:
        alone, separate = (min(n, max(self.rows)) for n in (self.one_by_one_limit, self.separate_limit))
        sizes, twice = ", ".join(map(str, self.rows)), ", each twice" if self.second_pass else ""
        lines = [
            f"{self.task}: {sizes} candidates x {self.seeds} seeds x {self.steps:,} steps together{twice}",
            f"the first {alone} one by one, the first {separate} as separate processes; environment steps alone",
        ]
        if self.generations:
            lines.append(
                f"{self.generations} generations of {_GENERATION} new programs by each collector, and one more"
            )
        if self.tune:
            lines.append(f"{_GENERATION} structures, and {self.tune} weight settings of each")
        if self.agree:
            lines.append(f"{self.agree} programs by each collector, to compare the agents")
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
            "rows": [], "ceiling": None, "chunking": [], "generations": [], "tune": None, "agreement": None,
            "peers": {}, "left_out": [],
        }  # fmt: skip
        of_regimes = _GENERATION * max(settings.generations, settings.tune > 0)
        self.programs = mixed_programs(self.task, max([*settings.rows, settings.chunking, of_regimes, settings.agree]))
        note(f"{len(self.programs)} different programs checked in {self.elapsed:.0f} s, which is not counted")

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.begin

    def run(self) -> dict[str, Any]:
        from benchmarks.measure import combine, one_by_one

        s = self.settings
        largest = max(s.rows)
        apart: dict[str, Any] = {}
        ways = (("one_by_one", s.one_by_one_limit), ("separate", s.separate_limit), ("naive", s.separate_limit))
        for name, limit in ways:
            programs, options = self.programs[: min(limit, largest)], s.options()
            if name == "naive":
                options["seeds"] = 1
            if programs:
                shared = name == "one_by_one"
                apart[name] = combine(
                    [one_by_one(self.task, programs, shared, s.second_pass, **options) for _ in range(s.repeat)]
                )
                self.note(f"{len(programs)} {_WAYS[name]}: {apart[name].total(len(programs)).wall:.1f} s")
        self._peers()
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
        self._regimes()
        return self.report

    def _regimes(self) -> None:
        """Whether collectors agree, and what compiling costs from generation to generation, and for many weights."""
        from benchmarks.regimes import agreement, collectors, generations, tuning

        s = self.settings
        options = {name: value for name, value in s.options().items() if name != "execution"}
        short = options | {"steps": -(-s.steps // _SHORT), "checkpoints": 1}
        if s.agree:
            self.report["agreement"] = found = agreement(self.task, self.programs[: s.agree], s.chunk, **short)
            for how, by in found["collectors"].items():
                self.note(
                    f"{s.agree} programs {how}: parameters differ from those fused by at most "
                    f"{by['max_parameter_difference']:.2g}, success by {by['max_success_difference']:.2g}"
                )
            self._save()
        if s.generations:
            programs = self.programs[: _GENERATION * s.generations]
            for collector, execution in collectors(s.ppo, chunk=s.chunk).items():
                self.report["generations"] += generations(self.task, programs, _GENERATION, execution, **options)
                self._save()
                later = self.report["generations"][-2]
                self.note(
                    f"generation {later['generation']} {collector}: {later['wall_s']:.1f} s, compiling "
                    f"{later['compile_share']:.0%} of it"
                )
        if s.tune:
            self.report["tune"] = found = tuning(self.task, self.programs[:_GENERATION], s.tune, s.chunk, **short)
            self.note(
                f"{s.tune} settings of {found['structures']} structures compile in {found['compile_ratio']:.2f} times "
                "the time of the structures alone"
            )
            self._save()
        self._save()

    def _too_long(self, n: int, seconds: float) -> bool:
        """Whether a measurement of `seconds` would pass the limit of time; says so."""
        limit = self.settings.time_limit_s
        if not limit or self.elapsed + seconds <= limit:
            return False
        self.report["left_out"].append({"candidates": n, "reason": f"the limit of {limit:g} s"})
        self.note(f"{n} candidates left out: the limit of {limit:g} s")
        return True

    def _peers(self) -> None:
        """Brax's own PPO on an environment of Brax, one run with one seed."""
        from jaxreward.tasks.brax.base import BraxTask

        s = self.settings
        if isinstance(self.task, BraxTask) and s.peers:
            from benchmarks.brax_parity import brax_run

            run = brax_run(self.task, s.ppo, s.steps, 0, s.checkpoints)
            self.report["peers"]["brax"] = {name: run[name] for name in ("steps_per_s", "wall_s")}
            self.note(f"one run of Brax: {run['wall_s']:.1f} s, {run['steps_per_s']:,.0f} steps/s")

    def _row(self, n: int, apart: dict[str, Any]) -> dict[str, Any]:
        from benchmarks.measure import ceiling, fused, median, used

        s = self.settings
        limit = None if s.chunking else s.memory_gb
        passes = [fused(self.task, self.programs[:n], s.second_pass, **s.options(limit)) for _ in range(s.repeat)]
        time_s, result = median([p.seconds for p in passes]), passes[0].result
        devices = used(result)
        top = ceiling(self.task, max(result.chunks), s.seeds, s.ppo.envs, s.ppo.length, devices)
        if self.report["ceiling"] is None or top["steps_per_s"] > self.report["ceiling"]["steps_per_s"]:
            self.report["ceiling"] = top
        row: dict[str, Any] = {
            "candidates": n, "seeds": s.seeds, "steps": s.steps, "collector": result.collection,
            "chunks": list(result.chunks), "devices": devices,
            "compile_s": time_s.compile, "run_s": time_s.run, "wall_s": time_s.wall,
            "steps_per_s": result.env_steps / time_s.run,
            "steps_per_s_per_candidate": result.env_steps / time_s.run / n,
            "candidates_per_hour": 3600 * n / time_s.wall,
            "env_steps": result.env_steps, "eval_steps": result.eval_steps,
            "wall_s_repeats": [p.seconds.wall for p in passes], "peak_bytes": result.peak_bytes,
            "resident_bytes": max(p.resident for p in passes), "success_mean": float(result.success.mean()),
            "ceiling_lanes": top["lanes"], "ceiling_steps_per_s": top["steps_per_s"],
        }  # fmt: skip
        for name in apart:
            total = apart[name].total(n) * (s.seeds if name == "naive" else 1)
            row[f"{name}_measured"] = min(n, len(apart[name].times))
            row[f"{name}_extrapolated"] = n > len(apart[name].times) or (name == "naive" and s.seeds > 1)
            row |= {f"{name}_compile_s": total.compile, f"{name}_run_s": total.run, f"{name}_wall_s": total.wall}
        row["wall_ratio"] = row["one_by_one_wall_s"] / row["wall_s"] if "one_by_one" in apart else None
        row["run_ratio"] = row["one_by_one_run_s"] / row["run_s"] if "one_by_one" in apart else None
        row["separate_wall_ratio"] = row["separate_wall_s"] / row["wall_s"] if "separate" in apart else None
        row["naive_wall_ratio"] = row["naive_wall_s"] / row["wall_s"] if "naive" in apart else None
        brax = self.report["peers"].get("brax")
        row["brax_wall_ratio"] = n * s.seeds * brax["wall_s"] / row["wall_s"] if brax else None
        self.note(
            f"{n} together, {result.collection}: compile {time_s.compile:.1f} s, run {time_s.run:.1f} s, wall "
            f"{time_s.wall:.1f} s, {row['steps_per_s']:,.0f} steps/s in chunks of {', '.join(map(str, result.chunks))}"
        )
        return row

    def _chunking(self) -> dict[str, Any]:
        """The same candidates whole and cut to fit a limit: the memory, and what it does to the result."""
        import numpy as np

        from benchmarks.measure import fused

        s, programs = self.settings, self.programs[: self.settings.chunking]
        whole = fused(self.task, programs, False, **s.options()).result
        limit = s.memory_gb or round(0.4 * whole.peak_bytes / 1e9, 4)
        cut = fused(self.task, programs, False, **s.options(limit)).result
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
    for skip in ("out", "plot", "dry_run", "json"):
        del values[skip]
    # JSON has no infinity
    return {**values, "ppo": {k: str(v) if v == float("inf") else v for k, v in learner.items()}}


def measure(args: list[str]) -> int:
    """Run the benchmark; returns the exit status."""
    from rich.console import Console

    from jaxreward.config import apply, read_toml
    from jaxreward.devices import use_cores

    use_cores()

    base, args = ThroughputSettings(), list(args)
    origin, values = "", dict[str, Any]()
    if "--config" in args:
        at = args.index("--config")
        if at + 1 == len(args):
            raise UserError("--config needs a value")
        origin, values = args[at + 1], read_toml(Path(args[at + 1]))
        del args[at : at + 2]

    def typed(ppo: PPO) -> ThroughputSettings:
        default = apply(dataclasses.replace(base, ppo=ppo), values, origin)
        return parse(ThroughputSettings, default, args, "candidate_throughput.py")

    settings = typed(base.ppo)
    task = make_task(settings.task)
    # Parse again with the task's learner as defaults.
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
        if settings.plot is not None:
            from benchmarks.scaling import draw

            draw(report, settings.plot)
    if settings.json:
        print(json.dumps(report), flush=True)
    return 0


def main(argv: list[str] | None = None) -> int:
    return status_of("candidate_throughput", lambda: measure(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
