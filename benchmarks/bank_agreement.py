"""By how much programs as data of a bank differ from the same programs as code, on a CPU.

    python benchmarks/bank_agreement.py --out benchmarks/results/bank_agreement.json

Every program is applied to the same transitions of the task: as code of its own, traced for a CPU, and by the bank,
traced as for a GPU and a TPU, whose loops are unrolled. All is compiled and run on this machine's CPU.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.carried import programs_of
from benchmarks.command import save, status_of
from benchmarks.machine import machine
from jaxreward.commands.resolve import parse
from jaxreward.devices import exact
from jaxreward.errors import UserError
from jaxreward.programs.play import sample_transitions
from jaxreward.programs.unrolling import compiling_for
from jaxreward.tasks import make_task
from jaxreward.training.banks import Banks
from jaxreward.training.population import Population


@dataclass(frozen=True)
class AgreementSettings:
    """Compare programs as data of a bank with programs as code."""

    task: str = "xland-easy"
    """Task whose vocabulary the programs are from."""
    candidates: int = 64
    """Programs."""
    transitions: int = 64
    """Transitions of random actions that every program is applied to."""
    programs: Path | None = None
    """Folder that keeps checked programs for the next time."""
    out: Path | None = None
    """File for the results."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if min(self.candidates, self.transitions) < 1:
            raise UserError("--candidates and --transitions are at least 1")


def evaluated(population: Population, transitions: Any, platform: str) -> tuple[list[np.ndarray], float]:
    """Observations, rewards and terms, float32 with leading axes (C, n), of programs that are traced as for
    `platform`; and the seconds to compile them."""

    def all_of(data: Any, views: Any, actions: Any, later: Any) -> Any:
        views, actions, later = (
            jax.tree.map(lambda x: jnp.broadcast_to(x, (len(population), *x.shape)), of)
            for of in (views, actions, later)
        )
        return population.observe(data, views), *population.reward(data, views, actions, later)

    begin = time.perf_counter()
    with compiling_for(platform):
        compiled = jax.jit(exact(all_of)).lower(population.data, *transitions).compile()
    took = time.perf_counter() - begin
    return [np.asarray(x) for x in compiled(population.data, *transitions)], took


def compare(s: AgreementSettings, folder: Path) -> dict[str, Any]:
    task = make_task(s.task)
    programs = programs_of(s.task, s.candidates, folder)
    transitions = sample_transitions(task, s.transitions)
    bank = Banks().of(programs, s.candidates * s.transitions)
    if bank is None:
        raise UserError(f"no program of {s.task} is worth a bank with so many --candidates and --transitions")
    data, found = Population(programs, bank=bank), dict[str, Any]()
    expected, took = evaluated(Population(programs), transitions, "cpu")
    for platform in ("gpu", "tpu"):
        outputs, seconds = evaluated(data, transitions, platform)
        found[platform] = {"compile_s": round(seconds, 2)} | {
            name: {
                "max_difference": float(np.abs(a - b).max()), "equal": float((a == b).mean()),
                "largest": float(np.abs(b).max()),
            }
            for name, a, b in zip(("observations", "rewards", "terms"), outputs, expected, strict=True)
        }  # fmt: skip
    return {"bank_nodes": bank.size, "rows_compile_s": round(took, 2), "bank_as_for": found}


def run(s: AgreementSettings) -> None:
    s.check()
    settings = {key: value for key, value in asdict(s).items() if key not in ("programs", "out")}
    report = {"benchmark": "bank_agreement", **settings, **machine()}
    with tempfile.TemporaryDirectory() as scratch:
        report |= compare(s, s.programs or Path(scratch))
    for platform, found in report["bank_as_for"].items():
        differ = ", ".join(
            f"{name} differ by at most {found[name]['max_difference']:.2g} (equal: {found[name]['equal']:.1%})"
            for name in ("observations", "rewards", "terms")
        )
        print(f"{s.candidates} programs of {s.task}, the bank as for a {platform.upper()}: {differ}")
    save(report, s.out)


def main(argv: list[str] | None = None) -> int:
    return status_of("bank_agreement", lambda: run(parse(AgreementSettings, None, argv, "bank_agreement.py")))


if __name__ == "__main__":
    sys.exit(main())
