"""What a walking distance costs: by the flood over rows of the grid that the vocabulary of XLand has, and by that over
planes of bits of `kernels/flood.py`.

    python benchmarks/flood.py --out flood.json
    python benchmarks/flood.py --as-one 1 400 --cuda-site DIR

Distances on 4,096 random grids to one thing each, for the grids of xland-easy and xland-hard. Forms take turns; a
figure is the least processor time of all rounds. Results must be the same. With --as-one they are compiled for an H200
that need not be there (see gpu_compile.py), and the kernels that it would launch are counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.command import save, status_of
from benchmarks.described import DEVICES, environment
from benchmarks.launches import Module
from benchmarks.machine import machine
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.kernels.flood import flood
from jaxreward.programs import unrolling
from jaxreward.programs.encode import trace
from jaxreward.programs.interpret import replay
from jaxreward.programs.limits import Limits
from jaxreward.programs.tape import count
from jaxreward.tasks.xland_vocabulary import xland_vocabulary
from jaxreward.training.compiled import xla_options

THING, FLOOR, WALL = (3, 1), 1, 2
SIZES = {"xland_easy": 9, "xland_hard": 13}
_CHILD = "JAXREWARD_FLOOD_CHILD"


@dataclass(frozen=True)
class FloodSettings:
    """Walking distances, by several floods."""

    grids: int = 4096
    """Grids of a call."""
    rounds: int = 20
    """Rounds of ten calls of each form."""
    as_one: tuple[int, ...] = ()
    """Compile for an H200 instead, with turns of a loop as one up to so many operations."""
    cuda_site: Path | None = None
    """Folder with the CUDA plugin and NVIDIA's wheels (pip install --target); by default they are installed."""
    out: Path | None = None
    """File of results."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if min(self.grids, self.rounds, *self.as_one) < 1:
            raise UserError("--grids, --rounds and --as-one are at least 1")


def forms(name: str) -> tuple[int, dict[str, Callable[..., Any]]]:
    """The size of a task's grid, and functions of a grid and a cell to the steps from there to the thing."""
    words = dict[str, Any]()
    size = SIZES[name]
    vocabulary = xland_vocabulary([THING], size, size, 80)
    constants = [f"{name} = {value}" for name, value in vocabulary.constants.items()]
    exec("\n".join(["import jax", "import jax.numpy as jnp", *constants, *vocabulary.helpers.values()]), words)

    def state(grid: jax.Array, cell: jax.Array) -> SimpleNamespace:
        return SimpleNamespace(grid=grid, agent=SimpleNamespace(position=cell))

    def rows(grid: jax.Array, cell: jax.Array) -> jax.Array:
        return words["walk_to"](state(grid, cell), THING)

    def bits(grid: jax.Array, cell: jax.Array) -> jax.Array:
        kinds, target = grid[:, :, 0], words["place_of"](state(grid, cell), THING)
        passable = words["is_walkable"](kinds) | words["is_door"](kinds)
        beside = cell + jnp.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
        return flood(passable, target, cell, beside, words["FLOOD"])[0]

    return size, {"rows": rows, "bits": bits}


def cases(size: int, n: int) -> tuple[jax.Array, jax.Array]:
    """Grids with a thing each, a fifth of their cells wall, and a cell of each."""
    rng = np.random.default_rng(0)
    kinds = np.where(rng.random((n, size, size)) < 0.8, FLOOR, WALL)
    kinds[:, [0, -1]] = kinds[:, :, [0, -1]] = WALL
    places = rng.integers(1, size - 1, (2, n, 2)).astype(np.int32)
    kinds[np.arange(n), places[0, :, 0], places[0, :, 1]] = THING[0]
    return jnp.asarray(np.stack([kinds, np.full_like(kinds, THING[1])], -1).astype(np.uint8)), jnp.asarray(places[1])


def measured(name: str, settings: FloodSettings) -> list[dict[str, Any]]:
    """A row for each form.

    Raises:
        UserError: they do not agree.
    """
    size, functions = forms(name)
    arguments = cases(size, settings.grids)
    rows, compiled = dict[str, dict[str, Any]](), dict[str, Any]()
    for form, function in functions.items():
        shapes = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in arguments]
        tape = trace(lambda *xs, f=function: [f(*xs)], shapes, ["grid", "cell"], Limits())
        lowered, begin = jax.jit(jax.vmap(function)).lower(*arguments), time.process_time()
        compiled[form] = lowered.compile(xla_options("cpu"))
        seconds = time.process_time() - begin
        rows[form] = {"task": name, "form": form, "operations": count(tape), "compile_s": round(seconds, 3)}
    steps = [np.asarray(run(*arguments)) for run in compiled.values()]
    if not all((one == steps[0]).all() for one in steps):
        raise UserError("the floods do not agree")
    times = {form: list[float]() for form in compiled}
    for _ in range(settings.rounds):
        for form, run in compiled.items():
            begin = time.process_time()
            for _ in range(10):
                jax.block_until_ready(run(*arguments))
            times[form].append((time.process_time() - begin) / 10)
    return [row | {"microseconds": round(min(times[form]) * 1e6)} for form, row in rows.items()]


def counted(name: str, settings: FloodSettings) -> list[dict[str, Any]]:
    """A row for each form and number of operations; for a process with the environment of the described device."""
    size, functions = forms(name)
    device, rows = DEVICES["h200"].device(), list[dict[str, Any]]()
    on = jax.sharding.SingleDeviceSharding(device)
    for form, function in functions.items():
        shapes = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in cases(size, 1)]
        step = replay(trace(lambda *xs, f=function: [f(*xs)], shapes, ["grid", "cell"], Limits()))
        given = [jax.ShapeDtypeStruct((settings.grids, *x.shape), x.dtype, sharding=on) for x in shapes]
        for most in settings.as_one:
            unrolling.OPERATIONS = most
            with unrolling.compiling_for("gpu"):
                lowered = jax.jit(jax.vmap(lambda *xs, step=step: step(*xs))).lower(*given)
            begin = time.process_time()
            launches = Module(lowered.compile().as_text() or "").cost().launches
            seconds = round(time.process_time() - begin, 2)
            rows.append({"task": name, "form": form, "as_one": most, "launches": launches, "compile_s": seconds})
    return rows


def in_a_process(settings: FloodSettings, words: list[str]) -> list[dict[str, Any]]:
    """`counted` for both tasks, where XLA's compiler for the device is."""
    env = environment("h200", settings.cuda_site) | {_CHILD: "1"}
    done = subprocess.run([sys.executable, __file__, *words], env=env, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"it could not be compiled: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout)


def measure(args: list[str]) -> None:
    settings = parse(FloodSettings, FloodSettings(), args, "flood.py")
    settings.check()
    names = tuple(SIZES)
    if settings.as_one and _CHILD in os.environ:
        print(json.dumps([row for name in names for row in counted(name, settings)]))
        return
    rows = [row for name in names for row in measured(name, settings)] if not settings.as_one else []
    rows += in_a_process(settings, args) if settings.as_one else []
    for row in rows:
        print(*(f"{key} {value}" for key, value in row.items()), sep=", ")
    save({"machine": machine(), "grids": settings.grids, "rows": rows}, settings.out)


def main(argv: list[str] | None = None) -> int:
    return status_of("flood", lambda: measure(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
