"""The command line: `jaxreward COMMAND`; `COMMANDS` lists them.

A mistake of the user is one sentence on standard error and exit status 2. A run that a signal
stopped leaves with the code that asks a scheduler to queue it again.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from jaxreward.commands.help_pages import overview
from jaxreward.commands.output import console_of, print_json
from jaxreward.errors import USAGE_EXIT_CODE, UserError, in_a_line, users_line
from jaxreward.files import NotAFile
from jaxreward.formatting import printable

if TYPE_CHECKING:
    from rich.console import Console

    from jaxreward.evolve import Outcome


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run(args)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
        return 141 if args[:1] and args[0] in _TRAINING else 0  # 141 as after SIGPIPE: what was begun is not complete


def _run(args: list[str]) -> int:
    if args[:1] in (["-h"], ["--help"]) and args[1:2] and args[1] in COMMANDS:
        args = [args[1], "--help", *args[2:]]
    if not args or args[0] in ("-h", "--help"):
        print(overview(COMMANDS, "jaxreward", "jaxreward COMMAND --help lists the options of a command."))
        return 0
    if args[0] == "--version":
        from jaxreward.runs.provenance import versions

        print(versions()["jaxreward"])
        return 0
    name, rest = args[0], args[1:]
    try:
        if name not in COMMANDS:
            near = get_close_matches(name, COMMANDS, 1)
            raise UserError(
                f"there is no command '{name}'"
                + (f"; did you mean '{near[0]}'?" if near else f"; choose from {', '.join(COMMANDS)}")
            )
        if name in _TRAINING:
            from jaxreward.devices import use_cores

            use_cores()
        if name not in _SEARCHING:
            return COMMANDS[name](rest)
        from jaxreward.runs.signals import SCHEDULER, StopSignal

        # From here to the end: a job that is told to stop while it starts, or while it writes its report, is requeued.
        with StopSignal(SCHEDULER) as warned:
            status = COMMANDS[name](rest)
        return status or warned.exit_code
    except UserError as error:
        return _refuse(name, str(error))
    except KeyboardInterrupt:
        print(f"jaxreward {name}: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if not (isinstance(error, NotAFile) or error.errno in _MISHAPS) or error.filename is None:
            raise
        return _refuse(name, f"{error.filename} cannot be used: {error.strerror}; mend that, or name another")
    except Exception as error:
        if not users_line(error):  # a fault of ours, whose traceback is worth having
            raise
        return _refuse(name, f"the code of the task fails: {in_a_line(error)}; mend it there, and try again")


_MISHAPS = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENAMETOOLONG, errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EISDIR, errno.ENOTDIR, errno.ELOOP),
}
"""What can befall any file, whoever opens it."""


def _refuse(name: str, sentence: str) -> int:
    """Say in one line why a command does not go on; returns the exit status."""
    print(printable(f"jaxreward {name}: {' '.join(sentence.split())}"), file=sys.stderr)
    return USAGE_EXIT_CODE


# ---- commands


def evolve_command(args: list[str]) -> int:
    """Search for an interface of a task."""
    from jaxreward.commands.arguments import evolve_settings
    from jaxreward.reports.live import Live
    from jaxreward.runs import StopSignal

    typed = list(args)
    settings = evolve_settings(args)
    settings.check()
    console = console_of(settings.json)
    from jaxreward.commands.estimate import describe
    from jaxreward.commands.spending import confirm, foresee
    from jaxreward.evolve.setup import Setup

    Setup.of(settings)  # a plan with a name that does not exist is no plan
    spending = foresee(settings)
    for line in describe(settings, spending.text() if spending else ""):
        console.print(line)
    if settings.dry_run:
        if settings.json:
            print_json({"dry_run": True, "settings": settings.as_config()})
        return 0
    confirm(spending, settings)
    if "--resume" in args and not settings.resume:
        console.print(f"there is no run {settings.run_name} in {settings.out} to go on with: it begins now")
    from jaxreward.evolve import evolve

    settings = dataclasses.replace(settings, command=_typed("evolve", typed))
    with StopSignal() as stop, Live(console, settings.candidates) as live:
        outcome = evolve(settings, live, stop=stop)
    return _come_to("evolve", outcome, console)


def _typed(command: str, args: Sequence[str]) -> str:
    """What the user typed, for the log; should a key stand in it, hidden."""
    from jaxreward.proposers.llm.secrets import Secrets

    return Secrets().redact(shlex.join(["jaxreward", command, *args]))


def _come_to(command: str, outcome: Outcome, console: Console) -> int:
    """Show the outcome of a search; returns the exit status."""
    from jaxreward.commands.summary import evolve_json, show_outcome

    show_outcome(outcome, console)
    _write_report(outcome, console)
    if outcome.exit_code:
        _refuse(command, outcome.reason)
    if outcome.settings.json:
        print_json(evolve_json(outcome))
    return outcome.exit_code


def _write_report(outcome: Outcome, console: Console) -> None:
    """The run as a page; a search that has found something does not fail for want of one."""
    from jaxreward.reports.page import write_report

    try:
        console.print(f"all of it, on one page: {write_report(outcome.path)}")
    except Exception as error:  # whatever it is, the search is on the disk
        console.print(f"the report was not written ({error}); try again with jaxreward report {outcome.path}")


def ask_command(args: list[str]) -> int:
    """Write a search's next requests as files, for people and programs."""
    from jaxreward.commands.arguments import evolve_settings
    from jaxreward.evolve import ask
    from jaxreward.reports.live import Live

    typed = _typed("ask", args)
    _refuse_dry_run("--dry-run" in args)
    settings = evolve_settings([*args, "--proposer", "manual", "--resume"], "ask")
    _refuse_dry_run(settings.dry_run)
    console = console_of(settings.json)
    with Live(console) as live:
        asked, why = ask(dataclasses.replace(settings, command=typed), live)
    run = settings.out / settings.run_name
    if not asked:
        console.print(f"nothing to ask: {why}; jaxreward tell --name {run.name} goes on, --candidates N asks for more")
    for page, _ in asked:
        console.print(str(page))
    if settings.json:
        rows = [{"id": page.stem, "request": str(page), "reply": str(reply)} for page, reply in asked]
        print_json({"run": str(run), "requests": rows})
    return 0


def _refuse_dry_run(dry_run: bool) -> None:
    if dry_run:
        raise UserError(
            "--dry-run is for evolve and train: jaxreward evolve --proposer manual --dry-run shows the plan"
        )


def tell_command(args: list[str]) -> int:
    """Read, check and train the programs that answer them."""
    from jaxreward.commands.arguments import evolve_settings
    from jaxreward.commands.summary import rejections
    from jaxreward.evolve import evolve
    from jaxreward.reports.live import Live
    from jaxreward.runs import StopSignal, read_log
    from jaxreward.runs.folders import LOG

    typed = _typed("tell", args)
    _refuse_dry_run("--dry-run" in args)
    settings = evolve_settings([*args, "--proposer", "manual", "--resume", "--wait-s", "0"], "tell")
    _refuse_dry_run(settings.dry_run)
    console = console_of(settings.json)
    with StopSignal() as stop, Live(console, settings.candidates) as live:
        known = len(read_log(settings.out / settings.run_name / LOG))
        outcome = evolve(dataclasses.replace(settings, command=typed), live, stop=stop, generations=1)
    for line in rejections(read_log(outcome.path / LOG)[known:]):
        console.print(line)
    return _come_to("tell", outcome, console)


def train_command(args: list[str]) -> int:
    """Train given interfaces over fresh seeds and compare them."""
    from jaxreward.commands.arguments import train_settings
    from jaxreward.commands.retrain import retrain
    from jaxreward.reports.live import Live
    from jaxreward.runs.disk import check_target

    settings = train_settings(args)
    settings.check()
    console = console_of(settings.json)
    from jaxreward.commands.estimate import describe_training

    settings.make_task()
    if settings.plot is not None and not settings.dry_run:
        check_target(settings.plot)  # not after hours of training
    for line in describe_training(settings):
        console.print(line)
    if settings.dry_run:
        if settings.json:
            print_json({"dry_run": True})
        return 0
    with Live(console) as live:
        done = retrain(settings, live.training)
    from jaxreward.commands.summary import show_retrained, train_json

    show_retrained(settings, done, console)
    if settings.json:
        print_json(train_json(settings, done))
    return 0


def doctor_command(args: list[str]) -> int:
    """Examine this machine: versions, devices, sandbox, disk, training."""
    from jaxreward.commands.arguments import configured
    from jaxreward.commands.doctor import DoctorSettings, examine
    from jaxreward.commands.parsing import parse

    settings = parse(DoctorSettings, configured(DoctorSettings(), args), args, "doctor")
    console = console_of(settings.json)
    findings = []
    for finding in examine(settings):
        findings.append(finding)
        console.print(f"{'ok ' if finding.ok else 'NOT'} {finding.name}: {finding.text}")
    fit = all(f.ok for f in findings)
    if settings.json:
        print_json({"fit": fit, "findings": [dataclasses.asdict(f) for f in findings]})
    return 0 if fit else 1


def check_command(args: list[str]) -> int:
    """Check programs, or a task of your own, without training."""
    from jaxreward.commands.check import check

    return check(args)


def export_command(args: list[str]) -> int:
    """Write an interface as a module for training code of yours."""
    from jaxreward.commands.arguments import configured
    from jaxreward.commands.export import ExportSettings, write_export
    from jaxreward.commands.parsing import parse
    from jaxreward.config import label_of

    settings = parse(ExportSettings, configured(ExportSettings(), args), args, "export")
    console = console_of(settings.json)
    written = write_export(settings)
    needs = ", ".join(("jax", *written.export.needs))
    console.print(f"{written.path}: {label_of(written.task)} for {written.target}; it needs {needs}")
    if written.export.defaults:
        console.print(f"  the program has no {' and no '.join(written.export.defaults)}: there it is the task's own")
    if settings.json:
        print_json(written.as_json())
    return 0


def tasks_command(args: list[str]) -> int:
    """List the tasks, or describe one."""
    from jaxreward.commands.tasks import tasks

    return tasks(args)


def strategies_command(args: list[str]) -> int:
    """List the search strategies, or describe one."""
    from jaxreward.commands.parsing import parse
    from jaxreward.commands.strategies import StrategiesSettings, description, summary

    settings = parse(StrategiesSettings, StrategiesSettings(), args, "strategies")
    print(description(settings.strategy) if settings.strategy else summary())
    return 0


def prompt_command(args: list[str]) -> int:
    """Show what a language model would be sent."""
    if args[:1] != ["show"]:
        if args and args[0] in ("-h", "--help"):
            args = ["show", *args]
        else:
            raise UserError("say `jaxreward prompt show`, with --task for a new search or --run for a run")
    from jaxreward.commands.parsing import parse
    from jaxreward.commands.prompt import PromptSettings, show

    settings = parse(PromptSettings, PromptSettings(), args[1:], "prompt show")
    shown = show(settings)
    out = sys.stderr if settings.json else sys.stdout
    lines = [f"request {shown.request.id}, operator {shown.request.operator}, model {shown.model or 'not given'}"]
    lines += [f"\n---- {message['role']} ----\n{message['content'].rstrip()}" for message in shown.messages]
    print(printable("\n".join(lines)), file=out)
    if settings.json:
        print_json({"request": shown.request.id, "model": shown.model, "messages": list(shown.messages)})
    return 0


def compare_command(args: list[str]) -> int:
    """Compare strategies at equal budget."""
    from jaxreward.commands.compare import compare_command as compare

    return compare(args)


def report_command(args: list[str]) -> int:
    """Write the report of a run, one page."""
    from jaxreward.commands.report import report

    return report(args)


def film_command(args: list[str]) -> int:
    """Film a trained agent, of a run or of an interface."""
    from jaxreward.commands.film import film_command as film

    return film(args)


def runs_command(args: list[str]) -> int:
    """List runs, show one, follow one, set several side by side."""
    from jaxreward.commands.runs import runs_command as runs

    return runs(args)


def completion_command(args: list[str]) -> int:
    """Print a script that completes all of this in a shell."""
    from jaxreward.commands.completion import completion

    return completion(args, {name: (command.__doc__ or "").splitlines()[0] for name, command in COMMANDS.items()})


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "evolve": evolve_command,
    "ask": ask_command,
    "tell": tell_command,
    "compare": compare_command,
    "train": train_command,
    "report": report_command,
    "film": film_command,
    "doctor": doctor_command,
    "check": check_command,
    "export": export_command,
    "tasks": tasks_command,
    "strategies": strategies_command,
    "prompt": prompt_command,
    "runs": runs_command,
    "completion": completion_command,
}

_SEARCHING = {"evolve", "tell"}
_TRAINING = {"evolve", "tell", "train", "compare", "film"}

if __name__ == "__main__":
    sys.exit(main())
