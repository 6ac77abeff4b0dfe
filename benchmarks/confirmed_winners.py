"""What confirmation changes: the winner that the search's own seeds choose beside the one that further seeds choose.

    jaxreward evolve --task panda-tracking --confirm-seeds 3 --final-seeds 5 --seed 0 --out runs/confirmed
    python benchmarks/confirmed_winners.py runs/confirmed/* --out benchmarks/results/confirmed_winners.json

RUN is the folder of a finished search with `--confirm-seeds`, whose log has both: the program with the best score of
the search, which would have been the winner, and the one that was confirmed. The first is trained here on the fresh
seeds that the second was trained on; where both are one program nothing is left to train.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import begun, save, status_of
from benchmarks.machine import machine
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg
from jaxreward.errors import UserError
from jaxreward.evolution.final_evaluation import FIRST_SEED
from jaxreward.evolution.started import started_settings
from jaxreward.operators import REPEATS
from jaxreward.programs import Checker
from jaxreward.records import Result, Score
from jaxreward.reports.run_view import RunView
from jaxreward.runs.malformed import explain_malformed
from jaxreward.search.selection import scored, top
from jaxreward.training import train
from jaxreward.training.plan import curve_points


@dataclass(frozen=True)
class ConfirmedWinnersSettings:
    """Train on fresh seeds what confirmation did not choose."""

    runs: Annotated[tuple[Path, ...], Arg(positional="RUN")] = ()
    """Folders of finished searches with --confirm-seeds."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox. For systems that have none."""
    out: Path | None = None
    """File for the results, written after every run; a run that is in it is not trained again."""


@dataclass(frozen=True)
class Winners:
    """The best by the scores of the search, and the confirmed one with its score on fresh seeds."""

    chosen: Result
    confirmed: Result
    fresh: Score

    @property
    def same(self) -> bool:
        return self.chosen.candidate.source == self.confirmed.candidate.source


def winners(path: Path) -> Winners:
    """Those of the search in `path`.

    Raises:
        UserError: it was not confirmed, or is not finished.
    """
    with explain_malformed(path):
        view = RunView.read(path)
    if not view.started.config.get("confirm_seeds"):
        raise UserError(f"{path} was searched without --confirm-seeds, so there is nothing to compare")
    if view.best is None or view.final is None:
        raise UserError(f"{path} has no winner with a score on fresh seeds: let it finish, with --final-seeds")
    of_search = [r for r in view.results.values() if r.score and r.candidate.operator not in REPEATS]
    return Winners(top(of_search, 1)[0], view.best, view.final)


def fresh_score(path: Path, winner: Result, unsafe_no_sandbox: bool) -> Score:
    """The score of a program on the fresh seeds of the search in `path`, as its final training has them."""
    s = started_settings(path)
    task, steps = s.make_task(), s.final_steps or s.steps
    with Checker(unsafe_no_sandbox=unsafe_no_sandbox) as checker:
        program = checker.load(winner.candidate.source, task)
    trained = train(
        task, [program], s.hyper, seeds=range(FIRST_SEED, FIRST_SEED + s.final_seeds), steps=steps,
        checkpoints=curve_points(task, s.hyper, steps, s.eval_episodes), eval_episodes=s.eval_episodes,
        execution=s.execution(),
    )  # fmt: skip
    return trained.score(0)


def row_of(path: Path, unsafe_no_sandbox: bool = False) -> dict[str, Any]:
    """One search: of both winners the score that it was chosen by, and the one on fresh seeds."""
    found = winners(path)
    chosen = found.fresh if found.same else fresh_score(path, found.chosen, unsafe_no_sandbox)
    config = RunView.read(path).started.config
    names = ("candidates", "seeds", "steps", "confirm_seeds", "final_seeds", "seed")
    return {
        "run": path.name, "task": config.get("task"), **{name: config.get(name) for name in names}, "same": found.same,
        "unconfirmed": {"search": scored(found.chosen).mean, "fresh": chosen.mean, "fresh_se": chosen.se},
        "confirmed": {"search": scored(found.confirmed).mean, "fresh": found.fresh.mean, "fresh_se": found.fresh.se},
    }  # fmt: skip


def sums(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the searches of each task."""
    of_task = defaultdict[str, list[dict[str, Any]]](list)
    for row in rows:
        of_task[row["task"]].append(row)
    return [
        {"task": task, "searches": len(own), "same": sum(row["same"] for row in own)}
        | {
            which: {key: statistics.mean(row[which][key] for row in own) for key in ("search", "fresh")}
            for which in ("unconfirmed", "confirmed")
        }
        for task, own in of_task.items()
    ]


def run(s: ConfirmedWinnersSettings) -> dict[str, Any]:
    """All runs; the file is written after each."""
    if not s.runs:
        raise UserError("say which runs: confirmed_winners.py RUN ... (folders of searches with --confirm-seeds)")
    for path in s.runs:
        winners(path)  # what is wrong is said before anything is trained
    report = begun(s.out, {"benchmark": "confirmed_winners"})
    report = report or {"benchmark": "confirmed_winners", **machine(), "rows": []}
    for path in s.runs:
        if any(row["run"] == path.name for row in report["rows"]):
            continue
        row = row_of(path, s.unsafe_no_sandbox)
        report["rows"].append(row)
        report["tasks"] = sums(report["rows"])
        save(report, s.out)
        before, after = (
            f"{row[which]['search']:.3f}, fresh {row[which]['fresh']:.3f}" for which in ("unconfirmed", "confirmed")
        )
        print(f"{row['run']}: unconfirmed {before}; confirmed {after}{' (the same program)' * row['same']}", flush=True)
    return report


def main(argv: list[str] | None = None) -> int:
    settings = ConfirmedWinnersSettings
    return status_of("confirmed_winners", lambda: run(parse(settings, None, argv, "confirmed_winners.py")))


if __name__ == "__main__":
    sys.exit(main())
