"""Options of a task as text, KEY=VALUE, such as `push_force_scale=2`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from jaxreward.errors import InvalidSetting, UnknownName, nearest
from jaxreward.sentences import mention
from jaxreward.tasks.option_checks import NO_OPTIONS, invalid_option
from jaxreward.tasks.registry import make_task, unchecked_task
from jaxreward.tasks.task import Task

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


def options_of(task: Task) -> dict[str, Any]:
    """The options of `task` and their values: fields of a dataclass, or the names in `task.options`."""
    if dataclasses.is_dataclass(task):
        names = [field.name for field in dataclasses.fields(task) if field.init and field.name not in NO_OPTIONS]
    else:
        names = list(getattr(task, "options", ()))
    return {name: getattr(task, name) for name in names if type(getattr(task, name)) in _KINDS}


def make_task_of(name: str, arguments: Sequence[str] = ()) -> Task:
    """The task called `name` with options KEY=VALUE in place of its defaults.

    Raises:
        UserError: no such task or option, a value of the wrong kind, or one that the task refuses; a mistake in the
            task of a file.
    """
    return make_task(name, **_options(name, arguments))


def unchecked_task_of(name: str, arguments: Sequence[str] = ()) -> Task:
    """As `make_task_of`, without the validation of a task in a file."""
    return unchecked_task(name, **_options(name, arguments))


def _options(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE as options of the task called `name`."""
    if not arguments:
        return {}
    task, given = unchecked_task(name), dict[str, Any]()
    known = options_of(task)
    # A number with a whole default may be annotated as any number, in a file with postponed annotations by that word.
    fields = dataclasses.fields(task) if dataclasses.is_dataclass(task) else ()
    real = {field.name for field in fields if field.type in (float, "float")}
    for text in arguments:
        key, sign, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not sign or not key:
            raise InvalidSetting(f"{mention('task_arg', [text])} must be KEY=VALUE, e.g. horizon=200", "task_arg")
        if key not in known:
            near = nearest(key, known)
            have = ", ".join(f"{k}={v}" for k, v in known.items()) or "none"
            end = f"did you mean {near}?" if near else f"it has {have}"
            message = f"{mention('task_arg', [text])}: {name} has no option '{key}'; {end}"
            raise UnknownName("option", key, known, message=message, settings=(f"task.{key}",))
        if key in given:
            raise invalid_option(key, f"{mention('task_arg')} gives {key} twice; give it once")
        given[key] = _read(key, text, value.strip(), float if key in real else type(known[key]))
    return given


def _read(key: str, text: str, value: str, kind: type) -> Any:
    try:
        return {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError):
        raise invalid_option(key, f"{mention('task_arg', [text])}: {_KINDS[kind]} is expected, not '{value}'") from None
