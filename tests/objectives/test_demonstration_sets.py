"""Which episodes a search on demonstrations has, which it holds out, and what of the expert's is told from others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxreward.demonstrations import (
    Trajectories,
    WrongTrajectories,
    from_arrays,
    joined,
    record_actions,
    reset_keys,
    save_trajectories,
)
from jaxreward.errors import UnusableFile
from jaxreward.objectives.demonstrations import scoring
from jaxreward.objectives.demonstrations.along_episodes import EpisodeGroup, best_rewards
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.objectives.demonstrations.demonstration_sets import DemonstrationSets
from jaxreward.objectives.demonstrations.scoring import DemonstrationData
from jaxreward.programs import Program
from jaxreward.records import SUCCESS
from jaxreward.reports.demonstrated import LEAST_EARNED, _earned
from jaxreward.tasks import Task


@pytest.fixture(scope="module")
def corridor(task_of: Callable[..., Task]) -> Task:
    return task_of("probe-corridor")


@pytest.fixture(scope="module")
def won(corridor: Task) -> Trajectories:
    return record_actions(corridor, reset_keys(10, 5), [[1] * corridor.horizon] * 10, seed=5)


@pytest.fixture(scope="module")
def lost(corridor: Task) -> Trajectories:
    return record_actions(corridor, reset_keys(2, 9), [[0] * corridor.horizon] * 2, seed=9)


@pytest.fixture
def sets_of(corridor: Task, tmp_path: Path) -> Callable[..., DemonstrationSets]:
    """The sets of a search on these episodes."""

    def make(expert: Trajectories, seed: int = 0, negative: Trajectories | None = None, **options: Any) -> Any:
        save_trajectories(tmp_path / "expert.npz", expert)
        if negative is not None:
            save_trajectories(tmp_path / "negative.npz", negative)
            options["negative"] = (tmp_path / "negative.npz",)
        return DemonstrationSets.of(corridor, DemonstrationOptions(data=(tmp_path / "expert.npz",), **options), seed)

    return make


@pytest.mark.slow
def test_what_counts_as_the_experts_depends_on_all_of_its_episodes(won, lost, sets_of):
    """And not on which ones a seed has drawn; those that fail are left out."""
    assert (won.success == 1).all() and (lost.success == 0).all()
    for seed in range(6):
        sets = sets_of(joined([won, lost]), seed)
        assert sets.positives == "last" and sets.held_out is not None
        assert (sets.expert.success == 1).all() and (sets.held_out[0].success == 1).all()
        assert sets.notes == ("2 of 12 episodes of the expert fail and are left out",)
    unknown = dataclasses.replace(won, success=np.where(np.arange(10) == 9, np.nan, won.success).astype(np.float32))
    assert {sets_of(unknown, seed).positives for seed in range(6)} == {"all"}
    assert len(sets_of(joined([won, lost]), positives="all", expert_episodes=12).expert) == 12


def test_an_expert_that_always_fails_has_no_last_states(lost, sets_of):
    assert sets_of(lost).positives == "all"
    with pytest.raises(WrongTrajectories, match="2 of 2 episodes of the expert fail, .* --positives all"):
        sets_of(lost, positives="last")


def test_a_run_keeps_what_it_counted(corridor, won, sets_of, tmp_path):
    unknown = dataclasses.replace(won, success=np.where(np.arange(10) == 9, np.nan, won.success).astype(np.float32))
    sets = next(s for s in (sets_of(unknown, seed) for seed in range(9)) if np.isfinite(s.expert.success).all())
    sets.write(tmp_path / "run")
    options = DemonstrationOptions(data=(tmp_path / "gone.npz",))
    assert DemonstrationSets.read(corridor, tmp_path / "run", options).positives == "all"
    (tmp_path / "run" / "demonstrations" / "sets.json").unlink()  # as before, when it was not kept
    assert DemonstrationSets.read(corridor, tmp_path / "run", options).positives == "last"


def test_few_negative_episodes_are_shared_with_those_held_out(won, lost, sets_of):
    sets = sets_of(won, negative=joined([lost] * 4), negative_episodes=8)
    assert sets.held_out is not None
    assert (len(sets.negative), len(sets.held_out[1])) == (6, 2) and (len(sets.expert), len(sets.held_out[0])) == (8, 2)
    assert "8 episodes of the expert and 6 others; 2 and 2 are held out; the last state of each" in sets.summary


def test_marks_of_negative_files_do_not_matter(corridor, won, lost, tmp_path):
    marked = dataclasses.replace(lost, solves=np.zeros(lost.steps, np.int8))
    for name, episodes in (("a", won), ("b", lost), ("c", marked)):
        save_trajectories(tmp_path / f"{name}.npz", episodes)
    a, b, c = (tmp_path / f"{name}.npz" for name in "abc")
    sets = DemonstrationSets.of(corridor, DemonstrationOptions(data=(a,), negative=(b, c)), 0)
    assert len(sets.negative) + len(sets.held_out[1] if sets.held_out else ()) == 4
    with pytest.raises(UnusableFile, match="are marked as solving the task, and none of"):
        DemonstrationSets.of(corridor, DemonstrationOptions(data=(a, c)), 0)


def test_episodes_of_another_task_are_told(corridor, won, sets_of):
    assert sets_of(won).notes == ()
    (note,) = sets_of(dataclasses.replace(won, task="probe-mirror", task_arg=("length=4",))).notes
    assert note.startswith("warning: ") and "has episodes of probe-mirror length=4, and this search is on" in note


def test_of_returns_no_end_is_known_to_have_failed(corridor, won, lost, monkeypatch):
    """A fall with a return of less than 1 may be like what the expert does, as one with a greater return."""
    fell = dataclasses.replace(lost, ended=np.ones(2, bool))
    assert len(DemonstrationData.of(corridor, won, fell, "last").steps) == won.steps + lost.steps, "a rate: they failed"
    monkeypatch.setattr(
        scoring, "measure_of", lambda task: SUCCESS.model_copy(update={"name": "return", "rate": False})
    )
    assert len(DemonstrationData.of(corridor, won, fell, "last").steps) == won.steps + lost.steps - 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ended": ["False"]}, "ended is true or false"),
        ({"success": [100.0]}, "the success of an episode of probe-corridor is from 0 to 1"),
        ({"success": True}, "have an entry for each episode"),
    ],
)
def test_what_episodes_say_of_themselves_is_checked(corridor, won, change, message):
    one = won.take([0])
    with pytest.raises(WrongTrajectories, match=message):
        from_arrays(corridor, [list(one.states)], [one.actions], **change)


def test_real_actions_beyond_their_bounds_are_refused(task_of):
    aim = task_of("probe-aim")
    one = record_actions(aim, reset_keys(1, 0), [np.full((aim.horizon, 1), 0.5, np.float32)])
    states, actions = [list(one.states)], one.actions
    assert len(from_arrays(aim, states, [actions])) == 1
    with pytest.raises(WrongTrajectories, match=r"episode 0: actions are from .* and those of probe-aim from -1 to 1"):
        from_arrays(aim, states, [actions * 5.0])


def test_how_much_of_its_reward_a_policy_has_learned_to_earn(corridor, won, lost):
    """Ends are paid for until the horizon: that of an expert for long."""
    groups = [EpisodeGroup("expert", won), EpisodeGroup("others", lost)]
    program = Program.default(corridor)

    def earned(policy: Trajectories) -> float | None:
        found = best_rewards(
            program, [*groups, EpisodeGroup("policy", policy, expansion="x")], "last", corridor.horizon
        )
        return _earned(found, {"x"})

    assert earned(won) == pytest.approx(1.0) and earned(lost) == pytest.approx(0.0)
    half = earned(joined([won.take([0]), lost.take([0])]))
    assert half is not None and LEAST_EARNED < half < 1.0
    assert _earned(best_rewards(program, groups, "last", corridor.horizon), {"x"}) is None
