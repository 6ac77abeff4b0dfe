"""`jaxreward check`: verdicts on programs and on tasks, without training."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved, Source
from jaxreward.config import Arg, class_of, file_of, is_file, label_of
from jaxreward.errors import FAILED_EXIT_CODE, FileProblem, UnusableFile, UserError, why_unreadable
from jaxreward.programs.entries import ENTRIES

if TYPE_CHECKING:
    from rich.console import Console

    from jaxreward.programs import Checker
    from jaxreward.tasks import Task


@dataclass(frozen=True)
class CheckSettings:
    """Check programs and tasks without training: the verdict, the digest and the cost, or what is wrong and where."""

    files: Annotated[tuple[str, ...], Arg(positional="FILE")] = ()
    """Program files, or the file of a task. Its text tells which it is; a program is never executed, a task is."""
    interfaces: Annotated[tuple[Path, ...], Arg(adds=True)] = ()
    """Program files."""
    task: str = "xland-easy"
    """What they are for (`jaxreward tasks`). Without programs, the task is checked."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the task. Each is KEY=VALUE; `jaxreward tasks NAME` lists them."""
    unsafe_no_sandbox: bool = False
    """Check without the sandbox. For systems that have none, and programs you trust."""
    json: bool = False
    """End standard output with one JSON object."""


def run(resolved: Resolved[CheckSettings]) -> int:
    """Print a verdict on each program and task; returns 1 if one is rejected."""
    settings = resolved.settings
    for path in settings.interfaces:
        if not path.is_file():
            raise UnusableFile(f"there is no interface file {path}", path, FileProblem.MISSING)
    tasks = [name for name in settings.files if _holds_task(name)]
    programs = [*(Path(name) for name in settings.files if name not in tasks), *settings.interfaces]
    named = resolved.source("task") is not Source.DEFAULT
    if named and not programs and not tasks:
        tasks = [settings.task]
    if not programs and not tasks:
        raise UserError("name what to check: program files, or the file of a task")
    if programs and not named and len(tasks) > 1:
        raise UserError(f"say which task the programs are for: --task {tasks[0]} or --task {tasks[1]}")
    from jaxreward.programs import Checker
    from jaxreward.tasks import make_task_of, unchecked_task_of

    console = console_of(settings.json)
    with Checker(unsafe_no_sandbox=settings.unsafe_no_sandbox) as checker:
        made = {name: unchecked_task_of(name, settings.task_arg) for name in tasks}
        found = [_check_task(name, task, checker, console) for name, task in made.items()]
        result: dict[str, Any] = {"tasks": found} if tasks else {}
        good = not any(row["findings"] for row in found)
        if programs and good:
            one = settings.task if named or not tasks else tasks[0]
            result["rows"] = _check_programs(programs, make_task_of(one, settings.task_arg), checker, console)
            good = not any(row["failure"] for row in result["rows"])
    if settings.json:
        print_json(result)
    return 0 if good else FAILED_EXIT_CODE


def _holds_task(name: str) -> bool:
    """Whether a file holds a task, and no program, judging by its text. Nothing is executed.

    Raises:
        UserError: there is no such file, or it may be either, or neither.
    """
    if not is_file(name):
        raise UserError(f"'{name}' is no Python file: name a program, FILE.py, or say --task NAME to check a task")
    path = file_of(name)
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except FileNotFoundError as error:
        raise UnusableFile(f"there is no file {path}", path, FileProblem.MISSING) from error
    except SyntaxError as error:
        message = f"{path}, line {error.lineno}, is not valid Python: {error.msg}"
        raise UnusableFile(message, path, FileProblem.DAMAGED, error.lineno) from error
    except (OSError, ValueError) as error:
        raise UnusableFile(f"{path} cannot be read: {why_unreadable(error)}", path, FileProblem.UNREADABLE) from error
    if class_of(name):
        return True
    task = any(isinstance(node, ast.ClassDef) or _makes_task(node) for node in ast.walk(ast.Module(body, [])))
    if task and any(_is_entry(node) for node in body):
        raise UserError(
            f"{path} holds the functions of a program and a class or a task: say --interfaces {path} to check it as a "
            f"program, or --task {path} as a task"
        )
    if task:
        return True
    if any(isinstance(node, ast.FunctionDef) and node.name in ENTRIES for node in body):
        return False
    if _makes_object(body):
        return True
    raise UserError(
        f"{path} holds neither a program ({', '.join(ENTRIES)}) nor, as far as its text tells, a task: say "
        f"--task {path} to have it imported as one"
    )


def _is_entry(node: ast.stmt) -> bool:
    """Whether a statement defines a function of a program. What a task is made of may be called `reward` too; that of a
    program has one argument."""
    return isinstance(node, ast.FunctionDef) and (
        len(node.args.args) == ENTRIES["reward"] if node.name == "reward" else node.name in ENTRIES
    )


def _makes_task(node: ast.AST) -> bool:
    """Whether a node is a call such as `jr.from_functions(...)`."""
    return isinstance(node, ast.Call) and _called(node) in _MAKERS


def _makes_object(body: Sequence[ast.stmt]) -> bool:
    """Whether a name of a file is an object of some class of another file, going by a capital letter."""
    values = [node.value for node in body if isinstance(node, ast.Assign | ast.AnnAssign)]
    return any(isinstance(value, ast.Call) and _called(value)[:1].isupper() for value in values)


def _called(node: ast.Call) -> str:
    """The name of the function that is called, less that of its module."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


_MAKERS = ("from_brax", "from_functions", "from_gymnax", "from_jumanji", "from_playground", "make_task")


def _check_task(name: str, task: Task, checker: Checker, console: Console) -> dict[str, Any]:
    """Print what is wrong with a task; the same as JSON."""
    from jaxreward.evolution.task_check import check_task
    from jaxreward.evolution.task_remarks import remarks_on
    from jaxreward.tasks import measure_of

    found = check_task(task, checker=checker)
    remarks = () if found else remarks_on(task)
    for finding in found:
        console.print(str(finding))
    if not found:
        fragments = len(task.vocabulary().fragments)
        words = (
            f"a vocabulary of {fragments} fragments" if fragments else "no vocabulary of its own (a search derives one)"
        )
        console.print(f"{label_of(name)}: ok, {task.name}, measured by {measure_of(task).label}, {words}")
    for remark in remarks:
        console.print(f"  note: {remark}")
    rows, notes = (
        [{"message": finding.message, "file": finding.file, "line": finding.line or None} for finding in some]
        for some in (found, remarks)
    )
    return {"task": label_of(name), "findings": rows, "remarks": notes}


def _check_programs(paths: Sequence[Path], task: Task, checker: Checker, console: Console) -> list[dict[str, Any]]:
    """Print a verdict on each program; the same as JSON."""
    from jaxreward.programs.checker import read_program

    rows = []
    for path, (verdict, _) in zip(paths, checker.check_many([read_program(p) for p in paths], task), strict=True):
        rows.append({"interface": str(path), **verdict.model_dump()})
        if verdict.summary is not None and verdict.ok:
            s = verdict.summary
            console.print(
                f"{path}: ok, {s.observation_size} features, terms {', '.join(s.terms)}, {s.operations} operations, "
                f"{s.flops:,} FLOPs a step, digest {s.digest[:12]}",
            )  # fmt: skip
        else:
            console.print(f"{path}: {verdict.failure}")
        for notice in verdict.notices:
            console.print(f"  {notice.kind}: {notice.message}")
    return rows


COMMANDS = (
    Command(
        "check", CheckSettings, run=run, examples=("check swing_up.py", "check --task hopper --interfaces mine.py")
    ),
)
