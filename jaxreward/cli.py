"""The command line: `jaxreward evolve | train | doctor | check | tasks`.

A mistake of the user is one sentence on standard error and exit status 2. A run that a signal
stopped leaves with the code that asks a scheduler to queue it again.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from jaxreward.errors import UserError

USAGE_ERROR = 2
D = TypeVar("D")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help"):
        print(_usage())
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
        return COMMANDS[name](rest)
    except UserError as error:
        print(f"jaxreward {name}: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print(f"jaxreward {name}: interrupted", file=sys.stderr)
        return 130


def _usage() -> str:
    return "usage: jaxreward COMMAND [options]\n\n" + "\n".join(
        f"  {name:8} {(command.__doc__ or '').splitlines()[0]}" for name, command in COMMANDS.items()
    ) + "\n\njaxreward COMMAND --help lists the options of a command."  # fmt: skip


# ---- arguments


def _take(args: list[str], flag: str) -> str | None:
    """Remove `flag VALUE` or `flag=VALUE` from args and return the value."""
    for i, arg in enumerate(args):
        if arg == flag:
            if i + 1 >= len(args):
                raise UserError(f"{flag} needs a value")
            value = args[i + 1]
            del args[i : i + 2]
            return value
        if arg.startswith(flag + "="):
            del args[i]
            return arg.removeprefix(flag + "=")
    return None


def _peek(args: list[str], flag: str, default: str) -> str:
    value = _take(list(args), flag)
    return default if value is None else value


def _parse(kind: type[D], base: D, args: list[str], command: str, extra: str = "") -> D:
    import tyro

    text = (
        (kind.__doc__ or "") + "\n\n--config FILE.toml reads any of these from a file; the command line wins." + extra
    )
    return tyro.cli(kind, args=args, default=base, prog=f"jaxreward {command}", description=text)


def _configured(base: D, args: list[str]) -> D:
    from jaxreward.options import apply, read_toml

    path = _take(args, "--config")
    return base if path is None else apply(base, read_toml(Path(path)), path)


def _console(as_json: bool) -> Any:
    from rich.console import Console

    return Console(stderr=as_json, soft_wrap=True)


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(_finite(value), allow_nan=False), flush=True)


def _finite(value: Any) -> Any:
    """JSON has no infinities: they become strings, as TOML writes them."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# ---- commands


def evolve_command(args: list[str]) -> int:
    """Search for an interface of a task."""
    from jaxreward.reports.live import Live
    from jaxreward.runs import StopSignal

    typed = list(args)
    settings = _evolve_settings(args)
    settings.check()
    console = _console(settings.json)
    from jaxreward.commands.plan import describe
    from jaxreward.evolution import Parts

    Parts.of(settings)  # a plan with a name that does not exist is no plan
    for line in describe(settings):
        console.print(line, highlight=False)
    if settings.dry_run:
        if settings.json:
            _print_json({"dry_run": True, "settings": settings.as_config()})
        return 0
    from jaxreward.evolve import evolve

    settings = dataclasses.replace(settings, command=shlex.join(["jaxreward", "evolve", *typed]))
    with StopSignal() as stop, Live(console, settings.candidates) as live:
        outcome = evolve(settings, live, stop=stop)
    from jaxreward.commands.summary import evolve_json, show_outcome

    show_outcome(outcome, console)
    if settings.json:
        _print_json(evolve_json(outcome))
    return outcome.exit_code


# What may differ when a run is resumed: where it lies, how it is watched, and its budgets.
_MAY_CHANGE = {
    *("out", "name", "resume", "dry_run", "json", "candidates", "max_attempts", "max_env_steps", "max_device_s"),
    *("memory_gb", "unsafe_no_sandbox", "command", "baselines", "final_seeds", "final_steps"),
}


def _evolve_settings(args: list[str]) -> Any:
    from jaxreward.options import apply
    from jaxreward.settings import EvolveSettings, preset

    preset_name = _take(args, "--preset") or "quick"
    extra = " --preset quick | paper-budget chooses the defaults of the task."
    config = list(args)
    # The task decides the preset, so it is looked up first, on the command line and then in the file.
    task = _peek(args, "--task", str(_configured(EvolveSettings(), list(args)).task))
    base = _configured(preset(preset_name, task), config)
    settings = _parse(EvolveSettings, base, config, "evolve", extra)
    if not settings.resume:
        return settings if settings.name else dataclasses.replace(settings, name=_free_name(settings))
    from jaxreward.runs.run import read_config

    path = settings.out / settings.run_name
    if not (path / "config.toml").exists():
        # What a scheduler runs again is the same command: the first time there is nothing to resume.
        return dataclasses.replace(settings, name=settings.run_name, resume=False)
    started = apply(EvolveSettings(), read_config(path), str(path / "config.toml"))
    started = dataclasses.replace(started, out=settings.out, name=settings.name or path.name, resume=True)
    again = _parse(EvolveSettings, _configured(started, args), args, "evolve", extra)
    for field in dataclasses.fields(started):
        if field.name not in _MAY_CHANGE and getattr(again, field.name) != getattr(started, field.name):
            raise UserError(
                f"--{field.name.replace('_', '-')} of {path} is {getattr(started, field.name)} and cannot change "
                "when it is resumed; leave it out, or start another run with --name"
            )
    return again


def _free_name(settings: Any) -> str:
    """The default name, with a number where a run of that name exists: a second search is a new run."""
    name, number = settings.run_name, 1
    while (settings.out / name).exists():
        number += 1
        name = f"{settings.run_name}-{number}"
    return name


def train_command(args: list[str]) -> int:
    """Train given interfaces over fresh seeds and compare them."""
    from jaxreward.commands.retrain import TrainSettings, retrain
    from jaxreward.reports.live import Live

    settings = _parse(TrainSettings, _configured(TrainSettings(), args), args, "train")
    settings.check()
    console = _console(settings.json)
    from jaxreward.commands.plan import describe_training
    from jaxreward.tasks import make_task

    make_task(settings.task)
    for line in describe_training(settings):
        console.print(line, highlight=False)
    if settings.dry_run:
        if settings.json:
            _print_json({"dry_run": True})
        return 0
    with Live(console) as live:
        done = retrain(settings, live.training)
    from jaxreward.commands.summary import show_retrained, train_json

    show_retrained(settings, done, console)
    if settings.json:
        _print_json(train_json(settings, done))
    return 0


def doctor_command(args: list[str]) -> int:
    """Examine this machine: versions, devices, sandbox, disk, a short training."""
    from jaxreward.commands.doctor import DoctorSettings, examine

    settings = _parse(DoctorSettings, _configured(DoctorSettings(), args), args, "doctor")
    console = _console(settings.json)
    findings = []
    for finding in examine(settings):
        findings.append(finding)
        console.print(f"{'ok ' if finding.ok else 'NOT'} {finding.name}: {finding.text}", highlight=False)
    fit = all(f.ok for f in findings)
    if settings.json:
        _print_json({"fit": fit, "findings": [dataclasses.asdict(f) for f in findings]})
    return 0 if fit else 1


@dataclasses.dataclass(frozen=True)
class CheckSettings:
    """Check programs without training them: the verdict, the digest, the cost."""

    interfaces: tuple[Path, ...] = ()
    """Program files."""
    task: str = "xland-easy"
    """The task that they are for."""
    unsafe_no_sandbox: bool = False
    """Check without the sandbox, where the system has none. Only for programs you trust."""
    json: bool = False
    """Print one JSON object as the last line of standard output."""


def check_command(args: list[str]) -> int:
    """Check programs without training them."""
    settings = _parse(CheckSettings, _configured(CheckSettings(), args), args, "check")
    if not settings.interfaces:
        raise UserError("give at least one program file with --interfaces")
    for path in settings.interfaces:
        if not path.is_file():
            raise UserError(f"there is no interface file {path}")
    from jaxreward.programs import Checker
    from jaxreward.tasks import make_task

    task, console = make_task(settings.task), _console(settings.json)
    with Checker(unsafe_no_sandbox=settings.unsafe_no_sandbox) as checker:
        outcomes = checker.check_many([p.read_text(encoding="utf-8") for p in settings.interfaces], task)
    rows = []
    for path, (verdict, _) in zip(settings.interfaces, outcomes, strict=True):
        rows.append({"interface": str(path), **verdict.model_dump()})
        if verdict.summary is not None and verdict.ok:
            s = verdict.summary
            console.print(
                f"{path}: ok, {s.observation_size} features, terms {', '.join(s.terms)}, {s.operations} operations, "
                f"{s.flops:,} FLOPs a step, digest {s.digest[:12]}", highlight=False,
            )  # fmt: skip
        else:
            console.print(f"{path}: {verdict.failure}", highlight=False)
        for notice in verdict.notices:
            console.print(f"  {notice.kind}: {notice.message}", highlight=False)
    if settings.json:
        _print_json({"rows": rows})
    return 0 if all(verdict.ok for verdict, _ in outcomes) else 1


def tasks_command(args: list[str]) -> int:
    """List the tasks, or describe one: `jaxreward tasks NAME`."""
    from jaxreward.tasks import make_task, task_names

    if not args or args[0] in ("-h", "--help"):
        print("\n".join([*task_names(), "xland/<environment>/<ruleset>"]))
        return 0
    task = make_task(args[0])
    print(f"{task.name}, {task.horizon} steps an episode\n\n{task.description}\n\n{task.state_doc}")
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "evolve": evolve_command,
    "train": train_command,
    "doctor": doctor_command,
    "check": check_command,
    "tasks": tasks_command,
}

if __name__ == "__main__":
    sys.exit(main())
