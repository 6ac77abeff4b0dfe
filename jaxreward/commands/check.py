"""`jaxreward check`: verdicts on programs, without training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jaxreward.commands.output import console_of, print_json
from jaxreward.errors import UserError
from jaxreward.options import Arg


@dataclass(frozen=True)
class CheckSettings:
    """Check programs without training them: the verdict, the digest, the cost."""

    interfaces: Annotated[tuple[Path, ...], Arg(adds=True)] = ()
    """Program files."""
    task: str = "xland-easy"
    """What they are for (`jaxreward tasks`)."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the task. Each is KEY=VALUE; `jaxreward tasks NAME` lists them."""
    unsafe_no_sandbox: bool = False
    """Check without the sandbox. For systems that have none, and programs you trust."""
    json: bool = False
    """End standard output with one JSON object."""


def check(args: list[str]) -> int:
    """Print a verdict on each program; `args` are those of the command line. Returns 1 if one is rejected."""
    from jaxreward.commands.arguments import configured
    from jaxreward.commands.parsing import parse

    settings = parse(CheckSettings, configured(CheckSettings(), args), args, "check")
    if not settings.interfaces:
        raise UserError("give at least one program file with --interfaces")
    for path in settings.interfaces:
        if not path.is_file():
            raise UserError(f"there is no interface file {path}")
    from jaxreward.programs import Checker
    from jaxreward.programs.checker import read_program
    from jaxreward.tasks import make_task_of

    task, console = make_task_of(settings.task, settings.task_arg), console_of(settings.json)
    with Checker(unsafe_no_sandbox=settings.unsafe_no_sandbox) as checker:
        outcomes = checker.check_many([read_program(p) for p in settings.interfaces], task)
    rows = []
    for path, (verdict, _) in zip(settings.interfaces, outcomes, strict=True):
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
    if settings.json:
        print_json({"rows": rows})
    return 0 if all(verdict.ok for verdict, _ in outcomes) else 1
