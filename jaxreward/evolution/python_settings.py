"""The arguments of `jaxreward.evolve` as settings of a search, and the objects among them."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jaxreward.config import KeywordWords, fields_of, is_file, merged_options, nearest_option, values_of, with_values
from jaxreward.errors import InvalidSetting, UnknownName, UserError
from jaxreward.evolution.learner_options import named_learner, require_one_learner
from jaxreward.evolution.presets import preset, usual_strategy
from jaxreward.evolution.search_options import VocabularyOption
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Objects
from jaxreward.evolution.started import started_settings
from jaxreward.files import is_there
from jaxreward.identity import MOST, Identity
from jaxreward.identity.fingerprint import digest_of
from jaxreward.proposers.registry import NAMES, load_proposer
from jaxreward.records import Fragment, Vocabulary
from jaxreward.search import SearchStrategy
from jaxreward.search.option_text import SHARED, read_options, write_options
from jaxreward.search.registry import add_strategy, load_strategy, own_strategy
from jaxreward.secrets import Secrets
from jaxreward.tasks import Task, require_sound
from jaxreward.training import Learner

FOR_A_TERMINAL = {
    "dry_run": "`{command} --dry-run` shows what a search would do",
    "json": "what it would print is in the object that is returned",
    "merge": "`{command} --merge DIR...` puts shards together",
}
"""Fields of settings that are no keyword arguments, and what there is in their place."""

PARAMETERS = {"task", "strategy", "proposer", "resume"}
"""Fields of settings that are parameters of their own."""


def search_settings(
    task: str | Path | Task, strategy: Any, proposer: Any, preset_name: str, given: Mapping[str, Any]
) -> tuple[EvolveSettings, Objects]:
    """The settings of a search: those of a preset for the task, and what is given over them.

    Raises:
        UnknownName: a setting, preset, strategy or option that does not exist.
        UserError: a value of the wrong type, an object that is not what it should be.
    """
    named, identities = {}, dict[str, Identity]()
    named["task"], own_task = task_of(task)
    if own_task is not None:
        identities["task"] = Identity.of(own_task)
        if given.get("task_arg"):
            raise InvalidSetting("task_arg is for a task by its name: an object has its own options", "task_arg")
    named["strategy"], options = strategy_of(usual_strategy(given.get("objective")) if strategy is None else strategy)
    if (own_kind := own_strategy(named["strategy"])) is not None:
        identities["strategy"] = Identity.of(own_kind)
    named["proposer"], own_proposer = proposer_of(proposer)
    if own_proposer is not None:
        identities["proposer"] = Identity.of(own_proposer, private=False)
    vocabulary, given = vocabulary_of(named_learner(given))
    if vocabulary is not None:
        identities["vocabulary"] = _identity_of(vocabulary)
    objective = given.get("objective") or EvolveSettings.objective
    base = preset(preset_name, own_task or named["task"], named["strategy"], objective=objective)
    if options is not None:
        if given.get("option"):
            raise InvalidSetting("give the options of the strategy in the object or as option=, not both", "option")
        base = dataclasses.replace(base, option=options)
    values = typed_values(EvolveSettings, given, PARAMETERS, "jaxreward.evolve")
    require_one_learner(values.get("learner", base.learner), values)
    if "option" in values:
        values["option"] = merged_options(base.option, values["option"])
    elif named["proposer"] == "replay" and options is None:
        base = dataclasses.replace(base, option=_recorded_options(values.get("recording"), named["strategy"]))
    settings = dataclasses.replace(with_values(base, values), **named)
    prompts, observation = settings.llm.prompts, settings.observation
    settings = dataclasses.replace(
        settings,
        llm=dataclasses.replace(settings.llm, prompts=prompts and prompts.absolute()),
        observation=observation and observation.absolute(),
        command=call_text("evolve", {**named, **given}),
    )
    return settings, Objects(own_task, own_proposer, vocabulary, identities)


def _recorded_options(recording: Path | None, strategy: str) -> tuple[str, ...]:
    """The options of the strategy of a recorded run, for a replay, where the recording is the folder of one."""
    if recording is None or not is_there(recording / "config.toml"):
        return ()
    recorded = started_settings(recording)
    return recorded.option if recorded.strategy == strategy else ()


def task_of(task: Any) -> tuple[str, Task | None]:
    """The name of a task, and the object where it is none by its name."""
    if isinstance(task, str | Path):
        if not str(task).strip():
            raise InvalidSetting("task is empty: give the name of a task, a Python file or an object", "task")
        return _located(str(task)), None
    if isinstance(task, type):
        raise UserError(f"{task.__name__} is a class: give an object of it, {task.__name__}()")
    if inspect.isroutine(task):
        raise UserError(f"the function {task.__name__} is no task: jr.from_functions(reset, step, ...) makes one")
    if not any(hasattr(task, name) for name in ("reset", "step", "name")):
        raise UserError(f"{task!r} is no task: give a name, a Python file or an object such as of jr.BaseTask")
    require_sound(task)
    return task.name, task


def strategy_of(strategy: Any) -> tuple[str, tuple[str, ...] | None]:
    """The name of a strategy, and the options of one that is an object."""
    if isinstance(strategy, str | Path):
        if is_file(name := _located(str(strategy))):
            load_strategy(name)
        return name, None
    if isinstance(strategy, type):
        return add_strategy(strategy), None
    name = add_strategy(type(strategy))
    assert isinstance(strategy, SearchStrategy)
    values = {f.name: getattr(strategy, f.name) for f in dataclasses.fields(strategy)}
    for f in dataclasses.fields(strategy):
        if f.name in SHARED and values[f.name] != f.default:
            message = f"{f.name} of a strategy is set by the run: leave it out, and give it to the search"
            raise InvalidSetting(message, f"strategy.{f.name}")
    own = {name: value for name, value in values.items() if name not in SHARED}
    texts = write_options(name, own)
    try:
        lost = [key for key, value in read_options(name, texts).items() if value != own[key]]
    except InvalidSetting as error:
        lost = [error.settings[0].partition(".")[2]]
    if lost:
        raise InvalidSetting(
            f"the option {lost[0]} of {type(strategy).__name__} cannot be written down in a log: make it a number, a "
            "word, true or false, or a tuple of numbers",
            f"strategy.{lost[0]}",
        )
    return name, texts


def proposer_of(proposer: Any) -> tuple[str, Any]:
    """The name of a proposer, and the object, class or function where it is none by its name."""
    if isinstance(proposer, str | Path):
        if is_file(name := _located(str(proposer))):
            load_proposer(name)
        return name, None
    named = getattr(proposer, "name", None)
    own = named if isinstance(named, str) and named not in NAMES else ""
    return own or getattr(proposer, "__name__", type(proposer).__name__), proposer


def vocabulary_of(given: Mapping[str, Any]) -> tuple[Vocabulary | None, Mapping[str, Any]]:
    """The vocabulary among keyword arguments, where it is no word, and the arguments without it."""
    value = given.get("vocabulary")
    if value is None or isinstance(value, str):
        return None, given
    if not isinstance(value, Vocabulary):
        if not isinstance(value, Collection) or not all(isinstance(item, Fragment) for item in value):
            message = (
                f"vocabulary is one of {', '.join(typing.get_args(VocabularyOption))}, a list of jr.Fragment, or a "
                f"jr.Vocabulary, not {type(value).__name__}"
            )
            raise InvalidSetting(message, "vocabulary")
        value = Vocabulary(fragments=tuple(value))
    if not value.fragments:
        raise InvalidSetting("the vocabulary has no fragments: give some, or leave it out", "vocabulary")
    return value, {**given, "vocabulary": "own"}


def _identity_of(vocabulary: Vocabulary) -> Identity:
    """A vocabulary by its size and a digest; fragment by fragment as parts."""
    digests = [(f"['{f.name}']", f"values #{digest_of(f.model_dump_json())}") for f in vocabulary.fragments[:MOST]]
    return Identity(f"{len(vocabulary.fragments)} fragments, {digest_of(vocabulary.model_dump_json())}", dict(digests))


def typed_values(kind: type, given: Mapping[str, Any], excluded: Collection[str], function: str) -> dict[str, Any]:
    """Keyword arguments as values of settings by path. Nested settings may be objects or dictionaries, options
    KEY=VALUE a dictionary, and options of language models may be given without `llm`.

    Args:
        excluded: fields that are parameters of their own.
        function: whose keyword arguments they are.

    Raises:
        UnknownName: there is no such setting.
        InvalidSetting: a value of the wrong type.
    """
    words = KeywordWords(function)
    excluded = {*excluded, *FOR_A_TERMINAL}
    fields = {name: field for name, field in fields_of(kind).items() if name not in excluded}
    flat = {name: of for hint, arg in fields.values() if arg.flat for name, of in fields_of(hint).items()}
    known = fields | flat
    table, objects = dict[str, Any](), dict[str, Any]()
    for name, value in given.items():
        _require_known(name, known, words)
        hint = known[name][0]
        if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
            for inner in value:
                _require_known(f"{name}.{inner}", [f"{name}.{f.name}" for f in dataclasses.fields(hint)], words)
        if dataclasses.is_dataclass(hint) and isinstance(value, hint):  # type: ignore[arg-type]
            objects[name] = value
        elif (name in ("option", "task_arg")) and isinstance(value, Mapping):
            table[name] = [f"{key}={_text(v)}" for key, v in value.items()]
        elif value is not None:
            several = typing.get_origin(hint) is tuple and isinstance(value, str)
            table[name] = [value] if several else _plain(value)
    return values_of(kind, table, words) | objects


def _require_known(name: str, known: Collection[str], words: KeywordWords) -> None:
    """Raise `UnknownName` for a setting that there is not."""
    if name in known:
        return
    near, instead = nearest_option(name, known), FOR_A_TERMINAL.get(name)
    if instead is not None:
        message = f"{name} is for the command line: leave it out, {instead.format(command=words.command)}"
    else:
        message = words.unknown(name, near or "", known)
    raise UnknownName("setting", name, known, near=near, message=message, settings=(name,))


def _located(name: str) -> str:
    return str(Path(name).absolute()) if is_file(name) else name


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _plain(value: Any) -> Any:
    """A value as TOML has it: paths as words, numbers of NumPy as Python's."""
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def call_text(function: str, given: Mapping[str, Any]) -> str:
    """A call in one line, for the log, without the keys that it may contain."""
    arguments = ", ".join(f"{name}={_spelled(value)}" for name, value in given.items())
    return Secrets().redact(" ".join(f"jaxreward.{function}({arguments})".split()))


def _spelled(value: Any) -> str:
    """A value as it is written where `jaxreward` is imported."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_spelled(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_spelled, value)) + "]"
    if not isinstance(value, Learner):
        return repr(value)
    usual, own = type(value)(), {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    arguments = ", ".join(f"{name}={each!r}" for name, each in own.items() if each != getattr(usual, name))
    return f"jaxreward.{type(value).__name__}({arguments})"
