"""Who goes on at a rung, by made-up curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.records import SUCCESS, Measure, Score
from jaxreward.records.measure import wilson
from jaxreward.training import PPO, Rung
from jaxreward.training.history import History
from jaxreward.training.plan import make_schedule
from jaxreward.training.rungs import SURE, Standing, largest_rise, possible_winners, verdicts

DISTANCE = Measure(name="distance", unit="m", rate=False, higher_is_better=False, worst=9.0)


def standing(
    *curves: Any, errors: Any = 0.0, left: int = 100, measure: Measure = SUCCESS, lowest: Any = 0.0, progress: Any = 0.0
) -> Standing:
    """Curves with a point every 100 steps."""
    values = np.asarray(curves, float)
    steps = 100 * np.arange(1, values.shape[1] + 1)
    errors, lowest, progress = (np.broadcast_to(np.asarray(x, float), len(values)) for x in (errors, lowest, progress))
    return Standing(measure, steps, values, errors, left, lowest, progress)


def passed(rungs: list[Rung], at: Standing) -> list[int]:
    return [k for k, reason in enumerate(verdicts(rungs, at)) if not reason]


def test_a_threshold_stops_what_is_short_of_it():
    at = standing([0.1], [0.05], [0.04])
    assert passed([Rung(100, 0.05)], at) == [0, 1]
    assert verdicts([Rung(100, 0.05)], at)[2] == "is short of the threshold of 0.05"
    assert passed([Rung(100, 0.05)], standing([0.1], [0.04], measure=DISTANCE)) == [1]


@pytest.mark.parametrize("keep, expected", [(0.5, [1, 3, 4]), (0.2, [3]), (0.21, [1, 3]), (1.0, [0, 1, 2, 3, 4])])
def test_the_best_share_goes_on_rounded_up_the_first_of_equals(keep, expected):
    at = standing([0.1], [0.8], [0.2], [0.9], [0.2])
    expected = [1, 2, 3] if keep == 0.5 else expected
    assert passed([Rung(100, keep=keep)], at) == expected
    worst_first = standing([0.9], [0.2], [0.8], [0.1], [0.8], measure=DISTANCE)
    assert passed([Rung(100, keep=keep)], worst_first) == expected


def test_where_success_says_nothing_those_go_on_that_came_the_farthest():
    """What is above random actions comes before all others, by success alone."""
    values, lowest = ([0.3], [0.02], [0.0], [0.6], [0.0]), [0.2, 0.01, 0.0, 0.5, 0.0]
    at = standing(*values, lowest=lowest, progress=[0.1, 0.3, 0.5, 0.2, 0.5])
    assert passed([Rung(100, keep=0.6)], at) == [0, 1, 3]
    assert passed([Rung(100, keep=0.6, untrained=0.05)], at) == [0, 2, 3]
    assert passed([Rung(100, keep=0.8, untrained=0.05)], at) == [0, 2, 3, 4]
    assert passed([Rung(100, keep=0.2, untrained=0.4)], at) == [3]
    assert passed([Rung(100, keep=0.2, untrained=0.9)], at) == [2], "the first of equals"
    assert passed([Rung(100, 0.1), Rung(100, keep=0.5, untrained=0.9)], at) == [3], "of those that passed"
    reasons = verdicts([Rung(100, keep=0.2, untrained=0.05)], at)
    assert reasons[0] == "is not among the best 1 of 5", "by success"
    assert reasons[2] == "is not among the best 1 of 5 by how far episodes came"


def test_what_is_no_number_comes_last():
    assert passed([Rung(100, keep=0.5)], standing([0.1], [float("nan")], [0.8], [0.9])) == [2, 3]


def test_how_far_episodes_came_is_the_mean_over_stages_success_and_seeds():
    history = History.empty(2, 1, 2, 3, 1, extra=3)
    history.success[:, 0] = [[0.0, 0.0], [0.1, 0.3]]
    history.success_se[:, 0], history.episodes[:, 0] = 0.1, 50
    history.extra[:, 0] = [np.zeros((2, 3)), [[9.0, 0.8, 0.4], [9.0, 0.6, 0.0]]]
    at = Standing.of(SUCCESS, [history], np.array([100, 200]), 50, stages=(1, 2))
    np.testing.assert_allclose(at.progress, [(0.7 + 0.2 + 0.2) / 3], rtol=1e-6)
    np.testing.assert_allclose(at.lowest, [wilson(Score(mean=0.2, se=0.1, n=2, episodes=100))[0]], rtol=1e-6)
    assert Standing.of(SUCCESS, [history], np.array([100, 200]), 50).progress == 0
    pipes = Standing.of(DISTANCE, [history], np.array([100, 200]), 50, stages=(1, 2))
    np.testing.assert_allclose(pipes.progress, [(0.7 + 0.2) / 2], rtol=1e-6)
    np.testing.assert_allclose(pipes.lowest, [-0.2 - 1.96 * 0.1 / np.sqrt(2)], rtol=1e-4)
    history.success[1, 0] = [0.0, 36.0]
    assert Standing.of(DISTANCE, [history], np.array([100, 200]), 50, stages=(1, 2)).lowest[0] > -18.2, "of episodes"
    history.success[1, 0] = [0.1, 0.3]
    history.diverged[1, 0] = [0, 1]
    history.success[1, 0] = [0.1, 0.0]
    after = Standing.of(SUCCESS, [history], np.array([100, 200]), 50, stages=(1, 2))
    np.testing.assert_allclose(after.progress, [(0.6 + 0.05) / 3], rtol=1e-6, err_msg="the second has diverged")


def test_a_share_is_of_those_that_passed_what_came_before():
    at = standing([0.9], [0.5], [0.01], [0.0])
    assert passed([Rung(100, 0.1), Rung(100, keep=0.5)], at) == [0]
    assert verdicts([Rung(100, 0.1), Rung(100, keep=0.5)], at)[1] == "is not among the best 1 of 2"


def test_candidates_that_cannot_win_are_pruned():
    """Nobody rose by more than 0.3 in 100 steps: with 100 left, 0.5 cannot reach 0.9, and 0.65 can."""
    curves = ([0.6, 0.9], [0.45, 0.5], [0.6, 0.65])
    assert passed([Rung(200, prune=True)], standing(*curves)) == [0, 2]
    assert passed([Rung(200, prune=True)], standing(*curves, left=200)) == [0, 1, 2], "twice the time, twice the rise"
    assert passed([Rung(200, prune=True)], standing(*curves, errors=[0.0, 0.1, 0.0])) == [0, 1, 2], "it is not sure"
    assert passed([Rung(200, prune=True)], standing(*curves, errors=[0.1, 0.0, 0.0])) == [0, 1, 2], "nor the best"
    assert passed([Rung(200, prune=True, incumbent=1.5)], standing(*curves)) == []
    down = [[1 - v for v in curve] for curve in curves]
    assert passed([Rung(200, prune=True)], standing(*down, measure=DISTANCE)) == [0, 2]
    assert passed([Rung(200, prune=True, incumbent=0.7)], standing(*down, measure=DISTANCE)) == []
    assert "0.9 is to be beaten" in verdicts([Rung(200, prune=True)], standing(*curves))[1]


def test_one_point_of_a_curve_prunes_nothing():
    assert passed([Rung(100, prune=True)], standing([1.0], [0.0])) == [0, 1]


def test_the_largest_rise_is_that_within_the_window():
    steps, curve = np.array([100, 200, 300, 400]), np.array([[0.0, 0.5, 0.1, 0.3], [0.4, 0.4, 0.4, 0.4]])
    assert largest_rise(steps, curve, 100) == 0.5
    assert largest_rise(steps, 0.5 - curve, 100) == pytest.approx(0.4)
    assert largest_rise(steps, np.array([[0.0, 0.1, 0.2, 0.3]]), 200) == pytest.approx(0.2)
    assert largest_rise(steps, np.array([[0.0, 0.1, 0.2, 0.3]]), 600) == pytest.approx(0.6)
    assert largest_rise(steps, -curve[:1] * 0, 100) == 0.0


def test_possible_winners_are_those_whose_intervals_reach_the_best():
    at = standing([0.9], [0.7], [0.5], [0.0], errors=[0.05, 0.06, 0.05, 0.5])
    assert possible_winners(at) == [0, 1], "the last has nothing to show"
    assert possible_winners(at, bar=0.85) == [0]
    assert possible_winners(at, bar=2.0) == []
    assert possible_winners(standing([0.2], [0.9], [0.3], errors=0.04, measure=DISTANCE)) == [0, 2]
    assert possible_winners(standing([0.9], [0.9 - 2 * SURE * 0.1 - 0.01], errors=0.1)) == [0]


def test_errors_are_between_seeds_or_between_episodes():
    """Two seeds that agree by chance are not taken for certain."""
    history = History.empty(2, 1, 2, 32, 8)
    history.success[:, 0] = [[0.1, 0.3], [0.5, 0.5]]
    history.success_se[:, 0], history.episodes[:, 0] = 0.2, 50
    at = Standing.of(SUCCESS, [history], np.array([100, 200]), 50)
    np.testing.assert_allclose(at.curves, [[0.2, 0.5]])
    np.testing.assert_allclose(at.errors, [0.2 / np.sqrt(2)], rtol=1e-6)
    earlier = Standing.of(SUCCESS, [history], np.array([100]), 150)
    np.testing.assert_allclose(earlier.errors, [np.maximum(np.std([0.1, 0.3], ddof=1), 0.2) / np.sqrt(2)], rtol=1e-6)


def test_rungs_at_the_same_step_are_merged():
    ppo = PPO(envs=4, unroll=4, minibatches=1)
    rungs = [Rung(100, keep=0.5), Rung(64, 0.1), Rung(97, prune=True)]
    schedule = make_schedule(ppo, 320, 2, rungs)
    assert schedule.rungs == ((4, (rungs[1],)), (7, (rungs[2], rungs[0])))
    assert schedule.segments() == [(0, 4, (rungs[1],)), (4, 7, (rungs[2], rungs[0])), (7, 20, ())]


@pytest.mark.parametrize(
    "rung, settings",
    [
        (Rung(64, float("nan")), ("rung.threshold",)), (Rung(64, keep=0.0), ("rung.keep",)),
        (Rung(64, keep=1.5), ("rung.keep",)), (Rung(64, incumbent=0.1), ("rung.incumbent", "rung.prune")),
        (Rung(64, prune=True, incumbent=float("inf")), ("rung.incumbent",)),
        (Rung(64, untrained=0.1), ("rung.untrained", "rung.keep")),
        (Rung(64, keep=0.5, untrained=float("nan")), ("rung.untrained",)),
        (Rung(320), ("rung.steps", "steps")), (Rung(0), ("rung.steps", "steps")),
    ],
)  # fmt: skip
def test_invalid_fields_of_a_rung_are_named(rung, settings):
    with pytest.raises(InvalidSetting) as error:
        make_schedule(PPO(envs=4, unroll=4, minibatches=1), 320, 2, [rung])
    assert error.value.settings == settings
