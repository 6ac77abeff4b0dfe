"""A search that looks at how far episodes came."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxreward as jr
from jaxreward.cli import main
from jaxreward.comparison.cells import with_defaults
from jaxreward.errors import InvalidSetting
from jaxreward.evolution import run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.evolution.started import started_settings
from jaxreward.objectives.training import candidate_trainer
from jaxreward.programs import Program
from jaxreward.records import Score
from jaxreward.records.measure import wilson
from jaxreward.runs import Trained
from jaxreward.runs.run import read_config
from jaxreward.search.selection import merit
from jaxreward.tasks.metrics import Reached, WithExtraMetrics
from jaxreward.tasks.probe import Probe
from jaxreward.training import PPO
from jaxreward.training.plan import EVAL_EPISODES
from tests.silent import Silent
from tests.substance import substance

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced")


class Long(Probe):
    """A corridor that is too long to reach its end, with two stages on the way."""

    def score(self) -> Any:
        stages = {"third": Reached(lambda s: s.place >= 4), "half": Reached(lambda s: s.place >= 6)}
        return WithExtraMetrics(super().score(), stages, ("third", "half"))


class Endless(Long):
    """Its end is out of reach within an episode."""

    @property
    def horizon(self) -> int:
        return self.length - 6


@pytest.fixture(scope="module")
def settings() -> EvolveSettings:
    return EvolveSettings(
        task="probe-corridor", strategy="limen", candidates=6, generation=3, steps=512, seeds=2, final_seeds=0,
        baselines=(), stages=True, ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,)), name="run",
    )  # fmt: skip


@pytest.mark.slow
def test_results_say_how_far_their_episodes_came(settings: EvolveSettings, tmp_path: Path, checker: Any) -> None:
    task = Long("corridor", length=12)
    outcome = run_search(replace(settings, out=tmp_path), Silent(), task=task, checker=checker)
    results = [r for event in substance(tmp_path / "run") if isinstance(event, Trained) for r in event.results]
    known = [r.feedback for r in results if r.score is not None and r.feedback is not None]
    assert known and all(list(f.progress) == ["third", "half"] and len(f.progress["third"]) == 2 for f in known)
    assert all(a >= b for f in known for a, b in zip(f.progress["third"], f.progress["half"], strict=True))
    untrained = {f.untrained.mean for f in known if f.untrained is not None}
    assert len(untrained) == 1, "of the same random actions"
    scored = [r for r in results if r.score is not None]
    assert outcome.best is not None and merit(outcome.best) == max(map(merit, scored))


@pytest.mark.slow
def test_a_rung_keeps_those_that_came_the_farthest() -> None:
    """Nobody succeeds: programs that pay for steps to the left come first, and nevertheless stop."""

    def left(state: Any, action: Any, next_state: Any) -> Any:
        return state.place - 1.0 * next_state.place

    def right(state: Any, action: Any, next_state: Any) -> Any:
        return 1.0 * next_state.place - state.place

    task, ppo = Endless("corridor", length=18), PPO(envs=8, unroll=16, minibatches=2, hidden=(8,), learning_rate=0.01)
    budget: dict[str, Any] = {"ppo": ppo, "seeds": 2, "steps": 2048, "checkpoints": 2}
    rung = jr.Rung(512, keep=0.5, untrained=0.5)
    whole = jr.train(task, [left, right], rungs=[jr.Rung(512)], **budget)
    halved = jr.train(task, [left, right], rungs=[rung], **budget)
    at = int(np.flatnonzero(whole.steps == 512)[0])
    come = whole.extra_curve("third")[..., at].mean(-1)
    assert come[1] > come[0] + 0.1 and not whole.success.any()
    assert halved.stopped.tolist() == [512, 0]
    by_success = jr.train(task, [left, right], rungs=[jr.Rung(512, keep=0.5)], **budget)
    assert by_success.stopped.tolist() == [0, 512], "the first of equals"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[jr.Rung]]]:
    """How many programs each training of a search has, and its rungs."""
    found = list[tuple[int, list[jr.Rung]]]()

    def noted(task: Any, programs: Any, *args: Any, **named: Any) -> Any:
        found.append((len(programs), list(named["rungs"])))
        return jr.train(task, programs, *args, **named)

    monkeypatch.setattr(candidate_trainer, "train", noted)
    return found


@pytest.mark.slow
def test_halves_of_a_search_are_chosen_by_it(
    settings: EvolveSettings, tmp_path: Path, checker: Any, asked: list[Any]
) -> None:
    for stages in (True, False):
        halved = replace(settings, halving=1, stages=stages, candidates=3, out=tmp_path / str(stages))
        run_search(halved, Silent(), task=Endless("corridor", length=18), checker=checker)
    (_, (by_stages,)), *_, (_, (by_success,)) = asked
    nothing = wilson(Score(mean=0.0, se=0.0, n=1, episodes=EVAL_EPISODES))[1]
    assert by_stages.untrained == pytest.approx(nothing) and by_success.untrained is None
    assert by_stages.keep == by_success.keep == 0.5


def test_a_rung_by_progress_needs_a_metric_that_says_some() -> None:
    task = Probe("corridor")
    with pytest.raises(InvalidSetting, match="corridor does not say what comes before success") as error:
        jr.train(task, [Program.default(task)], rungs=[jr.Rung(256, keep=0.5, untrained=0.0)], steps=1024)
    assert error.value.settings == ("rung.untrained",)
    with pytest.raises(InvalidSetting, match="untrained of a rung is a success rate in .0, 1., not 50.0") as error:
        jr.train(Long("corridor"), [Program.default(task)], rungs=[jr.Rung(256, keep=0.5, untrained=50.0)], steps=1024)
    assert error.value.settings == ("rung.untrained",)


def test_a_flag_of_before_is_told_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("evolve", "compare"):
        assert main([command, "--progress"]) == 2
        assert "there is no option --progress; it is called --stages now" in capsys.readouterr().err


def test_one_setting_has_one_name(tmp_path: Path) -> None:
    for lines in ("progress = true\nstages = false\n", "stages = false\nprogress = true\n"):
        (tmp_path / "config.toml").write_text(lines)
        with pytest.raises(InvalidSetting, match="'progress' and 'stages' are names of one setting.*keep 'stages'"):
            started_settings(tmp_path)


@pytest.mark.slow
def test_from_python_it_is_another_thing_than_the_bars_of_progress(tmp_path: Path) -> None:
    budget: dict[str, Any] = {"candidates": 2, "generation": 2, "steps": 512, "seeds": 1, "final_seeds": 0}
    task = Endless("corridor", length=18)
    run = jr.evolve(task, stages=True, progress=False, out=tmp_path, baselines=(), **budget)
    trained = [r for e in substance(run.path) if isinstance(e, Trained) for r in e.results if r.feedback is not None]
    assert trained and all(r.feedback.untrained is not None for r in trained if r.feedback is not None)


def test_runs_that_call_it_progress_go_on(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('task = "xland-hard"\nprogress = true\n')
    assert started_settings(tmp_path).stages
    assert with_defaults(read_config(tmp_path), "limen")["stages"] is True


@pytest.mark.long
def test_without_it_success_alone_counts(settings: EvolveSettings, tmp_path: Path, checker: Any) -> None:
    task = Long("corridor", length=12)
    plain = replace(settings, out=tmp_path, stages=False, candidates=2, generation=2)
    run_search(plain, Silent(), task=task, checker=checker)
    results = [r for event in substance(tmp_path / "run") if isinstance(event, Trained) for r in event.results]
    assert all(r.feedback is None or r.feedback.untrained is None for r in results)


def test_it_is_refused_where_a_task_says_nothing_of_it(settings: EvolveSettings, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="xland-easy does not say what comes before success: .*--stages") as error:
        Setup.of(replace(settings, task="xland-easy", out=tmp_path), jr.make_task("xland-easy"))
    assert error.value.settings == ("stages",)
