"""What the diagnostics say of curves that a person would frown at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.records import SUCCESS, Feedback, Measure, TermCurve
from jaxreward.training.association import association, won_or_lost
from jaxreward.training.history import History
from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.notices import notices
from jaxreward.training.result import TrainResult
from jaxreward.training.rollout_statistics import Stats

RISING = (0.0, 0.1, 0.3, 0.6, 0.8, 0.9, 0.95, 0.97)


def kinds(size: int = 10, **fields) -> set[str]:
    return {n.kind for n in notices(Feedback(**{"seed_success": (0.9,), **fields}), size)}


def term(name: str, low: float, high: float, share: float) -> TermCurve:
    return TermCurve(name=name, mean=(0.0,), minimum=(low,), maximum=(high,), share=share)


def test_a_healthy_training_has_no_notices():
    assert kinds(success=RISING, episode_return=RISING, return_solved=1.0, return_failed=0.2) == set()


@pytest.mark.parametrize(
    "fields",
    [
        # success climbs and falls while the return holds
        {"success": (0.1, 0.5, 0.9, 0.8, 0.4, 0.1), "episode_return": (1.0, 3.0, 5.0, 6.0, 8.0, 9.0)},
        # a stall in which failing pays more than succeeding
        {
            "success": (0.2, 0.6, 0.7, 0.75),
            "episode_return": (1, 5, 8, 9),
            "return_solved": 12.0,
            "return_failed": 50.0,
            "return_success_correlation": -0.7,
            "return_success_interval": (-0.8, -0.6),
        },
        # success pays more and yet is little of what is returned
        {
            "success": (0.02, 0.01, 0.03, 0.04, 0.02, 0.03),
            "episode_return": (0.1, 1.0, 4.0, 8.0, 12.0, 15.0),
            "return_solved": 20.0,
            "return_failed": 14.8,
        },
    ],
)
def test_a_farmed_reward_has_a_notice(fields):
    assert "farmed" in kinds(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"success": RISING, "episode_return": RISING},
        {"success": (0.0,) * 6, "episode_return": (0.0,) * 6},
        {
            "success": (0.1, 0.5, 0.9, 0.8, 0.4, 0.1),
            "episode_return": (1, 3, 5, 4, 2, 1),
        },  # both fall: unstable, not farmed
        {
            "success": (0.0, 0.0, 0.001, 0.002, 0.004, 0.008),
            "episode_return": (0.0, 0.0, 0.001, 0.002, 0.004, 0.008),
            "return_failed": 0.0,
        },  # a sparse reward: all of the return is success
        {
            "success": (0.02, 0.01, 0.03, 0.04, 0.02, 0.03),
            "episode_return": (0.1, 0.1, 0.2, 0.3, 0.4, 0.48),
            "return_solved": 13.0,
            "return_failed": 0.2,
        },  # success is rare and pays most of what is returned
        {
            "success": (0.0, 0.0, 0.01, 0.01, 0.02, 0.03),
            "episode_return": (0.0, 1.0, 4.0, 8.0, 12.0, 15.0),
            "return_success_correlation": 0.4,
        },  # who returns more succeeds more
    ],
)
def test_a_reward_that_is_not_farmed_has_no_such_notice(fields):
    assert "farmed" not in kinds(**fields)


@pytest.mark.parametrize("success", [0.3, 0.966])
def test_paying_for_failure_is_said_of_winners_too(success):
    """With another weight: the metric saw them succeed."""
    curve = (*RISING[:-1], success)
    fields: dict[str, Any] = {"success": curve, "episode_return": curve, "return_solved": 3.11, "return_failed": 8.23}
    found = kinds(**fields, return_success_correlation=-0.79, return_success_interval=(-0.83, -0.75))
    assert found & {"farmed", "failure_pays"} == {"failure_pays" if success > 0.95 else "farmed"}
    assert "uncorrelated" not in found


def test_an_insignificant_difference_has_no_notice():
    """Nor is one that is sure and small."""
    curve = (*RISING[:-1], 0.6)
    fields: dict[str, Any] = {"success": curve, "episode_return": curve, "return_solved": 1.92, "return_failed": 1.96}
    few = kinds(**fields, return_success_correlation=-0.3, return_success_interval=(-0.7, 0.2))
    small = kinds(**fields, return_success_correlation=-0.1, return_success_interval=(-0.15, -0.05))
    assert not (few | small) & {"farmed", "failure_pays"}


def test_a_return_without_success_is_said_to_be_unreached():
    """Whether the reward or the training is to blame, no episode tells."""
    never: dict[str, Any] = {"success": (0.0,) * 6}
    for returns in ((0.0, 1.0, 4.0, 8.0, 12.0, 15.0), (15.0,) * 6):
        assert "unreached" in kinds(**never, episode_return=returns, return_failed=15.0)
    assert "unreached" not in kinds(**never, episode_return=(0.0,) * 6, return_failed=0.0), "a sparse reward"
    assert "unreached" not in kinds(**never, episode_return=(-9.0, -5.0, -4.0, -3.0), return_failed=-3.0), "costs"


def test_terms_features_and_seeds_have_notices():
    found = kinds(
        success=RISING,
        episode_return=RISING,
        terms=(term("big", 0.0, 1.0, 0.97), term("still", 0.0, 0.0, 0.0)),
        dead_features=(3, 4),
        seed_success=(0.2, 0.9),
    )
    assert found == {"dominant_term", "flat_term", "dead_features", "seed_spread"}
    assert "plateau" in kinds(success=(0.2, 0.3, 0.4, 0.4, 0.4, 0.4), episode_return=(1,) * 6)
    assert "diverged" in kinds(success=RISING, episode_return=RISING, diverged=1)


@pytest.mark.parametrize(
    ("correlation", "error", "success", "said"),
    [(0.03, 0.1, 0.5, True), (0.03, 0.2, 0.5, False), (0.25, 0.01, 0.5, False), (0.03, 0.1, 0.97, False),
     (None, 0.0, 0.5, False)],
)  # fmt: skip
def test_a_return_unrelated_to_success_has_a_notice(correlation, error, success, said):
    curve = (*RISING[:-1], success)
    interval = None if correlation is None else (correlation - error, correlation + error)
    found = kinds(
        success=curve, episode_return=curve, return_success_correlation=correlation, return_success_interval=interval
    )
    assert ("uncorrelated" in found) is said


def test_what_is_farmed_is_not_called_uncorrelated_too():
    found = kinds(
        success=(0.2, 0.6, 0.7, 0.75), episode_return=(1, 5, 8, 9), return_solved=12.0, return_failed=50.0,
        return_success_correlation=-0.9, return_success_interval=(-0.95, -0.8),
    )  # fmt: skip
    assert "farmed" in found and "uncorrelated" not in found


def correlation(history: History, point: int, measure: Measure = SUCCESS) -> float | None:
    found = association(history, point, measure)
    return found and found.correlation


def _history(returns: list[list[float]], success: list[list[float]]) -> History:
    """A history of one checkpoint from the held-out episodes of each seed."""
    seeds, episodes = len(returns), len(returns[0])
    stats = Stats.zeros(1, seeds, 1, 1, first_only=True)
    rows = lambda values: jnp.asarray(values)[None]  # noqa: E731
    held_out = stats.add(
        jnp.zeros((1, seeds, episodes, 1)), jnp.zeros((1, seeds, episodes, 1)), jnp.ones((1, seeds, episodes), bool),
        jnp.ones((1, seeds, episodes), bool), jnp.zeros((1, seeds, episodes), int), rows(success), rows(returns),
        jnp.full((1, seeds, episodes), 7), jnp.zeros((1, seeds, episodes, 0)),
    )  # fmt: skip
    history = History.empty(1, 1, seeds, 1, 1)
    learned = LearnStats(jnp.zeros((1, seeds)), jnp.zeros((1, seeds)))
    history.record(0, held_out, stats, learned, jnp.zeros((1, seeds), bool))
    return history


@pytest.mark.long
def test_the_correlation_is_that_of_the_episodes():
    """Of two seeds together, as numpy computes it from the episodes themselves."""
    rng = np.random.default_rng(0)
    success = (rng.uniform(size=(2, 30)) < 0.4).astype(float)
    returns = 3.0 + success * 0.7 + rng.normal(size=(2, 30))
    expected = np.corrcoef(returns.ravel(), success.ravel())[0, 1]
    found = correlation(_history(returns.tolist(), success.tolist()), 0)
    assert found == pytest.approx(expected, abs=1e-4) and 0.2 < expected < 0.6
    exact = success * 2.0 - 1.0
    assert correlation(_history(exact.tolist(), success.tolist()), 0) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(("share", "effect"), [(0.5, -1.0), (0.9, -2.0), (0.95, 0.0), (0.2, 0.5)])
def test_the_interval_of_a_correlation_holds_the_true_one(share, effect):
    """19 times of 20, also where hardly an episode fails."""
    rng, held, draws = np.random.default_rng(3), 0, 80
    spread = effect**2 * share * (1 - share)
    true = np.sign(effect) * np.sqrt(spread / (spread + 1.0))
    for _ in range(draws):
        success = (rng.uniform(size=(2, 150)) < share).astype(float)
        returns = effect * success + rng.normal(size=(2, 150))
        found = association(_history(returns.tolist(), success.tolist()), 0)
        assert found is not None and found.low <= found.correlation <= found.high
        held += found.low <= true <= found.high
    assert 0.88 * draws <= held


@pytest.mark.long
def test_what_is_constant_has_no_correlation():
    few = [[1.0] * 4 + [0.0] * 26]
    returns = [[float(i) for i in range(30)]]
    assert correlation(_history(returns, few), 0) is None
    assert correlation(_history(returns, [[1.0] * 30]), 0) is None
    assert correlation(_history([[5.0] * 30], [[1.0, 0.0] * 15]), 0) is None


def graded(low: float, high: float, binary: bool = False) -> tuple[np.ndarray, History]:
    """Values of two seeds, and a history in which the return is ten times the value."""
    value = np.random.default_rng(1).uniform(low, high, (2, 40))
    value = np.round(value) if binary else value
    return value, _history((10.0 * value).tolist(), value.tolist())


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 0.45), (0.55, 1.0), (0.0, 1.0), (0.0, 0.01), (0.45, 0.55)], ids=lambda x: f"{x:g}"
)
def test_graded_success_is_correlated_like_any_value(low, high):
    """Such as the share of an episode in which something holds: it correlates as any other value does."""
    value, history = graded(low, high)
    assert not won_or_lost(history, 0, SUCCESS)
    assert correlation(history, 0) == pytest.approx(1.0, abs=1e-4)
    feedback = feedback_of(history)
    assert feedback.return_solved is None and feedback.return_failed is None
    assert feedback.return_success_correlation == pytest.approx(1.0, abs=1e-4)
    assert correlation(_history((-value).tolist(), value.tolist()), 0) == pytest.approx(-1.0, abs=1e-4)


@pytest.mark.parametrize("shift", [0.0, 0.04])
def test_values_near_zero_and_one_are_won_or_lost(shift):
    value, _ = graded(0.0, 1.0, binary=True)
    value = np.abs(value - shift)
    history = _history((10.0 * value).tolist(), value.tolist())
    assert won_or_lost(history, 0, SUCCESS) and not won_or_lost(history, 0, Measure(name="length", rate=False))
    feedback = feedback_of(history)
    assert feedback.return_solved == pytest.approx(10.0 * (1.0 - shift), rel=1e-4)
    assert feedback.return_failed == pytest.approx(10.0 * shift, abs=1e-4)
    for all_alike in (np.zeros((2, 40)), np.ones((2, 40))):
        assert won_or_lost(_history(all_alike.tolist(), all_alike.tolist()), 0, SUCCESS)


def test_notices_speak_of_success_and_failure_only_where_both_have_returns():
    def said(**fields) -> str:
        curve = RISING[:5]
        measured: dict[str, Any] = {"seed_success": (0.5,), "success": curve, "episode_return": curve}
        measured |= {"return_success_correlation": 0.0, "return_success_interval": (-0.1, 0.1)}
        return next(notices(Feedback(**measured, **fields), 10)).message

    assert "tells success from failure" in said(return_solved=1.0, return_failed=0.9)
    assert "goes with the success" in said()


def feedback_of(history: History) -> Feedback:
    """What `TrainResult` makes of a history of one checkpoint."""
    program = SimpleNamespace(terms=("reward",), observation_size=1)
    seeds = history.success.shape[-1]
    result = TrainResult(
        programs=(program,), seeds=tuple(range(seeds)), steps=np.array([8]), success=history.success[0],  # type: ignore[arg-type]
        diverged=np.zeros((1, seeds), bool), stopped=np.zeros(1, int), histories=(history,), agents=(), env_steps=8,
        eval_steps=8, compile_s=0.0, run_s=0.0, wall_s=0.0, chunks=(1,), peak_bytes=0,
    )  # fmt: skip
    return result.feedback(0)
