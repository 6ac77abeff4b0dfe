"""What a search finds on tasks without a vocabulary: with the genetic proposer and fragments derived from the task.

    python benchmarks/own_tasks.py --tasks gymnax/MountainCar-v0 jumanji/Maze-v0 brax/halfcheetah \
        --out benchmarks/results/own_tasks.json

Every row is one search by `jaxreward.evolve` with the defaults of the quick preset. The best candidate and the task's
own interface (its raw observation with its sparse, or native, reward) are trained anew on `--final-seeds` fresh seeds;
every candidate of the search is compared with the latter. docs/appendix/benchmarks.md has the results.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scipy.stats import binomtest

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.evolution.search_options import VocabularyOption


@dataclass(frozen=True)
class OwnTasksSettings:
    """Search interfaces of tasks that bring no vocabulary."""

    tasks: tuple[str, ...] = ("gymnax/MountainCar-v0", "jumanji/Maze-v0", "brax/halfcheetah")
    """Tasks by name, or Python files."""
    search_seeds: int = 1
    """Searches of each."""
    candidates: int = 16
    """Candidates of a search."""
    steps: int = 0
    """Environment steps of a seed; 0: those of the quick preset."""
    final_seeds: int = 5
    """Fresh seeds of the best candidate and of the task's own interface."""
    vocabulary: VocabularyOption = "derived"
    """What programs are built from, as `--vocabulary` of `jaxreward evolve`."""
    out: Path | None = None
    """File for the results, written after every search."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if min(self.search_seeds, self.candidates, self.final_seeds) < 1 or self.steps < 0:
            raise UserError("--search-seeds, --candidates and --final-seeds are at least 1, --steps at least 0")


def search(name: str, seed: int, s: OwnTasksSettings, folder: Path) -> dict[str, Any]:
    """One search: the scores of its candidates, of the best and of the task's own interface."""
    import jaxreward as jr

    begin = time.perf_counter()
    budget: dict[str, Any] = {"steps": s.steps} if s.steps else {}
    run = jr.evolve(
        name, candidates=s.candidates, seed=seed, final_seeds=s.final_seeds, vocabulary=s.vocabulary, out=folder,
        baselines=("sparse",), **budget,
    )  # fmt: skip
    own, best, measure = run.baselines["sparse"], run.best, run.view.measure
    values = [value for value in run.table()[measure.name] if value is not None]
    row: dict[str, Any] = {
        "task": name, "seed": seed, "measure": measure.label, "reason": run.reason,
        "wall_s": time.perf_counter() - begin,
        "candidates": values, "own": own and own.model_dump(mode="json"), "program": best and best.source,
        "best": best and best.score and best.score.model_dump(mode="json"),
    }  # fmt: skip
    if own is not None and values:
        wins = sum(measure.oriented(value) > own.merit for value in values)
        interval = binomtest(wins, len(values)).proportion_ci(method="wilson")
        row["better"] = {"share": wins / len(values), "low": float(interval.low), "high": float(interval.high)}
        found = f"{best.score.mean:.4g} ± {best.score.se:.2g}" if best and best.score else "nothing"
        print(
            f"{name}, seed {seed}: found {found}, own interface {own.mean:.4g} ± {own.se:.2g}, {wins} of {len(values)} "
            f"candidates are better, {row['wall_s']:.0f} s", flush=True,
        )  # fmt: skip
    return row


def run(s: OwnTasksSettings) -> dict[str, Any]:
    """All searches; the file is written after each."""
    from benchmarks.machine import machine

    s.check()
    report: dict[str, Any] = {"benchmark": "own_tasks", **machine(), "final_seeds": s.final_seeds, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        for name in s.tasks:
            for seed in range(s.search_seeds):
                report["rows"].append(search(name, seed, s, Path(folder)))
                save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("own_tasks", lambda: run(parse(OwnTasksSettings, None, argv, "own_tasks.py")))


if __name__ == "__main__":
    sys.exit(main())
