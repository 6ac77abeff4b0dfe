"""What a machine with a GPU is asked for, in calls of less than ten minutes each.

    python benchmarks/gpu.py evidence --out DIR      # the most telling figures: evidence.py
    python benchmarks/gpu.py throughput --out DIR    # candidate_throughput at 1 ... 1,024 candidates
    python benchmarks/gpu.py regimes --out DIR       # generations by each collector, and tuning
    python benchmarks/gpu.py search --out DIR        # the paper's search on xland-easy, 30 candidates together
    python benchmarks/gpu.py gru --out DIR           # the same with the paper's learner
    python benchmarks/gpu.py panda --out DIR         # panda-tracking with the paper's learner and budget
    python benchmarks/gpu.py go1 --out DIR           # go1-push-recovery, the same
    python benchmarks/gpu.py robots --out DIR        # candidate_throughput on panda-tracking at 1 ... 64 candidates

Needs the package's dependencies with a JAX that finds the GPU, and no network. Each part writes
`<part>.json` and `<part>.log` into DIR, the JSON also when time runs out. `--tiny` takes the same path in
small sizes, on a CPU too; `--dry-run` only prints the commands and their plans. `--wheels` lists what `evidence`
needs besides JAX, for a machine that has nothing else; programs are checked before and carried along as files:

    pip download --no-deps --dest wheels $(python benchmarks/gpu.py --wheels)
    python benchmarks/evidence.py --check-only --programs gpu-programs
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg
from jaxreward.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
Part = Literal["evidence", "throughput", "regimes", "search", "gru", "panda", "go1", "robots"]
SEARCHES = {"search": "paper-budget", "gru": "paper"}
TASKS = {"panda": "panda-tracking", "go1": "go1-push-recovery"}
WHEELS = (
    "absl-py", "annotated-types", "brax", "etils", "flax", "jaxopt", "msgpack", "mujoco", "mujoco-mjx", "optax",
    "pillow", "pydantic", "pydantic-core", "pygments", "pyyaml", "rich", "tqdm", "trimesh", "typing-extensions",
    "typing-inspection", "xminigrid",
)  # fmt: skip
"""Distributions that `evidence` imports, besides those that JAX needs."""


@dataclass(frozen=True)
class GpuSettings:
    """Measure on this machine's accelerator."""

    part: Annotated[Part, Arg(positional="PART")] = "evidence"
    """Which call: evidence, throughput, regimes, search, gru, panda, go1 or robots."""
    out: Path = Path("gpu-results")
    """Folder for results."""
    candidates: tuple[int, ...] = ()
    """For throughput and robots: numbers of candidates; by default 1 4 16 64, and 256 and 1024 for
    throughput."""
    chunk: int | None = None
    """Candidates compiled together, at most; by default what fits in memory."""
    seconds: float = 570.0
    """End the part after so long."""
    tiny: bool = False
    """Sizes that a CPU finishes in a minute or two, to try the script."""
    programs: Path = Path("gpu-programs")
    """For evidence: folder with checked programs."""
    wheels: bool = False
    """Print the packages that evidence needs besides JAX, with their versions, and do nothing."""
    dry_run: bool = False
    """Print the commands and their plans, and do nothing."""


def command(s: GpuSettings) -> list[str]:
    """The command line of a part."""
    python = [sys.executable, "-u"]
    chunk = [] if s.chunk is None else ["--chunk", str(s.chunk)]
    dry = ["--dry-run"] if s.dry_run else []
    if s.part == "evidence":
        return [
            *python, str(ROOT / "benchmarks" / "evidence.py"), "--programs", str(s.programs), "--seconds",
            str(0.9 * s.seconds), *(["--tiny"] if s.tiny else []), "--out", str(s.out / "evidence.json"),
        ]  # fmt: skip
    if s.part in TASKS:
        task = TASKS[s.part]
        folder = ROOT / "interfaces" / task.replace("-", "_")
        size = ["--seeds", "3"]
        if s.tiny:
            size = ["--seeds", "1", "--steps", "640", "--checkpoints", "1", "--eval-episodes", "8", "--ppo.envs", "8",
                    "--ppo.unroll", "4", "--ppo.unrolls", "1", "--ppo.minibatches", "1"]  # fmt: skip
        return [
            *python, str(ROOT / "scripts" / "train.py"), "--preset", "paper", "--task", task, "--interfaces",
            str(folder / "expert.py"), str(folder / "sparse.py"), *size, *chunk, "--plot", str(s.out / f"{s.part}.png"),
            "--json", *dry,
        ]  # fmt: skip
    if s.part in ("throughput", "robots"):
        robots = s.part == "robots"
        candidates = s.candidates or ((1, 4, 16, 64) if robots else (1, 4, 16, 64, 256, 1024))
        size = ["--candidates", *map(str, candidates), "--one-by-one-limit", "4", "--separate-limit", "1"]
        size += ["--steps", "2000000", "--learner", "paper"] if robots else ["--steps", "500000", "--chunking", "16"]
        if s.tiny:
            size = ["--candidates", "1", "2", "--steps", "2048" if robots else "4096", "--checkpoints", "1",
                    "--eval-episodes", "64", "--one-by-one-limit", "1", "--separate-limit", "0",
                    "--no-second-pass"]  # fmt: skip
        return [
            *python, str(ROOT / "benchmarks" / "candidate_throughput.py"), "--seeds", "1" if robots else "2", *size,
            *(["--task", "panda-tracking"] if robots else []), *chunk, "--time-limit-s", str(0.9 * s.seconds), "--out",
            str(s.out / f"{s.part}.json"), *dry,
        ]  # fmt: skip
    if s.part == "regimes":
        size = ["--candidates", "16", "--steps", "500000", "--generations", "3", "--tune", "16", "--agree", "20"]
        if s.tiny:
            size = ["--candidates", "1", "--steps", "2048", "--checkpoints", "1", "--eval-episodes", "64",
                    "--tune", "2", "--generations", "1", "--agree", "2", "--no-second-pass"]  # fmt: skip
        return [
            *python, str(ROOT / "benchmarks" / "candidate_throughput.py"), "--seeds", "2", *size, "--one-by-one-limit",
            "0", "--separate-limit", "0", *chunk, "--out", str(s.out / "regimes.json"), *dry,
        ]  # fmt: skip
    size = ["--generation", "30"]
    if s.tiny:
        size = ["--candidates", "2", "--generation", "2", "--steps", "8192", "--filter-steps", "4096", "--seeds", "1",
                "--filter-threshold", "0", "--final-seeds", "1", "--final-steps", "4096"]  # fmt: skip
        if s.part == "gru":
            size += ["--ppo.envs", "64", "--ppo.minibatches", "2", "--ppo.gru", "8", "--ppo.heads", "8"]
    return [
        *python, str(ROOT / "scripts" / "evolve.py"), "--preset", SEARCHES[s.part], "--task", "xland-easy",
        "--proposer", "genetic", *size, *chunk, "--out", str(s.out / "runs"), "--name", s.part, "--json", *dry,
    ]  # fmt: skip


def run(s: GpuSettings) -> int:
    """Run a part under its limit of time; returns its exit status."""
    if s.seconds <= 0:
        raise UserError(f"--seconds must be positive, not {s.seconds:g}")
    if s.part in SEARCHES and (s.out / "runs" / s.part).exists() and not s.dry_run:
        raise UserError(f"{s.out / 'runs' / s.part} exists already; give another --out")
    if s.wheels:
        print("\n".join(f"{name}=={metadata.version(name)}" for name in WHEELS))
        return 0
    words = command(s)
    print(" ".join(words), flush=True)
    if s.dry_run and s.part == "evidence":
        return 0
    if s.dry_run:
        return subprocess.run(words, cwd=ROOT).returncode
    s.out.mkdir(parents=True, exist_ok=True)
    begin, last = time.monotonic(), ""
    with (s.out / f"{s.part}.log").open("w") as log:
        process = subprocess.Popen(
            words, cwd=ROOT, env=os.environ | {"PYTHONUNBUFFERED": "1"}, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        signal.signal(signal.SIGALRM, lambda *_: process.terminate())
        signal.setitimer(signal.ITIMER_REAL, s.seconds)
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            log.write(line)
            log.flush()
            last = line if line.startswith("{") else last
        status = process.wait()
        signal.setitimer(signal.ITIMER_REAL, 0)
    if s.part not in ("evidence", "throughput", "regimes", "robots") and last:
        from benchmarks.machine import machine

        report = {"benchmark": s.part, "command": words[2:], **machine(), "result": json.loads(last)}
        save(report, s.out / f"{s.part}.json")
    print(f"{s.part}: exit status {status} after {time.monotonic() - begin:.0f} s, results in {s.out}", flush=True)
    return status


def main(argv: list[str] | None = None) -> int:
    return status_of("gpu", lambda: run(parse(GpuSettings, None, argv, "gpu.py")))


if __name__ == "__main__":
    sys.exit(main())
