"""`jaxreward clean`: have a language model mark the steps of an expert's episodes that solve the task."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np

from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.commands.spending import Spending, confirm
from jaxreward.config import Arg, check_bounds
from jaxreward.demonstrations import Trajectories, load_trajectories, save_trajectories
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile, UserError
from jaxreward.evolution.cleaning import Cleaned, Cleaning
from jaxreward.formatting import counted
from jaxreward.programs import Spec
from jaxreward.proposers.llm.cost import dollars
from jaxreward.proposers.llm.llm_settings import ModelSettings
from jaxreward.runs import StopSignal
from jaxreward.runs.provenance import VERSIONED, versions
from jaxreward.sentences import mention
from jaxreward.tasks import is_task_name, make_task_of


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
    llm: Annotated[ModelSettings, Arg(flat=True)] = field(default_factory=ModelSettings)
    """Language models, and what they may cost."""
    json: bool = False
    """End standard output with one JSON object."""


def run(resolved: Resolved[CleanSettings]) -> int:
    """Ask, and write the marked episodes; returns the exit status."""
    s = resolved.settings
    check_bounds(s)
    if s.file is None:
        raise UserError("say which episodes: `jaxreward clean FILE`; `jaxreward record` writes such files")
    episodes = load_trajectories(s.file)
    path = s.out or s.file.with_name(f"{s.file.stem}_clean.npz")
    if path.exists():
        raise UnusableFile(f"{path} exists already: name another with {mention('out')}", path, FileProblem.EXISTS)
    if path.suffix != ".npz":
        raise UnusableFile(f"{path}: episodes are kept in .npz files; name it {path}.npz", path, FileProblem.WRONG_KIND)
    if s.task_arg and not s.task:
        raise InvalidSetting(f"{mention('task_arg')} is for {mention('task')}", "task_arg", "task")
    task = make_task_of(s.task, s.task_arg) if s.task else None
    if task is not None:
        episodes.require_of(Spec.of(task))
    cleaning = Cleaning(episodes, s.llm, path.with_name(f"{path.stem}_replies"), task)
    console, spending = console_of(s.json), Spending(*cleaning.estimate())
    what = spending.text() if spending.calls else "all replies are there"
    console.print(f"{s.file}: {counted(len(episodes), 'episode')}, {counted(episodes.steps, 'step')}; {what}")
    if cleaning.hidden:
        console.print(f"{counted(cleaning.hidden, 'step')} of long episodes cannot be shown to the model")
    if spending.calls:
        confirm(spending, s.llm)
    with StopSignal() as stop, console.status("asking") as status:
        found = cleaning.run(console.print, lambda text: status.update(f"asking: {text}"), lambda: stop.requested)
    save_trajectories(path, found.episodes, versions(*VERSIONED))
    console.print(_told(path, found))
    words = ["jaxreward", "evolve", *_named(s, episodes), "--objective", "demonstrations", "--data", str(path)]
    console.print(f"next: {shlex.join(words)}")
    if s.json:
        print_json({
            "file": str(path), "episodes": len(found.episodes), "left_out": list(found.left_out),
            "steps": found.episodes.steps, "solving": len(found.episodes.positive_steps("marked")),
            "unknown": int(np.sum(found.episodes.solves == -1)), "cost_usd": round(found.spent.usd, 6),
            "unpriced_tokens": found.spent.unpriced,
        })  # fmt: skip
    return 0


def _named(s: CleanSettings, episodes: Trajectories) -> list[str]:
    """The task as words of a command. A file of episodes names no Python file that a user would have executed."""
    name, options = (s.task, s.task_arg) if s.task else (episodes.task, episodes.task_arg)
    if not s.task and not is_task_name(name):
        name, options = "TASK", ()
    return ["--task", name, *(word for option in options for word in ("--task-arg", option))]


def _told(path: Path, found: Cleaned) -> str:
    kept, solving = found.episodes, found.episodes.positive_steps("marked")
    one = len(solving) == 1
    line = f"{path}: {counted(len(kept), 'episode')}, {len(solving)} of {counted(kept.steps, 'step')} "
    line += "solves the task" if one else "solve the task"
    if unknown := int(np.sum(kept.solves == -1)):
        line += f", {unknown:,} may"
    if none := len(kept) - len(np.unique(kept.episode_of_step[solving])):
        line += f"; in {counted(none, 'episode')} none does"
    if found.left_out:
        numbers = ", ".join(str(k + 1) for k in found.left_out)
        line += f"; left out for want of a usable answer: {numbers}, counted from 1"
    unpriced = f" and {found.spent.unpriced:,} tokens of unknown price" if found.spent.unpriced else ""
    return f"{line}; cost {dollars(found.spent.usd)}{unpriced}"


COMMANDS = (
    Command(
        "clean", CleanSettings, run=run, config=False,
        main=("file", "out", "task", "llm.model", "llm.max_usd"),
        topics={"data": ("file", "out", "task", "task_arg"), "llm": ("llm",), "output": ("json",)},
        examples=("clean expert.npz --model anthropic/claude-sonnet-4-5",),
    ),
)  # fmt: skip
