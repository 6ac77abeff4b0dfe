"""What the diagnostics say of curves that a person would frown at."""

from __future__ import annotations

import pytest

from jaxreward.records import Feedback, TermCurve
from jaxreward.training.result import notices

RISING = (0.0, 0.1, 0.3, 0.6, 0.8, 0.9, 0.95, 0.97)


def kinds(size: int = 10, **fields) -> set[str]:
    return {n.kind for n in notices(Feedback(**{"seed_success": (0.9,), **fields}), size)}


def term(name: str, low: float, high: float, share: float) -> TermCurve:
    return TermCurve(name=name, mean=(0.0,), minimum=(low,), maximum=(high,), share=share)


def test_a_healthy_training_is_not_remarked_on():
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
        },
        # the return rises, success never moves
        {"success": (0.0,) * 6, "episode_return": (0.0, 1.0, 4.0, 8.0, 12.0, 15.0)},
    ],
)
def test_a_farmed_reward_is_called_that(fields):
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
    ],
)
def test_what_is_not_farmed_is_not_called_that(fields):
    assert "farmed" not in kinds(**fields)


def test_terms_features_and_seeds_are_remarked_on():
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
