"""`jaxreward record`: episodes of a task in a file, for a search on demonstrations."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg, check_bounds, file_of, is_file, label_of
from jaxreward.demonstrations import (
    Trajectories,
    record,
    record_expert,
    record_random,
    save_trajectories,
)
from jaxreward.demonstrations.experts import MOST_TRIES
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile, UserError
from jaxreward.evolution.search_run import open_run
from jaxreward.runs.provenance import VERSIONED, versions
from jaxreward.sentences import mention
from jaxreward.tasks import Task, make_task_of, measure_of

EXPERT, RANDOM = "expert", "random"


@dataclass(frozen=True)
class RecordSettings:
    """Record episodes of a task in a file, for `jaxreward evolve --objective demonstrations --data FILE`."""

    task: Annotated[str, Arg(positional="TASK")] = ""
    """The task. Also a Python file, which is executed."""
    by: str = EXPERT
    """Who plays. expert: the task's scripted expert, where it has one; random; or a run, whose best policy plays."""
    out: Path | None = None
    """The file, .npz. By default TASK_BY.npz here."""
    episodes: Annotated[int, Arg(least=1)] = 10
    """Episodes to keep."""
    solved: bool = False
    """Keep only episodes that succeed."""
    noise: float = 0.0
    """Of the expert: chance of each action to be a random one."""
    seed: Annotated[int, Arg(least=0)] = 0
    """Seed of the episodes."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the task. Each is KEY=VALUE; `jaxreward tasks NAME` lists them."""
    json: bool = False
    """End standard output with one JSON object."""


def run(resolved: Resolved[RecordSettings]) -> int:
    """Record; returns the exit status."""
    s = resolved.settings
    check_bounds(s)
    if not s.task:
        raise UserError("say which task: `jaxreward record TASK`; `jaxreward tasks` lists them")
    if s.noise and s.by != EXPERT:
        raise InvalidSetting(f"{mention('noise')} is for {mention('by', EXPERT)}", "noise", "by")
    who = s.by if s.by in (EXPERT, RANDOM) else "policy"
    path = s.out or Path(f"{label_of(s.task).replace('/', '-')}_{who}.npz")
    if path.exists():
        raise UnusableFile(f"{path} exists already: name another with {mention('out')}", path, FileProblem.EXISTS)
    if path.suffix != ".npz":
        raise UnusableFile(f"{path}: episodes are kept in .npz files; name it {path}.npz", path, FileProblem.WRONG_KIND)
    task = make_task_of(s.task, s.task_arg)
    if s.solved and not measure_of(task).rate:
        raise InvalidSetting(f"{mention('solved')} is for tasks that are solved or not; {task.name} is not", "solved")
    found = _recorded(task, s)
    save_trajectories(path, found, versions(*VERSIONED))
    measure = measure_of(task)
    mean = float(np.mean(found.success))
    console_of(s.json).print(
        f"{path}: {len(found)} episodes of {task.name}, {found.steps:,} steps, {measure.name} {mean:.3g}"
    )
    if who != RANDOM and measure.rate and mean < 0.5:
        console_of(s.json).print(
            "warning: most of these episodes fail, and a reward is found for what they do: "
            f"{mention('solved')} keeps those that succeed"
        )
    if who != RANDOM:
        task = ["--task", s.task, *(word for option in s.task_arg for word in ("--task-arg", option))]
        words = ["jaxreward", "evolve", *task, "--objective", "demonstrations", "--data", str(path)]
        console_of(s.json).print(f"next: {shlex.join(words)}")
    if s.json:
        print_json({"file": str(path), "episodes": len(found), "steps": found.steps, measure.name: mean})
    return 0


def _recorded(task: Task, s: RecordSettings) -> Trajectories:
    if s.by == EXPERT:
        return record_expert(task, s.episodes, seed=s.seed, noise=s.noise, solved=s.solved, task_arg=s.task_arg)
    count = s.episodes * (MOST_TRIES if s.solved else 1)
    if s.by == RANDOM:
        found = record_random(task, count, seed=s.seed, task_arg=s.task_arg)
    else:
        policy = open_run(s.by, file_of(s.task) if is_file(s.task) else None).policy()
        found = record(task, policy, count, seed=s.seed, task_arg=s.task_arg)
    good = np.flatnonzero(found.success >= 1.0) if s.solved else np.arange(count)
    if len(good) < s.episodes:
        raise UserError(f"only {len(good)} of {count} episodes on {task.name} succeed: nothing is written")
    return found.take(good[: s.episodes])


COMMANDS = (
    Command(
        "record", RecordSettings, run=run, config=False,
        examples=("record babyai/GoToRedBall --episodes 16", "record hopper --by runs/hopper-limen-0 --out hopper.npz"),
    ),
)  # fmt: skip
