"""Settings from their layers: defaults, the preset, the file, a recording, the command line.

A later layer takes precedence; a run that is resumed takes the place of the preset. `Resolved` keeps where each value
came from, and a sentence about an invalid one says so.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NoReturn, TypeVar

from jaxreward.commands.command_line import CommandLine, read
from jaxreward.commands.help import Page, print_page
from jaxreward.commands.options import options_of
from jaxreward.config import key_of, merged_options, read_toml, values_of, with_values
from jaxreward.errors import UserError

D = TypeVar("D")

_OPTIONS_OF = {"strategy": "option", "task": "task_arg"}
"""The option that has those of a strategy, and of a task, as KEY=VALUE."""
_SEVERAL = {"strategy": "strategies", "proposer": "proposers", "task": "tasks"}
"""What a command with several of them calls an option."""


class Source(Enum):
    """Where a value came from."""

    DEFAULT = "the default of the settings"
    PRESET = "the preset, or what suits the task"
    RECORDING = "the run that is replayed"
    RUN = "the folder of a run: one that is resumed, or whose config.toml is the file of --config"
    FILE = "the file of --config"
    COMMAND_LINE = "the command line"


@dataclass(frozen=True)
class Resolved(Generic[D]):
    """Settings, and where each value came from.

    Attributes:
        settings: all layers together.
        below: the same without the command line: the defaults that help shows; None where some have none.
        sources: the source of every value that is not a default, by the path of its option.
        line: the command line.
        origins: what a sentence calls the source of a value, by path: `--preset paper`, `fast.toml`; of options
            KEY=VALUE also for each key, `option.islands`.
    """

    settings: D
    below: D | None
    sources: Mapping[str, Source]
    line: CommandLine
    origins: Mapping[str, str] = field(default_factory=dict)

    def source(self, path: str) -> Source:
        return self.sources.get(path, Source.DEFAULT)

    def explain(self, error: UserError) -> None:
        """Let the sentence of an error say which of the settings are not from the command line, and where from."""
        found: dict[str, list[str]] = {}
        for name in error.settings:
            for path, flag in self._paths(name):
                where = self.origins.get(path, "")
                if flag not in found.setdefault(where, []):
                    found[where].append(flag)
        said = [f"{' and '.join(flags)} from {where}" for where, flags in found.items() if where]
        if said:
            error.args = (f"{str(error).removesuffix('.')} ({'; '.join(said)})",)

    def _paths(self, name: str) -> Iterator[tuple[str, str]]:
        """The paths and flags of the options that are meant by the name of a setting in an error."""
        owner, _, key = name.partition(".")
        for option in options_of(type(self.settings)):
            flag = option.flag or option.placeholder
            group, own = option.path.partition(".")[0], option.path.rpartition(".")[2]
            if key and option.path == _OPTIONS_OF.get(owner):  # of a strategy or a task
                yield (f"{option.path}.{key}" if option.arg.keyed else option.path), flag
            elif name in (option.path, own, group) or option.path == _SEVERAL.get(name):
                yield option.path, flag

    def with_settings(self, **changes: Any) -> Resolved[D]:
        """The same with some settings replaced, their sources unchanged."""
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, **changes))  # type: ignore[type-var]


@dataclass(frozen=True)
class Given(Generic[D]):
    """What the user gives for a command: the command line, and the values of the file of `--config`, by path."""

    page: Page
    line: CommandLine
    file: Mapping[str, Any]
    file_is_of_run: bool = False

    @property
    def values(self) -> dict[str, Any]:
        """All values that are given, by path."""
        return {**self.file, **self.line.values}

    def get(self, path: str, default: Any) -> Any:
        return self.values.get(path, default)

    @property
    def platform(self) -> str:
        """The platform whose learner is the default: that of JAX's default backend. A page of help shows a CPU's, since
        starting a backend can take seconds."""
        if self.line.topic is not None:
            return "cpu"
        import jax

        return jax.default_backend()

    def group(self, name: str) -> dict[str, Any]:
        """The values of a group of nested settings, by their names there."""
        return {path.partition(".")[2]: v for path, v in self.values.items() if path.partition(".")[0] == name}

    def over(
        self, base: D | None, source: Source = Source.DEFAULT, name: str = "", recorded: Mapping[str, Any] | None = None
    ) -> Resolved[D]:
        """The settings: `base`, the file's values over them, those of a recording, then the command line's.

        Args:
            base: None for the defaults of the class; an option without one must be on the command line.
            source: where the values of `base` come from.
            name: what sentences call that, or the recording.
            recorded: the values of a recording, by path.

        Raises:
            UserError: an option without a default has no value.
        """
        options, typed = {option.path: option for option in options_of(self.page.settings)}, dict(self.line.values)
        required = [o for o in options.values() if o.required]
        missing = [o.placeholder for o in required if base is None and o.path not in typed]
        if missing:
            raise UserError(f"say which {missing[0]}: {self.page.program} {missing[0]}")
        start: Any = self.page.settings(**{o.path: typed[o.path] for o in required}) if base is None else base
        usual = start if required else self.page.settings()
        if "learner" in options:
            from jaxreward.evolution.learner_options import require_one_learner  # with JAX, which others do without

            asked = {**self.file, **(recorded or {}), **typed}
            require_one_learner(asked.get("learner", start.learner), asked)
        sources = {path: source for path, o in options.items() if o.of(start) != o.of(usual)}
        of_recording = recorded or {}
        origins = dict.fromkeys(() if recorded else sources, name) | dict.fromkeys(self.file, str(self.line.config))
        origins |= dict.fromkeys(of_recording, name)
        below = with_values(start, {**self.file, **of_recording})
        for path in [path for path, option in options.items() if option.arg.keyed]:
            keys = {key_of(text) for text in typed.get(path, ())}
            origins |= {f"{path}.{key_of(text)}": origins.get(path, "") for text in options[path].of(below)}
            origins |= dict.fromkeys((f"{path}.{key}" for key in keys), "")
            if path in typed:
                typed[path] = merged_options(options[path].of(below), typed[path])
        of_file = Source.RUN if self.file_is_of_run else Source.FILE
        sources |= dict.fromkeys(self.file, of_file) | dict.fromkeys(of_recording, Source.RECORDING)
        sources |= dict.fromkeys(typed, Source.COMMAND_LINE)
        return Resolved(with_values(below, typed), below, sources, self.line, origins | dict.fromkeys(typed, ""))


@dataclass(frozen=True)
class Command(Page, Generic[D]):
    """A command: its page of help, and what it does.

    Attributes:
        run: does it; returns the exit status.
        resolve: its settings from what the user gives: by default those of the class, the file, the command line.
    """

    run: Callable[[Resolved[D]], int] = lambda resolved: 0
    resolve: Callable[[Given[D]], Resolved[D]] = lambda given: given.over(None)

    def __call__(self, words: Sequence[str]) -> int:
        """Run it with the words after its name; returns the exit status."""
        resolved = resolve(self, words)
        try:
            return self.run(resolved)
        except UserError as error:
            resolved.explain(error)
            raise


def resolve(command: Command[D], words: Sequence[str]) -> Resolved[D]:
    """The settings of a command from the words after its name. `--help` prints a page and exits with status 0.

    Raises:
        UserError: what the words or the file say cannot be; the file is that of a run and names a Python file as the
            task, which is not on the command line.
    """
    line = read(command, words)
    if line.topic is not None and any(option.required for option in options_of(command.settings)):
        print_page(command, line.topic, None)
        _leave(line)
    given = _given(command, line)
    resolved = command.resolve(given)
    if line.topic is not None:
        print_page(command, line.topic, resolved.below)
        _leave(line)
    return resolved


def _leave(line: CommandLine) -> NoReturn:
    """Exit after a page of help, with a word on what is wrong with the rest of the line."""
    if line.mistake is not None:
        print(line.mistake, file=sys.stderr)
    raise SystemExit(0)


def _given(page: Page, line: CommandLine) -> Given[Any]:
    """The command line and the file of `--config`, which may be that of another person's run."""
    if line.config is None:
        return Given(page, line, {})
    values = values_of(page.settings, read_toml(line.config), str(line.config))
    from jaxreward.runs.folders import is_run

    if of_run := is_run(line.config.parent):
        from jaxreward.commands.file_tasks import named_again

        values.pop("unsafe_no_sandbox", None)  # a run's folder cannot take the sandbox away
        for option in ("task", "strategy", "proposer"):
            named_again(values.get(option, ""), line.values.get(option, ""), str(line.config), option=option)
    return Given(page, line, values, of_run)


def parse(kind: type[D], base: D | None, words: Sequence[str] | None, name: str) -> D:
    """The settings of a script: `base`, or the defaults of `kind`, and what its command line says over them; `words`
    are those that the process was started with if None."""
    script = Command(name, kind, resolve=lambda given: given.over(base), config=False)
    return resolve(script, sys.argv[1:] if words is None else words).settings
