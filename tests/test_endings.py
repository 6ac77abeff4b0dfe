"""How runs begin and end: one that trained nothing has failed, a start that came to nothing leaves the name free."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxreward.errors import EndCause, FileProblem, UnusableFile
from jaxreward.evolution import run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.programs import ProgramRejected
from jaxreward.reports.run_view import RunView
from jaxreward.runs import Asked, Failed, Finished, Paused, Proposed, Run, RunStarted, read_log
from jaxreward.runs.events import AskedRequest
from jaxreward.tasks import make_task
from jaxreward.training import PPO
from tests.silent import Silent
from tests.test_cli import outcome

REWARD = "\n\ndef compute_reward(state, action, next_state):\n    return next_state.hit * 1.0\n"
BAD = f"def get_observation(state):\n    return state.nowhere\n{REWARD}"
GOOD = (
    "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return jnp.stack([state.signal])\n\n\n"
    "def compute_reward(state, action, next_state):\n    return next_state.hit.astype(jnp.float32)\n"
)
SMALL = (
    "--task", "probe-choice", "--candidates", "1", "--generation", "1", "--seeds", "1", "--steps", "256", "--baselines",
    "--final-seeds", "0", "--ppo.envs", "16", "--ppo.unroll", "16", "--repairs", "0", "--max-attempts", "2",
)  # fmt: skip
pytestmark = [pytest.mark.usefixtures("warm"), pytest.mark.usefixtures("unoptimised")]


def answered(capsys, program: str, *command: str) -> tuple[int, str, str]:
    """One generation of the run `by-hand`, whose one request is answered by `program`."""
    status, out, err = outcome(capsys, "ask", *command, "--name", "by-hand", "--json")
    assert status == 0, err
    for request in json.loads(out.splitlines()[-1])["requests"]:
        Path(request["reply"]).write_text(program)
    return outcome(capsys, "tell", "--name", "by-hand")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.long
def test_a_search_whose_programs_are_all_rejected_has_failed(capsys):
    status, out, _ = answered(capsys, BAD, *SMALL)
    assert status == 0, "it goes on"
    # every rejected program is reported with its stage, its line and a hint
    said = (
        "g0000-00 is rejected, guard: line 2: 'nowhere' is neither an array method nor a field of the state (the fields"
    )
    assert [line for line in out.splitlines() if line.startswith(said)]
    status, out, err = answered(capsys, BAD)
    assert status == 1
    assert "g0001-00 is rejected, guard: line 2" in out
    assert err.startswith(
        "jaxreward tell: nothing was trained: 2 programs were rejected, all of them so: guard: 'nowhere' is"
    )
    assert err.count("\n") == 1 and "correct the programs" in err
    path = Path("runs/by-hand")
    event = read_log(path / "events.jsonl")[-1].event
    assert isinstance(event, Failed) and event.cause is EndCause.ATTEMPTS
    facts = RunView.read(path)
    assert (facts.standing, facts.reason) == ("failed", event.reason)
    # as all commands tell it
    assert "failed" in outcome(capsys, "runs", "list")[1]
    shown = outcome(capsys, "runs", "show", "by-hand")[1]
    assert "failed" in shown and "resume    jaxreward tell --name by-hand --max-attempts N" in shown
    assert "failed: nothing was trained" in outcome(capsys, "runs", "tail", "by-hand", "--follow")[1].splitlines()[-1]
    assert outcome(capsys, "report", "by-hand")[0] == 0 and "and failed" in (path / "report.html").read_text()
    # people have answered: that is kept
    status, _, err = outcome(capsys, "evolve", *SMALL[:-4], "--name", "by-hand")
    assert status == 2 and "holds a run already" in err
    # with a larger budget it goes on, and then it is finished
    assert outcome(capsys, "ask", "--name", "by-hand")[1].startswith("nothing to ask: the budget of attempts is spent")
    assert answered(capsys, GOOD, "--max-attempts", "3")[0] == 0
    assert RunView.read(path).standing == "finished"


def test_ask_leaves_a_run_as_it_stands_where_there_is_nothing_to_ask(capsys):
    assert answered(capsys, GOOD, *SMALL)[0] == 0
    log = Path("runs/by-hand/events.jsonl")
    assert outcome(capsys, "tell", "--name", "by-hand")[0] == 0
    assert isinstance(read_log(log)[-1].event, Finished)
    before = log.read_bytes()
    status, out, _ = outcome(capsys, "ask", "--name", "by-hand")
    assert status == 0 and out.startswith("nothing to ask: all candidates are trained")
    assert log.read_bytes() == before and RunView.read(Path("runs/by-hand")).standing == "finished"


@pytest.mark.parametrize("argv", [["evolve", "--resume", "--name", "frist"], ["tell", "--name", "frist"]], ids=" ".join)
def test_resuming_a_missing_run_is_refused(argv, capsys):
    Run.create(Path("runs/first"), EvolveSettings().as_config()).close()
    status, _, err = outcome(capsys, *argv)
    assert status == 2 and "there is no run in runs/frist; did you mean first?" in err and err.count("\n") == 1
    assert sorted(p.name for p in Path("runs").iterdir()) == ["first"]
    status, _, err = outcome(capsys, *argv[:-1], "something-else")
    assert status == 2 and "there is no run in runs/something-else; " in err


def test_resume_starts_a_new_run_where_there_is_none(capsys):
    status, out, _ = outcome(capsys, "evolve", "--task", "probe-choice", "--name", "job", "--resume", "--dry-run")
    assert status == 0 and "run directory runs/job" in out
    Path("job.toml").write_text('task = "probe-choice"\nname = "job"\n')
    assert outcome(capsys, "evolve", "--config", "job.toml", "--resume", "--dry-run")[0] == 0
    Path("job.toml").write_text('name = "job"\n')
    status, _, err = outcome(capsys, "evolve", "--config", "job.toml", "--resume", "--dry-run")
    assert status == 2 and "say with --task what a new one searches" in err


REJECTED = Proposed.model_validate(
    {"proposal": {"request_id": "g0000-00", "failure": {"stage": "reply", "message": "no"}}}
)
ASKED = Asked(generation=0, requests=(AskedRequest(id="g0000-00", operator="scratch"),))
START = RunStarted(task="probe-choice", strategy="limen", proposer="genetic")


@pytest.mark.parametrize(
    ("events", "free"),
    [
        ([START], True),
        ([START, ASKED, Paused(reason="stopped")], True),
        ([START, ASKED, REJECTED], False),
        ([START, ASKED, REJECTED, Failed(reason="nothing was trained")], True),
        ([START, ASKED, REJECTED, Finished(reason="budget")], False),
    ],
)
def test_the_name_of_a_run_without_candidates_can_be_reused(events, free, tmp_path):
    path = tmp_path / "run"
    with Run.create(path, {"seed": 1}) as run:
        for event in events:
            run.append(event)
    (path / "task.py").write_text("of before")
    if not free:
        with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.EXISTS):
            Run.create(path, {"seed": 2})
        return
    with Run.create(path, {"seed": 2}) as run:
        assert run.config == {"seed": 2} and run.entries == []
        run.append(START)
    assert [entry.event for entry in read_log(path / "events.jsonl")] == [START]
    assert not (path / "task.py").exists(), "the next run would take it for its own"


@pytest.mark.parametrize("folder", ["transcripts", "requests", "replies"])
def test_a_run_with_requests_or_replies_is_not_overwritten(folder, tmp_path):
    with Run.create(tmp_path / "run", {}) as run:
        run.append(START)
    (tmp_path / "run" / folder).mkdir(exist_ok=True)
    (tmp_path / "run" / folder / "a").write_text("work")
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.EXISTS):
        Run.create(tmp_path / "run", {})


def test_a_start_that_fails_leaves_no_folder(tmp_path):
    observation = tmp_path / "seen.py"
    observation.write_text(BAD.removesuffix(REWARD))
    settings = EvolveSettings(
        task="probe-choice", candidates=1, seeds=1, steps=256, evolve="reward", observation=observation, out=tmp_path,
        name="x", ppo=PPO(envs=16, unroll=16),
    )  # fmt: skip
    with pytest.raises(ProgramRejected) as error:
        run_search(settings, Silent(), task=make_task("probe-choice"))
    assert (error.value.name, error.value.failure.stage) == (f"--observation {observation}", "guard")
    assert not (tmp_path / "x").exists()
