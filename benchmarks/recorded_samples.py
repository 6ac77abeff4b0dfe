"""What a model of the scores would have found among programs from scratch that searches have trained already.

    python benchmarks/recorded_samples.py runs/ladder/*/best-of-n-* --out benchmarks/results/recorded_samples.json

The programs from scratch of all runs on a task are one pool. From it `--candidates` are drawn, `--generation` at a
time, at random or, from the second generation on, each as the best of `--draws` random ones by the genetic proposer's
model of the scores so far (`--surrogate`). Compared is the best score of each draw, a mean over `--repeats` of them.
Nothing is trained. RUN is the folder of a search by the genetic proposer for a success rate.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds
from jaxreward.errors import UserError
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import readable
from jaxreward.proposers.genetic.surrogate import Surrogate, features
from jaxreward.reports.run_view import RunView
from jaxreward.runs.malformed import explain_malformed
from jaxreward.runs.provenance import commit
from jaxreward.tasks import card, make_task


@dataclass(frozen=True)
class RecordedSamplesSettings:
    """Choose among programs that are trained already."""

    runs: Annotated[tuple[Path, ...], Arg(positional="RUN")] = ()
    """Folders of searches."""
    candidates: Annotated[int, Arg(least=1)] = 40
    """Programs of each draw."""
    generation: Annotated[int, Arg(least=1)] = 8
    """Programs that are chosen by the same scores."""
    draws: Annotated[int, Arg(least=2)] = 32
    """Programs that each is the best of."""
    repeats: Annotated[int, Arg(least=1)] = 200
    """Draws, of which means are taken."""
    out: Path | None = None
    """File for the results."""


class Sample(NamedTuple):
    """A program by what it is made of, and its score."""

    made_of: dict[str, float]
    score: float


def drawn(pool: Sequence[Sample], s: RecordedSamplesSettings, model: bool, rng: np.random.Generator) -> list[float]:
    """Scores of `candidates` of the pool in the order in which they are chosen, by the model or at random."""
    left = [pool[int(k)] for k in rng.permutation(len(pool))]
    chosen = list[Sample]()
    while len(chosen) < s.candidates:
        scores = [(sample.score,) for sample in chosen]
        found = Surrogate.fitted([sample.made_of for sample in chosen], scores) if model else None
        for _ in range(min(s.generation, s.candidates - len(chosen))):
            options = rng.choice(len(left), min(s.draws, len(left)), replace=False) if found is not None else [0]
            best = 0 if found is None else int(np.argmax(found.expected([left[int(k)].made_of for k in options])))
            chosen.append(left.pop(int(options[best])))
    return [sample.score for sample in chosen]


def compared(pool: Sequence[Sample], s: RecordedSamplesSettings) -> dict[str, float]:
    """Means over `repeats`: the best score, and the mean score after the first generation, at random and by the
    model."""
    row = dict[str, float]()
    for name, model in (("at random", False), ("by the model", True)):
        all_scores = [drawn(pool, s, model, np.random.default_rng(k)) for k in range(s.repeats)]
        row[f"best {name}"] = round(float(np.mean([max(scores) for scores in all_scores])), 4)
        later = [np.mean(scores[s.generation :]) for scores in all_scores if len(scores) > s.generation]
        row[f"mean {name}"] = round(float(np.mean(later)), 4) if later else float("nan")
    return row


def pools(paths: Sequence[Path]) -> dict[str, list[Sample]]:
    """The programs from scratch of all runs by task."""
    found, blocks = defaultdict[str, list[Sample]](list), dict[str, Any]()
    for path in paths:
        with explain_malformed(path):
            view = RunView.read(path)
        if view.started.config.get("proposer") != "genetic" or not view.measure.rate:
            raise UserError(f"{path}: only searches for a success rate by the genetic proposer have what this needs")
        task = view.started.task
        if task not in blocks:
            blocks[task] = GeneticProposer(card(make_task(task))).blocks
        for result in view.results.values():
            genome = readable(result.candidate.source) if result.candidate.operator == "scratch" else None
            if genome is not None and result.score is not None:
                found[task].append(Sample(features(genome, blocks[task]), result.score.mean))
    return found


def run(s: RecordedSamplesSettings) -> dict[str, Any]:
    """A row for every task."""
    check_bounds(s)
    if not s.runs:
        raise UserError("say which runs: recorded_samples.py RUN ... (folders of searches)")
    rows = list[dict[str, Any]]()
    for task, pool in pools(s.runs).items():
        if len(pool) < s.candidates:
            raise UserError(f"{task} has {len(pool)} programs from scratch, fewer than --candidates {s.candidates}")
        rows.append({"task": task, "programs": len(pool), **compared(pool, s)})
        print(", ".join(f"{name} {value}" for name, value in rows[-1].items()))
    settings = {name: getattr(s, name) for name in ("candidates", "generation", "draws", "repeats")}
    report = {"benchmark": "recorded_samples", "commit": commit() or "unknown", **settings, "rows": rows}
    save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("recorded_samples", lambda: run(parse(RecordedSamplesSettings, None, argv, "recorded_samples.py")))


if __name__ == "__main__":
    sys.exit(main())
