"""The search loop end to end, on a task that trains in a second."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jaxreward.commands.evolve import COMMANDS
from jaxreward.commands.resolve import resolve
from jaxreward.errors import EndCause, InvalidSetting
from jaxreward.evolution import run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.started import started_settings
from jaxreward.objectives.training import candidate_trainer
from jaxreward.runs import REQUEUE_EXIT_CODE, Finished, Proposed, Trained, fold, read_log
from jaxreward.runs.provenance import read_header
from jaxreward.runs.toml import to_toml
from jaxreward.search import make_strategy
from jaxreward.training import PPO, Checkpointing, Interrupted
from jaxreward.training.chunk import Chunk
from jaxreward.training.learners import for_recovered_rewards
from tests.silent import Silent
from tests.substance import substance
from tests.tracking.records import read_folder

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced")
SETTINGS = EvolveSettings(
    task="probe-choice", candidates=4, generation=2, seeds=2, steps=1024, 
    option=("initial=2", "islands=2", "migration_interval=2"),
    final_seeds=2, ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,)),
)  # fmt: skip


@pytest.fixture(scope="module")
def machine(checker, task_of):
    """One task and one checker for all runs, so that what is compiled is compiled once."""
    return {"task": task_of("probe-choice"), "checker": checker}


def run(machine: dict[str, Any], out: Path, **changes: Any):
    return run_search(dataclasses.replace(SETTINGS, out=out, name="run", **changes), Silent(), **machine)


@pytest.fixture(scope="module")
def whole(machine, tmp_path_factory):
    """An uninterrupted run, and where it lies."""
    out = tmp_path_factory.mktemp("whole")
    return run(machine, out), out / "run"


TUNED: dict[str, Any] = {"tune": 3, "tune_steps": 128, "final_seeds": 0, "baselines": ()}


@pytest.fixture(scope="module")
def tuned(machine, tmp_path_factory):
    """An uninterrupted run that tunes weights, and where it lies."""
    out = tmp_path_factory.mktemp("tuned")
    return run(machine, out, **TUNED), out / "run"


def test_weights_are_tuned_before_a_candidate_trains(tuned, machine):
    """The log contains what was trained, with the steps of the tuning."""
    outcome, path = tuned
    trained = [r for e in substance(path) if isinstance(e, Trained) for r in e.results]
    plain = {len(machine["checker"].check(r.candidate.source, machine["task"])[1].constants) for r in trained}
    assert plain != {0}, "some of the rewards have weights"
    for result in trained:
        program = machine["checker"].check(result.candidate.source, machine["task"])[1]
        assert result.candidate.summary is not None and result.feedback is not None
        assert program.digest == result.candidate.summary.digest
        tuned = [n for n in result.feedback.notices if n.kind == "tuned"]
        assert len(tuned) == bool(len(program.constants))
        assert result.env_steps == 2 * (1024 + (3 * 128 if tuned else 0))
    assert outcome.progress.spent.env_steps == sum(r.env_steps for r in trained)


@pytest.mark.long
def test_a_run_stopped_after_tuning_resumes_without_tuning_again(tuned, machine, tmp_path, monkeypatch):
    train, update, updates, taken = candidate_trainer.train, Chunk.update, [0], dict[str, int]()

    def stopped(*args: Any, checkpointing: Checkpointing, **options: Any) -> Any:
        if checkpointing.tag == "generation-0":
            raise Interrupted("stopped before the training proper")
        return train(*args, checkpointing=checkpointing, **options)

    def counted(*args: Any, checkpointing: Checkpointing, **options: Any) -> Any:
        before = updates[0]
        result = train(*args, checkpointing=checkpointing, **options)
        taken[checkpointing.tag] = updates[0] - before
        return result

    def counting(*args: Any) -> Any:
        updates[0] += 1
        return update(*args)

    monkeypatch.setattr(candidate_trainer, "train", stopped)
    assert run(machine, tmp_path / "cut", **TUNED).cause is EndCause.SIGNAL
    monkeypatch.setattr(candidate_trainer, "train", counted)
    monkeypatch.setattr(Chunk, "update", counting)
    run(machine, tmp_path / "cut", **TUNED, resume=True)
    assert taken["generation-0-tune-0"] == 0 < min(taken["generation-0"], taken["generation-1-tune-0"])
    assert substance(tmp_path / "cut" / "run") == substance(tuned[1])


def archive(path: Path) -> Any:
    options = {"islands": 2, "initial": 2, "migration_interval": 2}
    strategy = make_strategy("limen", **options)
    return fold([e.event for e in read_log(path / "events.jsonl")], strategy.init(), strategy.tell).state


def test_a_run_writes_its_best_interface_with_its_provenance(whole):
    outcome, path = whole
    assert outcome.cause is EndCause.CANDIDATES and outcome.exit_code == 0
    assert outcome.best is not None and outcome.score is not None and outcome.score.n == 2
    text = (path / "best_interface.py").read_text()
    header = read_header(text)
    assert header["task"] == "probe-choice" and header["digest"] == outcome.best.candidate.summary.digest
    assert "2 seeds" in header["score"]
    assert set(outcome.baselines) == {"best", "sparse"}
    assert (path / "programs" / f"{outcome.best.candidate.summary.digest}.py").exists()
    assert not [p.name for p in (path / "checkpoints").iterdir() if not p.name.startswith("best-policy")]


@pytest.mark.long
@pytest.mark.parametrize("first", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_killed_after_any_event_resumes_to_the_same_end(whole, machine, tmp_path, first):
    """The log cut after every second event, as kill -9 leaves it; resumed; compared with the whole run."""
    _, path = whole
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    expected, state = substance(path), archive(path)
    for cut in range(first, len(lines), 2):
        copy = tmp_path / f"cut{cut}" / "run"
        shutil.copytree(path, copy)
        for lost in ("best_interface.py",):
            (copy / lost).unlink()
        (copy / "events.jsonl").write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        run(machine, copy.parent, resume=True)
        assert substance(copy) == expected, f"cut after event {cut}"
        assert archive(copy) == state
        assert (copy / "best_interface.py").read_text() == (path / "best_interface.py").read_text()


@pytest.mark.long
def test_a_recorded_run_replays_to_the_same_log(whole, machine, tmp_path):
    _, path = whole
    options = started_settings(path).option  # spelled out, as a command finds them in the recording
    run(machine, tmp_path, proposer="replay", recording=path, option=options)
    recorded, replayed = substance(path), substance(tmp_path / "run")
    assert replayed == recorded


def test_a_replay_takes_the_filter_threshold_only_if_the_recording_had_a_short_rung(whole, machine, tmp_path):
    """Of a run without a short rung none was given, whatever its settings spell out; of another its own."""
    _, path = whole
    kept = (path / "config.toml").read_text()
    assert "filter_steps = 0" in kept and "filter_threshold = 0.05" in kept
    again = ["--proposer", "replay", "--recording"]
    assert resolve(COMMANDS[0], [*again, str(path), "--filter-steps", "512"]).settings.filter_threshold is None
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    (copy / "config.toml").write_text(kept.replace("filter_steps = 0", "filter_steps = 256"))
    assert resolve(COMMANDS[0], [*again, str(copy)]).settings.filter_threshold == 0.05


def test_a_replay_has_what_was_recorded_and_not_what_a_file_says(whole, tmp_path, capsys):
    _, path = whole
    file = tmp_path / "mine.toml"
    recorded = resolve(COMMANDS[0], ["--proposer", "replay", "--recording", str(path)]).settings
    file.write_text(f'recording = "{path}"\nsteps = {recorded.steps + 1}\nmemory_gb = 3.0\n')
    settings = resolve(COMMANDS[0], ["--config", str(file), "--seed", "7"]).settings
    assert settings == dataclasses.replace(
        recorded, memory_gb=3.0, seed=7, name=settings.name, command=settings.command
    )
    assert "steps ignored" in capsys.readouterr().err


def test_a_recording_says_what_is_searched_and_not_where_the_run_lies(whole, tmp_path):
    _, path = whole
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    config = copy / "config.toml"
    config.write_text('out = "elsewhere"\nname = "chosen"\nmemory_gb = 0.5\n' + config.read_text())
    settings = resolve(COMMANDS[0], ["--proposer", "replay", "--recording", str(copy)]).settings
    assert (settings.out, settings.memory_gb) == (Path("runs"), None) and settings.name != "chosen"


def test_a_file_with_a_recording_and_another_proposer_is_refused(whole, tmp_path):
    _, path = whole
    file = tmp_path / "mine.toml"
    file.write_text(f'recording = "{path}"\nproposer = "genetic"\n')
    with pytest.raises(InvalidSetting) as error:
        resolve(COMMANDS[0], ["--config", str(file)]).settings.check()
    assert error.value.settings == ("recording", "proposer")


def test_the_settings_of_a_replay_reproduce_it(whole, tmp_path):
    """Its own values, not those of the run that it replays."""
    _, path = whole
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    replay = resolve(COMMANDS[0], ["--recording", str(path), "--proposer", "replay", "--seed", "7"]).settings
    (copy / "config.toml").write_text(to_toml(replay.as_config()))
    again = resolve(COMMANDS[0], ["--config", str(copy / "config.toml")]).settings
    assert (again.seed, again.proposer, again.recording) == (7, "replay", path)


@pytest.mark.long
def test_a_finished_run_continues_with_a_larger_budget(whole, machine, tmp_path):
    _, path = whole
    shutil.copytree(path, tmp_path / "run")
    outcome = run(machine, tmp_path, resume=True, candidates=6, track=("tensorboard",))
    assert outcome.progress.spent.trained == 6
    # what was trained before it was tracked is shown too
    results = [r for e in substance(tmp_path / "run") if isinstance(e, Trained) for r in e.results]
    shown = read_folder(tmp_path / "run" / "tensorboard" / "search")
    scores = {k: pytest.approx(r.score.mean) for k, r in enumerate(results, start=1) if r.score}
    assert [(v.step, v.value) for v in shown if v.tag == "score/candidate"] == list(scores.items())
    # the score in the header is that of the program under it
    final = outcome.baselines["best"]
    assert outcome.best is not None and outcome.best.candidate.summary is not None
    assert final.digest == outcome.best.candidate.summary.digest
    assert read_header((tmp_path / "run" / "best_interface.py").read_text())["digest"] == final.digest
    assert "candidates = 6" in (tmp_path / "run" / "config.toml").read_text()
    assert substance(tmp_path / "run")[: len(substance(path)) - 3] == substance(path)[:-3]


@pytest.mark.parametrize(
    ("limit", "cause"),
    [
        ({"max_attempts": 2}, EndCause.ATTEMPTS),
        ({"max_env_steps": 1024}, EndCause.ENV_STEPS),
        ({"max_device_s": 1e-6}, EndCause.DEVICE_S),
    ],
)
def test_the_budget_that_is_spent_first_ends_the_run(machine, tmp_path, limit, cause):
    outcome = run(machine, tmp_path, final_seeds=0, baselines=(), **limit)
    assert outcome.cause is cause
    end = read_log(outcome.path / "events.jsonl")[-1].event
    assert isinstance(end, Finished) and end.cause is cause
    assert outcome.progress.spent.trained == 2


@pytest.mark.slow
def test_best_of_n_has_the_budget_of_the_search(machine, tmp_path):
    outcome = run(machine, tmp_path, baselines=("sparse", "best-of-n"))
    assert set(outcome.baselines) == {"best", "sparse", "best-of-n"}
    inner = read_log(tmp_path / "run" / "best-of-n" / "events.jsonl")
    trained = [r for e in inner if isinstance(e.event, Trained) for r in e.event.results]
    assert len(trained) == SETTINGS.candidates
    assert {r.candidate.operator for r in trained} == {"scratch"}
    # an extended search extends its rival
    run(machine, tmp_path, baselines=("sparse", "best-of-n"), candidates=6, resume=True)
    inner = read_log(tmp_path / "run" / "best-of-n" / "events.jsonl")
    assert sum(len(e.event.results) for e in inner if isinstance(e.event, Trained)) == 6


@pytest.mark.long
def test_a_run_killed_between_chunks_or_baselines_resumes_to_the_same_end(machine, tmp_path):
    """One candidate a chunk and two baselines: checkpoints of one are not taken for another."""
    whole = tmp_path / "whole"
    run(machine, whole, chunk=1)
    lines = (whole / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"baseline"' in line)
    shutil.copytree(whole / "run", tmp_path / "cut" / "run")
    (tmp_path / "cut" / "run" / "events.jsonl").write_bytes(b"".join(lines[: at + 1]))
    run(machine, tmp_path / "cut", chunk=1, resume=True)
    assert substance(tmp_path / "cut" / "run") == substance(whole / "run")


@pytest.mark.long
@pytest.mark.parametrize("part", ["observation", "reward"])
def test_an_ablation_changes_one_half_only(machine, tmp_path, part):
    outcome = run(machine, tmp_path, evolve=part, final_seeds=0, baselines=())
    for entry in read_log(tmp_path / "run" / "events.jsonl"):
        if isinstance(entry.event, Proposed):
            source = entry.event.proposal.source
            assert ("def get_observation" in source) == (part == "observation")
            assert ("def compute_reward" in source) == (part == "reward")
    assert outcome.progress.spent.trained > 0


def test_a_short_rung_filters_and_the_failure_has_no_score(machine, tmp_path):
    outcome = run(machine, tmp_path, filter_steps=512, filter_threshold=1.0, final_seeds=0, baselines=())
    results = outcome.progress.results.values()
    stages = {r.failure.stage for r in results if r.failure}
    assert stages <= {"filtered", "duplicate"} and "filtered" in stages
    assert all(r.score is None for r in results if r.failure)


@pytest.mark.slow
def test_seeds_and_budgets_follow_the_results(machine, tmp_path):
    """Half of a generation stops half-way; who may be the best has more seeds; and every step is counted once."""
    how: Any = {"halving": 1, "prune": True, "contender_seeds": 4, "generation": 4, "final_seeds": 0, "baselines": ()}
    outcome = run(machine, tmp_path, **how)
    results = list(outcome.progress.results.values())
    stopped = [r.failure.message for r in results if r.failure and r.failure.stage == "filtered"]
    halved = [message for message in stopped if "is not among the best" in message]
    assert halved and all("after 512 steps" in message for message in halved)
    scores = [r.score for r in results if r.score]
    assert {score.n for score in scores} <= {2, 4} and max(scores, key=lambda score: score.merit).n == 4
    trainings = [e for e in substance(tmp_path / "run") if isinstance(e, Trained)]
    for event in trainings:
        more = [r.env_steps for r in event.results if r.score and r.score.n == 4]
        fewer = [r.env_steps for r in event.results if not (r.score and r.score.n == 4)]
        assert all(a - b == 2 * 1024 for a in more for b in fewer)
    run(
        machine, tmp_path / "again", halving=1, prune=True, contender_seeds=4, generation=4, final_seeds=0, baselines=()
    )
    assert substance(tmp_path / "again" / "run") == substance(tmp_path / "run")


@pytest.mark.slow
def test_who_may_be_the_best_is_trained_again_on_fresh_seeds(machine, tmp_path):
    """By seeds that did not choose it; what they cost counts, and the log resumes to the same."""
    how: Any = {"confirm_seeds": 2, "generation": 4, "final_seeds": 0, "baselines": ()}
    outcome = run(machine, tmp_path, **how)
    results = list(outcome.progress.results.values())
    kept = [r for r in results if r.candidate.operator == "keep"]
    assert kept and outcome.progress.spent.trained == SETTINGS.candidates
    assert outcome.progress.spent.env_steps == sum(r.env_steps for r in results)
    assert {r.env_steps for r in kept} == {2 * 1024}
    first = {r.candidate.id: r for r in results}
    for again in kept:
        before = first[again.candidate.parents[0]]
        assert before.candidate.source == again.candidate.source
        assert before.feedback is not None and again.feedback is not None
        assert before.feedback.by_seed != again.feedback.by_seed, "other seeds"
    (end,) = [e for e in substance(tmp_path / "run") if isinstance(e, Finished)]
    assert end.best is not None and first[end.best].candidate.operator == "keep"
    lines = (tmp_path / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    asked = next(k for k, line in enumerate(lines) if b'"keep"' in line)
    for cut in (asked, asked + 1, asked + 2):
        shutil.copytree(tmp_path / "run", tmp_path / str(cut) / "run")
        (tmp_path / str(cut) / "run" / "events.jsonl").write_bytes(b"".join(lines[:cut]))
        run(machine, tmp_path / str(cut), **how, resume=True)
        assert substance(tmp_path / str(cut) / "run") == substance(tmp_path / "run"), cut


@pytest.mark.slow
def test_the_policy_of_the_confirmed_best_is_kept_or_it_is_said_why_none_is(machine, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxreward.search.confirmation.AT_ONCE", 1)
    how: Any = {"confirm_seeds": 1, "generation": 4, "final_seeds": 0, "baselines": ()}
    outcome = run(machine, tmp_path, **how, max_attempts=4)
    kept = [r for r in outcome.progress.results.values() if r.candidate.operator == "keep"]
    assert kept and outcome.best is not None and outcome.best.candidate.operator == "keep"
    assert max(kept, key=lambda r: r.score.merit if r.score else -1.0).candidate.id == outcome.best.candidate.id
    digest = json.loads((tmp_path / "run" / "best-policy.json").read_text())["digest"]
    assert outcome.best.candidate.summary is not None and digest == outcome.best.candidate.summary.digest
    told = list[str]()

    class Told(Silent):
        def note(self, text: str) -> None:
            told.append(text)

    settings = dataclasses.replace(SETTINGS, out=tmp_path / "steps", name="run", max_env_steps=4 * 2 * 1024, **how)
    run_search(settings, Told(), **machine)
    assert any("not confirmed on fresh seeds: the budget of environment steps is spent" in text for text in told)


def test_the_presets_of_the_paper_train_all_candidates_alike():
    for task, preset in (("xland-easy", "paper-budget"), ("panda-tracking", "paper")):
        s = resolve(COMMANDS[0], ["--task", task, "--preset", preset]).settings
        assert (s.halving, s.prune, s.contender_seeds, s.tune) == (0, False, 0, 0)


@pytest.mark.parametrize("strategy", ["grace", "limen"])
@pytest.mark.parametrize(("preset", "candidates"), [("quick", 100), ("paper-budget", 30), ("paper", 30)])
def test_presets_suit_the_objective(preset, candidates, strategy):
    """A search on demonstrations scores many programs, expands its data, and has the learner of recovered rewards."""
    words = ["--task", "xland-easy", "--preset", preset, "--strategy", strategy]
    trained = resolve(COMMANDS[0], words).settings
    words += ["--objective", "demonstrations", "--data", "x.npz"]
    found = resolve(COMMANDS[0], words).settings
    assert found.candidates == candidates and found.ppo == for_recovered_rewards(trained.ppo)
    assert ("expansions=2" in found.option) == (strategy == "grace") and "expansions=2" not in trained.option
    told = resolve(COMMANDS[0], [*words, "--option", "expansions=0", "--ppo.no-bootstrap"]).settings
    assert [o for o in told.option if o.startswith("expansions")] == ["expansions=0"] and not told.ppo.bootstrap


@pytest.mark.parametrize(
    "changes, concerned",
    [
        ({"halving": 1, "generation": 1}, "generation"), ({"prune": True, "steps": 500}, "prune"),
        ({"collector": "stepwise", "ppo": PPO(gru=4)}, "collector"), ({"halving": 5}, "halving"),
        ({"contender_seeds": 2}, "contender_seeds"), ({"halving": -1}, "halving"),
    ],
)  # fmt: skip
def test_impossible_successive_halving_is_refused(changes, concerned):
    with pytest.raises(InvalidSetting) as error:
        dataclasses.replace(SETTINGS, **changes).check()
    assert error.value.settings[0] == concerned


COMMAND = [
    sys.executable, "-m", "jaxreward.cli", "evolve", "--task", "probe-choice", "--candidates", "2", "--generation", "2",
    "--seeds", "1", "--baselines", "sparse", "--final-seeds", "1", "--ppo.envs", "16", "--ppo.unroll", "16",
    "--name", "run",
]  # fmt: skip


def started(out: Path, *more: str) -> subprocess.Popen[bytes]:
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen([*COMMAND, "--out", str(out), *more], env=environment, stderr=subprocess.PIPE)


def wait_for(path: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and text in path.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(
        f"{text} did not come; exit status {process.poll()}: {process.stderr and process.stderr.read().decode()}"
    )


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory):
    """An uninterrupted run of the command, and the seconds that its training took.

    The runs after it find its compiled functions in the cache, so they train from the last check on.
    """
    out = tmp_path_factory.mktemp("unkilled")
    with started(out, "--steps", "400000") as process:
        _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err.decode()
    entries = read_log(out / "run" / "events.jsonl")
    return out / "run", next(e.event.run_s for e in entries if isinstance(e.event, Trained))


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
def test_a_run_killed_while_training_resumes_to_the_same_end(tmp_path, unkilled, how):
    """A signal in the middle of a training: with SIGTERM and SIGUSR1 it is saved and asks to be requeued."""
    whole, seconds = unkilled
    log = tmp_path / "run" / "events.jsonl"
    with started(tmp_path, "--steps", "400000") as process:
        wait_for(log, '"checked"', process)
        time.sleep(0.5 * seconds)  # into the training
        process.send_signal(how)
        process.communicate(timeout=120)
    assert '"trained"' not in log.read_text(), "the signal came too late to be a test"
    if how is not signal.SIGKILL:
        assert process.returncode == REQUEUE_EXIT_CODE
        assert any((tmp_path / "run" / "checkpoints").iterdir())
    with started(tmp_path, "--resume") as process:
        _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err.decode()
    assert substance(tmp_path / "run") == substance(whole)
