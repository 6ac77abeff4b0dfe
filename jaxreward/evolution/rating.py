"""What a vision model says of the agents of a run: how far they do what the instruction asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile, UserError, why_unreadable
from jaxreward.evolution.evidence import save_evidence
from jaxreward.evolution.filming import policy_of
from jaxreward.evolution.policies import fresh_tag, is_policy_of
from jaxreward.evolution.recheck import checked_again
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.programs import Checker, Program
from jaxreward.proposers.llm.alignment_rater import AlignmentRater
from jaxreward.proposers.llm.film import Film
from jaxreward.records import Candidate, Failure, RatedProgram, Ratings
from jaxreward.reports.run_view import BEST_OF_N, FINAL_BEST, RunView
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.sentences import mention
from jaxreward.tasks import Task
from jaxreward.training.networks import Variables

EXCHANGES = "ratings.jsonl"
"""File with the calls, beside the transcript of the search, whose caps they do not count for."""


@dataclass(frozen=True)
class Agents:
    """The agents of a program of a run: its `name` among the results, and a policy for each of its training seeds, None
    for one that diverged."""

    name: str
    program: Program
    policies: tuple[Variables | None, ...]


def agents_of(view: RunView, settings: EvolveSettings, task: Task, checker: Checker) -> list[Agents]:
    """The agents of a run's final training, the best's first; of a run without one, or of an earlier version, which
    kept no other policies, the one that the search kept of its best.

    Raises:
        UserError: there are none.
    """
    store, found = Checkpoints(view.path / "checkpoints"), list[Agents]()
    best = view.best.candidate.summary if view.best is not None else None
    for name, baseline in view.progress.baselines.items():
        if baseline.score is None or (name == FINAL_BEST and (best is None or best.digest != baseline.digest)):
            continue  # a better one was found since, and not trained again
        tag = fresh_tag(name, baseline.digest, baseline.steps)
        kept = [k for k in range(baseline.score.n) if f"{tag}-{k:03d}" in store.tags()]
        diverged = baseline.feedback.diverged if baseline.feedback is not None else 0
        if len(kept) + diverged < baseline.score.n:
            continue  # of a version that kept none
        program = _program(view, name, task, checker)
        policies = [
            _policy(store, f"{tag}-{k:03d}", task, program, settings) if k in kept else None
            for k in range(baseline.score.n)
        ]
        found.append(Agents(name, program, tuple(policies)))
    lacking = all(agents.name != FINAL_BEST for agents in found)
    if lacking and view.best is not None and is_policy_of(view, view.best) and "best-policy" in store.tags():
        program = _program(view, FINAL_BEST, task, checker)
        found.append(Agents(FINAL_BEST, program, (_policy(store, "best-policy", task, program, settings),)))
    if not found:
        raise UserError(f"{view.path} has no trained agents to rate: let its search finish")
    return sorted(found, key=lambda agents: agents.name != FINAL_BEST)


def _policy(store: Checkpoints, tag: str, task: Task, program: Program, settings: EvolveSettings) -> Variables:
    found = policy_of(store, [tag], task, program, settings.hyper)
    if found is None:
        raise UserError(
            f"the policy in {store.root / tag} cannot be read, so its agent cannot be rated: resume the run with "
            f"another {mention('final_steps')}, which trains it again"
        )
    return found


def _program(view: RunView, name: str, task: Task, checker: Checker) -> Program:
    if name == "sparse":
        return Program.default(task)
    if name == "dense":
        return Program.dense(task)
    if name == FINAL_BEST and view.best is not None:
        return checked_again(checker, view.best.candidate, task, debug=False)
    digest = view.progress.baselines[name].digest
    path = view.path / BEST_OF_N / "programs" / f"{digest}.py"
    try:
        source = files.read_text(path, below=view.path)
    except OSError as error:
        raise UnusableFile(
            f"the program of {name} cannot be read from {path}: {why_unreadable(error)}", path, FileProblem.UNREADABLE
        ) from error
    return checked_again(checker, Candidate(id=name, generation=0, operator="scratch", source=source), task, False)


def film_agents(
    run: Path,
    task: Task,
    settings: EvolveSettings,
    each: Sequence[Agents],
    *,
    episodes: int,
    frames: int,
    progress: Callable[[int, int], Any] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[tuple[str, int], Film]:
    """Films of agents by the name of their program and their seed; their frames are in the folder of the run, and what
    is there already is not filmed again.

    Raises:
        UserError: a machine that cannot draw, a disk that is full, or it was asked to stop.
    """
    found = dict[tuple[str, int], Film]()
    policies = list(_policies(each))
    for done, (agents, seed, policy) in enumerate(policies):
        if should_stop():
            raise UserError("stopped; give the same command again")
        id = f"rated-{agents.name}-{seed:03d}-{_digest(agents.program, policy, episodes, frames)}"
        film = Film.read(run, id)
        if isinstance(film, Failure) or len(film.evidence.episodes) < episodes:
            save_evidence(
                run, id, task, agents.program, policy, settings.hyper, episodes=episodes, frames=frames,
                with_rewards=False,
            )  # fmt: skip
            film = Film.read(run, id)
        if isinstance(film, Failure):
            raise UserError(film.message)
        found[agents.name, seed] = film
        progress(done + 1, len(policies))
    return found


def rated(
    each: Sequence[Agents], films: Mapping[tuple[str, int], Film], rater: AlignmentRater, frames: int,
    note: Callable[[str], None],
) -> Ratings:  # fmt: skip
    """Have the agents rated, each by its films.

    Raises:
        UserError: the model gives no answer, a cap is reached, or it was asked to stop; answers so far are kept.
    """
    answers = rater.rate(list(films.values()))
    kept = "answers so far are kept: give the same command again"
    if (stopped := answers.stopped) is not None:
        raise UserError(f"{stopped.why.marked}; {kept}" if stopped.later else stopped.why)
    if answers.spent is not None:
        raise UserError(f"{answers.spent.reason}; raise it: {kept}")
    if len(answers.of) < len(films):
        raise UserError(f"stopped; {kept}")
    if answers.failures:
        note(f"{len(answers.failures)} answers cannot be used: {answers.failures[0].message}")
    programs = dict[str, RatedProgram]()
    for agents in each:
        seeds = tuple(
            () if policy is None else answers.of[films[agents.name, seed].id]
            for seed, policy in enumerate(agents.policies)
        )
        if any(seeds) and not any(votes for seed in seeds for votes in seed):
            raise UserError(
                f"no answer about the agents of {agents.name} can be used: {answers.failures[0].message}; choose "
                "another model"
            )
        programs[agents.name] = RatedProgram(digest=agents.program.digest, seeds=seeds)
    episodes = max(len(film.evidence.episodes) for film in films.values())
    return Ratings(model=rater.model, votes=rater.votes, episodes=episodes, frames=frames, programs=programs)


def _digest(program: Program, policy: Variables, episodes: int, frames: int) -> str:
    """Of all that a film depends on: the same program may have been trained again, for longer."""
    found = hashlib.sha256(f"{program.digest} {episodes} {frames}".encode())
    for leaf in jax.tree.leaves(policy):
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()[:8]


def _policies(each: Sequence[Agents]) -> Iterator[tuple[Agents, int, Variables]]:
    for agents in each:
        for seed, policy in enumerate(agents.policies):
            if policy is not None:
                yield agents, seed, policy
