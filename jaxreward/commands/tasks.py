"""`jaxreward tasks`: the tasks, and the description of each that proposers get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg
from jaxreward.errors import UserError
from jaxreward.evolution.search_options import VocabularyOption
from jaxreward.evolution.vocabulary import vocabulary_for
from jaxreward.extras import install, missing
from jaxreward.records import Vocabulary
from jaxreward.tasks import OPEN_NAMES, card, extra_of, make_task_of, options_of, require_sound, task_names


@dataclass(frozen=True)
class TasksSettings:
    """Describe a task; without a name, list all."""

    task: Annotated[str, Arg(positional="NAME")] = ""
    """Name of the task, such as gymnax/CartPole-v1, or a Python file, which is executed."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the task, each as KEY=VALUE."""
    vocabulary: VocabularyOption | None = None
    """Also list what the genetic proposer would build programs from. As --vocabulary of evolve."""


def run(resolved: Resolved[TasksSettings]) -> int:
    """Print the list or the description."""
    settings = resolved.settings
    if not settings.task and settings.task_arg:
        raise UserError("--task-arg is for one task: say `jaxreward tasks NAME --task-arg KEY=VALUE`")
    if not settings.task:
        print("\n".join(listing()))
        return 0
    task = make_task_of(settings.task, settings.task_arg)
    found = card(task)
    print(f"{task.name}, {task.horizon} steps an episode\n\n{task.description}\n\n{found.state_doc}")
    if steps := [f"  {k}. {subgoal.words}" for k, subgoal in enumerate(found.subgoals.chain, 1)]:
        print("\n".join(["\nSubgoals (--blocks auto):", *steps]))
    if found.instruction is not None:
        subtasks = [f"  {s.name}: {s.words}" for s in found.instruction.subtasks]
        print("\n".join([f"\nInstruction (--strategy rda): {found.instruction.words}", *subtasks]))
    options = ", ".join(f"{name}={value}" for name, value in options_of(task).items())
    print(f"\nOptions (--task-arg KEY=VALUE): {options}" if options else "")
    if settings.vocabulary is not None:
        require_sound(task)
        print("\n".join(_listed(vocabulary_for(task, settings.vocabulary)[0])))
    return 0


def listing() -> list[str]:
    """The names of the tasks, each with the extra that it needs if there is one."""
    names = [*task_names(), *OPEN_NAMES]
    width = max(map(len, names)) + 2
    extras = [extra_of(name) for name in names]
    note = {extra: f"{extra}, not installed: {install(extra)}" for extra in {*extras} if extra and missing(extra)}
    return [f"{name:<{width}}{note.get(extra, extra)}".rstrip() for name, extra in zip(names, extras, strict=True)]


def _listed(vocabulary: Vocabulary) -> list[str]:
    """A line for every fragment, the likeliest of each kind first."""
    width = max((len(f.name) for f in vocabulary.fragments), default=0)
    lines = []
    for kind in ("feature", "term"):
        found = sorted((f for f in vocabulary.fragments if f.kind == kind), key=lambda f: -f.weight)
        lines.append(f"\n{len(found)} {kind}s, with how likely each is to be drawn")
        lines += [f"  {f.name:{width}}  {f.weight:5.2g}  {f.doc}" for f in found]
    return lines


COMMANDS = (
    Command(
        "tasks", TasksSettings, run=run,
        examples=("tasks", "tasks panda-tracking --task-arg speed_scale=2", "tasks my_task.py --vocabulary derived"),
    ),
)  # fmt: skip
