"""Files of a run in addition to its log: `best_interface.py` with its provenance, trained policies, pictures."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from jaxreward import files
from jaxreward.config import parse_json
from jaxreward.evolution.generation import Agents
from jaxreward.evolution.results import draw_agents
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.proposers.human.judge import PICTURES
from jaxreward.records import Result, Score
from jaxreward.reports.run_view import RunView
from jaxreward.runs import Progress, Run
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.provenance import Provenance, lineage, versions
from jaxreward.tasks import Task
from jaxreward.training import PPO

POLICY = "best-policy.json"
"""File of a run with the digest of the program that the policy in `checkpoints/best-policy` was trained with."""


def save_best_policy(run: Run, store: Checkpoints, sound: Sequence[Agents], best: Result | None) -> None:
    """Save the best policy of a training, and the digest of its program, if its candidate is better than `best`."""
    if not sound:
        return  # nothing here has a score
    agents = max(sound, key=lambda a: a.trained.score(a.row).merit)
    if best is None or best.score is None or agents.trained.score(agents.row).merit > best.score.merit:
        store.save("best-policy", agents.trained.variables(agents.row, agents.trained.best_seed(agents.row)))
        write_atomic(run.path / POLICY, json.dumps({"digest": agents.trained.programs[agents.row].digest}))


def is_policy_of(view: RunView, winner: Result) -> bool:
    """Whether the best policy of a run is that of its winner: while a generation trains it may be the next one's."""
    try:
        digest = parse_json(files.read_text(view.path / POLICY))["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return view.standing == "finished"  # of an earlier version, which did not say
    return winner.candidate.summary is not None and digest == winner.candidate.summary.digest


def save_for_judges(run: Run, store: Checkpoints, sound: Sequence[Agents], task: Task, ppo: PPO) -> None:
    """Save a policy and pictures of every candidate, for people to compare."""
    for agents in sound:
        policy = agents.trained.variables(agents.row, agents.trained.best_seed(agents.row))
        store.save(f"policy-{agents.candidate.id}", policy)
        draw_agents(task, agents.candidate, agents.trained, agents.row, ppo, run.path / PICTURES)


def save_interface(
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
