"""What a GPU shows within ten minutes, the most telling first.

    python benchmarks/evidence.py --programs DIR --out evidence.json      # or as a part of gpu.py

What a launch costs; the trainer's steps a second by candidates and environments; robots; and by how much an unroll on
the device differs from the same one on a CPU. Every row is written at once, so that what was not reached is all that
is missing when time runs out. Programs come from files (`carried.py`) and are not checked again.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.carried import programs_of
from benchmarks.command import save, status_of
from benchmarks.described import DEVICES
from benchmarks.launches import Module
from benchmarks.machine import machine
from benchmarks.measure import forget
from benchmarks.roofline import estimate
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.programs import Program
from jaxreward.tasks import make_task
from jaxreward.training import quick
from jaxreward.training.banks import BANKS
from jaxreward.training.chunk import Chunk
from jaxreward.training.compiled import Compilation, compilations
from jaxreward.training.hyperparameters import PopulationName
from jaxreward.training.population import Population

ROBOTS = ("hopper", "go1-push-recovery", "panda-tracking")
_COUNTED = 256
"""Programs of a row at most whose launches are counted: the text of more is long."""


@dataclass(frozen=True)
class Sizes:
    """What is measured: (candidates, environments) of xland-easy in this order, candidates and environments of robots,
    and how many candidates of which tasks have their unrolls compared with a CPU's."""

    grid: tuple[tuple[int, int], ...] = (
        (16, 64), (64, 64), (256, 64), (16, 1024), (64, 1024), (16, 256), (64, 256), (16, 4096), (256, 1024),
        (1024, 64), (64, 4096), (256, 4096), (1024, 1024),
    )  # fmt: skip
    robots: int = 16
    robot_envs: int = 256
    compared: int = 16
    compared_tasks: tuple[str, ...] = ("xland-easy", *ROBOTS)
    seeds: int = 2
    updates: int = 5
    kernels: int = 20_000


@dataclass(frozen=True)
class EvidenceSettings:
    """Measure what a launch costs, training by candidates and environments, robots, and agreement with a CPU."""

    programs: Path = Path("gpu-programs")
    """Folder with files of checked programs; those that lack are checked and written there."""
    out: Path | None = None
    """File for the results, written after every row."""
    seconds: float = 560.0
    """Begin no row after so long."""
    population: PopulationName = "bank"
    """What the programs are compiled to: as data, which is what GPUs get, or rows of code."""
    check_only: bool = False
    """Only check the programs and write their files, for a machine that measures."""
    tiny: bool = False
    """Sizes that a CPU finishes in a minute or two."""


TINY = Sizes(((1, 8), (2, 16)), 1, 8, 1, ("xland-easy",), 1, 1, 200)


def run(s: EvidenceSettings) -> None:
    """What the settings say."""
    until = time.monotonic() + s.seconds
    if not s.seconds > 0:
        raise UserError(f"--seconds must be positive, not {s.seconds:g}")
    sizes = TINY if s.tiny else Sizes()
    if s.tiny:
        jax.config.update("jax_disable_most_optimizations", True)
    if s.check_only:
        for name, n in (("xland-easy", max(n for n, _ in sizes.grid)), *((name, sizes.robots) for name in ROBOTS)):
            print(f"{len(programs_of(name, max(n, sizes.compared), s.programs))} programs for {name}", flush=True)
        return
    measure(sizes, s.programs, s.out, until, lambda line: print(line, flush=True), s.population)


def measure(
    sizes: Sizes,
    programs: Path,
    out: Path | None,
    until: float,
    note: Callable[[str], None],
    form: PopulationName = "bank",
) -> None:
    """All of it, until `until` by `time.monotonic`; a row that would begin later is in `left_out`."""
    report: dict[str, Any] = {
        "benchmark": "evidence", "population": form, "sizes": asdict(sizes), **machine(), "rows": [], "left_out": [],
    }  # fmt: skip
    launch_us = 0.0

    def add(kind: str, work: Callable[[], dict[str, Any]], **about: Any) -> dict[str, Any]:
        said = ", ".join(map(str, (kind, *about.values())))
        if time.monotonic() > until:
            report["left_out"].append({"kind": kind, **about})
            note(f"{said}: left out, there is no time")
            save(report, out)
            return {}
        begin = time.perf_counter()
        try:
            found = work()
        except Exception as error:  # as where memory does not suffice; a machine lent for minutes measures the rest
            found = {"error": f"{type(error).__name__}: {str(error)[:600]}"}
        row = {"kind": kind, **about, **found, "wall_s": round(time.perf_counter() - begin, 2)}
        report["rows"].append(row)
        note(f"{said}: " + ", ".join(f"{k} {_short(v)}" for k, v in found.items() if not isinstance(v, (dict, list))))
        save(report, out)
        return found

    launch_us = add("launches", lambda: launch_cost(sizes.kernels)).get("loop_us", 0.0)
    for candidates, envs in sizes.grid:
        how = lambda c=candidates, e=envs: trained("xland-easy", c, e, sizes, programs, launch_us, form)  # noqa: E731
        add("training", how, task="xland-easy", candidates=candidates, envs=envs)
    for name in ROBOTS:
        how = lambda n=name: trained(n, sizes.robots, sizes.robot_envs, sizes, programs, launch_us, form)  # noqa: E731
        add("training", how, task=name, candidates=sizes.robots, envs=sizes.robot_envs)
    for name in sizes.compared_tasks:
        how = lambda n=name: agreement(n, sizes.compared, sizes.robot_envs, programs, form)  # noqa: E731
        add("agreement", how, task=name, candidates=sizes.compared, envs=sizes.robot_envs)


def _short(value: Any) -> str:
    return f"{value:,.3g}" if isinstance(value, float) and abs(value) < 1e3 else f"{value:,.0f}" if isinstance(
        value, (int, float)) else str(value)  # fmt: skip


# ---- what a launch costs


def launch_cost(kernels: int) -> dict[str, Any]:
    """Microseconds of a small kernel that waits for the one before it: `loop_us` in a loop of eight a turn, as a scan
    has them, and `line_us` eighty without a loop. Eighty and a loop of eighty are what XLA records in one graph."""

    def some(x: jax.Array, n: int) -> jax.Array:
        for _ in range(n):
            x = jax.lax.optimization_barrier(jnp.sin(x) + 1.0)
        return x

    def loop(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, kernels // 8, lambda _, x: some(x, 8), x)

    found: dict[str, Any] = {}
    for name, fn in (("loop", loop), ("line", lambda x: some(x, 80))):
        compiled = jax.jit(fn).lower(jnp.ones(4096)).compile()
        count = max(1, Module(compiled.as_text() or "").cost().launches)
        seconds = _seconds(lambda c=compiled: c(jnp.ones(4096)))
        found |= {f"{name}_launches": count, f"{name}_us": 1e6 * seconds / count}
    return found


def _seconds(work: Callable[[], Any], times: int = 5) -> float:
    """The median time of a call after one that warms up."""
    took = list[float]()
    for _ in range(times + 1):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        took.append(time.perf_counter() - begin)
    return statistics.median(took[1:])


# ---- training


def trained(
    name: str, candidates: int, envs: int, sizes: Sizes, folder: Path, launch_us: float, form: PopulationName
) -> dict[str, Any]:
    """Seconds of compiling and the median of updates of one chunk; with few enough programs also its launches, and
    what by these and `launch_us` was to be expected."""
    task = make_task(name)
    ppo, programs = replace(quick(task), envs=envs), programs_of(name, candidates, folder)
    forget()
    population = _population(programs, sizes.seeds * envs, form)
    whole = Chunk(task, population, ppo, tuple(range(sizes.seeds)), jax.local_devices()[0])
    with compilations() as made:
        whole.compile()
    state, stats, took = whole.start(), whole.fresh_stats(), list[float]()
    for at in range(sizes.updates + 1):
        begin = time.perf_counter()
        state, stats, _ = jax.block_until_ready(whole.update(state, stats, at, 0.0))
        took.append(time.perf_counter() - begin)
    steps = candidates * sizes.seeds * ppo.batch
    return {
        "compile_s": whole.compile_s, "update_s": statistics.median(took[1:]),
        "steps_per_s": steps / statistics.median(took[1:]), "peak_bytes": whole.peak_bytes(),
        **(_expected(made, steps, ppo.length, launch_us) if candidates <= _COUNTED else {}),
    }  # fmt: skip


def _population(programs: list[Program], episodes: int, form: PopulationName) -> Population:
    """The programs as `form` says, with so many episodes of each side by side."""
    return Population(programs, bank=BANKS.of(programs, len(programs) * episodes) if form == "bank" else None)


def _expected(made: Sequence[Compilation], steps: int, length: int, launch_us: float) -> dict[str, Any]:
    *collect, learn = [Module(m.compiled.as_text()).cost() for m in made]
    functions = {
        name: {"launches": c.launches, "unknown_turn": c.unknown_turn, "bytes": c.bytes, "flops": c.flops}
        for name, c in (*((f"collect {k}", c) for k, c in enumerate(collect)), ("learn", learn))
    }
    row = {"steps": steps, "length": length, "repeat": 1, "functions": functions}
    found = estimate(row, DEVICES["h200"], launch_us)
    return {"launches_per_step": found["launches_per_step"], "expected_steps_per_s": found["steps_per_s"]}


# ---- agreement with a CPU


def agreement(name: str, candidates: int, envs: int, folder: Path, form: PopulationName) -> dict[str, Any]:
    """One unroll on the device and on a CPU, from the same states with the same noise: the largest difference of
    observations and rewards at the first step and over all, where both had chosen the same actions until then."""
    task = make_task(name)
    ppo, programs = replace(quick(task), envs=envs), programs_of(name, candidates, folder)
    unrolls = []
    for device in (jax.local_devices()[0], jax.local_devices(backend="cpu")[0]):
        forget()
        whole = Chunk(task, _population(programs, envs, form), ppo, (0,), device)
        whole.compile()
        unrolls.append(jax.device_get(whole.collect(whole.start(), whole.fresh_stats(), 0)[1]))
    one, other = unrolls
    same = np.isclose(one.action, other.action, rtol=1e-3, atol=1e-3)
    same = same.reshape(*one.reward.shape, -1).all(-1)
    agree = np.concatenate([np.ones_like(same[:1]), np.logical_and.accumulate(same)[:-1]])  # until the step before
    differ = {
        "observation": np.abs(one.obs[:-1] - other.obs[:-1]).max(-1) / (1 + np.abs(other.obs[:-1]).max(-1)),
        "reward": np.abs(one.reward - other.reward) / (1 + np.abs(other.reward)),
    }
    return {
        "steps": len(same), "same_actions": float(same.mean()),
        **{f"{key}_first": float(x[0].max()) for key, x in differ.items()},
        **{f"{key}_all": float(np.where(agree, x, 0).max()) for key, x in differ.items()},
        **{f"{key}_median": float(np.median(x[agree])) for key, x in differ.items()},
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    return status_of("evidence", lambda: run(parse(EvidenceSettings, None, argv, "evidence.py")))


if __name__ == "__main__":
    sys.exit(main())
