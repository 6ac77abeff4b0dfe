"""`jaxreward train`: given interfaces, trained over fresh seeds and compared."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from rich.console import Console

from jaxreward.commands.estimate import duration, shape_text
from jaxreward.commands.evolve import MACHINE
from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Given, Resolved, Source
from jaxreward.commands.summary import made_on
from jaxreward.config import Arg, check_bounds
from jaxreward.demonstrations import Positives, Trajectories, joined, load_trajectories
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile, UserError
from jaxreward.evolution.costs import cost_s
from jaxreward.evolution.learner_options import check_learner
from jaxreward.evolution.presets import preset, quick_learner, quick_steps
from jaxreward.evolution.search_options import TrainingOptions
from jaxreward.evolution.settings import plain
from jaxreward.evolution.task_check import require_vocabulary
from jaxreward.extras import require
from jaxreward.formatting import seeds_text
from jaxreward.programs import Checker, Program, Spec
from jaxreward.programs.checker import read_program
from jaxreward.reports.live import Live
from jaxreward.reports.plots import learning_curves
from jaxreward.reports.tables import alignment_text, diagnosis, figure, score_json, score_table, task_title
from jaxreward.runs.disk import check_target
from jaxreward.sentences import mention
from jaxreward.tasks import Task, has_real_actions, make_task_of
from jaxreward.training import Imitation, TrainResult, train
from jaxreward.training.learners import for_imitation

ImitateOption = Literal["none", "gail", "airl", "bc"]


@dataclass(frozen=True)
class TrainSettings(TrainingOptions):
    """Train agents from scratch with given interfaces, side by side, and compare them."""

    task: str = "xland-easy"
    """What to solve (`jaxreward tasks`). Also gymnax/CartPole-v1 and the like, or a Python file, which is executed."""
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
    imitate: ImitateOption = "none"
    """Learn from --data, by GAIL, AIRL or behaviour cloning (bc); the rewards of the interfaces are only measured."""
    data: Annotated[tuple[Path, ...], Arg(adds=True)] = ()
    """With --imitate: files of an expert's episodes. `jaxreward record` writes them."""
    expert_episodes: Annotated[tuple[int, ...], Arg(least=1)] = ()
    """The first so many episodes of --data. Several numbers are trained side by side; by default all."""
    positives: Positives = "all"
    """With --imitate: the steps of --data to learn from. For gail also the last of each episode, or the marked."""
    diagnose: bool = False
    """Print curves, reward terms and warnings of each."""
    plot: Path | None = None
    """Draw the learning curves: .png or .svg."""

    def make_task(self) -> Task:
        """The task with its options."""
        return make_task_of(self.task, self.task_arg)

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        check_bounds(self)
        if self.plot is not None and self.plot.suffix not in (".png", ".svg"):
            raise InvalidSetting(f"--plot {self.plot} must end in .png or .svg", "plot")
        if self.plot is not None:
            require("reports", "--plot", "plot")
        for path in self.interfaces:
            if not path.is_file():
                raise UnusableFile(f"there is no interface file {path}", path, FileProblem.MISSING)
        self._check_imitation()
        check_learner(self, self.task)
        self.check_execution()

    def _check_imitation(self) -> None:
        if self.imitate != "none" and not self.data:
            message = f"{mention('imitate', self.imitate)} needs {mention('data')}: a file of an expert's episodes"
            raise InvalidSetting(f"{message}, as `jaxreward record` writes", "data", "imitate")
        for name in ("data", "expert_episodes", "positives"):
            if getattr(self, name) != getattr(TrainSettings, name, ()) and self.imitate == "none":
                raise InvalidSetting(f"{mention(name)} is for {mention('imitate')}", name, "imitate")
        if len(set(self.expert_episodes)) < len(self.expert_episodes):
            raise InvalidSetting(
                f"{mention('expert_episodes')} names a number twice: give each once", "expert_episodes"
            )
        if self.imitate != "none" and self.learner == "sac":
            message = f"{mention('imitate', self.imitate)} is for {mention('learner', 'ppo')}"
            raise InvalidSetting(message, "learner", "imitate")
        if self.imitate != "none" and self.ppo.gru:
            message = f"{mention('imitate', self.imitate)} needs an agent without a memory: set {mention('ppo.gru', 0)}"
            raise InvalidSetting(message, "ppo.gru", "imitate")
        for path in self.data:
            if not path.is_file():
                raise UnusableFile(f"{mention('data')}: there is no file {path}", path, FileProblem.MISSING)

    def experts(self, task: Task) -> list[tuple[str, Trajectories]]:
        """The sets of episodes of `--data`, with their names; none without `--imitate`.

        Raises:
            UserError: files without episodes of the task, or with too few.
        """
        if self.imitate == "none":
            return []
        whole = joined([load_trajectories(path) for path in self.data])
        whole.require_of(Spec.of(task))
        if self.expert_episodes and max(self.expert_episodes) > len(whole):
            message = (
                f"{mention('expert_episodes', max(self.expert_episodes))}: {mention('data')} has {len(whole)} episodes"
            )
            raise InvalidSetting(f"{message}; record more, or ask for fewer", "expert_episodes", "data")
        return [(_episodes(n), whole.take(range(n))) for n in self.expert_episodes or (len(whole),)]


def resolve(given: Given[TrainSettings]) -> Resolved[TrainSettings]:
    """The settings: steps and learner are by default those for the task and the device, with `--preset paper` those of
    the paper."""
    task = given.get("task", TrainSettings.task)
    base = TrainSettings(task=task, ppo=quick_learner(task, given.platform))
    if given.line.preset not in ("", "quick"):
        of_paper = preset(given.line.preset, task, platform=given.platform)
        steps = of_paper.final_steps or of_paper.steps
        base = dataclasses.replace(base, steps=steps, seeds=of_paper.final_seeds, ppo=of_paper.ppo)
    elif has_real_actions(task):
        base = dataclasses.replace(base, steps=quick_steps(task), seeds=3, checkpoints=8)
    if given.get("imitate", TrainSettings.imitate) != "none":
        base = dataclasses.replace(base, ppo=for_imitation(base.ppo))
    return given.over(base, Source.PRESET)


def run(resolved: Resolved[TrainSettings]) -> int:
    """Train and print the table; returns the exit status."""
    settings = resolved.settings
    settings.check()
    console, plan = console_of(settings.json), describe_training(settings)
    if settings.plot is not None and not settings.dry_run:
        check_target(settings.plot)  # not after hours of training
    console.print(plan)
    if settings.dry_run:
        if settings.json:
            print_json({"dry_run": True})
        return 0
    with Live(console) as live:
        done = retrain(settings, live.training)
    show_retrained(settings, done, console)
    if settings.json:
        print_json(train_json(settings, done))
    return 0


def describe_training(s: TrainSettings) -> str:
    """The plan of a training."""
    n = max(1, len(s.interfaces)) * max(1, len(s.expert_episodes))
    what = "interface" if s.imitate == "none" else "candidate"
    seconds = cost_s(s.make_task(), s.hyper, n, s.seeds, s.steps, points=s.checkpoints, episodes=s.eval_episodes)
    return (
        f"{n} {what}{'s' * (n > 1)} of {task_title(s.task, s.task_arg)}, "
        f"{seeds_text(s.seeds)} x {s.steps:,} steps: "
        f"{n * s.seeds * s.steps:,} environment steps, about {duration(seconds)} on two CPU cores\n"
        f"{shape_text(s.hyper)}"
    )


@dataclass(frozen=True)
class Retrained:
    """Names of the interfaces, in order, and what training them gave."""

    names: tuple[str, ...]
    result: TrainResult

    def rows(self) -> list[dict[str, Any]]:
        """One JSON object per interface."""
        r = self.result
        return [
            {
                "interface": name,
                "digest": r.programs[row].digest,
                "score": score_json(r.score(row)),
                "seed_success": r.success[row].tolist(),
                "curve": {
                    "steps": r.steps.tolist(),
                    "success": json_curve(r.success_curve[row]),
                    "beside": {name: json_curve(r.extra_curve(name)[row]) for name in r.extra_metrics},
                },
                "beside": {name: r.extra(name)[row].tolist() for name in r.extra_metrics},
                **({"alignment": score_json(aligned)} if (aligned := r.alignment(row)) is not None else {}),
                "diverged": int(r.diverged[row].sum()),
                "notices": [n.model_dump() for n in r.feedback(row).notices],
            }
            for row, name in enumerate(self.names)
        ]


def json_curve(curve: np.ndarray) -> list[list[float | None]]:
    """Curves (S, P) as lists, None where a point was not reached."""
    return [[float(v) if np.isfinite(v) else None for v in row] for row in curve]


def retrain(settings: TrainSettings, progress: Any = None) -> Retrained:
    """Check and train the interfaces of `settings`.

    Raises:
        UserError: invalid settings, or an interface that does not pass its check.
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
    experts, imitation = settings.experts(task), None
    if not programs:
        own = "default observation" if experts else "default observation, sparse reward"
        names, programs = [own], [Program.default(task)]
    if experts:
        names = [f"{name}, {settings.imitate} of {count}" for name in names for count, _ in experts]
        programs = [program for program in programs for _ in experts]
        sets = [one for _ in range(len(programs) // len(experts)) for _, one in experts]
        imitation = Imitation(sets, settings.imitate, settings.positives)

    result = train(
        task, programs, settings.hyper,
        seeds=range(settings.first_seed, settings.first_seed + settings.seeds),
        steps=settings.steps, checkpoints=settings.checkpoints, eval_episodes=settings.eval_episodes,
        execution=settings.execution(),
        progress=progress and partial(progress, "training"), imitation=imitation,
    )  # fmt: skip
    return Retrained(tuple(names), result)


def _episodes(count: int) -> str:
    return f"{count} episode{'s' * (count > 1)}"


def show_retrained(settings: TrainSettings, done: Retrained, console: Console) -> None:
    """The table, and what --diagnose and --plot ask for."""
    result, task = done.result, task_title(settings.task, settings.task_arg)
    rows = []
    for i, name in enumerate(done.names):
        extra = {
            name.replace("_", " "): figure(result.extra(name)[i].mean(), rate=False) for name in result.extra_metrics
        }
        if aligned := alignment_text(result.alignment(i)):
            extra["alignment"] = aligned
        rows.append((name, result.score(i), {"features": str(result.programs[i].observation_size), **extra}))
    console.print(
        score_table(f"{result.measure.label} on {task}, {seeds_text(settings.seeds)} x {settings.steps:,} steps", rows)
    )
    console.print(
        f"{result.env_steps:,} environment steps in {result.run_s:.0f} s after {result.compile_s:.0f} s of compiling",
        highlight=False,
    )
    for i, name in enumerate(done.names):
        feedback = result.feedback(i)
        if settings.diagnose:
            console.print("\n".join([f"\n{name}", *(f"  {line}" for line in diagnosis(feedback))]))
        elif feedback.notices:
            console.print(f"{name}: {', '.join(n.kind for n in feedback.notices)} (--diagnose says more)")
    if settings.plot is not None:
        settings.plot.parent.mkdir(parents=True, exist_ok=True)
        by_name = lambda curve: dict(zip(done.names, curve, strict=True))  # noqa: E731
        beside = {name: by_name(result.extra_curve(name)) for name in result.extra_metrics}
        curves = by_name(result.success_curve)
        learning_curves(settings.plot, result.steps, curves, task, result.measure, beside)
        console.print(f"learning curves in {settings.plot}")


def train_json(settings: TrainSettings, done: Retrained) -> dict[str, Any]:
    """The documented object of `jaxreward train --json` (docs/commands.md)."""
    r = done.result
    return {
        "task": settings.task, "task_arg": list(settings.task_arg), "learner": settings.learner,
        settings.learner: plain(settings.hyper),
        "seeds": settings.seeds, "steps": settings.steps, "imitate": settings.imitate, "rows": done.rows(),
        "env_steps": r.env_steps, "wall_s": r.wall_s, "compile_s": r.compile_s, "run_s": r.run_s,
        "peak_bytes": r.peak_bytes, **made_on(),
    }  # fmt: skip


COMMANDS = (
    Command(
        "train", TrainSettings, run=run, resolve=resolve,
        main=("task", "task_arg", "interfaces", "seeds", "steps", "eval_episodes", "diagnose", "plot", "dry_run",
              "json"),
        topics={
            "training": ("task", "task_arg", "interfaces", "learner", "seeds", "first_seed", "steps", "checkpoints",
                         "eval_episodes", *MACHINE),
            "imitation": ("imitate", "data", "expert_episodes", "positives"),
            "ppo": ("ppo",),
            "sac": ("sac",),
            "output": ("diagnose", "plot", "unsafe_no_sandbox", "dry_run", "json"),
        },
        presets=True, examples=("train --task xland-easy --interfaces interfaces/xland_easy/*.py",
                                  "train --task babyai/GoToRedBall --imitate gail --data expert.npz"),
    ),
)  # fmt: skip
