"""Whom a run asks counts only if this user said so: a folder can come from anybody."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from jaxreward.cli import main
from jaxreward.commands.confirm import Unconfirmed
from jaxreward.commands.evolve import COMMANDS
from jaxreward.commands.prompt import PromptSettings, show
from jaxreward.commands.resolve import resolve
from jaxreward.errors import UserError
from jaxreward.evolution import run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.proposers.llm.consent import remember
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.runs import Run
from tests.proposers.server import Answer, ChatServer
from tests.proposers.talk import KEY
from tests.silent import Silent

ELSEWHERE = "http://203.0.113.7:9/v1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has said nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return tmp_path


def settings(**llm: object) -> EvolveSettings:
    asked = LlmSettings(**{"model": ("openai/mine",), "api_base": "http://127.0.0.1:1/v1", **llm})  # type: ignore[arg-type]
    return EvolveSettings(task="probe-choice", proposer="llm", llm=asked, name="run")


def folder(started: EvolveSettings, name: str = "run") -> Path:
    """A run's folder as it comes from anywhere."""
    Run.create(Path("runs") / name, started.as_config()).close()
    return Path("runs") / name


def resumed(*args: str, name: str = "run") -> EvolveSettings:
    return resolve(COMMANDS[0], ["--name", name, "--resume", *args]).settings


def test_a_run_folder_of_another_user_does_not_choose_the_endpoint_of_a_key():
    folder(settings(api_base=ELSEWHERE))
    with pytest.raises(UserError) as caught:
        resumed()
    sentence = str(caught.value)
    assert f"add --model openai/mine --api-base {ELSEWHERE} to the command" in sentence and "key" in sentence


def test_the_endpoint_can_be_confirmed_on_the_command_line():
    folder(settings(api_base=ELSEWHERE, price=("openai/mine=1,2",), max_usd=1.0))
    settled = resumed("--model", "openai/mine", "--api-base", ELSEWHERE)
    assert settled.llm.api_base == ELSEWHERE and settled.llm.max_usd == 1.0


def test_another_endpoint_can_be_given_on_the_command_line():
    folder(settings(api_base=ELSEWHERE))
    settled = resumed("--model", "openai/mine", "--api-base", "http://127.0.0.1:2/v1")
    assert settled.llm.api_base == "http://127.0.0.1:2/v1"
    for part in (["--model", "openai/mine"], ["--api-base", ELSEWHERE]):
        with pytest.raises(Unconfirmed):
            resumed(*part)


def test_a_settings_file_named_by_the_user_is_trusted():
    folder(settings(api_base=ELSEWHERE))
    Path("mine.toml").write_text(f'[llm]\nmodel = ["openai/mine"]\napi_base = "{ELSEWHERE}"\n')
    assert resumed("--config", "mine.toml").llm.api_base == ELSEWHERE


def test_templates_of_somebody_else_are_not_sent(tmp_path: Path):
    theirs = tmp_path / "runs" / "run" / "prompts"
    path = folder(settings(prompts=theirs))
    theirs.mkdir()
    remember("llm", settings().llm)
    with pytest.raises(Unconfirmed) as unconfirmed:
        resumed()
    assert set(unconfirmed.value.settings) >= {"model", "prompts"}
    with pytest.raises(Unconfirmed) as unconfirmed:
        show(PromptSettings(run=path))
    assert unconfirmed.value.settings == ("prompts",) and str(theirs) in str(unconfirmed.value)
    for command in ("ask", "tell"):
        by_hand = folder(
            EvolveSettings(task="probe-choice", proposer="manual", llm=LlmSettings(prompts=theirs)), command
        )
        assert main([command, "--name", command]) == 2 and not (by_hand / "requests").exists()


@pytest.mark.parametrize("answer", ["y\n", "n\n", "\n"])
def test_a_person_is_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str):
    folder(settings(api_base=ELSEWHERE))
    terminal = io.StringIO(answer * 2)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", terminal)
    if answer == "y\n":
        assert resumed().llm.api_base == ELSEWHERE
        assert ELSEWHERE in capsys.readouterr().err
        resumed()
        assert capsys.readouterr().err == "", "once"
    else:
        with pytest.raises(Unconfirmed) as refused:
            resumed()
        assert str(refused.value).startswith("not resumed")


def test_own_runs_are_resumed_without_questions_anywhere(home: Path):
    """Begun from a command line or from Python; the folder may have moved since."""
    with ChatServer([Answer("no program")]) as server:
        mine = settings(api_base=server.url)
        mine = dataclasses.replace(
            mine, max_attempts=1, candidates=1, generation=1, baselines=(), final_seeds=0,
            llm=dataclasses.replace(mine.llm, repairs=0),
        )  # fmt: skip
        run_search(mine, Silent())
        assert server.calls
    shutil.move("runs/run", "runs/moved")
    assert resumed(name="moved").llm.api_base == mine.llm.api_base
    kept = list((home / "state/jaxreward/endpoints").iterdir())
    assert json.loads(kept[0].read_text())["api_base"] == mine.llm.api_base
    assert (home / "state/jaxreward/endpoints").stat().st_mode & 0o077 == 0
    theirs = Path("runs/moved/config.toml")
    theirs.write_text(theirs.read_text().replace(server.url, ELSEWHERE))
    with pytest.raises(Unconfirmed):
        resumed(name="moved")


def test_a_confirmation_inside_a_folder_is_not_trusted(home: Path):
    """Whatever lies in it, or in the working directory, somebody else may have put there."""
    path = folder(settings(api_base=ELSEWHERE))
    remember("llm", settings(api_base=ELSEWHERE).llm)
    shutil.copytree(home / "state", path / "state")
    shutil.copytree(home / "state" / "jaxreward", path / "jaxreward")
    shutil.rmtree(home / "state")
    Path(".env").write_text(f"XDG_STATE_HOME={path.absolute() / 'state'}\n")
    with pytest.raises(Unconfirmed):
        resumed()


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_what_others_can_write_remembers_nothing(home: Path, mode: int):
    folder(settings(api_base=ELSEWHERE))
    remember("llm", settings(api_base=ELSEWHERE).llm)
    resumed()
    (home / "state/jaxreward/endpoints").chmod(mode)
    with pytest.raises(Unconfirmed):
        resumed()


def test_an_unwritable_state_folder_is_reported(monkeypatch: pytest.MonkeyPatch):
    Path("file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("file").absolute()))
    assert "Not a directory" in remember("llm", settings().llm) and remember("genetic", settings().llm) == ""


def test_a_folder_does_not_raise_what_may_be_spent_unasked():
    folder(settings(confirm_usd=1e6))
    flags = ["--model", "openai/mine", "--api-base", "http://127.0.0.1:1/v1"]
    assert resumed(*flags).llm.confirm_usd == LlmSettings().confirm_usd
    assert resumed(*flags, "--confirm-usd", "20").llm.confirm_usd == 20.0
    remember("llm", settings().llm)
    assert resumed().llm.confirm_usd == 1e6, "one's own"


def test_a_folder_does_not_take_the_sandbox_away():
    folder(dataclasses.replace(EvolveSettings(task="probe-choice", name="run"), unsafe_no_sandbox=True))
    assert not resumed().unsafe_no_sandbox and resumed("--unsafe-no-sandbox").unsafe_no_sandbox
    assert not resolve(COMMANDS[0], ["--proposer", "replay", "--recording", "runs/run"]).settings.unsafe_no_sandbox


def test_the_configuration_of_a_run_counts_no_more_than_its_folder():
    folder(dataclasses.replace(settings(api_base=ELSEWHERE), unsafe_no_sandbox=True))
    config = ["--name", "mine", "--config", "runs/run/config.toml"]
    with pytest.raises(Unconfirmed, match="203.0.113.7"):
        resolve(COMMANDS[0], config)
    with pytest.raises(Unconfirmed, match="203.0.113.7"):
        resolve(COMMANDS[0], ["--name", "run", "--resume", *config[2:]])
    own = ["--model", "openai/mine", "--api-base", "http://127.0.0.1:1/v1"]
    assert not resolve(COMMANDS[0], [*config, *own]).settings.unsafe_no_sandbox
    assert resolve(COMMANDS[0], [*config, *own, "--unsafe-no-sandbox"]).settings.unsafe_no_sandbox


def test_searches_without_language_models_ask_nothing():
    folder(EvolveSettings(task="probe-choice", name="run"))
    assert resumed().proposer == "genetic"


def test_a_missing_key_is_noticed_before_there_is_a_folder(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.delenv("OPENAI_API_KEY")
    command = ["--proposer", "llm", "--model", "openai/mine"]
    assert main(["evolve", "--task", "probe-choice", "--name", "run", *command]) == 2
    said = capsys.readouterr().err
    assert "there is no key for openai/mine: set OPENAI_API_KEY" in said and not Path("runs").exists()
    compared = ["--tasks", "probe-choice", "--strategies", "limen", "--proposers", *command[1:]]
    assert main(["compare", *compared, "--search-seeds", "1"]) == 2
    assert "there is no key for openai/mine" in capsys.readouterr().err and not Path("runs").exists()


def test_where_calls_go_is_printed_before_there_is_a_folder(capsys):
    with ChatServer([Answer("no program")]) as server:
        place = server.url.removesuffix("/v1")
        arguments = ["--task", "probe-choice", "--name", "run", "--proposer", "llm", "--model", "openai/mine"]
        arguments += ["--api-base", server.url, "--repairs", "0", "--candidates", "1", "--max-attempts", "1"]
        main(["evolve", *arguments, "--baselines", "--final-seeds", "0"])
        assert f"openai/mine is asked at {place}\n" in capsys.readouterr().out
        main(["evolve", "--name", "run", "--resume", "--candidates", "2", "--max-attempts", "2"])
        assert f"openai/mine is asked at {place}\n" in capsys.readouterr().out and server.calls == 2
