"""Numbers as people read them."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binomtest, t

from jaxreward.records import Candidate, Failure, Feedback, Notice, Result, Score, TermCurve
from jaxreward.reports.plots import learning_curves, search_plot
from jaxreward.reports.tables import diagnosis, interval, score_json, score_table, t95, wilson


def test_an_interval_over_seeds_is_students():
    low, high = interval(Score(mean=0.5, se=0.1, n=3, episodes=300))
    assert (low, high) == pytest.approx((0.5 - 0.4303, 0.5 + 0.4303), abs=1e-3)


def test_an_interval_is_never_narrower_than_the_episodes_allow():
    score = Score(mean=0.996, se=1e-4, n=10, episodes=2560)
    low, high = interval(score)
    assert low < 0.9935 and high > 0.9975


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_an_interval_never_has_width_zero(mean):
    """Ten seeds that all succeed are not proof of certainty: the episodes are counted instead."""
    low, high = interval(Score(mean=mean, se=0.0, n=10, episodes=2560))
    assert 0.0 <= low < high <= 1.0 and high - low == pytest.approx(3.84 / 2563.84, rel=0.02)


def test_an_interval_stays_within_zero_and_one():
    assert interval(Score(mean=0.98, se=0.05, n=2, episodes=10))[1] == 1.0


def test_a_missing_score_is_shown_as_one():
    assert score_json(None) is None
    out = StringIO()
    Console(file=out, width=100).print(
        score_table("t", [("a", None, {}), ("b", Score(mean=1, se=0, n=2, episodes=4), {})])
    )
    assert "-" in out.getvalue() and "1.000" in out.getvalue()


def test_a_diagnosis_shows_curves_terms_and_notices():
    feedback = Feedback(
        success=(0.1, 0.2), episode_return=(1.0, 2.0), length=(80.0, 79.0), return_solved=1.0, return_failed=2.0,
        terms=(TermCurve(name="near", mean=(0.1,), minimum=(0.0,), maximum=(1.0,), share=0.7),),
        notices=(Notice(kind="farmed", message="look"),),
    )  # fmt: skip
    text = "\n".join(diagnosis(feedback))
    for part in ("success  0.1 0.2", "fail 2", "near: share 70%", "farmed: look"):
        assert part in text


def test_pictures_are_drawn(tmp_path: Path):
    curves = {"a": np.array([[0.1, 0.5], [0.2, 0.6]])}
    learning_curves(tmp_path / "curves.png", [1000, 2000], curves, extra_metrics={"running_success": curves})
    results = [
        Result(
            candidate=Candidate(id="a", generation=0, operator="scratch"), score=Score(mean=0.5, se=0, n=1, episodes=8)
        ),
        Result(
            candidate=Candidate(id="b", generation=0, operator="scratch"), failure=Failure(stage="filtered", message="")
        ),
    ]
    search_plot(tmp_path / "search.svg", {"limen": results})
    assert (tmp_path / "curves.png").stat().st_size > 2000 and "<svg" in (tmp_path / "search.svg").read_text()


@pytest.mark.parametrize(
    "n, expected",
    [(2, 12.706204736432095), (3, 4.302652729911275), (10, 2.2621571627409915), (31, 2.0422724563012373),
     (61, 2.0002978220142604), (1001, 1.9623390808264074)],
)  # fmt: skip
def test_the_quantile_is_students(n: int, expected: float):
    assert t95(n) == pytest.approx(expected, abs=1e-9)
    assert t95(n) == pytest.approx(t.ppf(0.975, n - 1), abs=1e-12)


@pytest.mark.parametrize("successes, episodes", [(0, 10), (3, 10), (17, 128), (2560, 2560)])
def test_an_interval_over_episodes_is_wilsons(successes: int, episodes: int):
    known = binomtest(successes, episodes).proportion_ci(0.95, "wilson")
    score = Score(mean=successes / episodes, se=0.0, n=1, episodes=episodes)
    assert wilson(score) == pytest.approx((known.low, known.high), abs=1e-12)


@pytest.mark.parametrize("name", ["panda_tracking/expert.py", "a"])
def test_a_table_of_scores_fits_a_terminal_of_80_columns(name):
    score = Score(mean=0.996, se=0.004, n=3, episodes=768)
    extra = {"features": "45", "running success": "0.616", "mean distance": "0.010"}
    out = StringIO()
    Console(file=out, width=80).print(score_table("success on a task", [(name, score, extra), ("b", None, {})]))
    lines = out.getvalue().splitlines()
    row = next(line for line in lines if line.startswith(name[:12]))
    assert row.split()[-1] == "0.010" and "0.979 to 1.000" in row and max(map(len, lines)) <= 80
