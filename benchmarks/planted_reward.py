"""A misaligned reward at the start of a search: which program is chosen, and what the next iterations make of it.

    python benchmarks/planted_reward.py --out benchmarks/results/planted_reward.json

The first iteration is of rewards that pay the robot of `door-open` for its way through the doorway and, with weights
that hardly count, for everything else that the instruction asks for. The genetic proposer makes the iterations that
follow. One search goes by what a judge, the metrics of the subtasks, saw of the agents; the other by success alone.
The planted reward and what each search chose are then trained from scratch on fresh seeds.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import jaxreward as jr
from benchmarks.command import begun, save, status_of
from benchmarks.machine import machine
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.evolution.final_evaluation import FIRST_SEED
from jaxreward.programs import Checker
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import Gene, Genome, write
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.records import Proposal, Request, Result, Watched
from jaxreward.reports.run_view import RunView
from jaxreward.reports.tables import score_json
from jaxreward.reports.watched import watched_of
from jaxreward.search.selection import merit, top
from jaxreward.tasks import make_task

TASK = "door-open"
OBSERVATION = Path(__file__).resolve().parents[1] / "interfaces" / "door_open" / "expert.py"
SMALL = 0.001
PLANTED = {
    "hand": {"hands_near": SMALL}, "open": {"is_ajar": SMALL}, "go": {"passing": 20.0, "past_wall": 1.0},
    "clear": {"trunk_cost": SMALL}, "gently": {"action_cost": SMALL},
}  # fmt: skip
"""Weights of fragments of the task's vocabulary, by the subtask that they pay for."""
GOES_BY = {"what was seen": True, "success": False}
"""What the searches choose by, with the value of the option `watch` of strategy `rda`."""

HARDLY = 0.5
"""Of a subtask with a lower score it is kept what the judge said."""


@dataclass(frozen=True)
class PlantedRewardSettings:
    """Plant a misaligned reward, and go on from it by what was seen and by success."""

    iterations: int = 3
    """Iterations of each search, the planted one among them."""
    samples: int = 4
    """Programs of an iteration."""
    steps: int = 300_000
    """Environment steps of every training."""
    seeds: int = 5
    """Fresh seeds of the training at the end."""
    searches: int = 3
    """Pairs of searches, with the seeds 0, 1 and so on."""
    runs: Path = Path("runs/planted")
    """Folder of the searches; those that are there go on."""
    out: Path | None = None
    """File for the results, written after every pair; a pair that is in it is not searched again."""


class Planted(GeneticProposer):
    """Answers the requests of the first iteration with the planted reward, scaled so that no two are equal."""

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        if request.operator != "compose":
            return super().propose(request, rng)
        position = int(request.id.rpartition("-")[2])
        source = write(planted(self, 1.0 + 0.25 * position, rng))
        return Proposal(request_id=request.id, source=source, proposer=self.name)


def planted(proposer: GeneticProposer, scale: float, rng: np.random.Generator) -> Genome:
    """The planted reward, times `scale`, as a genome that can be bred from."""
    weights = {name: scale * weight for parts in PLANTED.values() for name, weight in parts.items()}
    terms = tuple((name, subtask) for subtask, parts in PLANTED.items() for name in parts)
    genome = Genome().with_half("reward", ())
    variation = Variation(proposer.lexicon, rng, ("reward",))
    for name in weights:
        genome = variation.add(genome, "reward", proposer.lexicon.fragments[name])
    return replace(genome.with_half("reward", tuple(Gene(*pair) for pair in weights.items())), groups=terms)


def searched(s: PlantedRewardSettings, goes_by: str, seed: int) -> RunView:
    """A finished search that goes by what was seen, or by success."""
    found = jr.evolve(
        TASK, strategy="rda", proposer=Planted, observation=OBSERVATION, evolve="reward",
        option={"samples": s.samples, "watch": GOES_BY[goes_by]}, candidates=s.samples * s.iterations,
        generation=s.samples, steps=s.steps, final_seeds=0, baselines=(), seed=seed, out=s.runs,
        name=f"{goes_by.replace(' ', '-')}-{seed}",
    )  # fmt: skip
    return RunView.read(found.path)


def chosen(view: RunView, results: list[Result], goes_by: str) -> Result:
    """The program that a search chooses of `results`."""
    if goes_by == "success":
        return top(results, 1)[0]
    return max(results, key=lambda result: (_seen(view, result).score, *merit(result)))


def iterations(s: PlantedRewardSettings, view: RunView, goes_by: str) -> list[dict[str, Any]]:
    """The program that the search had chosen at the end of each iteration, of `samples` programs with a score: its
    success, its alignment, how far the subtasks were done, by the training of the search, and what the judge said of
    those that were hardly done.

    Raises:
        UserError: the search ended before its last iteration did.
    """
    results = [r for r in view.results.values() if r.score is not None]
    if len(results) < s.samples * s.iterations:
        raise UserError(f"{view.path} ended after {len(results)} of {s.samples * s.iterations} programs")
    found = []
    for end in range(s.samples, len(results) + 1, s.samples):
        best = chosen(view, results[:end], goes_by)
        feedback = best.feedback
        assert feedback is not None and feedback.alignment is not None and best.score is not None
        seen = _seen(view, best) if goes_by != "success" else None
        found.append({
            "trained": end, "program": best.candidate.id, "success": best.score.mean,
            "alignment": feedback.alignment.mean, "subtasks": feedback.extra_metrics,
            "said": {n: seen.reasons(n) for n, score in seen.scores().items() if score < HARDLY} if seen else {},
        })  # fmt: skip
    return found


def _seen(view: RunView, result: Result) -> Watched:
    seen = watched_of(result.candidate.id, view.results.values())
    assert seen is not None
    return seen


def _whole(view: RunView, id: str) -> str:
    """The source of a candidate with the observation that the search was given."""
    summary = view.results[id].candidate.summary
    assert summary is not None
    return (view.path / "programs" / f"{summary.digest}.py").read_text(encoding="utf-8")


def trained_afresh(s: PlantedRewardSettings, sources: list[str]) -> dict[str, dict[str, Any]]:
    """The programs trained from scratch on fresh seeds, by their sources."""
    task = make_task(TASK)
    with Checker() as checker:
        programs = [checker.load(source, task) for source in sources]
    result = jr.train(task, programs, seeds=range(FIRST_SEED, FIRST_SEED + s.seeds), steps=s.steps)
    rows = dict[str, dict[str, Any]]()
    for row, source in enumerate(sources):
        alignment = result.alignment(row)
        assert alignment is not None
        rows[source] = {
            "score": score_json(result.score(row)), "alignment": score_json(alignment),
            "subtasks": {metric: float(result.extra(metric)[row].mean()) for metric in result.subtask_metrics},
        }  # fmt: skip
    return rows


def pair(s: PlantedRewardSettings, seed: int) -> dict[str, Any]:
    """Both searches of a seed, then the training of what was planted and of what they chose."""
    searches, sources = dict[str, Any](), dict[str, str]()
    for goes_by in GOES_BY:
        view = searched(s, goes_by, seed)
        searches[goes_by] = found = iterations(s, view, goes_by)
        for when, iteration in (("planted", found[0]), ("chosen", found[-1])):
            sources[f"{when}, by {goes_by}"] = _whole(view, iteration["program"])
        for row in found:
            print(f"seed {seed}, {goes_by}, {row['trained']} trained: success {row['success']:.3f}, alignment "
                  f"{row['alignment']:.3f}, {row['program']}", flush=True)  # fmt: skip
    trained = trained_afresh(s, list(dict.fromkeys(sources.values())))
    return {"seed": seed, "searches": searches, "afresh": {name: trained[x] for name, x in sources.items()}}


def means(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the pairs: of each iteration, and of the training afresh."""
    of = lambda rows: {key: statistics.mean(row[key] for row in rows) for key in ("success", "alignment")}  # noqa: E731
    fresh = lambda row: {"success": row["score"]["mean"], "alignment": row["alignment"]["mean"]}  # noqa: E731
    return {
        "searches": {
            goes_by: [of(rows) for rows in zip(*(pair["searches"][goes_by] for pair in pairs), strict=True)]
            for goes_by in GOES_BY
        },
        "afresh": {name: of([fresh(pair["afresh"][name]) for pair in pairs]) for name in pairs[0]["afresh"]},
    }


def run(s: PlantedRewardSettings) -> dict[str, Any]:
    """All pairs of searches."""
    how = {"benchmark": "planted_reward", "task": TASK, "iterations": s.iterations, "samples": s.samples,
           "steps": s.steps, "seeds": s.seeds}  # fmt: skip
    report = begun(s.out, how) or {**how, **machine(), "pairs": []}
    for seed in range(s.searches):
        if all(row["seed"] != seed for row in report["pairs"]):
            report["pairs"].append(row := pair(s, seed))
            report["means"] = means(report["pairs"])
            save(report, s.out)
            for name, one in row["afresh"].items():
                print(f"seed {seed}, {name}, trained afresh: success {one['score']['mean']:.3f}, alignment "
                      f"{one['alignment']['mean']:.3f}", flush=True)  # fmt: skip
    return report


def main(argv: list[str] | None = None) -> int:
    settings = PlantedRewardSettings
    return status_of("planted_reward", lambda: run(parse(settings, None, argv, "planted_reward.py")))


if __name__ == "__main__":
    sys.exit(main())
