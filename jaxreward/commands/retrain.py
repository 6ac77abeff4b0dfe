"""Training given interfaces over fresh seeds: `jaxreward train`, the paper's final protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from jaxreward.config import Arg, check_bounds
from jaxreward.errors import UserError
from jaxreward.evolve.settings import TrainingOptions
from jaxreward.evolve.task_check import require_vocabulary
from jaxreward.programs import Checker, Program
from jaxreward.programs.checker import read_program
from jaxreward.reports.tables import score_json
from jaxreward.tasks import Task, make_task_of
from jaxreward.training import PPO, Progress, TrainResult, train
from jaxreward.training.plan import EVAL_EPISODES


@dataclass(frozen=True)
class TrainSettings(TrainingOptions):
    """Train agents from scratch with given interfaces, side by side, and compare them."""

    task: str = "xland-easy"
    """What to solve (`jaxreward tasks`). Also xland/<environment>/<ruleset>, or a Python file, which is executed."""
    interfaces: Annotated[tuple[Path, ...], Arg(adds=True)] = ()
    """Program files; none: the task's own interface."""
    seeds: Annotated[int, Arg(least=1)] = 10
    """Training seeds of each interface."""
    first_seed: Annotated[int, Arg(least=0)] = 1000
    """The first of them. Searches use seeds from 0, so these are fresh."""
    steps: Annotated[int, Arg(least=1)] = 1_000_000
    """Environment steps of each seed."""
    checkpoints: Annotated[int, Arg(least=1)] = 20
    """Points of the learning curves."""
    eval_episodes: Annotated[int, Arg(least=1)] = EVAL_EPISODES
    """Held-out episodes of each seed. They are played at the end."""
    ppo: PPO = field(default_factory=PPO)
    """The learner."""
    diagnose: bool = False
    """Print curves, reward terms and warnings of each."""
    plot: Path | None = None
    """Draw the learning curves: .png or .svg."""

    def make_task(self) -> Task:
        """The task with its options."""
        return make_task_of(self.task, self.task_arg)

    def check(self) -> None:
        """Raise a UserError for the first setting that cannot be."""
        check_bounds(self)
        if self.plot is not None and self.plot.suffix not in (".png", ".svg"):
            raise UserError(f"--plot {self.plot} must end in .png or .svg")
        for path in self.interfaces:
            if not path.is_file():
                raise UserError(f"there is no interface file {path}")
        self.ppo.check()
        self.execution().check(self.ppo)


@dataclass(frozen=True)
class Retrained:
    """Names of the interfaces, in order, and what training them gave."""

    names: tuple[str, ...]
    result: TrainResult

    def rows(self) -> list[dict[str, Any]]:
        """One JSON object per interface."""
        return [
            {
                "interface": name,
                "digest": self.result.programs[row].digest,
                "score": score_json(self.result.score(row)),
                "seed_success": self.result.success[row].tolist(),
                "curve": {
                    "steps": self.result.steps.tolist(),
                    "success": json_curve(self.result.success_curve[row]),
                    "beside": {
                        name: json_curve(self.result.extra_curve(name)[row]) for name in self.result.extra_metrics
                    },
                },
                "beside": {name: self.result.extra(name)[row].tolist() for name in self.result.extra_metrics},
                "diverged": int(self.result.diverged[row].sum()),
                "notices": [n.model_dump() for n in self.result.feedback(row).notices],
            }
            for row, name in enumerate(self.names)
        ]


def json_curve(curve: np.ndarray) -> list[list[float | None]]:
    """Curves (S, P) as lists, None where a point was not reached."""
    return [[float(v) if np.isfinite(v) else None for v in row] for row in curve]


def retrain(settings: TrainSettings, progress: Any = None) -> Retrained:
    """Check and train the interfaces of `settings`.

    Raises:
        UserError: settings that cannot be, or an interface that does not pass its check.
    """
    settings.check()
    task = settings.make_task()
    names: list[str] = []
    programs: list[Program] = []
    with Checker(unsafe_no_sandbox=settings.unsafe_no_sandbox) as checker:
        require_vocabulary(task, checker=checker)
        sources = [read_program(path) for path in settings.interfaces]
        for path, (verdict, program) in zip(settings.interfaces, checker.check_many(sources, task), strict=True):
            if program is None:
                raise UserError(f"{path} is not a program for {task.name}: {verdict.failure}")
            names.append(f"{path.parent.name}/{path.name}" if path.parent.name else path.name)
            programs.append(program)
    if not programs:
        names, programs = ["default observation, sparse reward"], [Program.default(task)]

    def report(p: Progress) -> None:
        if progress is not None:
            progress("training", p)

    result = train(
        task, programs, settings.ppo,
        seeds=range(settings.first_seed, settings.first_seed + settings.seeds),
        steps=settings.steps, checkpoints=settings.checkpoints, eval_episodes=settings.eval_episodes,
        execution=settings.execution(), progress=report,
    )  # fmt: skip
    return Retrained(tuple(names), result)
