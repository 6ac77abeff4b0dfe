"""`jaxreward tasks`: the tasks, and the description of each that proposers get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg
from jaxreward.errors import UserError
from jaxreward.extras import install, missing
from jaxreward.tasks import OPEN_NAMES, card, extra_of, make_task_of, options_of, task_names


@dataclass(frozen=True)
class TasksSettings:
    """Describe a task; without a name, list all."""

    task: Annotated[str, Arg(positional="NAME")] = ""
    """Name of the task, such as gymnax/CartPole-v1, or a Python file, which is executed."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the task, each as KEY=VALUE."""


def run(resolved: Resolved[TasksSettings]) -> int:
    """Print the list or the description."""
    settings = resolved.settings
    if not settings.task and settings.task_arg:
        raise UserError("--task-arg is for one task: say `jaxreward tasks NAME --task-arg KEY=VALUE`")
    if not settings.task:
        print("\n".join(listing()))
        return 0
    task = make_task_of(settings.task, settings.task_arg)
    print(f"{task.name}, {task.horizon} steps an episode\n\n{task.description}\n\n{card(task).state_doc}")
    options = ", ".join(f"{name}={value}" for name, value in options_of(task).items())
    print(f"\nOptions (--task-arg KEY=VALUE): {options}" if options else "")
    return 0


def listing() -> list[str]:
    """The names of the tasks, each with the extra that it needs if there is one."""
    names = [*task_names(), *OPEN_NAMES]
    width = max(map(len, names)) + 2
    extras = [extra_of(name) for name in names]
    note = {extra: f"{extra}, not installed: {install(extra)}" for extra in {*extras} if extra and missing(extra)}
    return [f"{name:<{width}}{note.get(extra, extra)}".rstrip() for name, extra in zip(names, extras, strict=True)]


COMMANDS = (
    Command("tasks", TasksSettings, run=run, examples=("tasks", "tasks panda-tracking --task-arg speed_scale=2")),
)
