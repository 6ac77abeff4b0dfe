"""`jaxreward export`: a discovered program as a module for training code outside jaxreward."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from jaxreward import files
from jaxreward.commands.file_tasks import task_of_interface
from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg, class_of, file_of, is_file, label_of, merged_options, named
from jaxreward.errors import FileProblem, UnusableFile, UserError
from jaxreward.evolution.task_check import require_vocabulary
from jaxreward.exports import Export, Target, export
from jaxreward.programs import Checker, Program, ProgramRejected
from jaxreward.programs.checker import read_program
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.folders import find_run
from jaxreward.runs.provenance import with_task
from jaxreward.tasks import make_task_of

BEST = "best_interface.py"


@dataclass(frozen=True)
class ExportSettings:
    """Write an interface as a module that training code outside jaxreward imports."""

    interface: Annotated[Path | None, Arg(positional="INTERFACE")] = None
    """A program file, or a run. Of a run, its folder or its name in runs/, best_interface.py is exported."""
    to: Target | None = None
    """What the module is for."""
    task: str = ""
    """The task. By default the one that the first lines of the interface name."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the task. Each is KEY=VALUE, added to those in these lines; `jaxreward tasks NAME` lists them."""
    out: Path | None = None
    """The module. By default TASK_TARGET.py here."""
    unsafe_no_sandbox: bool = False
    """Check without the sandbox. For systems that have none, and programs you trust."""
    json: bool = False
    """End standard output with one JSON object."""


class Written(NamedTuple):
    """A module, where it lies, and the task that it is for."""

    path: Path
    export: Export
    target: Target
    task: str
    task_arg: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        summary = self.export.summary
        return {
            "out": str(self.path), "to": self.target, "task": label_of(self.task), "task_arg": list(self.task_arg),
            "digest": summary.digest, "observation_size": summary.observation_size, "terms": list(summary.terms),
            "defaults": list(self.export.defaults), "needs": ["jax", *self.export.needs],
        }  # fmt: skip


def run(resolved: Resolved[ExportSettings]) -> int:
    """Write the module and print what it needs."""
    settings = resolved.settings
    console = console_of(settings.json)
    written = write_export(settings)
    needs = ", ".join(("jax", *written.export.needs))
    console.print(f"{written.path}: {label_of(written.task)} for {written.target}; it needs {needs}")
    if written.export.defaults:
        console.print(f"  the program has no {' and no '.join(written.export.defaults)}: there it is the task's own")
    if settings.json:
        print_json(written.as_json())
    return 0


def write_export(settings: ExportSettings) -> Written:
    """Check the interface and write its module.

    Raises:
        UserError: no interface or task, a program that is refused, a target that is not for the task, a file that is in
            the way.
    """
    if settings.interface is None:
        raise UserError("name the interface first: jaxreward export FILE.py --to gymnasium")
    if settings.to is None:
        raise UserError("say what the module is for, e.g. --to gymnasium")
    source = _read(settings.interface)
    name, *options = task_of_interface(source, settings.task, settings.interface)
    arguments = merged_options(options, settings.task_arg)
    if is_file(name):  # whoever has the module has no use for the folders of this machine
        source = with_task(source, shlex.join((label_of(name), *arguments)))
    task = make_task_of(name, arguments)
    path = settings.out or Path(f"{_stem(name)}_{settings.to}.py")
    with Checker(unsafe_no_sandbox=settings.unsafe_no_sandbox) as checker:
        require_vocabulary(task, checker=checker)
        check = partial(_checked, checker, task, settings.interface.name)
        written = export(source, task, name, settings.to, check, _seen_from(name, path))
    if path.is_dir() or (path.exists() and path.read_bytes() != written.text.encode()):
        raise UnusableFile(
            f"{path} exists and is something else: name another file with --out, or move it away",
            path,
            FileProblem.EXISTS,
        )
    try:
        write_atomic(path, written.text)
    except OSError as error:
        raise UnusableFile(f"cannot write {path}: {error.strerror or error}", path, FileProblem.UNWRITABLE) from error
    return Written(path, written, settings.to, name, arguments)


def _read(interface: Path) -> str:
    if not interface.exists() and interface.suffix != ".py":
        interface = find_run(str(interface))
    of_run = interface.is_dir()
    path = interface / BEST if of_run else interface
    if not (files.is_there(path) if of_run else path.is_file()):
        what = f"{interface} has no {BEST}: no candidate of it has a score yet" if of_run else ""
        raise UnusableFile(what or f"there is no interface file {path}", path, FileProblem.MISSING)
    return read_program(path, links=not of_run)


def _seen_from(name: str, module: Path) -> str:
    """The name of a task in a file as seen from the folder of a module; empty for any other task."""
    if not is_file(name):
        return ""
    return named(Path(os.path.relpath(file_of(name).absolute(), module.absolute().parent)), class_of(name))


def _stem(name: str) -> str:
    """A task's name as that of a module."""
    stem = file_of(name).stem if is_file(name) else name
    return "".join(c if c.isalnum() else "_" for c in stem)


def _checked(checker: Checker, task: Any, label: str, source: str) -> Program:
    verdict, program = checker.check(source, task, name=label)
    if program is None:
        raise ProgramRejected(label, verdict)
    return program


COMMANDS = (Command("export", ExportSettings, run=run, examples=("export runs/first --to gymnasium",)),)
