"""Which run a search goes on with, and what may differ when it does."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxreward.errors import ChangedSetting, FileProblem, UnusableFile
from jaxreward.evolution.presets import quick_learner
from jaxreward.evolution.search_options import OF_EXECUTOR
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import given_objects, require_same_files, require_same_objects
from jaxreward.evolution.started import started_settings
from jaxreward.files import is_there
from jaxreward.identity import Identity
from jaxreward.runs import Finished, RunStarted, read_log
from jaxreward.runs.events import json_ready
from jaxreward.runs.resume_options import COPIES
from jaxreward.runs.run import require_new
from jaxreward.runs.toml import flat
from jaxreward.tasks import Task
from jaxreward.training import PPO
from jaxreward.training.learners import PLATFORMS, Shape

MAY_CHANGE = {
    *("out", "name", "store", "resume", "profile", "track", "dry_run", "json"),
    *("in_flight", "candidates", "max_attempts", "max_env_steps", "max_device_s"),
    *OF_EXECUTOR,
    *("memory_gb", "unsafe_no_sandbox", "baselines", "final_seeds", "final_steps"),
}
"""What may differ when a run is resumed, besides language models: its folder, how it is watched, its budgets."""


def may_change(name: str) -> bool:
    """Whether a setting may differ when a run is resumed: those of `MAY_CHANGE`, and options of language models that
    propose (`llm.*`), which providers may withdraw during a run; their replies are in the transcript. A judge stays who
    it is, since the scores of two cannot be compared."""
    return name in MAY_CHANGE or (name.startswith("llm.") and not name.startswith("llm.judge_"))


def free_name(settings: EvolveSettings) -> str:
    """The default name, with a number where a run of that name exists: a second search is a new run."""
    name, number = settings.run_name, 1
    while (settings.out / name).exists():
        number += 1
        name = f"{settings.run_name}-{number}"
    return name


def has_begun(path: Path) -> bool:
    """Whether `path` holds a run to go on with: one in which something was proposed, and that has not failed.

    Raises:
        UnusableFile: another process writes it.
    """
    if not is_there(path / "config.toml"):
        return False
    try:
        require_new(path)
    except UnusableFile as error:
        if error.problem is not FileProblem.EXISTS:
            raise
        return True
    return False


def objects_of(path: Path) -> dict[str, Identity] | None:
    """The identities of the objects that Python code began the run in `path` with, empty for names alone; None where
    nothing is logged."""
    first = next((entry.event for entry in read_log(path / "events.jsonl")), None)
    return given_objects(first) if isinstance(first, RunStarted) else None


def with_shape_of(path: Path, again: EvolveSettings, given: Any, task: str | Task) -> EvolveSettings:
    """The settings `again` for the run in `path`, which may have begun on another device: where its learner has the
    shape that the preset has there, those values of it that the caller did not give.

    Args:
        given: the learner as the caller gave it: an object, values by name, or None.
    """
    if given is not None and not isinstance(given, Mapping):
        return again
    names = [name for name in Shape._fields if name not in (given or {})]
    learners = {platform: quick_learner(task, platform) for platform in PLATFORMS}

    def shape(ppo: PPO) -> list[Any]:
        return [getattr(ppo, name) for name in names]

    began = shape(started_settings(path).ppo)
    if shape(again.ppo) not in map(shape, learners.values()) or began not in map(shape, learners.values()):
        return again
    return dataclasses.replace(again, ppo=again.ppo.replace(**dict(zip(names, began, strict=True))))


def require_same_call(path: Path, again: EvolveSettings, objects: Mapping[str, Identity]) -> None:
    """Require that the run in `path` began with the settings `again`, but for those that may change, and with the same
    files and objects.

    Nothing that its folder names is executed.

    Raises:
        UserError: it did not: the first difference.
    """
    require_same_objects(path, objects_of(path) or {}, objects, otherwise(again))
    require_same_files(again, path, otherwise(again))
    started = started_settings(path)
    for option in COPIES:  # first: the others may depend on their code
        _require(path, again, option, getattr(started, option), getattr(again, option))
    before, now = dict(flat(started.as_config())), dict(flat(again.as_config()))
    for name in sorted(before.keys() | now.keys()):
        if not may_change(name):
            _require(path, again, name, before.get(name), now.get(name))


def otherwise(settings: EvolveSettings) -> str:
    """What a caller in Python does who wants another run: only a default name is numbered with `resume=False`."""
    return "give another name= for a new run" if settings.name else "give a name=, or resume=False, for a new run"


def _require(path: Path, again: EvolveSettings, name: str, before: Any, now: Any) -> None:
    if before != now:
        was, given = ("not set" if x in (None, []) else x for x in (before, now))
        raise ChangedSetting(
            f"{path} began with {name} {was}, and is now given {given}: give the same, or {otherwise(again)}", name
        )


def is_complete(path: Path, settings: EvolveSettings) -> bool:
    """Whether the run in `path` has finished with these very settings."""
    entries = read_log(path / "events.jsonl")
    config = next((e.event.config for e in reversed(entries) if hasattr(e.event, "config")), None)  # type: ignore[union-attr]
    return isinstance(entries[-1].event, Finished) and config == json_ready(settings.as_config())
