"""The settings of a search: those of a new one, of one that is replayed, of a run that is resumed."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from jaxreward.commands.confirm import own_limit, require_own
from jaxreward.commands.file_tasks import named_again
from jaxreward.commands.options import options_of
from jaxreward.commands.resolve import Given, Resolved, Source
from jaxreward.config import values_of
from jaxreward.demonstrations.storage import task_of_episodes
from jaxreward.errors import ChangedSetting, InvalidSetting, UserError
from jaxreward.evolution.copying import bring
from jaxreward.evolution.presets import preset, usual_strategy
from jaxreward.evolution.resuming import free_name, may_change, objects_of
from jaxreward.evolution.search_options import OF_EXECUTOR, OF_GENETIC
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import require_same_objects
from jaxreward.evolution.started import started_settings
from jaxreward.files import is_there
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.registry import load_proposer
from jaxreward.runs.resume_options import COPIES
from jaxreward.runs.run import no_run, read_config
from jaxreward.search.option_text import read_options
from jaxreward.search.registry import load_strategy
from jaxreward.sentences import mention
from jaxreward.tasks import is_file, is_task_name

BY_EVOLVE = "say jaxreward evolve --proposer manual"
"""What to do instead, where `ask` or `tell` has no use for an option."""


def resolve_search(given: Given[EvolveSettings]) -> Resolved[EvolveSettings]:
    """The settings of a search; of a resumed run its own, with what may change of them.

    A replay has the settings of the recorded run, which take precedence over those of a file. Task, strategy and device
    decide the preset; a run that is resumed, and a replay, keep the learner that they began with on any device.
    """
    values = given.line.values if given.file_is_of_run else given.values  # a run's file has its recording's settings
    recording: Path = values.get("recording", Path())
    recorded = _recorded(recording)
    if recorded:
        new = _absolute(_replayed(given, recording, recorded))
    else:
        usual = _usual(given)
        task, strategy = given.get("task", usual.task), given.get("strategy", usual.strategy)
        objective = given.get("objective", EvolveSettings.objective)
        base = preset(given.line.preset or "quick", task, strategy, given.platform, objective)
        base = dataclasses.replace(base, task=usual.task, task_arg=usual.task_arg, strategy=usual.strategy)
        new = _absolute(given.over(base, Source.PRESET, given.line.preset and f"--preset {given.line.preset}"))
    path = new.settings.out / new.settings.run_name
    real = not new.settings.dry_run and given.line.topic is None
    if new.settings.resume and real and (said := bring(new.settings)):
        print(said, file=sys.stderr)
    if new.settings.resume and is_there(path / "config.toml"):
        return _resumed(path, new, given)
    if given.line.topic is not None:
        return new
    _load(new.settings)
    if given.line.config is not None:
        new = _with_own_models(given.line.config, new, new.settings.llm)
    settings, command = new.settings, given.page.name
    if not settings.resume:
        return new.with_settings(name=settings.name or free_name(settings))
    if command == "tell" or not (command == "ask" or given.get("task", "") or recorded):
        begin = "start one with jaxreward ask" if command == "tell" else "say with --task what a new one searches"
        raise no_run(path, begin)
    # What a scheduler runs again is the same command: the first time there is nothing to resume.
    return new.with_settings(name=settings.run_name, resume=False)


def _usual(given: Given[EvolveSettings]) -> EvolveSettings:
    """The task, its options and the strategy where none are named: those of the objective, on the task that the
    episodes of a search on demonstrations are of."""
    objective, data = given.get("objective", EvolveSettings.objective), given.get("demonstrations.data", ())
    found = EvolveSettings(strategy=usual_strategy(objective))
    if objective != "demonstrations" or "task" in given.values or not data or given.line.topic is not None:
        return found
    if not data[0].is_file():
        return found  # what the settings' own check says
    name, options = task_of_episodes(data[0])
    if not is_task_name(name):  # no file is executed
        which = f"{data[0]} has episodes of {name}" if name else f"{data[0]} does not name its task"
        raise InvalidSetting(f"{which}: say with {mention('task')} which task or Python file that is", "task", "data")
    return dataclasses.replace(found, task=name, task_arg=options)


def _replayed(given: Given[EvolveSettings], recording: Path, recorded: dict[str, Any]) -> Resolved[EvolveSettings]:
    """The settings of a replay. A recording says what is searched, not where a run lies or what the machine may use."""
    for option in ("task", "strategy"):
        if not given.line.values.get(option, ""):
            named_again(recorded.get(option, ""), "", f"the run {recording}", recording, option)
    if given.line.preset:
        raise InvalidSetting(
            "--preset is of no use with --recording, which has all settings: leave it out", "recording"
        )
    ignored = [p for p in recorded if p in given.file and p not in given.line.values and given.file[p] != recorded[p]]
    if ignored:
        print(f"{given.line.config}: {', '.join(ignored)} ignored: a replay has what was recorded", file=sys.stderr)
    base = EvolveSettings(proposer="replay", recording=recording)
    return given.over(base, Source.RECORDING, f"the run {recording}", recorded)


def _resumed(path: Path, new: Resolved[EvolveSettings], given: Given[EvolveSettings]) -> Resolved[EvolveSettings]:
    """The settings of the run in `path`, with what the user gives for it; `new` are those of a run that begins."""
    started = dataclasses.replace(_started(path), out=new.settings.out, name=path.name, resume=True)
    resolved = _absolute(given.over(started, Source.RUN, str(path)))
    if given.line.topic is not None:
        return resolved
    resolved = _with_own_models(path, resolved, started.llm)
    require_same_objects(path, objects_of(path) or {}, {})
    for option in COPIES:
        if is_file(recorded := getattr(started, option)):
            name: Any = {option: named_again(recorded, given.get(option, ""), f"the run {path}", path, option)}
            started, resolved = dataclasses.replace(started, **name), resolved.with_settings(**name)
    _load(resolved.settings)
    resolved = _with_all_options(started, resolved)
    try:
        _require_same(path, started, resolved.settings, given.page.name)
    except UserError as error:
        resolved.explain(error)
        raise
    return resolved


def _load(settings: EvolveSettings) -> None:
    """Import the strategy and the proposer of settings that the user gives, where they are files."""
    if is_file(settings.strategy):
        load_strategy(settings.strategy)
    if is_file(settings.proposer):
        load_proposer(settings.proposer)


def _with_own_models(path: Path, resolved: Resolved[EvolveSettings], found: LlmSettings) -> Resolved[EvolveSettings]:
    """The same, where the folder of a run, which has `found`, does not alone say which language models are asked, nor
    what they may cost without a question.

    Raises:
        Unconfirmed: it does, and this user did not choose them before.
    """
    proposer, llm = resolved.settings.proposer, resolved.settings.llm
    of_folder = {p.removeprefix("llm.") for p, source in resolved.sources.items() if source is Source.RUN}
    if "confirm_usd" in of_folder:
        llm = own_limit(proposer, found, llm)
    require_own(path, proposer, of_folder, found, llm)
    return resolved.with_settings(llm=llm)


def _with_all_options(started: EvolveSettings, resolved: Resolved[EvolveSettings]) -> Resolved[EvolveSettings]:
    """With the options of the strategy that a run was started with, all of which its folder has, where those that are
    given are among them."""
    s = resolved.settings
    if s.strategy != started.strategy:
        return resolved
    whole = read_options(s.strategy, started.option)
    given = read_options(s.strategy, s.option)
    return resolved.with_settings(option=started.option) if given.items() <= whole.items() else resolved


def _require_same(path: Path, started: EvolveSettings, again: EvolveSettings, command: str) -> None:
    """Raise UserError for a setting of the run in `path` that differs and must not."""
    for option in options_of(EvolveSettings):
        before = option.of(started)
        if may_change(option.path) or option.of(again) == before:
            continue
        if option.path == "proposer" and command in ("ask", "tell"):
            raise InvalidSetting(
                f"{path} is a run of the {before} proposer, and {command} is for runs of --proposer manual: "
                "say jaxreward evolve --resume, or start another run with --name",
                "proposer",
            )
        value = "not set" if before in (None, ()) else " ".join(map(str, before)) if option.several else before
        raise ChangedSetting(
            f"{option.flag} of {path} is {value} and cannot change when it is resumed; leave it out, or start another "
            "run with --name",
            option.path,
        )


def _started(path: Path) -> EvolveSettings:
    """The settings that a run was started with. Its folder cannot take the sandbox away from its programs: that is for
    whoever types the command."""
    return dataclasses.replace(started_settings(path), unsafe_no_sandbox=False)


def _recorded(recording: Path) -> dict[str, Any]:
    """The settings of a recorded run by path, where the recording is the folder of one; else none."""
    if recording == Path() or not is_there(config := recording / "config.toml"):
        return {}
    values = values_of(EvolveSettings, read_config(recording), str(config))
    skip = {"out", "name", "resume", "profile", "track", "dry_run", "json", "memory_gb", "unsafe_no_sandbox"}
    skip |= {"proposer", "recording", "llm.prompts", *OF_EXECUTOR, *OF_GENETIC}
    if not values.get("filter_steps", 0):  # without a short rung nobody chose the threshold that is written there
        skip.add("filter_threshold")
    return {"task": EvolveSettings.task, **{path: value for path, value in values.items() if path not in skip}}


def _absolute(resolved: Resolved[EvolveSettings]) -> Resolved[EvolveSettings]:
    """The same with absolute paths, so that the run can be resumed from elsewhere, and the command as it was typed."""
    s = resolved.settings
    return resolved.with_settings(
        **{option: str(Path(name).absolute()) for option in COPIES if is_file(name := getattr(s, option))},
        llm=dataclasses.replace(s.llm, prompts=s.llm.prompts and s.llm.prompts.absolute()),
        observation=s.observation and s.observation.absolute(), command=resolved.line.text,
    )  # fmt: skip


def for_people(given: Given[EvolveSettings], **more: object) -> Resolved[EvolveSettings]:
    """The settings of `ask` and `tell`: a run of the manual proposer, resumed where it exists, with `more` values."""
    command, values = given.page.name, given.line.values
    if given.get("dry_run", False):
        raise InvalidSetting(
            "--dry-run is for evolve and train: jaxreward evolve --proposer manual --dry-run shows the plan",
            "dry_run",
        )
    if (proposer := values.get("proposer", "manual")) != "manual":
        raise InvalidSetting(
            f"{command} is for --proposer manual, not {proposer}: leave --proposer out, or say jaxreward evolve",
            "proposer",
        )
    line = dataclasses.replace(given.line, values={**values, "proposer": "manual", "resume": True, **more})
    return resolve_search(dataclasses.replace(given, line=line))
