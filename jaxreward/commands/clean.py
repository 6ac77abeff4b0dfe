"""`jaxreward clean`: have a language model mark the steps of an expert's episodes that solve the task."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.commands.spending import Spending, confirm
from jaxreward.config import Arg, check_bounds
from jaxreward.demonstrations import load_trajectories, save_trajectories
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile, UserError
from jaxreward.evolution.cleaning import Cleaned, Cleaning
from jaxreward.programs import Spec
from jaxreward.proposers.llm.cost import dollars
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.runs import StopSignal
from jaxreward.runs.provenance import VERSIONED, versions
from jaxreward.sentences import mention
from jaxreward.tasks import make_task_of


@dataclass(frozen=True)
class CleanSettings:
    """Have a language model mark which steps of an expert's episodes solve the task, for `jaxreward evolve --objective
    demonstrations`. All other states then count as not solving it. For episodes that do not end by success, or that
    wander before and after."""

    file: Annotated[Path | None, Arg(positional="FILE")] = None
    """A file of episodes. `jaxreward record` writes them."""
    out: Path | None = None
    """The file with the marks, .npz. By default FILE_clean.npz beside FILE; the replies are kept in a folder beside."""
    task: str = ""
    """Tell the model what this task is: its description, what the arrays of its state mean, and the mission of each
    episode. By default it sees the arrays alone. Also a Python file, which is executed."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of that task. Each is KEY=VALUE."""
    llm: Annotated[LlmSettings, Arg(flat=True)] = field(default_factory=LlmSettings)
    """Language models, and what they may cost."""
    json: bool = False
    """End standard output with one JSON object."""


def run(resolved: Resolved[CleanSettings]) -> int:
    """Ask, and write the marked episodes; returns the exit status."""
    s = resolved.settings
    check_bounds(s)
    if s.file is None:
        raise UserError("say which episodes: `jaxreward clean FILE`; `jaxreward record` writes such files")
    path = s.out or s.file.with_name(f"{s.file.stem}_clean.npz")
    if path.exists():
        raise UnusableFile(f"{path} exists already: name another with {mention('out')}", path, FileProblem.EXISTS)
    if path.suffix != ".npz":
        raise UnusableFile(f"{path}: episodes are kept in .npz files; name it {path}.npz", path, FileProblem.WRONG_KIND)
    if s.task_arg and not s.task:
        raise InvalidSetting(f"{mention('task_arg')} is for {mention('task')}", "task_arg", "task")
    episodes = load_trajectories(s.file)
    task = make_task_of(s.task, s.task_arg) if s.task else None
    if task is not None:
        episodes.require_of(Spec.of(task))
    cleaning = Cleaning(episodes, s.llm, path.with_name(f"{path.stem}_replies"), task)
    console, spending = console_of(s.json), Spending(*cleaning.estimate())
    console.print(f"{s.file}: {len(episodes)} episodes, {episodes.steps:,} steps; {spending.text()}")
    confirm(spending, s.llm)
    with StopSignal() as stop, console.status("asking") as status:
        found = cleaning.run(console.print, lambda text: status.update(f"asking: {text}"), lambda: stop.requested)
    save_trajectories(path, found.episodes, versions(*VERSIONED))
    console.print(_told(path, found))
    options = s.task_arg if s.task else episodes.task_arg
    named = ["--task", s.task or episodes.task or "TASK", *(word for o in options for word in ("--task-arg", o))]
    words = ["jaxreward", "evolve", *named, "--objective", "demonstrations", "--data", str(path)]
    console.print(f"next: {shlex.join(words)}")
    if s.json:
        solving = len(found.episodes.positive_steps("marked"))
        print_json({"file": str(path), "episodes": len(found.episodes), "left_out": list(found.left_out),
                    "steps": found.episodes.steps, "solving": solving, "cost_usd": found.usd})  # fmt: skip
    return 0


def _told(path: Path, found: Cleaned) -> str:
    kept = found.episodes
    assert kept.solves is not None
    with_one = {int(k) for k in kept.episode_of_step[kept.solves]}
    line = f"{path}: {len(kept)} episodes, {int(kept.solves.sum())} of {kept.steps:,} steps solve the task"
    if none := len(kept) - len(with_one):
        line += f"; in {none} none does"
    if found.left_out:
        numbers = ", ".join(str(k) for k in found.left_out)
        line += f"; left out, for want of an answer: {numbers} (from 0)"
    return f"{line}; cost {dollars(found.usd)}" if found.usd is not None else f"{line}; cost not known"


COMMANDS = (
    Command(
        "clean", CleanSettings, run=run, config=False,
        main=("file", "out", "task", "llm.model", "llm.max_usd"),
        topics={"data": ("file", "out", "task", "task_arg"), "llm": ("llm",), "output": ("json",)},
        examples=("clean expert.npz --model anthropic/claude-sonnet-4-5",),
    ),
)  # fmt: skip
