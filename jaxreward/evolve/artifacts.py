"""What a run keeps beside its log: `best_interface.py` with where it comes from, trained policies, pictures."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from jaxreward.evolve.generation import Agents
from jaxreward.evolve.results import draw_agents
from jaxreward.evolve.settings import EvolveSettings
from jaxreward.proposers.human.judge import PICTURES
from jaxreward.records import Result, Score
from jaxreward.runs import Progress, Run
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.provenance import Provenance, lineage, versions
from jaxreward.tasks import Task
from jaxreward.training import PPO

POLICY = "best-policy.json"
"""File of a run that says which program the policy in `checkpoints/best-policy` was trained with."""


def keep_best_policy(run: Run, store: Checkpoints, sound: Sequence[Agents], best: Result | None) -> None:
    """Save the best policy of a training if its candidate is better than `best`, and whose it is."""
    if not sound:
        return  # nothing here has a score
    of = max(sound, key=lambda a: a.trained.score(a.row).merit)
    if best is None or best.score is None or of.trained.score(of.row).merit > best.score.merit:
        store.save("best-policy", of.trained.variables(of.row, of.trained.best_seed(of.row)))
        write_atomic(run.path / POLICY, json.dumps({"digest": of.trained.programs[of.row].digest}))


def keep_for_people(run: Run, store: Checkpoints, sound: Sequence[Agents], task: Task, ppo: PPO) -> None:
    """Save a policy of every candidate, and pictures, where people decide later which is the best."""
    for of in sound:
        policy = of.trained.variables(of.row, of.trained.best_seed(of.row))
        store.save(f"policy-{of.candidate.id}", policy)
        draw_agents(task, of.candidate, of.trained, of.row, ppo, run.path / PICTURES)


def keep_interface(
    run: Run, settings: EvolveSettings, progress: Progress[Any], best: Result | None, score: Score | None
) -> None:
    """Write `best_interface.py`, with `score`, if there is one, in place of that of the search."""
    if best is None or best.candidate.summary is None:
        return
    started = progress.started
    provenance = Provenance(
        task=shlex.join((settings.task, *settings.task_arg)),
        digest=best.candidate.summary.digest,
        score=score or best.score,
        lineage=lineage(progress.results, best.candidate.id),
        versions=started.versions if started else versions(),
        command=started.command if started else "",
    )
    run.save_best(best.candidate.source, provenance)
