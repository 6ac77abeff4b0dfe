"""Searches of several comparisons in one table, where they were run on different days and their folders are gone.

    python benchmarks/joined_comparisons.py FILE.json ... --out benchmarks/results/joined.json

FILE is the `comparison.json` of `jaxreward compare`; of a search that is in several files, the last file counts. As
`jaxreward compare` does, the table has the mean over searches on fresh seeds, and the paired difference to best-of-n on
the same search seeds; besides its p-value by Student's t, corrected for all rows by Holm (1979), and of each strategy
the mean difference over the tasks, which are taken as they are. Budgets are not compared, as `--merge` does with
folders: give files of the same settings.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy import stats

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg
from jaxreward.errors import FileProblem, UnusableFile, UserError
from jaxreward.records import SUCCESS, Measure, Score
from jaxreward.reports.tables import interval_over_searches, mean_over, paired_difference
from jaxreward.reports.timeline import BEST_OF_N

Key = tuple[str, str, str, int]
"""Task, strategy, proposer, search seed."""


@dataclass(frozen=True)
class JoinedComparisonsSettings:
    """Put the searches of several comparisons into one table."""

    files: Annotated[tuple[Path, ...], Arg(positional="FILE")] = ()
    """Files comparison.json."""
    out: Path | None = None
    """File for the rows."""


@dataclass(frozen=True)
class Cell:
    """A finished search: its score on fresh seeds, None where it found nothing, and the file that has it."""

    score: Score | None
    file: Path


def cells_of(paths: Sequence[Path]) -> dict[Key, Cell]:
    """The finished searches of all files, the later ones in place of the earlier.

    Raises:
        UnusableFile: a file that is no comparison.
    """
    found: dict[Key, Cell] = {}
    for path in paths:
        try:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            for cell in cells:
                if cell["finished"]:
                    key = (cell["task"], cell["strategy"], cell["proposer"], cell["seed"])
                    found[key] = Cell(_score(cell["score"]), path)
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror or error}"
            raise UnusableFile(message, path, FileProblem.UNREADABLE) from error
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path} is no comparison.json of jaxreward compare"
            raise UnusableFile(message, path, FileProblem.WRONG_KIND) from error
    return found


def rows_of(cells: Mapping[Key, Cell]) -> list[dict[str, Any]]:
    """A row for each task, strategy and proposer, in the order of the files."""
    rows = []
    for task, strategy, proposer in dict.fromkeys(key[:3] for key in cells):
        mine = {key[3]: cell for key, cell in cells.items() if key[:3] == (task, strategy, proposer)}
        samples = {key[3]: cell for key, cell in cells.items() if key[:3] == (task, BEST_OF_N, proposer)}
        pairs = [(mine[seed].score, samples[seed].score) for seed in sorted(mine.keys() & samples.keys())]
        scores = [mine[seed].score for seed in sorted(mine)]
        measure = next((score.measure for score in scores if score is not None), SUCCESS)
        mean = mean_over(scores, measure)
        delta = paired_difference(pairs, measure) if pairs and strategy != BEST_OF_N else None
        rows.append({
            "task": task, "strategy": strategy, "proposer": proposer, "searches": len(mine),
            "score": mean.mean if mean else None, "interval": interval_over_searches(mean) if mean else None,
            "minus_best_of_n": delta.mean if delta else None, "its_interval": delta.interval if delta else None,
            "pairs": delta.pairs if delta else 0,
            "differences": delta.deltas if delta else (), "measure": measure.label,
            "scores": [s.mean if s else None for s in scores],
            "files": sorted({cell.file.name for cell in mine.values()}),
        })  # fmt: skip
    for row, corrected in zip(rows, holm([_p_value(row["differences"]) for row in rows]), strict=True):
        row["p_holm"] = corrected
    return rows


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p-values corrected for their number, those that are None left out (Holm 1979)."""
    known = sorted((value, k) for k, value in enumerate(values) if value is not None)
    least, found = 0.0, list[float | None]([None] * len(values))
    for rank, (value, k) in enumerate(known):
        least = max(least, min(1.0, value * (len(known) - rank)))
        found[k] = least
    return found


def over_tasks(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of each strategy the mean over tasks of the paired differences to best-of-n, with its 95 % interval over
    searches (Welch-Satterthwaite); of those with two pairs or more on each of at least two tasks of one measure."""
    of = defaultdict[tuple[str, str, str], list[Sequence[float]]](list)
    for row in rows:
        if row["differences"]:
            of[row["strategy"], row["proposer"], row["measure"]].append(row["differences"])
    found = []
    for (strategy, proposer, measure), tasks in of.items():
        if len(tasks) < 2 or min(map(len, tasks)) < 2:
            continue
        parts = [float(np.var(d, ddof=1)) / len(d) for d in tasks]
        mean, error = float(np.mean([np.mean(d) for d in tasks])), math.sqrt(sum(parts)) / len(tasks)
        freedom = sum(parts) ** 2 / max(sum(v * v / (len(d) - 1) for v, d in zip(parts, tasks, strict=True)), 1e-300)
        margin = float(stats.t.ppf(0.975, max(freedom, 1.0))) * error
        found.append({
            "strategy": strategy, "proposer": proposer, "measure": measure, "tasks": len(tasks),
            "minus_best_of_n": mean, "its_interval": [mean - margin, mean + margin],
        })  # fmt: skip
    return found


def _p_value(differences: Sequence[float]) -> float | None:
    """Of a mean of 0, by a t-test; None of fewer than two differences, or of equal ones."""
    if len(differences) < 2 or np.ptp(differences) < 1e-9:
        return None
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return 2.0 * float(stats.t.sf(abs(float(np.mean(differences))) / error, len(differences) - 1))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows in Markdown."""
    columns = ("task", "strategy", "searches", "score", "minus best-of-n, paired, 95 %", "p by Holm")
    lines = ["| " + " | ".join(columns) + " |", "|---|---|--:|--:|--:|--:|"]
    for row in rows:
        score, delta, interval = row["score"], row["minus_best_of_n"], row["its_interval"]
        shown = "-" if delta is None else f"{delta:+.3f}"
        shown += f", {interval[0]:+.3f} to {interval[1]:+.3f}" if interval else ""
        value = "-" if score is None else f"{score:.3f}"
        p = "-" if row["p_holm"] is None else f"{row['p_holm']:.3f}"
        lines.append(f"| {row['task']} | {row['strategy']} | {row['searches']} | {value} | {shown} | {p} |")
    for whole in over_tasks(rows):
        low, high = whole["its_interval"]
        shown = f"{whole['minus_best_of_n']:+.3f}, {low:+.3f} to {high:+.3f}"
        lines.append(f"| mean of {whole['tasks']} tasks | {whole['strategy']} | | | {shown} | |")
    return "\n".join(lines)


def _score(found: Mapping[str, Any] | None) -> Score | None:
    if found is None:
        return None
    measure = Measure.model_validate(found["measure"]) if "measure" in found else SUCCESS
    return Score(mean=found["mean"], se=found["se"], n=found["n"], episodes=found["episodes"], measure=measure)


def run(settings: JoinedComparisonsSettings) -> None:
    if not settings.files:
        raise UserError("give one file comparison.json of jaxreward compare or more")
    rows = rows_of(cells_of(settings.files))
    save({"rows": rows, "over_tasks": over_tasks(rows)}, settings.out)
    print(table(rows))


def main(argv: list[str] | None = None) -> int:
    name = "joined_comparisons"
    return status_of(name, lambda: run(parse(JoinedComparisonsSettings, None, argv, f"{name}.py")))


if __name__ == "__main__":
    sys.exit(main())
