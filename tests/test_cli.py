"""The command line: what it prints, and the one sentence that each mistake gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jaxreward.cli import main
from jaxreward.commands import evolve as evolve_command
from jaxreward.commands import tasks as tasks_command
from jaxreward.commands.resolve import resolve
from jaxreward.errors import ChangedSetting
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.runs import Run
from jaxreward.training import PPO

ROOT = Path(__file__).resolve().parents[1]
SPARSE = str(ROOT / "interfaces" / "xland_easy" / "sparse.py")


def outcome(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    try:
        status = main(argv)
    except SystemExit as exit:  # how --help leaves
        status = int(exit.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


MISTAKES = [
    (["evolv"], "did you mean 'evolve'"),
    (["evolve", "--task", "xland-esay"], "did you mean 'xland-easy'"),
    (["evolve", "--strategy", "limn", "--candidates", "1"], "limen"),
    (["evolve", "--proposer", "genetics", "--candidates", "1"], "did you mean 'genetic'"),
    (["evolve", "--candidate", "8"], "--candidates"),
    (["evolve", "--candidates", "eight"], "eight"),
    (["evolve", "--candidates", "0"], "--candidates must be at least 1"),
    (["evolve", "--filter-steps", "300000"], "must be smaller than --steps"),
    (["evolve", "--restart"], "give it --filter-steps"),
    (["evolve", "--proposer", "replay"], "needs --recording"),
    (["evolve", "--recording", "runs/x"], "is for --proposer replay"),
    (["evolve", "--proposer", "llm"], "needs --model"),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "--max-tokens-total", "9"], "does not reach for one call"),
    (["evolve", "--model", "openai/x"], "--model is for --proposer llm"),
    (["evolve", "--proposer", "llm", "--model", "openai/x=much"], "the weight after = must be a number"),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "openai/x=2"], "names openai/x twice"),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "--api-base", "localhost:1"], "must be an address"),
    (
        ["evolve", "--proposer", "llm", "--model", "openai/x", "--api-base", "http://me:key@h/v1"],
        "must not carry a key",
    ),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "--max-usd", "1"], "--price openai/x="),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "--price", "openai/x"], "MODEL=INPUT,OUTPUT"),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "--max-usd", "0"], "--max-usd must be a positive number"),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "--temperature", "7"], "--temperature must lie in [0, 2]"),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "--prompts", "nowhere"], "is not a folder"),
    (["evolve", "--proposer", "llm", "--model", "openai/x", "--price", "openai/x=900,9000"], "nobody can be asked"),
    (["evolve", "--baselines", "denser"], "there is no baseline 'denser'"),
    (["evolve", "--ppo.minibatches", "3"], "does not divide"),
    (["evolve", "--ppo.activation", "gelu"], "must be one of tanh, relu, swish"),
    (["evolve", "--memory-gb", "-1", "--candidates", "1"], "--memory-gb must be a positive number"),
    (["evolve", "--memory-gb", "nan"], "--memory-gb must be a positive number"),
    (["evolve", "--ppo.learning-rate", "nan"], "learning_rate must be a positive number"),
    (["evolve", "--ppo.discount", "5"], "discount must lie in [0, 1]"),
    (["evolve", "--baselines", "sparse", "sparse"], "twice"),
    (["evolve", "--strategy", "best-of-n", "--baselines", "best-of-n"], "cannot be compared with itself"),
    (["evolve", "--dry-run", "--strategy", "lime"], "there is no strategy 'lime'; did you mean 'limen'?"),
    (["train", "--dry-run", "--task", "nosuch"], "there is no task 'nosuch'"),
    (["evolve", "--preset", "quik"], "there is no preset 'quik'"),
    (["evolve", "--preset", "paper-budget", "--task", "probe-choice"], "the paper has no budget for 'probe-choice'"),
    (
        ["evolve", "--preset", "paper", "--task", "ant"],
        "the paper has no budget for 'ant'; --preset paper is for xland-easy, xland-medium",
    ),
    (
        ["train", "--preset", "paper", "--task", "xland-hardest"],
        "the paper has no budget for 'xland-hardest'; --preset paper is for xland-easy",
    ),
    (["evolve", "--config", "missing.toml"], "cannot be read"),
    (["evolve", "--config"], "--config needs a value"),
    (["evolve", "--name", "../x"], "cannot be the name of a run"),
    (["train", "--interfaces", "missing.py"], "there is no interface file missing.py"),
    (["train", "--seeds", "0"], "--seeds must be at least 1"),
    (["train", "--plot", "curves.pdf"], "must end in .png or .svg"),
    (["check"], "name what to check: program files, or the file of a task"),
    (["check", "mine.py"], "there is no file mine.py"),
    (["check", "hopper"], "'hopper' is no Python file: name a program, FILE.py, or say --task NAME"),
    (["check", "--config="], "--config needs a value"),
    (["check", "--interfaces", "a" * 300 + ".py"], "cannot be used: File name too long"),
    (["train", "--task", ""], "--task needs a value"),
    (["train", "--memory-gb", "nan"], "--memory-gb must be a positive number, not nan"),
    (["train", "--chunk", "0"], "--chunk must be at least 1, not 0"),
    (["train", "--task", "probe-choice", "--ppo.hidden", "0"], "are positive, not 0"),
    (["train", "--task", "probe-choice", "--ppo.gru", "-1"], "PPO.gru must not be negative, not -1"),
    (["train", "--task", "probe-choice", "--ppo.lr", "1"], "no option --ppo.lr; did you mean --ppo.learning-rate?"),
    (["train", "--task", "probe-choice", "--ppo.gamma", "1"], "no option --ppo.gamma; did you mean --ppo.discount?"),
    (["tasks", "probe-choise"], "there is no task 'probe-choise'; did you mean 'probe-choice'?\n"),
    (["tasks", "probe-corridor", "--task-arg", "length=0"], "length must be at least 1, not 0"),
    (["evolve", "--option", "islands=x"], "limen takes a whole number there"),
    (["evolve", "--option", "=2"], "--option =2 must be KEY=VALUE"),
    (["evolve", "--proposer", "llm", "--model", ""], "--model names nothing"),
    (["ask", "--proposer", "llm"], "ask is for --proposer manual, not llm"),
    (["compare", "--merge"], "--merge needs a value"),
    (["doctor", "--model", "openai/x", "--price", "openai/x=a,b"], "must be MODEL=INPUT,OUTPUT"),
]


@pytest.mark.parametrize(("argv", "says"), MISTAKES, ids=[" ".join(argv) for argv, _ in MISTAKES])
def test_a_user_error_is_one_sentence_with_status_2(argv, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = outcome(capsys, *argv)
    assert status == 2
    assert says in err and err.count("\n") == 1
    assert "Traceback" not in err
    assert not list((tmp_path / "runs").glob("*/events.jsonl")) if (tmp_path / "runs").exists() else True


IN_THE_WAY = [
    (["check", "--interfaces", "bytes"], "cannot read the program bytes: it is not text in UTF-8"),
    (["train", "--task", "probe-choice", "--interfaces", "bytes"], "cannot read the program bytes: it is not text"),
    (["train", "--task", "probe-choice", "--plot", "bytes/x.png"], "cannot write bytes/x.png: bytes is a file"),
    (["train", "--config", "bytes"], "the settings file bytes cannot be read: it is not text in UTF-8"),
    (["tasks", "xland/XLand-MiniGrid-R1-9x9/bytes.toml"], "bytes.toml cannot be read: it is not text in UTF-8"),
    (["evolve", "--task", "probe-choice", "--out", "bytes"], "bytes is a file; name another"),
    (["ask", "--task", "probe-choice", "--out", "bytes"], "bytes is a file; name another"),
    (
        ["compare", "--tasks", "probe-choice", "--strategies", "limen", "--out", "bytes"],
        "cannot make the folder bytes/shards: bytes is a file",
    ),
    (["evolve", "--proposer", "replay", "--recording", "bytes"], "cannot read the recording bytes (it is not text"),
    (
        ["evolve", "--proposer", "replay", "--recording", "log.jsonl", "--task", "probe-choice"],
        "log.jsonl or the transcript beside it has a line of another form",
    ),
    (["evolve", "--evolve", "reward", "--observation", "bytes"], "bytes cannot be read: it is not text in UTF-8"),
    (["evolve", "--evolve", "reward", "--observation", "syntax.py"], "is not a Python file: invalid syntax (line 2)"),
    (["prompt", "show", "--prompts", "prompts"], "system.j2 cannot be read: it is not text in UTF-8"),
    (["report", "run"], "the log run/events.jsonl cannot be read (Is a directory)"),
    (["runs", "tail", "run"], "the log run/events.jsonl cannot be read (Is a directory)"),
    (["evolve", "--out", ".", "--name", "run", "--resume"], "config.toml cannot be read (it is not text in UTF-8)"),
    (["prompt", "show", "--run", "run"], "config.toml cannot be read (it is not text in UTF-8)"),
]


@pytest.mark.parametrize(("argv", "says"), IN_THE_WAY, ids=[" ".join(argv) for argv, _ in IN_THE_WAY])
def test_a_file_that_is_something_else_gets_a_sentence(argv, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "events.jsonl").mkdir(parents=True)
    (tmp_path / "run" / "programs").mkdir()
    (tmp_path / "prompts").mkdir()
    for name in ("bytes", "bytes.toml", "prompts/system.j2", "run/config.toml"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00")
    (tmp_path / "log.jsonl").write_text('{"type": "asked"}\n')
    (tmp_path / "syntax.py").write_text("x = 1\ndef f(:\n")
    before = sorted(tmp_path.rglob("*"))
    status, _, err = outcome(capsys, *argv)
    assert status == 2 and says in err and err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before, "nothing is begun, nothing is lost"


TASK = """
from dataclasses import dataclass
from jaxreward.tasks.probe import Probe

@dataclass(frozen=True)
class Mine(Probe):
    kind: str = "choice"
"""


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("    def reset(self, key):\n        raise ValueError('no\\nstart')", "ValueError: no start (mine.py, line 9)"),
        ("    def view(self, state):\n        return state.nothing", "'nothing' (mine.py, line 9)"),
        ("    def __post_init__(self):\n        self.x", "has no attribute 'x' (mine.py, line 9)"),
        (
            "    action_space = 2",
            "`action_space` is an int, and must be a jaxreward.tasks.Discrete or Box (mine.py, line 8)",
        ),
        ("    horizon = 0", "`horizon` must be at least 1 step, not 0 (mine.py, line 8)"),
        ("raise KeyError('two\\nlines')", "mine.py cannot be imported: KeyError: 'two\\nlines' (mine.py, line 8)"),
        ("raise SystemExit(3)", "mine.py cannot be imported: SystemExit: 3 (mine.py, line 8)"),
    ],
)
def test_a_fault_in_the_file_of_a_task_says_where(code, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TASK + code + "\n")
    status, _, err = outcome(capsys, "tasks", "mine.py")
    assert status == 2 and says in err and err.count("\n") == 1


def test_a_fault_of_our_own_keeps_its_traceback(monkeypatch):
    def fails() -> list[str]:
        raise ValueError("ours")

    monkeypatch.setattr(tasks_command, "task_names", fails)
    with pytest.raises(ValueError, match="ours"):
        main(["tasks"])


def test_ask_and_tell_are_for_runs_answered_by_people(capsys, tmp_path):
    settings = EvolveSettings(task="probe-choice")
    Run.create(tmp_path / "bred", settings.as_config()).close()
    for command in ("ask", "tell"):
        status, _, err = outcome(capsys, command, "--out", str(tmp_path), "--name", "bred")
        assert status == 2 and "is a run of the genetic proposer" in err
    status, _, err = outcome(
        capsys, "evolve", "--resume", "--out", str(tmp_path), "--name", "bred", "--option", "islands=1"
    )
    assert status == 2 and "is islands=3 initial=8" in err, "as it is typed"


def test_the_same_command_with_options_of_the_strategy_resumes_a_run(tmp_path):
    settings = EvolveSettings(task="probe-choice", option=("initial=2",))
    Run.create(tmp_path / "run", settings.as_config()).close()
    words = ["--out", str(tmp_path), "--name", "run", "--resume", "--option", "initial=2"]
    found = resolve(evolve_command.COMMANDS[0], words).settings
    assert "initial=2" in found.option and "islands=3" in found.option
    with pytest.raises(ChangedSetting, match="is islands=3 initial=2"):
        resolve(evolve_command.COMMANDS[0], [*words[:-1], "initial=3"])


def test_a_closed_output_pipe_is_no_error():
    command = f"{sys.executable} -m jaxreward --help | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert not done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("candidtes = 3", "unknown key 'candidtes'; did you mean 'candidates'?"),
        ("[ppo]\nlr = 1e-3", "unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?"),
        ("[ppo]\nlearning_rat = 1e-3", "unknown key 'ppo.learning_rat'; did you mean 'ppo.learning_rate'?"),
        ("steps = '1000'", "'steps' cannot be '1000'"),
        ("candidates = true", "'candidates' cannot be true"),
        ("candidates = 'many'", "'candidates' cannot be 'many'"),
        ("ppo = 3", "is a table"),
        ("candidates = ", "is not valid TOML"),
        ("candidates = 2024-01-01", "'candidates' cannot be 2024-01-01"),
    ],
)
def test_a_broken_settings_file_gets_a_sentence(text, says, capsys, tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    status, _, err = outcome(capsys, "evolve", "--config", str(path))
    assert status == 2 and says in err


def test_the_command_line_takes_precedence_over_the_file(capsys, tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("candidates = 5\nsteps = 70000\n[ppo]\nlearning-rate = 2e-3\n")
    status, out, _ = outcome(capsys, "evolve", "--config", str(path), "--steps", "80000", "--dry-run", "--json")
    settings = json.loads(out.splitlines()[-1])["settings"]
    assert status == 0
    assert (settings["candidates"], settings["steps"], settings["ppo"]["learning_rate"]) == (5, 80000, 2e-3)


def test_a_dry_run_prints_the_plan_and_leaves_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = outcome(capsys, "evolve", "--candidates", "6", "--dry-run")
    assert status == 0 and "6 candidates" in out and "cost 0 USD" in out
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("argv", "option", "models"),
    [
        (["--strategy", "rf-agent", "--option", "eta=0.5", "--option", "counts=3,2,2,1,0"],
         {"eta=0.5", "counts=3,2,2,1,0", "initial=6"}, ()),
        (["--strategy", "rf-agent", "--option", "eta=0.5", "counts=3,2,2,1,0"], {"eta=0.5", "counts=3,2,2,1,0"}, ()),
        (["--preset", "paper-budget", "--option=show_best=5"], {"initial=1", "show_best=5"}, ()),
        (["--preset", "paper-budget", "--option", "initial=3"], {"initial=3"}, ()),
        (["--strategy", "eureka"], {"carry=global", "show_failures=2"}, ()),
        (["--proposer", "llm", "--model", "a/x", "--model", "b/y=2"], set(), ("a/x", "b/y=2")),
    ],
)  # fmt: skip
def test_a_flag_that_is_given_again_adds_to_itself(argv, option, models):
    settings = resolve(evolve_command.COMMANDS[0], argv).settings
    settings.check()
    assert option <= set(settings.as_config()["option"]) and settings.llm.model == models


@pytest.mark.parametrize("task", ["xland-easy", "xland-medium", "xland-hard"])
@pytest.mark.parametrize("preset", ["quick", "paper-budget"])
def test_every_preset_plans(capsys, preset, task):
    status, out, _ = outcome(capsys, "evolve", "--preset", preset, "--task", task, "--dry-run")
    assert status == 0 and task in out


@pytest.mark.parametrize("task", ["go1-push-recovery", "panda-tracking"])
@pytest.mark.parametrize("preset", ["quick", "paper-budget", "paper"])
def test_every_preset_of_a_robot_plans(capsys, preset, task):
    status, out, _ = outcome(capsys, "evolve", "--preset", preset, "--task", task, "--dry-run", "--json")
    assert status == 0
    settings = json.loads(out.splitlines()[-1])["settings"]
    assert settings["task"] == task and settings["ppo"]["normalize_observations"]
    assert (settings["ppo"]["envs"] >= 2048) == (preset == "paper")
    assert (settings["steps"] >= 15_000_000) == (preset != "quick")


def test_a_task_has_its_learner_by_default(capsys):
    """Also where the file of settings names the task, and in `train`."""
    status, out, _ = outcome(capsys, "train", "--task", "quadcopter-hover", "--dry-run")
    assert status == 0 and "3 seeds x 400,000 steps" in out
    status, out, _ = outcome(capsys, "train", "--task", "panda-tracking", "--preset", "paper", "--dry-run")
    assert status == 0 and "5 seeds x 15,000,000 steps" in out
    status, out, _ = outcome(capsys, "train", "--task", "xland-easy", "--preset", "paper-budget", "--dry-run")
    assert status == 0 and "10 seeds x 2,000,000 steps" in out, "the final training"
    status, out, _ = outcome(capsys, "evolve", "--task", "ant", "--ppo.envs", "32", "--dry-run", "--json")
    ppo = json.loads(out.splitlines()[-1])["settings"]["ppo"]
    assert status == 0 and ppo["envs"] == 32 and ppo["bootstrap"]


@pytest.mark.long
def test_options_of_a_task(capsys):
    arguments = ("--task", "panda-tracking", "--task-arg", "speed_scale=2", "--task-arg=radius-scale=1.5")
    status, out, _ = outcome(capsys, "evolve", *arguments, "--dry-run", "--json")
    assert status == 0
    assert json.loads(out.splitlines()[-1])["settings"]["task_arg"] == ["speed_scale=2", "radius-scale=1.5"]
    status, out, _ = outcome(capsys, "tasks", "panda-tracking")
    assert status == 0 and "speed_scale=1.0, radius_scale=1.0" in out
    status, out, _ = outcome(capsys, "tasks", "panda-tracking", "--task-arg", "speed_scale=2", "horizon=7")
    assert status == 0 and "speed_scale=2.0" in out and "7 steps an episode" in out
    status, _, err = outcome(capsys, "tasks", "--task-arg", "speed_scale=2")
    assert status == 2 and "say `jaxreward tasks NAME" in err
    for command in ("evolve", "train"):
        status, _, err = outcome(capsys, command, "--task", "xland-easy", "--task-arg", "size=3", "--dry-run")
        assert status == 2 and "xland-easy has no option 'size'; it has horizon=80" in err


@pytest.mark.long
def test_a_file_is_a_task(capsys, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from jaxreward.tasks.probe import Probe\n\n\nclass Mine(Probe):\n    pass\n")
    status, _, err = outcome(capsys, "tasks", str(file))
    assert status == 2 and "cannot be made without 'kind'" in err
    file.write_text(
        "from dataclasses import dataclass\nfrom jaxreward.tasks.probe import Probe\n\n\n"
        "@dataclass(frozen=True)\nclass Mine(Probe):\n    kind: str = 'aim'\n"
    )
    status, out, _ = outcome(capsys, "tasks", str(file))
    assert status == 0 and "near 0.5 if the signal is 1" in out
    status, out, _ = outcome(capsys, "evolve", "--task", str(file), "--dry-run", "--json")
    assert status == 0 and json.loads(out.splitlines()[-1])["settings"]["ppo"]["normalize_observations"]


def test_every_command_has_help(capsys):
    for command in ("evolve", "train", "doctor", "check"):
        status, out, _ = outcome(capsys, command, "--help")
        assert status == 0 and command in out
    status, out, _ = outcome(capsys)
    assert status == 0 and "evolve" in out
    status, out, _ = outcome(capsys, "tasks")
    assert "xland-hard" in out
    status, out, _ = outcome(capsys, "tasks", "xland-hard")
    assert "yellow hex" in out


@pytest.mark.usefixtures("warm")
def test_check_says_what_a_program_costs_and_what_is_wrong(capsys, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("import os\n")
    status, out, _ = outcome(capsys, "check", "--interfaces", SPARSE, str(bad), "--json")
    rows = json.loads(out.splitlines()[-1])["rows"]
    assert status == 1
    assert rows[0]["failure"] is None and rows[0]["summary"]["observation_size"] == 98
    assert rows[1]["failure"]["stage"] == "guard" and rows[1]["failure"]["line"] == 1


@pytest.mark.long
def test_train_gives_a_row_for_every_interface(capsys, tmp_path):
    plot = tmp_path / "curves.png"
    status, out, err = outcome(
        capsys, "train", "--task", "probe-corridor", "--task-arg", "length=3", "--seeds", "2", "--steps", "2048",
        "--checkpoints", "2", "--ppo.envs", "16", "--ppo.unroll", "16", "--diagnose", "--plot", str(plot), "--json",
    )  # fmt: skip
    assert status == 0, err
    report = json.loads(out.splitlines()[-1])
    assert report["task_arg"] == ["length=3"] and err.count("probe-corridor (length=3)") == 2, "the plan and the table"
    learner = {name: report["ppo"][name] for name in ("envs", "unroll", "learning_rate", "value_clip")}
    assert learner == {"envs": 16, "unroll": 16, "learning_rate": PPO().learning_rate, "value_clip": "inf"}
    (row,) = report["rows"]
    assert row["score"]["n"] == 2 and 0 <= row["score"]["low"] <= row["score"]["mean"] <= row["score"]["high"] <= 1
    assert "return" in err and plot.stat().st_size > 1000


@pytest.mark.long
def test_doctor_passes_on_this_machine(capsys, tmp_path):
    status, out, err = outcome(capsys, "doctor", "--out", str(tmp_path), "--json")
    report = json.loads(out.splitlines()[-1])
    assert status == 0 and report["fit"], err
    names = {f["name"] for f in report["findings"] if not f["name"].startswith("extra ")}
    assert names == {"versions", "extras", "devices", "disk", "sandbox", "training"}


@pytest.mark.long
def test_evolve_prints_its_documented_object(capsys, tmp_path):
    status, out, err = outcome(
        capsys, "evolve", "--task", "probe-choice", "--task-arg", "length=5", "--candidates", "2", "--generation", "2",
        "--seeds", "1", "--steps", "1024", "--final-seeds", "1", "--ppo.envs", "16", "--ppo.unroll", "16",
        "--out", str(tmp_path), "--name", "small", "--json",
    )  # fmt: skip
    assert status == 0, err
    report = json.loads(out.splitlines()[-1])
    assert report["task_arg"] == ["length=5"] and "on probe-choice (length=5)" in err
    assert {"task", "strategy", "proposer", "best", "baselines", "candidates", "env_steps", "wall_s", "compile_s",
            "cost_usd"} <= set(report)  # fmt: skip
    assert (tmp_path / "small" / "search.png").stat().st_size > 1000
    assert Path(report["best"]["path"]).exists() and {"mean", "se", "n"} <= set(report["best"]["score"])
    status, out, err = outcome(capsys, "evolve", "--out", str(tmp_path), "--name", "small")
    assert status == 2 and "holds a run already" in err and out == "", "before the plan is shown"
    status, _, err = outcome(capsys, "evolve", "--out", str(tmp_path), "--name", "small", "--resume", "--steps", "4096")
    assert status == 2 and "--steps" in err and "cannot change" in err
