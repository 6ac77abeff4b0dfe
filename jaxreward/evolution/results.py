"""Results of trained candidates, and pictures of their agents."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaxreward.records import Candidate, Failure, Measure, Result
from jaxreward.reports.films import write_film, write_strip
from jaxreward.runs.disk import make_folder
from jaxreward.tasks import Drawable, Task
from jaxreward.training import PPO, TrainResult
from jaxreward.training.episodes import play

_FOUND = 0.2
"""A success rate above this is more than chance."""


def result_of(candidate: Candidate, trained: TrainResult, row: int, env_steps: int) -> Result:
    """The result of candidate `row` of a training."""
    if trained.stopped[row]:
        return filtered(candidate, trained, row, trained.reasons[row], env_steps)
    feedback = trained.feedback(row)
    if trained.diverged[row].all():
        failure = Failure(
            stage="diverged",
            message="every seed computed something that is not finite while training",
            hint="guard divisions, logarithms, square roots and powers; clip what can grow",
        )
        return Result(candidate=candidate, failure=failure, feedback=feedback, env_steps=env_steps)
    return Result(candidate=candidate, score=trained.score(row), feedback=feedback, env_steps=env_steps)


def filtered(candidate: Candidate, trained: TrainResult, row: int, reason: str, env_steps: int) -> Result:
    """The result of a candidate that a rung, or a separate short training, stopped for this reason."""
    at = int(trained.stopped[row]) or int(trained.steps[-1])
    value, name = float(trained.success[row].mean()), trained.measure.name
    failure = Failure(
        stage="filtered",
        message=f"{name} {value:.3f} after {at:,} steps {reason}",
        hint=_hint(value, trained.measure, name),
    )
    return Result(candidate=candidate, failure=failure, feedback=trained.feedback(row), env_steps=env_steps)


def _hint(value: float, measure: Measure, name: str) -> str:
    if measure.rate and value < _FOUND:
        return "make the goal easier to find: show where it is and reward coming closer to it"
    if measure.rate:
        return "it can be done with this; look for what makes it surer or sooner, others were better at this point"
    return f"show what the {name} depends on, and reward what makes it better from the first steps on"


def draw_agents(task: Task, candidate: Candidate, trained: TrainResult, row: int, ppo: PPO, folder: Path) -> None:
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
