"""Which programs successive halving would have dropped, in searches that trained all of theirs to the end.

    python benchmarks/dropped_winners.py runs/hard/*/limen-genetic-* --out benchmarks/results/dropped_winners.json

At each point of the curves the better half of a generation stays, rounded up (`--halving`, Jamieson and Talwalkar 2016,
"Non-stochastic best arm identification"). Counted are the winners of the searches, and all programs that end above
`--solved`, that would have been in the other half of those with a score. RUN is the folder of a search for a success
rate, finished or not, without rungs.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg
from jaxreward.errors import UserError
from jaxreward.records import Result
from jaxreward.reports.run_view import RunView
from jaxreward.runs.malformed import explain_malformed
from jaxreward.runs.provenance import commit
from jaxreward.search.selection import scored, top


@dataclass(frozen=True)
class DroppedWinnersSettings:
    """Count the programs that halving would have dropped."""

    runs: Annotated[tuple[Path, ...], Arg(positional="RUN")] = ()
    """Folders of searches."""
    solved: float = 0.5
    """Success rate above which a program counts."""
    out: Path | None = None
    """File for the results."""


def curve(result: Result) -> Sequence[float]:
    """Success at the points of a training; empty where there was none."""
    return result.feedback.success if result.feedback is not None and result.score is not None else ()


def dropped(generation: Sequence[Result], point: int) -> set[str]:
    """Ids of the worse half of those that train side by side, at a point of their curves; of equal ones the earlier
    stays."""
    order = sorted(generation, key=lambda result: -curve(result)[point])
    return {result.candidate.id for result in order[(len(order) + 1) // 2 :]}


def counts(results: Iterable[Result], solved: float) -> list[dict[str, Any]]:
    """A row for each point of the curves but the last: its steps, whether the winner would have been dropped, and how
    many of the programs that end above `solved`."""
    generations = defaultdict[int, list[Result]](list)
    for result in results:
        if len(curve(result)) > 1:
            generations[result.candidate.generation].append(result)
    trained = [result for generation in generations.values() for result in generation]
    if not trained:
        raise UserError("no program of the run has a curve of more than one point")
    (best,) = top(trained, 1)
    above = {result.candidate.id for result in trained if scored(result).mean > solved}
    rows, points = [], min(len(curve(result)) for result in trained)
    for point, steps in enumerate(best.feedback.steps[: points - 1] if best.feedback is not None else ()):
        gone = {id for generation in generations.values() for id in dropped(generation, point)}
        rows.append({
            "steps": steps, "winner_dropped": best.candidate.id in gone, "solved": len(above),
            "solved_dropped": len(gone & above),
        })  # fmt: skip
    return rows


def run(s: DroppedWinnersSettings) -> dict[str, Any]:
    """All runs, and their sums by task and point."""
    if not s.runs:
        raise UserError("say which runs: dropped_winners.py RUN ... (folders of searches)")
    found = []
    for path in s.runs:
        with explain_malformed(path):
            view = RunView.read(path)
        cut = [name for name in ("halving", "filter_steps", "prune") if view.started.config.get(name)]
        if cut or not view.measure.rate:
            why = f"it was searched with {cut[0]}" if cut else f"its metric is {view.measure.label}"
            raise UserError(f"{path}: only searches for a success rate without rungs can be counted, and {why}")
        try:
            rows = counts(view.results.values(), s.solved)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
        found.append({"run": path.name, "task": view.started.task, "rows": rows})
    sums = defaultdict[tuple[str, int], list[dict[str, Any]]](list)
    for one in found:
        for row in one["rows"]:
            sums[one["task"], row["steps"]].append(row)
    points = [{
        "task": task, "steps": steps, "searches": len(rows), "winners_dropped": sum(r["winner_dropped"] for r in rows),
        "solved": sum(r["solved"] for r in rows), "solved_dropped": sum(r["solved_dropped"] for r in rows),
    } for (task, steps), rows in sums.items()]  # fmt: skip
    for p in points:
        winners, solved = (
            f"{p[f'{of}_dropped']} of {p[n]}" for of, n in (("winners", "searches"), ("solved", "solved"))
        )
        print(f"{p['task']}, half kept after {p['steps']:,} steps: {winners} winners and {solved} programs above "
              f"{s.solved:g} dropped")  # fmt: skip
    report = {
        "benchmark": "dropped_winners",
        "commit": commit() or "unknown",
        "solved_above": s.solved,
        "points": points,
        "runs": found,
    }
    save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("dropped_winners", lambda: run(parse(DroppedWinnersSettings, None, argv, "dropped_winners.py")))


if __name__ == "__main__":
    sys.exit(main())
