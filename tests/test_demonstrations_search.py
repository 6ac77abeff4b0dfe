"""Searches for rewards that tell an expert from others: scored on episodes, resumed, and asked for in words."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxreward import open_run
from jaxreward.demonstrations import Trajectories, record, record_actions, reset_keys, save_trajectories
from jaxreward.errors import InvalidSetting, UnusableFile, UserError
from jaxreward.evolution import ask, run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.evolution.vocabulary import read_vocabulary
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.records import Request, Vocabulary
from jaxreward.reports.page import write_report
from jaxreward.runs import Baseline, Trained
from jaxreward.tasks import Task
from jaxreward.training import PPO
from tests.silent import Silent
from tests.substance import substance

pytestmark = [pytest.mark.usefixtures("unoptimised", "unsynced"), pytest.mark.long]


@pytest.fixture(scope="module")
def corridor(task_of: Callable[..., Task]) -> Task:
    return task_of("probe-corridor")


@pytest.fixture(scope="module")
def expert(corridor: Task) -> Trajectories:
    return record_actions(corridor, reset_keys(12, 5), [[1] * corridor.horizon] * 12, seed=5)


@pytest.fixture(scope="module")
def data(expert: Trajectories, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "expert.npz"
    save_trajectories(path, expert)
    return path


@pytest.fixture(scope="module")
def settings(data: Path) -> EvolveSettings:
    return EvolveSettings(
        task="probe-corridor", strategy="grace", objective="demonstrations",
        demonstrations=DemonstrationOptions(data=(data,), expert_episodes=6, negative_episodes=6),
        candidates=12, generation=4, steps=256, final_seeds=1, baselines=("sparse",),
        option=("population=4", "generations=1", "expansions=1", "enough=1.0"),
        ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,)), name="run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def machine(checker: Any, corridor: Task) -> dict[str, Any]:
    return {"task": corridor, "checker": checker}


@pytest.fixture(scope="module")
def whole(settings: EvolveSettings, machine: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An uninterrupted search with one expansion, and where it lies."""
    out = tmp_path_factory.mktemp("whole")
    return run_search(dataclasses.replace(settings, out=out), Silent(), **machine), out / "run"


@pytest.mark.slow
def test_the_goal_is_found_from_the_data_alone(whole: Any) -> None:
    outcome, _ = whole
    best = outcome.best
    assert outcome.exit_code == 0 and best.score.measure.name == "fitness"
    assert best.feedback.extra_metrics["accuracy"] > 0.9 and best.feedback.extra_metrics["held_out_accuracy"] > 0.9
    assert "next_state" in best.candidate.source


def test_a_candidate_is_scored_without_training_and_the_end_is_trained(whole: Any) -> None:
    _, path = whole
    scored = [r for e in substance(path) if isinstance(e, Trained) for r in e.results]
    assert all(result.env_steps == 0 for result in scored)
    final = {e.name: e.score for e in substance(path) if isinstance(e, Baseline)}
    assert set(final) == {"best", "sparse"}
    assert {score and score.measure.name for score in final.values()} == {"success"}


def test_the_policy_of_the_final_training_is_kept(whole: Any, corridor: Task) -> None:
    outcome, path = whole
    policy = open_run(path, corridor).policy()
    episodes = record(corridor, policy, 2, seed=1)
    assert len(episodes) == 2
    digest = json.loads((path / "best-policy.json").read_text())["digest"]
    assert digest == outcome.best.candidate.summary.digest


@pytest.mark.long
def test_a_search_tells_what_its_data_are(settings: EvolveSettings, corridor: Task, tmp_path: Path) -> None:
    told = list[str]()

    class Told(Silent):
        def note(self, text: str) -> None:
            told.append(text)

    small = dataclasses.replace(settings, out=tmp_path, candidates=1, generation=1, final_seeds=0, option=())
    run_search(small, Told(), task=corridor)
    assert "6 episodes of the expert and 6 others; 6 and 6 are held out; the last state of each" in told[0]


def test_the_report_tells_success_from_fitness(whole: Any, tmp_path: Path) -> None:
    _, path = whole
    text = write_report(path, tmp_path / "report.html").read_text()
    assert re.search(r'class="result"><strong>[\d.]+</strong> <span>success</span>', text)
    assert '"metric":"fitness"' in text


@pytest.mark.long
def test_an_expansion_adds_terms_of_what_its_policy_did(
    settings: EvolveSettings, machine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabularies, build = list[Vocabulary](), GeneticProposer.build_from

    def noted(proposer: GeneticProposer, vocabulary: Vocabulary) -> None:
        vocabularies.append(vocabulary)
        build(proposer, vocabulary)

    monkeypatch.setattr(GeneticProposer, "build_from", noted)
    option = ("population=4", "expansions=1", "confirmations=0")
    run_search(dataclasses.replace(settings, out=tmp_path, option=option, final_seeds=0), Silent(), **machine)
    first, second = vocabularies
    assert first == read_vocabulary(tmp_path / "run" / "vocabulary.json")
    more = second.fragments[len(first.fragments) :]
    assert second.fragments[: len(first.fragments)] == first.fragments and more
    assert all(f.kind == "term" and ("states" in f.doc or "standard deviations" in f.doc) for f in more)
    assert len({f.name for f in second.fragments}) == len(second.fragments)


def test_an_expansion_adds_the_episodes_of_a_policy_and_everyone_is_scored_again(whole: Any) -> None:
    outcome, path = whole
    results = outcome.progress.results.values()
    (expansion,) = [r for r in results if r.candidate.operator == "expand"]
    assert "episodes of a policy trained with" in expansion.words
    again = [r for r in results if r.candidate.operator == "keep"]
    by_id = outcome.progress.results
    assert again and all(r.candidate.source == by_id[r.candidate.parents[0]].candidate.source for r in again)
    assert any(r.score != by_id[r.candidate.parents[0]].score for r in again)
    assert outcome.progress.spent.env_steps >= 256
    fresh = [r for r in results if r.candidate.operator not in ("keep", "expand")]
    assert outcome.progress.spent.attempts == len(fresh)
    assert (path / "demonstrations" / f"expansion-{expansion.candidate.id}.npz").exists()


@pytest.mark.long
def test_a_search_killed_after_any_event_resumes_to_the_same_end(
    whole: Any, settings: EvolveSettings, machine: dict[str, Any], tmp_path: Path
) -> None:
    """Also without the files of the user, and where a kill left an expansion that was not logged."""
    _, path = whole
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    asked = [k for k, line in enumerate(lines) if b'"operator":"expand"' in line or b'"operator":"keep"' in line]
    chosen = sorted({1, asked[0] + 1, asked[0] + 2, asked[-1] + 1, len(lines) - 2})
    gone = dataclasses.replace(settings.demonstrations, data=(tmp_path / "gone.npz",))
    expected = substance(path)
    for cut in chosen:
        copy = tmp_path / f"cut{cut}" / "run"
        shutil.copytree(path, copy)
        (copy / "events.jsonl").write_bytes(b"".join(lines[:cut]))
        run_search(
            dataclasses.replace(settings, out=copy.parent, resume=True, demonstrations=gone), Silent(), **machine
        )
        assert substance(copy) == expected, f"cut after event {cut}"


@pytest.mark.parametrize("text", ['{"words": ', '{"word": "1 episode"}', '{"words": "1 episode", "env_steps": "many"}'])
def test_a_damaged_account_of_an_expansion_is_told(
    text: str, whole: Any, settings: EvolveSettings, machine: dict[str, Any], tmp_path: Path
) -> None:
    _, path = whole
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    (account,) = (path / "demonstrations").glob("expansion-*.json")
    cut = next(k for k, line in enumerate(lines) if b'"operator":"expand"' in line) + 1
    shutil.copytree(path, copy := tmp_path / "run")
    (copy / "events.jsonl").write_bytes(b"".join(lines[:cut]))
    (copy / "demonstrations" / account.name).write_text(text)
    outcome = run_search(dataclasses.replace(settings, out=tmp_path, resume=True), Silent(), **machine)
    assert outcome.exit_code and f"{account.name} is damaged: delete it" in outcome.reason


def prompt(setup: Setup) -> str:
    """What a model is asked for a first program."""
    request = Request(id="g0000-00", generation=0, operator="scratch", evolve="reward")
    shown = setup.objective.illustrated(request, lambda: None)
    messages = setup.proposer.book.messages(shown, np.random.default_rng(0))  # type: ignore[attr-defined]
    return "\n".join(message["content"] for message in messages)


def test_a_language_model_is_shown_the_data_and_not_told_what_the_task_is(
    settings: EvolveSettings, corridor: Task, data: Path, tmp_path: Path
) -> None:
    own = dataclasses.replace(settings, proposer="manual", out=tmp_path)
    setup = Setup.of(own, corridor)
    text = prompt(setup)
    assert "An episode of the expert, 6 steps" in text and "State of others" in text and "Cohen's d" in text
    assert corridor.description not in text and "probe-corridor" not in text
    assert "a fresh agent is trained" not in text and "inverse reinforcement learning" in text
    options = dataclasses.replace(settings.demonstrations, tell_task=True)
    told = Setup.of(dataclasses.replace(own, demonstrations=options), corridor)
    text = prompt(told)
    assert corridor.description in text


def test_a_person_is_asked_with_the_data(settings: EvolveSettings, corridor: Task, tmp_path: Path) -> None:
    pages, _ = ask(dataclasses.replace(settings, proposer="manual", out=tmp_path), Silent(), task=corridor)
    assert len(pages) == settings.generation
    assert all("An episode of the expert" in page.read_text() for page, _ in pages)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"demonstrations": DemonstrationOptions()}, "needs --data"),
        ({"evolve": "both"}, "say --evolve reward"),
        ({"tune": 4}, "--tune is for --objective training"),
        ({"objective": "training"}, "--data is for --objective demonstrations"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    changes: dict[str, Any], message: str, settings: EvolveSettings
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        dataclasses.replace(settings, **changes).check()


def test_files_that_are_no_demonstrations_of_the_task_are_refused(
    settings: EvolveSettings, task_of: Callable[..., Task], tmp_path: Path
) -> None:
    options = dataclasses.replace(settings.demonstrations, data=(tmp_path / "none.npz",))
    with pytest.raises(UnusableFile, match="there is no file"):
        dataclasses.replace(settings, demonstrations=options).check()
    other = dataclasses.replace(settings, task="probe-aim", out=tmp_path)
    with pytest.raises(UserError, match="these episodes are of probe-corridor"):
        Setup.of(other, task_of("probe-aim"))
