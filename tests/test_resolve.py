"""Settings from their layers, and where each value came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest

from jaxreward.commands.resolve import Command, Given, Resolved, Source, resolve
from jaxreward.config import Arg, check_bounds, values_of, with_values
from jaxreward.errors import ChangedSetting, InvalidSetting, UnknownName, UserError
from jaxreward.evolution.settings import EvolveSettings


@dataclass(frozen=True)
class Learner:
    """A learner."""

    rate: float = 0.1
    """Its rate."""
    memory: int = 0
    """Its memory."""


@dataclass(frozen=True)
class Settings:
    """Settings with every layer."""

    task: str = "grid"
    """What to solve."""
    steps: Annotated[int, Arg(least=1)] = 100
    """How long."""
    limit_s: Annotated[float | None, Arg(positive=True)] = None
    """At most."""
    option: Annotated[tuple[str, ...], Arg(keyed=True)] = ()
    """Each is KEY=VALUE."""
    learner: Learner = field(default_factory=Learner)
    """The learner."""


def of_task(given: Given[Settings]) -> Resolved[Settings]:
    task = given.get("task", "grid")
    return given.over(Settings(task=task, steps=700, option=("a=1", "b=1"), learner=Learner(memory=3)), Source.PRESET)


COMMAND = Command("work", Settings, resolve=of_task, presets=True)


def test_a_later_layer_takes_precedence_and_every_value_knows_its_source(tmp_path: Path):
    file = tmp_path / "settings.toml"
    file.write_text("steps = 800\nlimit-s = 5.0\n[learner]\nrate = 0.2\n")
    resolved = resolve(COMMAND, ["--config", str(file), "--limit-s", "6", "--option", "b=2"])
    assert resolved.settings == Settings(
        steps=800, limit_s=6.0, option=("a=1", "b=2"), learner=Learner(rate=0.2, memory=3)
    )
    sources = {path: resolved.source(path) for path in ("task", "steps", "limit_s", "option", "learner.rate")}
    assert sources == {
        "task": Source.DEFAULT, "steps": Source.FILE, "limit_s": Source.COMMAND_LINE,
        "option": Source.COMMAND_LINE, "learner.rate": Source.FILE,
    }  # fmt: skip
    assert resolved.source("learner.memory") is Source.PRESET
    assert resolved.below is not None and resolved.below.limit_s == 5.0, "what help shows as the default"


def test_a_recording_takes_precedence_over_the_file_and_the_command_line_over_both(tmp_path: Path):
    file = tmp_path / "settings.toml"
    file.write_text("steps = 800\nlimit-s = 5.0\n[learner]\nrate = 0.2\n")
    recorded = {"steps": 900, "limit_s": 6.0}

    def of_recording(given: Given[Settings]) -> Resolved[Settings]:
        return given.over(Settings(steps=700), Source.PRESET, "the run r", recorded)

    resolved = resolve(Command("work", Settings, resolve=of_recording), ["--config", str(file), "--limit-s", "7"])
    assert (resolved.settings.steps, resolved.settings.limit_s, resolved.settings.learner.rate) == (900, 7.0, 0.2)
    assert resolved.source("steps") is Source.RECORDING and resolved.source("limit_s") is Source.COMMAND_LINE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--config", "settings.toml"], "--steps must be at least 1, not 0 (--steps from settings.toml)"),
        (["--steps", "0"], "--steps must be at least 1, not 0"),
        (["--preset", "tiny"], "--steps must be at least 1, not 0 (--steps from --preset tiny)"),
    ],
)
def test_a_sentence_about_an_invalid_value_names_the_layer_that_it_came_from(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("settings.toml").write_text("steps = 0\n")

    def of_preset(given: Given[Settings]) -> Resolved[Settings]:
        tiny = given.line.preset == "tiny"
        return given.over(Settings(steps=0 if tiny else 700), Source.PRESET, f"--preset {given.line.preset}")

    def checked(resolved: Resolved[Settings]) -> int:
        check_bounds(resolved.settings)
        return 0

    command: Command[Settings] = Command("work", Settings, run=checked, resolve=of_preset, presets=True)
    with pytest.raises(InvalidSetting) as error:
        command(words)
    assert str(error.value) == said and error.value.settings == ("steps",)


def test_errors_about_entries_and_names_say_their_layer_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of options KEY=VALUE each entry has a layer of its own; a value of the command line has none to be named."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('task = "gird"\noption = ["a=0", "c=1"]\n')

    def fails(error: UserError) -> str:
        def run(resolved: Resolved[Settings]) -> int:
            raise error

        with pytest.raises(type(error)) as raised:
            Command("work", Settings, run=run)(["--config", "mine.toml", "--option", "b=2", "--steps", "3"])
        return str(raised.value)

    assert fails(InvalidSetting("a is 0.", "strategy.a")) == "a is 0 (--option from mine.toml)"
    assert fails(InvalidSetting("b is 2", "strategy.b")) == "b is 2"
    assert fails(UnknownName("task", "gird", ["grid"], settings=("task",))).endswith("(--task from mine.toml)")
    assert fails(ChangedSetting("--steps cannot change", "steps")) == "--steps cannot change"


def test_a_value_that_is_the_default_is_given_all_the_same():
    assert resolve(COMMAND, ["--task", "grid"]).source("task") is Source.COMMAND_LINE


def test_what_is_given_of_a_group_is_known_by_its_names(tmp_path: Path):
    file = tmp_path / "settings.toml"
    file.write_text("[learner]\nrate = 0.2\nmemory = 1\n")
    seen: list[Given[Settings]] = []
    command: Command[Settings] = Command(
        "work", Settings, resolve=lambda given: (seen.append(given), given.over(None))[1]
    )
    resolve(command, ["--config", str(file), "--learner.memory", "0"])
    assert seen[0].group("learner") == {"rate": 0.2, "memory": 0}


def test_help_shows_the_layers_below_the_command_line_whatever_else_is_wrong(capsys: pytest.CaptureFixture[str]):
    for words in (["--steps", "5", "--help"], ["--help", "--stpes", "5"]):
        with pytest.raises(SystemExit):
            resolve(COMMAND, words)
        assert "[700 steps]" in capsys.readouterr().out


def test_values_of_a_file_by_path_and_back():
    values = values_of(Settings, {"steps": 1e3, "learner": {"rate": 1.0}}, "a file")
    assert values == {"steps": 1000, "learner.rate": 1.0}
    assert with_values(Settings(), values) == Settings(steps=1000, learner=Learner(rate=1.0))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (Settings(steps=0), "--steps must be at least 1, not 0"),
        (Settings(limit_s=0.0), "--limit-s must be a positive number, not 0.0"),
        (Settings(limit_s=float("nan")), "--limit-s must be a positive number, not nan"),
    ],
)
def test_a_value_out_of_bounds_is_refused(settings: Settings, says: str):
    check_bounds(Settings())
    with pytest.raises(UserError) as caught:
        check_bounds(settings)
    assert str(caught.value) == says


def test_a_configuration_leaves_out_what_is_none_in_groups_too():
    """Runs are compared by it, also with those of earlier versions."""
    config = EvolveSettings(task="probe-choice").as_config()
    assert "recording" not in config and "model" in config["llm"] and "api_base" not in config["llm"]


@pytest.mark.parametrize(("old", "new"), [("linked", "stepwise"), ("hasty", "fused"), ("fused", "fused")])
def test_collectors_are_read_under_their_names_of_before(tmp_path: Path, old: str, new: str):
    file = tmp_path / "config.toml"
    file.write_text(f'collector = "{old}"\n')
    command = Command("search", EvolveSettings)
    for words in (["--collector", old], ["--config", str(file)]):
        found = resolve(command, words).settings
        assert (found.collector, found.compile) == (new, "auto")
    later = resolve(command, ["--config", str(file), "--collector", "stepwise"]).settings
    assert (later.collector, later.compile) == ("stepwise", "auto"), "a later layer replaces the value"
