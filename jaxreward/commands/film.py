"""`jaxreward film`: a trained agent to look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from jaxreward import programs, tasks
from jaxreward.commands.file_tasks import named_again, task_of_interface
from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Given, Resolved, Source
from jaxreward.config import Arg, check_bounds, is_file
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile, UserError
from jaxreward.evolution.filming import (
    EPISODES,
    LEAST_EPISODES,
    LEAST_FRAMES,
    MOST_FRAMES,
    OF_THE_SEARCH,
    check_drawable,
    film,
    policy_of,
)
from jaxreward.evolution.learner_options import LearnerOptions
from jaxreward.evolution.policies import is_policy_of
from jaxreward.evolution.presets import quick_learner, quick_steps
from jaxreward.evolution.settings import require_task
from jaxreward.evolution.started import started_settings
from jaxreward.evolution.task_check import require_vocabulary
from jaxreward.extras import require
from jaxreward.programs import Program
from jaxreward.programs.checker import read_program
from jaxreward.records import Result
from jaxreward.reports.films import check_format
from jaxreward.reports.page import FILM, embed_film
from jaxreward.reports.run_view import RunView
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.folders import find_run
from jaxreward.runs.malformed import explain_malformed
from jaxreward.tasks import Task
from jaxreward.training import PPO, Learner, train


@dataclass(frozen=True)
class FilmSettings(LearnerOptions):
    """Film the agent of a run's winner, or one trained for it: best, median and worst episode side by side, with what
    every reward term pays below."""

    subject: Annotated[str, Arg(positional="RUN|INTERFACE")] = ""
    """A run, or an interface file. A run is named by its folder, or its name in runs/."""
    candidate: str = ""
    """Of a run: the candidate; by default the winner. Only the winner's policy is kept; others are trained."""
    out: Path | None = None
    """The film, .gif or .mp4. By default film.gif in the run's folder, or next to the interface."""
    episodes: Annotated[int, Arg(least=LEAST_EPISODES)] = EPISODES
    """Episodes to play; three are shown."""
    frames: Annotated[int, Arg(least=LEAST_FRAMES)] = MOST_FRAMES
    """Pictures of the film at most. Of longer episodes some steps are left out."""
    seed: Annotated[int, Arg(least=0)] = 0
    """Seed of the episodes, and of a training."""
    steps: Annotated[int, Arg(least=0)] = 0
    """Environment steps of a training; 0: as in a search. That is the run's, or a quick one; given for a run's winner,
    it is trained anew."""
    task: str = ""
    """Of an interface: its task, if not in its header. A task that is a Python file is executed, so that it must be
    given, for a run too."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Of an interface: options of the task. Each is KEY=VALUE."""
    unsafe_no_sandbox: bool = False
    """Check the program without the sandbox. For systems that have none, and programs you trust."""
    json: bool = False
    """End standard output with one JSON object."""


@dataclass(frozen=True)
class _Subject:
    """What is filmed: a program's source, its task and learner, the `run` that may hold its policy, for its best only
    with `winner`, and the run whose `report` shows the film; `candidate` is its id, or the file that it came from."""

    source: str
    task: Task
    ppo: Learner
    steps: int
    target: Path
    run: Path | None = None
    candidate: str = ""
    winner: bool = False
    report: Path | None = None


def resolve(given: Given[FilmSettings]) -> Resolved[FilmSettings]:
    """The settings: for an interface file its task decides the learner."""
    subject = given.get("subject", "")
    of_file = subject.endswith(".py")
    base = _of_header(Path(subject), given) if of_file else FilmSettings()
    return given.over(base, Source.PRESET)


def run(resolved: Resolved[FilmSettings]) -> int:
    """Film an agent; returns the exit status."""
    settings = resolved.settings
    name = settings.subject
    of_file = name.endswith(".py")
    if not name:
        raise UserError("say what to film: `jaxreward film RUN`, its folder or name, or `jaxreward film FILE.py`")
    require("reports", "a film")
    check_bounds(settings)
    if of_file and settings.candidate:
        raise InvalidSetting("--candidate is for a run: `jaxreward film RUN --candidate ID`", "candidate")
    subject = _of_file(Path(name), settings) if of_file else _of_run(name, settings)
    check_format(subject.target)
    shown = _film(subject, settings)
    console_of(settings.json).print(str(subject.target))
    if settings.json:
        rows = {name: {"value": e.success, "return": e.ret, "length": e.length} for name, e in shown.items()}
        print_json({"film": str(subject.target), "episodes": rows})
    return 0


def _of_header(path: Path, given: Given[FilmSettings]) -> FilmSettings:
    """The defaults for an interface file: the task of its header, and what a quick search trains that with."""
    if not path.is_file():
        raise UnusableFile(f"there is no interface file {path}", path, FileProblem.MISSING)
    name, *arguments = task_of_interface(read_program(path), given.get("task", ""), path)
    return FilmSettings(task=name, task_arg=tuple(arguments), ppo=quick_learner(name, given.platform))


def _of_file(path: Path, settings: FilmSettings) -> _Subject:
    source, task = read_program(path), tasks.make_task_of(settings.task, settings.task_arg)
    steps = settings.steps or quick_steps(settings.task)
    return _Subject(source, task, settings.hyper, steps, settings.out or path.with_suffix(".gif"), candidate=str(path))


def _of_run(run: str, settings: FilmSettings) -> _Subject:
    path = find_run(run)
    with explain_malformed(path):
        view = RunView.read(path)
        result = _candidate(view, settings.candidate)
    own = started_settings(path)
    require_task(own.task)
    name = named_again(own.task, settings.task, f"the run {path}", path)
    if (not is_file(own.task) and settings.task not in ("", own.task)) or settings.task_arg or settings.hyper != PPO():
        raise UserError(
            "a run has its own task and learner: --task, --task-arg, --learner, --ppo and --sac are for a file"
        )
    winner = view.best is not None and result.candidate.id == view.best.candidate.id
    target = settings.out or path / (f"{FILM}.gif" if winner else f"{FILM}-{result.candidate.id}.gif")
    id, task = result.candidate.id, tasks.make_task_of(name, own.task_arg)
    return _Subject(
        result.candidate.source, task, own.hyper, settings.steps or own.steps, target,
        run=None if settings.steps else path, candidate=id, winner=winner and is_policy_of(view, result),
        report=path if winner and not settings.out else None,
    )  # fmt: skip


def _candidate(view: RunView, id: str) -> Result:
    found = view.results.get(id) if id else view.best
    if found is None:
        raise UserError(f"{view.path} has no candidate {id or 'with a score'}; jaxreward runs show lists them")
    if not found.candidate.source or found.candidate.summary is None:
        raise UserError(f"candidate {found.candidate.id} has no program that passed its check: {found.failure}")
    return found


def _film(subject: _Subject, settings: FilmSettings) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    with programs.Checker(unsafe_no_sandbox=settings.unsafe_no_sandbox) as checker:
        require_vocabulary(subject.task, checker=checker)
        ((verdict, program),) = checker.check_many([subject.source], subject.task)
    if program is None:
        raise UserError(f"{subject.candidate} is not a program for {subject.task.name}: {verdict.failure}")
    check_drawable(subject.task)  # before a training, not after it
    with Progress(console=Console(stderr=True), transient=True) as bars:
        variables, origin = None, OF_THE_SEARCH
        if subject.run is not None:
            store = Checkpoints(subject.run / "checkpoints")
            tags = [f"policy-{subject.candidate}", *(["best-policy"] if subject.winner else [])]
            variables = policy_of(store, tags, subject.task, program, subject.ppo)
        if variables is None:
            variables = _trained(subject, program, settings.seed, bars)
            origin = f"an agent trained for the film, {subject.steps:,} steps with seed {settings.seed}"
        drawing = bars.add_task("drawing", total=None)
        shown = film(
            subject.target, subject.task, program, variables, subject.ppo,
            episodes=settings.episodes, frames=settings.frames, seed=settings.seed,
            progress=lambda done, total: bars.update(drawing, completed=done, total=total),
        )  # fmt: skip
    if subject.report is not None:
        embed_film(subject.report, subject.target.name, program.digest, origin)
    return shown


def _trained(subject: _Subject, program: Program, seed: int, bars: Any) -> Any:
    row = bars.add_task("training", total=subject.steps)
    result = train(
        subject.task, [program], subject.ppo, seeds=[seed], steps=subject.steps,
        progress=lambda p: bars.update(row, completed=p.steps, total=p.total),
    )  # fmt: skip
    bars.remove_task(row)
    return result.variables(0, 0)


COMMANDS = (
    Command(
        "film", FilmSettings, run=run, resolve=resolve,
        main=("subject", "candidate", "out", "episodes", "frames", "seed", "steps", "task", "task_arg", "json"),
        topics={
            "film": ("subject", "candidate", "out", "episodes", "frames", "seed", "unsafe_no_sandbox", "json"),
            "training": ("steps", "task", "task_arg", "learner"),
            "ppo": ("ppo",),
            "sac": ("sac",),
        },
        examples=("film runs/first", "film interfaces/hopper/expert.py --out hopper.mp4"),
    ),
)  # fmt: skip
