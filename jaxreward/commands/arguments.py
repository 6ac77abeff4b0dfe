"""From the command line to settings: files, presets, the settings of a run that is resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from jaxreward.commands.file_tasks import named_again
from jaxreward.commands.own import own_limit, require_own
from jaxreward.commands.parsing import given, help_asked, last, parse, without_help
from jaxreward.commands.retrain import TrainSettings
from jaxreward.comparison.compare_settings import CompareSettings, Typed
from jaxreward.config import apply, read_toml
from jaxreward.errors import UserError
from jaxreward.evolve.presets import preset, quick_learner, quick_steps
from jaxreward.evolve.settings import EvolveSettings
from jaxreward.files import is_there
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.runs.folders import is_run
from jaxreward.runs.run import nearest, read_config
from jaxreward.tasks import has_real_actions, is_file
from jaxreward.training import PPO

D = TypeVar("D")


def _evolve(base: EvolveSettings, args: list[str], command: str) -> EvolveSettings:
    settings = parse(EvolveSettings, base, args, command)
    # Absolute, so that a run can be resumed from elsewhere.
    if is_file(settings.task):
        settings = dataclasses.replace(settings, task=str(Path(settings.task).absolute()))
    if settings.llm.prompts is not None:
        llm = dataclasses.replace(settings.llm, prompts=settings.llm.prompts.absolute())
        settings = dataclasses.replace(settings, llm=llm)
    if settings.observation is not None:
        settings = dataclasses.replace(settings, observation=settings.observation.absolute())
    return settings


def configured(base: D, args: list[str]) -> D:
    """`base` with what the file of `--config` says, where there is one.

    Raises:
        UserError: it cannot be read, or is that of a run and names a Python file as the task, which nobody typed.
    """
    path = last(args, "--config")
    if path is None:
        return base
    found = apply(base, read_toml(Path(path)), path)
    if is_run(Path(path).parent):
        named_again(getattr(found, "task", ""), last(args, "--task") or "", path)
    return found


def _task_of_config(args: list[str]) -> str:
    """The task that the file of `--config` names; empty without."""
    path = last(args, "--config")
    return "" if path is None else str(read_toml(Path(path)).get("task", ""))


# What may differ when a run is resumed: where it lies, how it is watched, its budgets, and all that concerns language
# models: one may be withdrawn by its provider half-way, and what it said is in the transcript.
_MAY_CHANGE = {
    *("out", "name", "resume", "profile", "track", "dry_run", "json"),
    *("candidates", "max_attempts", "max_env_steps", "max_device_s"),
    *("memory_gb", "unsafe_no_sandbox", "command", "baselines", "final_seeds", "final_steps"),
}


_IDLE = {"ask": ("--track", "--profile"), "tell": ("--wait-s", "--preset")}
"""Options of `evolve` that mean nothing to a search one step at a time."""


def train_settings(args: list[str]) -> TrainSettings:
    """The settings of `jaxreward train`; steps and learner are by default those for the task on two cores, with
    `--preset paper` those of the paper."""
    name = last(args, "--preset") or "quick"
    task = last(args, "--task") or configured(TrainSettings(), args).task
    base = TrainSettings(task=task)
    if name != "quick":
        of_paper = preset(name, task)
        steps = of_paper.final_steps or of_paper.steps
        base = dataclasses.replace(base, steps=steps, seeds=of_paper.final_seeds, ppo=of_paper.ppo)
    elif has_real_actions(task):
        base = dataclasses.replace(base, steps=quick_steps(task), seeds=3, checkpoints=8, ppo=quick_learner(task))
    return parse(TrainSettings, configured(base, args), args, "train")


def evolve_settings(args: list[str], command: str = "evolve") -> EvolveSettings:
    """The settings of a search; of a resumed run its own, with what the command line may change.

    A replay starts from the settings of the recorded run.
    """
    given_to_people = command in ("ask", "tell")
    if given_to_people and (others := [name for name in given(args, "--proposer") if name != "manual"]):
        raise UserError(
            f"{command} is for --proposer manual, not {others[0]}: leave --proposer out, or say jaxreward evolve"
        )
    for flag in _IDLE.get(command, ()):
        if sum(arg.partition("=")[0] == flag for arg in args) > (flag == "--wait-s"):  # which `tell` says itself
            raise UserError(f"{command} has no use for {flag}: leave it out, or say jaxreward evolve --proposer manual")
    # Task and strategy decide the preset, so they are looked up first, on the command line and then in the file.
    named = configured(EvolveSettings(), args)
    said = last(args, "--task") or _task_of_config(args)
    task, strategy = said or named.task, last(args, "--strategy") or named.strategy
    recorded = _recorded(Path(last(args, "--recording") or ""))
    if recorded is not None and not said:  # what is typed takes the place of what the recording names
        named_again(recorded.task, said, f"the run {recorded.recording}", recorded.recording)
    base = configured(recorded or preset(last(args, "--preset") or "quick", task, strategy), args)
    settings = _evolve(base, without_help(args), command)
    resumes = settings.resume and is_there(settings.out / settings.run_name / "config.toml")
    if help_asked(args) is not None and not resumes:
        _evolve(base, args, command)  # prints it
    if not settings.resume:
        return settings if settings.name else dataclasses.replace(settings, name=_free_name(settings))
    path = settings.out / settings.run_name
    if not resumes:
        if command == "tell" or not (command == "ask" or said or recorded):
            near = nearest(path)
            begin = "start one with jaxreward ask" if command == "tell" else "say with --task what a new one searches"
            raise UserError(f"there is no run in {path}; " + (f"did you mean {near.name}?" if near else begin))
        # What a scheduler runs again is the same command: the first time there is nothing to resume.
        return dataclasses.replace(settings, name=settings.run_name, resume=False)
    started = _started(path)
    started = dataclasses.replace(started, out=settings.out, name=settings.name or path.name, resume=True)
    again = _evolve(configured(started, args), args, command)
    typed = _evolve(configured(dataclasses.replace(started, llm=LlmSettings()), args), args, command)
    again = dataclasses.replace(again, llm=own_limit(again.proposer, started.llm, typed.llm, again.llm))
    require_own(path, again.proposer, started.llm, typed.llm, again.llm)
    if is_file(started.task):
        started = dataclasses.replace(started, task=named_again(started.task, said, f"the run {path}", path))
        again = dataclasses.replace(again, task=started.task)
    for name, before, now in _fields(started, again):
        if name not in _MAY_CHANGE and not name.startswith("llm.") and now != before:
            if name == "proposer" and given_to_people:
                raise UserError(
                    f"{path} is a run of the {before} proposer, and {command} is for runs of --proposer manual: "
                    "say jaxreward evolve --resume, or start another run with --name"
                )
            raise UserError(
                f"--{name.replace('_', '-')} of {path} is {_said(before)} and cannot change "
                "when it is resumed; leave it out, or start another run with --name"
            )
    return again


def _started(path: Path) -> EvolveSettings:
    """The settings that a run was started with. Its folder cannot take the sandbox away from its programs: that is for
    whoever types the command."""
    found = apply(EvolveSettings(), read_config(path), str(path / "config.toml"))
    return dataclasses.replace(found, unsafe_no_sandbox=False)


def compare_settings(args: list[str]) -> CompareSettings:
    """The settings of a comparison. What is said of the learner is said of that of each task: whatever is not said is
    as `evolve` has it, and a value that happens to be the default of `PPO()` is said too."""

    plain = without_help(args)

    def typed(ppo: PPO) -> Typed:
        return parse(Typed, configured(Typed(ppo=ppo), plain), plain, "compare")

    said = typed(PPO())
    if help_asked(args) is not None:
        learner = quick_learner(said.tasks[0]) if said.tasks else PPO()
        parse(Typed, dataclasses.replace(said, ppo=learner), args, "compare")  # prints it
    if "--merge" in args and not said.merge:
        raise UserError("--merge needs a value: the folders of comparisons or shards to put together")
    learners = {task: typed(quick_learner(task)).ppo for task in said.tasks}
    fields = {field.name: getattr(said, field.name) for field in dataclasses.fields(CompareSettings)}
    settings = CompareSettings(**{**fields, "learners": learners})
    if settings.llm.prompts is None:
        return settings
    # Absolute, so that a search can be resumed from elsewhere.
    return dataclasses.replace(settings, llm=dataclasses.replace(settings.llm, prompts=settings.llm.prompts.absolute()))


def _recorded(recording: Path) -> EvolveSettings | None:
    """The settings of a recorded run, where the recording is the folder of one."""
    if recording == Path() or not is_there(recording / "config.toml"):
        return None
    settings = _started(recording)
    llm = dataclasses.replace(settings.llm, prompts=None)
    # Without a short rung nobody said the threshold that is written there.
    threshold = settings.filter_threshold if settings.filter_steps else None
    return dataclasses.replace(settings, proposer="replay", recording=recording, llm=llm, filter_threshold=threshold)


def _fields(started: Any, again: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Names and values of two settings, those of nested ones after a dot."""
    for field in dataclasses.fields(started):
        before, now = getattr(started, field.name), getattr(again, field.name)
        if dataclasses.is_dataclass(before):
            yield from _fields(before, now, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, before, now


def _said(value: Any) -> str:
    """A value of an option as it is typed."""
    if value is None or value == ():
        return "not set"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _free_name(settings: EvolveSettings) -> str:
    """The default name, with a number where a run of that name exists: a second search is a new run."""
    name, number = settings.run_name, 1
    while (settings.out / name).exists():
        number += 1
        name = f"{settings.run_name}-{number}"
    return name
