"""Files of a run in addition to its log: `best_interface.py` with its provenance, trained policies, pictures."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward import files
from jaxreward.config import parse_json
from jaxreward.evolution.evidence import save_evidence
from jaxreward.evolution.filming import policy_of
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.function_source.scopes import bound_in
from jaxreward.function_source.statements import closure, split
from jaxreward.objectives.training.generation import Agents
from jaxreward.operators import REPEATS
from jaxreward.programs import Program
from jaxreward.programs.entries import DEBUG
from jaxreward.proposers.human.people import PICTURES
from jaxreward.proposers.judging import AgentJudge
from jaxreward.proposers.replies.source import without
from jaxreward.records import Candidate, Result, Score
from jaxreward.reports.films import write_film, write_strip
from jaxreward.reports.run_view import RunView
from jaxreward.runs import Progress, Run
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.disk import make_folder, write_atomic
from jaxreward.runs.provenance import Provenance, lineage, versions
from jaxreward.search import State
from jaxreward.tasks import Drawable, Task
from jaxreward.training import Learner, TrainResult
from jaxreward.training.episodes import play
from jaxreward.training.networks import Variables

POLICY = "best-policy.json"
"""File of a run with the digest of the program that the policy in `checkpoints/best-policy` was trained with."""


def save_best_policy(run: Run, store: Checkpoints, sound: Sequence[Agents], best: Result | None) -> None:
    """Save the best policy of a training, and the digest of its program, if its candidate is better than `best`."""
    if not sound:
        return  # nothing here has a score
    agents = max(sound, key=lambda a: a.trained.score(a.row).merit)
    if best is None or best.score is None or agents.trained.score(agents.row).merit > best.score.merit:
        save_policy(run, store, agents.trained, agents.row)


def comparable(best: Result | None, candidates: Sequence[Candidate], state: State[Any]) -> Result | None:
    """The best so far by scores that those of `candidates` can be compared with: programs that are scored again on
    fresh seeds have them by these."""
    if state.confirmation is None or any(candidate.operator not in REPEATS for candidate in candidates):
        return best
    return state.confirmation.leader


def save_policy(run: Run, store: Checkpoints, trained: TrainResult, row: int) -> None:
    """Save the policy of the best seed of a program that was trained, and the digest of the program."""
    store.save("best-policy", trained.variables(row, trained.best_seed(row)))
    write_atomic(run.path / POLICY, json.dumps({"digest": trained.programs[row].digest}))


def is_policy_of(view: RunView, winner: Result) -> bool:
    """Whether the best policy of a run is that of its winner: while a generation trains it may be the next one's."""
    try:
        digest = parse_json(files.read_text(view.path / POLICY))["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return view.standing == "finished"  # of an earlier version, which did not say
    return winner.candidate.summary is not None and digest == winner.candidate.summary.digest


def save_agents(
    run: Run,
    store: Checkpoints,
    sound: Sequence[Agents],
    task: Task,
    settings: EvolveSettings,
    judge: AgentJudge | None,
) -> None:
    """Save a policy of every candidate, since a judge says later which one is the best, and what the judge looks at."""
    for agents in sound:
        row, trained = agents.row, agents.trained
        policy = trained.variables(row, trained.best_seed(row))
        store.save(f"policy-{agents.candidate.id}", policy)
        if judge is not None and judge.films:
            draw_agents(task, agents.candidate, trained, row, settings.hyper, run.path / PICTURES)
        elif judge is not None and settings.frames:
            save_evidence(
                run.path, agents.candidate, task, trained.programs[row], policy, settings.hyper,
                episodes=settings.llm.judge_episodes, frames=settings.frames,
            )  # fmt: skip


def policy_of_parent(
    store: Checkpoints, candidates: Sequence[Candidate], task: Task, programs: Sequence[Program], ppo: Learner
) -> Variables | None:
    """The policy of the one program that all candidates were made from; None where there is no such program, or no
    policy of it."""
    parents = {candidate.parents[:1] for candidate in candidates}
    first = next(iter(parents), ())
    if len(parents) != 1 or not first:
        return None
    return policy_of(store, [f"policy-{first[0]}"], task, programs[0], ppo)


def keep_policy_of(run: Run, store: Checkpoints, best: Result | None) -> None:
    """Make the policy that `save_agents` saved of the best candidate that of the run."""
    if best is None or best.candidate.summary is None:
        return
    text, path = json.dumps({"digest": best.candidate.summary.digest}), run.path / POLICY
    if not (files.is_there(path) and files.read_text(path) == text) and store.copy(
        f"policy-{best.candidate.id}", "best-policy"
    ):
        write_atomic(path, text)


def draw_agents(task: Task, candidate: Candidate, trained: TrainResult, row: int, ppo: Learner, folder: Path) -> None:
    """A film and a strip, `<id>.gif` and `<id>.png`, of a candidate that was trained to the end.

    `folder` lies in that of a run. All candidates play the same episodes. The task must be `Drawable`.
    """
    assert isinstance(task, Drawable)
    make_folder(folder, below=folder.parent)
    seed = int(np.flatnonzero(~trained.diverged[row])[0])
    episodes = play(task, trained.programs[row], trained.variables(row, seed), ppo)
    frames = [[task.draw(episode.state(t)) for t in range(episode.length + 1)] for episode in episodes]
    write_film(folder / f"{candidate.id}.gif", frames, below=folder.parent)
    write_strip(folder / f"{candidate.id}.png", frames, below=folder.parent)


def save_interface(
    run: Run, settings: EvolveSettings, progress: Progress[Any], best: Result | None, score: Score | None
) -> None:
    """Write `best_interface.py`, with `score`, if there is one, in place of that of the search.

    Of a search on demonstrations it has neither `debug` nor what that alone needs: they have no part in the reward.
    """
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
    source = best.candidate.source
    run.save_best(without_debug(source) if settings.objective == "demonstrations" else source, provenance)


def without_debug(source: str) -> str:
    """A program without its `debug`, and without the functions and constants that this alone reads.

    One that cannot be taken apart is returned as it is.
    """
    try:
        tree, statements = ast.parse(source), split(source)
        debug = closure([DEBUG], statements)
        rest = [s for s in statements if s not in debug]
        kept = {
            name for s in closure([name for s in rest for name in (*s.binds, *s.needs)], statements) for name in s.binds
        }
    except (SyntaxError, ValueError, RecursionError):
        return source
    gone = {name for s in debug if not s.is_import for name in s.binds} - kept
    definitions = (ast.FunctionDef, ast.Assign, ast.AnnAssign)
    return without(source, [n for n in tree.body if isinstance(n, definitions) and _binds(n) and _binds(n) <= gone])


def _binds(node: ast.stmt) -> set[str]:
    return set(bound_in(node))
