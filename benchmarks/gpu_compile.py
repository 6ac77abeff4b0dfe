"""What a GPU or TPU would be given: the trainer's two functions compiled for a device that need not be there.

    python benchmarks/gpu_compile.py --out benchmarks/results/gpu_compile.json
    python benchmarks/gpu_compile.py --cases xland-easy --devices h200 --candidates 64 --cuda-site DIR

XLA's compilers for the H200 and for TPUs run without the device (`described.py`). A row says how long the compiler
took, how many kernels the program launches for an environment step, what these move and compute (`launches.py`), and
by that how many steps a second it could make at most. Nothing is run, and kernels are not tuned by trial.

Needs `pip install 'jaxreward[gpu-compile]'`, or wheels in folders that --cuda-site and --libtpu name. Every row is made
in a process of its own and written at once; docs/appendix/benchmarks.md has the table.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.command import first_to_go, in_a_process, save, status_of
from benchmarks.described import DEVICES, Described, environment
from benchmarks.roofline import ASSUMED, estimate
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError, why_unreadable
from jaxreward.tasks import make_task
from jaxreward.training import PPO, paper, quick
from jaxreward.training.hyperparameters import PopulationName

CASES = ("xland-easy", "hopper", "go1-push-recovery", "panda-tracking", "xland-easy:gru")
GRU = ":gru"
"""After the name of a task: LIMEN's network for it, with its GRU, in place of the quick learner."""


@dataclass(frozen=True)
class CompileSettings:
    """Compile the trainer for a GPU or TPU that need not be there."""

    cases: tuple[str, ...] = CASES
    """Tasks; `xland-easy:gru` is one with LIMEN's recurrent learner."""
    devices: tuple[str, ...] = tuple(DEVICES)
    """h200, v5e or both."""
    candidates: tuple[int, ...] = (16, 64)
    """Numbers of candidates that are compiled together."""
    seeds: int = 2
    """Training seeds of each."""
    envs: int = 64
    """Environments of an agent."""
    shape: tuple[str, ...] = ()
    """Static hyperparameters in place of those of the learner, each NAME=NUMBER: `unroll=8 minibatches=16`."""
    population: PopulationName = "bank"
    """Programs as data of a bank, which is what accelerators get, or as code of their own rows."""
    label: str = ""
    """Word that the rows carry, to compare before with after."""
    launch_us: float | None = None
    """Microseconds from one launch to the next; by default what is assumed for the device."""
    limit_s: float = 900.0
    """Give a row up after so long."""
    cuda_site: Path | None = None
    """Folder with the CUDA plugin and NVIDIA's wheels (pip install --target); by default they are installed."""
    libtpu: Path | None = None
    """libtpu.so, or a folder with its wheel; by default it is installed."""
    programs: Path | None = None
    """Folder that keeps checked programs for the next time."""
    out: Path | None = None
    """File of results, to which rows are appended as they are made."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        for name in self.devices:
            if name not in DEVICES:
                raise UserError(f"--devices are {' and '.join(DEVICES)}, not '{name}'")
        if not self.candidates or min(*self.candidates, self.seeds, self.envs) < 1 or not self.limit_s > 0:
            raise UserError("--candidates, --seeds and --envs are at least 1, and --limit-s is positive")
        if self.launch_us is not None and not self.launch_us >= 0:
            raise UserError(f"--launch-us must not be negative, not {self.launch_us:g}")
        if self.out is not None and self.out.suffix != ".json":
            raise UserError(f"--out {self.out} must end in .json")
        for case in self.cases:
            learner(case, self.envs, self.shape)

    def environment(self, device: str) -> dict[str, str]:
        return environment(device, self.cuda_site, self.libtpu)


SHAPE = ("unroll", "unrolls", "epochs", "minibatches")
"""What `--shape` may set."""


def learner(case: str, envs: int, shape: Sequence[str] = ()) -> PPO:
    """The hyperparameters of a case.

    Raises:
        UserError: a task or hyperparameter that there is not, or a number of environments that its minibatches do not
            divide.
    """
    name = case.removesuffix(GRU)
    ppo = replace(paper(name) if case.endswith(GRU) else quick(make_task(name), "cpu"), envs=envs)
    for text in shape:
        setting, _, number = text.partition("=")
        if setting not in SHAPE or not number.isdecimal():
            raise UserError(f"--shape takes NAME=NUMBER, of {', '.join(SHAPE)}, not '{text}'")
        ppo = ppo.replace(**{setting: int(number)})
    if case.endswith(GRU) and not ppo.gru:
        raise UserError(f"the paper's learner for {name} has no GRU")
    ppo.check()
    return ppo


# ---- a row, in a process of its own


@dataclass(frozen=True)
class Row:
    """What one process compiles; `programs` is a file of `carried.write_programs`."""

    case: str
    device: str
    candidates: int
    seeds: int
    envs: int
    population: PopulationName
    programs: str
    shape: tuple[str, ...] = ()


def compiled(row: Row) -> dict[str, Any]:
    """The figures of `collect` and `learn`, each a dict."""
    import jax

    from benchmarks.carried import read_programs
    from jaxreward.training import chunk
    from jaxreward.training.banks import BANKS
    from jaxreward.training.compiled import compilations
    from jaxreward.training.population import Population

    first_to_go()
    task, about = make_task(row.case.removesuffix(GRU)), DEVICES[row.device]
    ppo = learner(row.case, row.envs, row.shape)
    programs = read_programs(Path(row.programs), task)[: row.candidates]
    device, begin = about.device(), time.process_time()
    bank = BANKS.of(programs, len(programs) * row.seeds * ppo.envs) if row.population == "bank" else None
    population = Population(programs, bank=bank)
    whole = chunk.Chunk(task, population, ppo, tuple(range(row.seeds)), jax.local_devices()[0])
    with compilations() as found:
        whole.compiled_for(device)
    names = ["collect", *(f"collect {k}" for k in range(2, len(found)))]  # in one piece or in several
    return {
        "device_kind": device.device_kind, "steps": row.candidates * row.seeds * ppo.batch, "length": ppo.length,
        "unroll": ppo.unroll, "epochs": ppo.epochs, "minibatches": ppo.minibatches,
        "repeat": ppo.action_repeat, "structures": len(set(population.structure)),
        "bank_nodes": bank and bank.size,
        "cpu_s": round(time.process_time() - begin, 1),
        "functions": {name: figures(made, about) for name, made in zip([*names, "learn"], found, strict=True)},
    }  # fmt: skip


def figures(made: Any, device: Described) -> dict[str, Any]:
    """Of one compiled function. `xla_cost` is XLA's own account, which counts loops once."""
    from benchmarks.launches import Module

    module = Module(made.compiled.as_text(), scalars=device.platform != "tpu")
    cost, memory, own = module.cost(), made.compiled.memory_analysis(), made.compiled.cost_analysis() or {}
    return {
        "trace_s": round(made.trace_s, 2), "compile_s": round(made.compile_s, 2),
        "stablehlo_ops": len(re.findall(r"^\s+.*\b(?:stablehlo|chlo)\.(?!return)\w+", made.lowered.as_text(), re.M)),
        "instructions": module.instructions, "launches": cost.launches, "kinds": dict(cost.kinds.most_common()),
        "unknown_loops": [[launches, times] for launches, times in sorted(cost.unknown.items(), reverse=True)],
        "unknown_turn": cost.unknown_turn, "bytes": cost.bytes, "flops": cost.flops,
        "xla_cost": {key: own[key] for key in ("bytes accessed", "flops") if key in own} or None,
        "memory": {
            key: getattr(memory, f"{key}_size_in_bytes") for key in ("argument", "output", "temp", "alias")
        } if memory else None,
    }  # fmt: skip


# ---- all rows


class Results:
    """A file of rows that grows."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.report = path, {"benchmark": "gpu_compile", "assumed": ASSUMED, "rows": []}
        if path is not None and path.exists():
            try:
                known = json.loads(path.read_text())
            except (OSError, ValueError) as error:
                raise UserError(f"--out {path} cannot be read: {why_unreadable(error)}") from error
            if not isinstance(known, dict) or known.get("benchmark") != "gpu_compile":
                raise UserError(f"--out {path} holds other results; give another file")
            self.report["rows"] = known["rows"]

    def append(self, row: dict[str, Any]) -> None:
        self.report["rows"].append(row)
        save(self.report, self.path)


def run(s: CompileSettings) -> int:
    """All rows, one after the other, small ones first; one that fails has an `error` in place of figures."""
    from benchmarks.carried import programs_of, write_programs
    from benchmarks.machine import machine

    s.check()
    environments = {device: s.environment(device) for device in s.devices}
    results, console, failed = Results(s.out), Console(stderr=True), 0
    with tempfile.TemporaryDirectory() as scratch, _bars(console) as bars:
        folder = s.programs or Path(scratch)
        at = bars.add_task("", total=len(s.cases) * len(s.devices) * len(s.candidates))
        for case in s.cases:
            name = case.removesuffix(GRU)
            bars.update(at, description=f"checking programs for {name}")
            write = Path(scratch) / f"{name.replace('/', '-')}-rows.json.gz"
            write_programs(write, programs_of(name, max(s.candidates), folder))
            for n in sorted(s.candidates):
                for device in s.devices:
                    bars.update(at, description=f"{case}, {n} candidates, {DEVICES[device].title}")
                    row = Row(case, device, n, s.seeds, s.envs, s.population, str(write), s.shape)
                    begin = time.perf_counter()
                    words = [str(Path(__file__)), "one", json.dumps(asdict(row))]
                    found = in_a_process(words, environments[device], s.limit_s)
                    if "error" not in found:
                        found["estimate"] = estimate(found, DEVICES[device], s.launch_us)
                    failed += "error" in found
                    about = {k: v for k, v in asdict(row).items() if k != "programs"} | {"label": s.label}
                    about |= {"platform": DEVICES[device].platform, "wall_s": round(time.perf_counter() - begin, 1)}
                    where = {key: value for key, value in machine().items() if key not in ("device", "devices")}
                    results.append({**about, **where, **found})
                    console.print(line(about | found), highlight=False, soft_wrap=True)
                    bars.advance(at)
    return int(failed > 0)


def _bars(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(), TextColumn("{task.completed}/{task.total} {task.description}"), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    about = f"{row['case']}, C = {row['candidates']}, {row['device']}: "
    if "error" in row:
        return about + row["error"]
    collect, estimated = row["functions"]["collect"], row["estimate"]
    unknown = f" + {estimated['unknown_per_step']:,.0f} a turn of unknown loops" if collect["unknown_loops"] else ""
    return about + (
        f"collect {collect['compile_s']:.1f} s, learn {row['functions']['learn']['compile_s']:.1f} s, "
        f"{estimated['launches_per_step']:,.0f} launches a step{unknown}, "
        f"{estimated['steps_per_s'] / 1e6:.2f}M steps/s at most ({estimated['bound_by']})"
    )


def main(argv: list[str] | None = None) -> int:
    args = sys.argv[1:] if argv is None else argv
    if args[:1] == ["one"]:
        print(json.dumps(compiled(Row(**json.loads(args[1])))))
        return 0
    return status_of("gpu_compile", lambda: run(parse(CompileSettings, None, args, "gpu_compile.py")))


if __name__ == "__main__":
    sys.exit(main())
