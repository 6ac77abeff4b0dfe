"""`jaxreward runs`: lists, one run on a screen, its events, runs side by side; from logs alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxreward.cli import main
from jaxreward.commands import runs as commands
from jaxreward.commands.runs import Tail
from jaxreward.records import Measure
from jaxreward.reports.run_tables import SideBySide, list_lines
from jaxreward.reports.run_text import baseline_verdicts, resume_command, run_lines
from jaxreward.reports.run_view import RunView
from jaxreward.runs import Baseline, EventLog, Paused, Resumed
from tests.reports import example


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A finished run, one that was paused, one that was killed, one of a comparison, and two that are none."""
    folder = tmp_path / "runs"
    whole = example.events()
    example.write_run(folder / "whole", whole)
    example.write_run(folder / "paused", [*whole[:12], Paused(reason="SIGTERM")])
    example.write_run(folder / "killed", whole[:13])
    example.write_run(folder / "six/toy/limen-llm-0", example.events({"seed": 3}, best=0.6))
    example.write_run(folder / "damaged", whole[:2])
    (folder / "damaged/events.jsonl").write_text("nonsense\n{}\n")
    example.write_run(folder / "empty", [])
    return folder


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert main(["runs", *args]) == code
    out, err = capsys.readouterr()
    return out or err


# ---- list


def test_a_list_has_every_run_newest_first_and_names_what_cannot_be_read(runs: Path, capsys):
    lines = said(capsys, "list", str(runs)).splitlines()
    assert lines[0].split()[:4] == ["run", "task", "strategy", "proposer"]
    assert [line.split()[0] for line in lines[1:5]] == ["six/toy/limen-llm-0", "whole", "killed", "paused"]
    assert [line.split()[4] for line in lines[1:5]] == ["finished", "finished", "stopped", "paused"]
    whole = lines[2]
    assert (
        "4/6" in whole
        and "0.900 (0.773 to 1.000)" in whole
        and "0.850" in whole
        and "7.00k" in whole
        and "$0.40" in whole
    )
    assert lines[5].startswith("cannot read damaged: ") and "line 1 is damaged" in lines[5]
    assert lines[6].startswith("cannot read empty: there is no run in")


def test_a_narrow_terminal_says_what_it_leaves_out(runs: Path):
    view = RunView.read(runs / "whole")
    lines = list_lines([("whole", view)], width=70, now=view.last_at + 7200)
    assert max(map(len, lines)) <= 70 and lines[1].endswith("2.0 h")
    assert "strategy" not in lines[0] and "strategy" in lines[-1] and "trained" in lines[0]
    free = example.write_run(runs / "free", [e for e in example.events()[:1]])
    assert "cost" not in list_lines([("free", RunView.read(free))])[0], "a column that is empty in all runs"


def test_the_list_as_json(runs: Path, capsys):
    output = json.loads(said(capsys, "list", str(runs), "--json"))
    assert output["runs"][1]["run"] == "whole" and {r["run"] for r in output["unreadable"]} == {"damaged", "empty"}
    whole = output["runs"][1]
    assert whole["candidates"] == {"trained": 4, "failed": 2, "duplicate": 2, "budget": 6}
    assert whole["best"]["id"] == "g0001-00" and whole["best"]["score"]["mean"] == 0.9
    assert whole["fresh"]["mean"] == pytest.approx(0.85) and whole["cost_usd"] == pytest.approx(0.4)
    assert (whole["env_steps"], whole["wall_s"], whole["standing"]) == (7000, 250.0, "finished")


def test_a_folder_without_runs(tmp_path: Path, capsys):
    assert "there is no run in" in said(capsys, "list", str(tmp_path))
    assert "there is no folder" in said(capsys, "list", str(tmp_path / "none"), code=2)


# ---- show


def test_a_run_on_a_screen(runs: Path, capsys):
    text = said(capsys, "show", "whole", "--out", str(runs))
    for part in (
        "whole: toy, limen with the llm proposer, search seed 0", "all candidates are trained",
        "g0001-00, success 0.900", "trained again on 3 fresh seeds x 1,000 steps",
        "sparse 0.200 (0.157 to 0.243): the best is better, +0.",
        "g0001-00 (improve) <- g0000-00 (scratch)", "dominant_term: near makes up 90 %", "4 of 6 candidates trained",
        "$0.40 of $2.00", "(75% compiling)", "2 trace, 2 duplicate, 1 filtered", "--candidates N",
    ):  # fmt: skip
        assert part in " ".join(text.split()), part
    table = text.splitlines()[-2:]
    assert table[1].split()[:5] == ["1", "2", "2", "0.900", "0.900"] and len(text.splitlines()) < 30


def test_a_run_as_json(runs: Path, capsys):
    output = json.loads(said(capsys, "show", str(runs / "whole"), "--json"))
    assert output["failures"] == {"trace": 2, "duplicate": 2, "filtered": 1} and output["attempts"] == 8
    assert [g["trained"] for g in output["generations"]] == [1, 2] and output["generations"][0]["compile_s"] == 6.0
    assert output["generations"][0]["seconds"]["checking"] == 40.0
    assert [c["id"] for c in output["lineage"]] == ["g0001-00", "g0000-00"]
    assert output["baselines"]["sparse"]["score"]["mean"] == 0.2


def test_a_difference_that_may_be_none_is_said_to_be_unclear(tmp_path: Path):
    whole = [e for e in example.events() if not (isinstance(e, Baseline) and e.name == "sparse")]
    close = Baseline(name="sparse", score=example.score(0.86, n=3, se=0.05))
    view = RunView.read(example.write_run(tmp_path / "close", [*whole[:-1], close, whole[-1]]))
    assert baseline_verdicts(view)["sparse"][1].startswith("no significant difference, -0.010 (-0.")


def test_where_less_is_better_the_best_is_better_with_less(tmp_path: Path):
    measure = Measure(name="distance", unit="m", rate=False, higher_is_better=False, worst=9.0)
    of = example.events()
    own = of[-3].model_copy(update={"score": example.score(0.01, n=3, se=0.001, measure=measure)})
    rival = of[-2].model_copy(update={"score": example.score(0.5, n=3, measure=measure)})
    view = RunView.read(example.write_run(tmp_path / "less", [*of[:-3], own, rival, of[-1]]))
    assert baseline_verdicts(view)["sparse"][1].startswith("the best is better")


def test_how_to_go_on(runs: Path):
    known = {name: resume_command(RunView.read(runs / name)) for name in ("whole", "paused", "killed")}
    assert known["paused"] == known["killed"].replace("killed", "paused")
    assert known["paused"].startswith("jaxreward evolve --out ") and known["paused"].endswith("--name paused --resume")
    with EventLog(runs / "paused/events.jsonl"):
        running = RunView.read(runs / "paused")
        assert running.standing == "running" and resume_command(running) == "" and running.reason == ""
    manual = example.events({"proposer": "manual"})[:3]
    assert resume_command(RunView.read(example.write_run(runs / "by-hand", manual))).endswith("--name by-hand")
    cell = example.events(started={"command": "jaxreward compare --tasks toy"})[:3]
    assert "comparison" in resume_command(RunView.read(example.write_run(runs / "cell", cell)))


def test_a_killed_run_shows_its_generation_in_progress(runs: Path):
    text = "\n".join(run_lines(RunView.read(runs / "killed"), 100))
    assert "stopped" in text and "killed, or the machine went down" in text
    assert "generation 1, 4 without a result" in text and "1 (in work)" in text


def test_many_generations_are_added_up(tmp_path: Path):
    of = example.events()[:1]
    for k in range(12):
        of += example.generation(k, (), (0.1 * k if k < 9 else None, None))
    lines = run_lines(RunView.read(example.write_run(tmp_path / "long", of)))
    assert lines[-9].split()[:5] == ["0", "to", "3", "4", "12"] and lines[-1].split()[0] == "11" and len(lines) < 32


def test_a_typo_names_the_run(runs: Path, capsys):
    assert "did you mean whole?" in said(capsys, "show", "wohle", "--out", str(runs), code=2)
    assert "did you mean 'show'?" in said(capsys, "shwo", code=2)
    assert "jaxreward runs COMMAND" in said(capsys) and "list" in said(capsys, "--help")


# ---- compare


def test_runs_side_by_side(runs: Path, capsys):
    text = said(capsys, "compare", "whole", "limen-llm-0", "--out", str(runs), "--levels", "0.3", "0.8")
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    cells = {name: values for name, *values in rows}
    assert cells["candidates to 0.300"] == ["1", "1"] and cells["candidates to 0.800"] == ["3", "-"]
    assert cells["candidates to its best"] == ["3", "3"] and cells["steps to its best"] == ["7.00k", "7.00k"]
    assert cells["device time to its best"] == ["16 s", "16 s"] and cells["dollars to its best"] == ["$0.40", "$0.40"]
    assert cells["--seed"] == ["none", "3"] and cells["on fresh seeds"][1].startswith("0.550 (")
    assert "tasks differ" not in text


def test_runs_of_different_tasks_are_not_set_against_each_other(runs: Path, capsys):
    example.write_run(runs / "other", example.events({"task": "hopper"}))
    text = said(capsys, "compare", "whole", "other", "--out", str(runs))
    assert "the tasks differ (toy; hopper)" in text and "candidates to 0.5" not in text
    output = json.loads(said(capsys, "compare", "whole", "other", "--out", str(runs), "--json"))
    assert output["tasks_differ"] and output["settings"]["task"] == ["toy", "hopper"]
    assert output["runs"][0]["to_best"]["candidates"] == 3
    assert "at least two" in said(capsys, "compare", "whole", "--out", str(runs), code=2)


def test_levels_go_by_what_all_reached(runs: Path):
    both = [(name, RunView.read(runs / name)) for name in ("whole", "six/toy/limen-llm-0")]
    assert SideBySide(both).asked_levels == [0.25, 0.5, 0.6, 0.75, 0.9]
    lines = SideBySide(both * 3).lines(width=100)
    assert max(map(len, lines)) <= 100 and sum(line.startswith("task ") for line in lines) > 1


# ---- tail


def test_events_are_plain_lines(runs: Path, capsys):
    lines = said(capsys, "tail", "whole", "--out", str(runs), "--lines", "100").splitlines()
    assert len(lines) == len(example.events()) and "started: toy, limen, llm" in lines[0]
    text = "\n".join(lines)
    for part in (
        "g0     asked for 4: 4 scratch", "g0000-00: proposed by m, $0.0500",
        "g0000-00: passed, 12 features, 1 reward terms",
        "g0000-02: rejected, trace: line 3: no such field", "g0000-03: duplicate, computes the same as g0000-00",
        "trained 2 in 10 s: g0000-00 0.400, g0000-01 filtered; best so far 0.400", "final training, sparse: 0.200",
        "finished: all candidates are trained; the best is g0001-00",
    ):  # fmt: skip
        assert part in text, part
    assert said(capsys, "tail", "whole", "--out", str(runs), "-n", "2").splitlines() == lines[-2:]
    assert said(capsys, "tail", "whole", "--out", str(runs), "-n", "0") == ""
    assert "must not be negative" in said(capsys, "tail", "whole", "--out", str(runs), "-n", "-1", code=2)


def test_following_a_run_until_it_is_finished(tmp_path: Path):
    """It grows, is killed and left torn, is taken up again, and has a search inside it."""
    whole = example.events()
    path = example.write_run(tmp_path / "run", whole[:3])
    log, inner = path / "events.jsonl", path / "best-of-n"
    rest = [
        example.line(entry) for entry in example.entries([*whole[:12], Resumed(config=example.CONFIG), *whole[12:]])
    ][3:]
    steps: list[Any] = [
        lambda: log.write_text(log.read_text() + "".join(rest[:4]) + rest[4][:20]),
        lambda: log.write_text(log.read_text()[:-20] + "".join(rest[4:10])),
        lambda: example.write_run(inner, example.events({"strategy": "best-of-n"})[:2]),
        lambda: log.write_text(log.read_text() + "".join(rest[10:])),
    ]
    tail = Tail(path, sleep=lambda _: steps.pop(0)())
    assert len(list(tail.new())) == 3
    lines = list(tail.until_finished())
    assert lines[0].startswith("no process works on this run now")
    output = [line.split("  ", 2)[2].strip() for line in lines[1:]]
    assert len([line for line in output if not line.startswith("best-of-n: ")]) == len(rest)
    assert sum(line.startswith("best-of-n: ") for line in output) == 2 and any(
        line.startswith("resumed") for line in output
    )
    assert output[-1].startswith("finished") and not steps


def test_a_log_that_is_cut_while_it_is_followed_is_said(tmp_path: Path):
    whole = example.events()
    path = example.write_run(tmp_path / "run", whole)
    tail = Tail(path, lambda _: None)
    list(tail.new())
    (path / "events.jsonl").write_text("".join(map(example.line, example.entries(whole[:5]))))
    assert [line.partition(": ")[0] for line in tail.new()] == ["the log was cut or replaced"]
    assert not tail.finished


def test_ctrl_c_ends_following(runs: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands.time, "sleep", interrupted)
    assert main(["runs", "tail", str(runs / "paused"), "-f", "-n", "1"]) == 130
    out = capsys.readouterr().out.splitlines()
    assert "paused: SIGTERM" in out[0] and out[1].startswith("no process works on this run")


def test_a_reader_that_closes_the_pipe_is_no_error(runs: Path):
    command = f"{sys.executable} -m jaxreward.cli runs tail {runs / 'whole'} -n 100 | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


def test_no_command_about_runs_imports_jax(runs: Path):
    """They start at once, on machines without a device too."""
    code = (
        "import sys\nfrom jaxreward.cli import main\n"
        f"assert main(['runs', 'list', {str(runs)!r}]) == main(['runs', 'show', {str(runs / 'whole')!r}]) == 0\n"
        f"assert main(['runs', 'compare', {str(runs / 'whole')!r}, {str(runs / 'paused')!r}]) == 0\n"
        f"assert main(['runs', 'tail', {str(runs / 'whole')!r}]) == 0\n"
        "heavy = {'jax', 'flax', 'brax', 'mujoco', 'litellm', 'matplotlib', 'wandb', 'tensorboardX', 'torch'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_control_characters_in_a_log_do_not_reach_the_terminal(runs: Path, tmp_path: Path, capsys):
    folder = tmp_path / "evil"
    shutil.copytree(runs / "whole", folder)
    log = folder / "events.jsonl"
    log.write_text(log.read_text().replace("near makes up", "\\u001b]0;pwned\\u0007\\u202enear makes up"))
    for command in ("show", "tail"):
        text = said(capsys, command, str(folder))
        assert not set(text) & set("\x1b\x07\u202e")
    assert "\\x1b]0;pwned\\x07\\u202enear makes up" in " ".join(said(capsys, "show", str(folder)).split())
