"""Feedback as text: every fact once, in figures that a model can use, whatever training returned."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxreward.proposers.prompts.training_feedback import POINTS, feedback_lines, number, one_line, steps
from jaxreward.records import Candidate, Feedback, Notice, ProgramSummary, Result, TermCurve


def lines(feedback: Feedback | None, size: int = 40) -> list[str]:
    summary = ProgramSummary(digest="d", observation_size=size)
    candidate = Candidate(id="g0001-02", generation=1, operator="improve", summary=summary)
    return feedback_lines(Result(candidate=candidate, feedback=feedback))


def line(start: str, **fields) -> str:
    [found] = [text for text in lines(Feedback(**fields)) if text.startswith(start)]
    return found


def term(name: str = "held", share: float = 0.25) -> TermCurve:
    return TermCurve(name=name, mean=(0.0, 0.1234, 0.5), minimum=(0.0, -1.0, 0.0), maximum=(0.0, 1.0, 2.0), share=share)


def test_empty_feedback_has_no_text():
    assert lines(None) == lines(Feedback()) == []


def test_curves_are_shown_as_a_few_points():
    success = tuple(k / 20 for k in range(21))
    assert line("success rate: ", success=success[:3]) == "success rate: 0, 0.05, 0.1 (max 0.1, mean 0.05, min 0)"
    long = line("success rate: ", success=success)
    values = long.removeprefix("success rate: ").split(" (")[0].split(", ")
    assert len(values) == POINTS and values[0] == "0" and values[-1] == "1"
    assert line("environment steps: ", steps=(0, 60_000, 1_200_000)) == "environment steps: 0, 60k, 1.2M"
    assert line("reward term ", terms=(term(),)) == (
        "reward term held, per step: 0, 0.123, 0.5 (max 0.5, mean 0.208, min 0); single steps from -1 to 2; "
        "25 % of the reward at the end"
    )


def test_numbers_have_three_digits():
    assert [number(v) for v in (0.0, -0.0, 1 / 3, 123456.0, math.nan, math.inf)] == (
        ["0", "0", "0.333", "1.23e+05", "nan", "inf"]
    )


def test_numbers_of_steps_have_units():
    counts = (0, 7, 999, 1_000, 12_500, 60_000, 120_000, 999_400, 999_999, 1_200_000, 123_456_789, 2_000_000_000)
    assert [steps(count) for count in counts] == (
        ["0", "7", "999", "1k", "12.5k", "60k", "120k", "999k", "1M", "1.2M", "123M", "2G"]
    )


def test_values_that_are_not_finite_are_shown():
    text = line("episode return: ", episode_return=(math.nan, 1.0, math.inf, 3.0))
    assert text == "episode return: nan, 1, inf, 3 (max 3, mean 2, min 1)"
    assert "max nan, mean nan, min nan" in line("success", success=(math.nan,))


@pytest.mark.parametrize(
    ("correlation", "words"),
    [(-0.4, "pays for not reaching"), (0.02, "tells success from failure"), (math.nan, "hardly tells"), (0.3, "weak"),
     (0.9, "0.9")],
)  # fmt: skip
def test_the_correlation_of_return_with_success_is_said(correlation: float, words: str):
    fields = {"return_solved": 1.25, "return_failed": 0.5}
    text = line("correlation", return_success_correlation=correlation, **fields)
    assert words in text and (";" in text) == (words != "0.9")


@pytest.mark.parametrize(("correlation", "words"), [(-0.4, "pays for a worse success"), (0.02, "tells a good success")])
def test_where_nothing_is_won_or_lost_nothing_is_said_of_it(correlation: float, words: str):
    assert words in line("correlation", return_success_correlation=correlation)


def test_the_returns_of_success_and_failure_are_said():
    assert line("mean return", return_solved=1.25, return_failed=0.5).endswith("succeed: 1.25, that fail: 0.5")
    assert "hardly any succeed" in line("mean return", return_failed=0.5)
    assert "hardly any fail" in line("mean return", return_solved=0.5)


def test_facts_of_the_training_are_said():
    assert line("features", dead_features=(0, 1, 2, 7, 39)).endswith("changed in training: 5 of 40 (index 0-2, 7, 39)")
    assert line("features", dead_features=tuple(range(0, 512, 2))).endswith("36, 38, ...)")
    assert line("success of", seed_success=(0.9, 0.1)) == "success of each seed: 0.9, 0.1"
    assert line("diverged", seed_success=(0.9, 0.0), diverged=1).endswith("1 of 2 seeds")
    assert "hardly predict" in line("value", steps=(1,), value_fit=0.1)
    assert "hardly predict" not in line("value", steps=(1,), value_fit=0.8)


def test_a_fact_is_said_once():
    def noted(*kinds: str) -> tuple[Notice, ...]:
        return tuple(Notice(kind=kind, message=f"about {kind}") for kind in kinds)

    kinds = ("dead_features", "seed_spread", "diverged", "plateau", "flat_term", "farmed")
    feedback = Feedback(dead_features=(1,), seed_success=(0.1, 0.9), diverged=1, notices=noted(*kinds))
    notes = [text for text in lines(feedback) if text.startswith("note: ")]
    assert notes == ["note: about plateau", "note: about flat_term", "note: about farmed"]
    farmed = Feedback(return_solved=0.1, return_failed=0.9, notices=noted("farmed"))
    assert lines(farmed) == ["note: about farmed"]


def test_names_from_a_program_stay_on_their_line():
    text = line("reward term", terms=(term("a\n# Task\x00: \ud800 do " + "x" * 99),))
    assert "\n" not in text and "\x00" not in text and len(text.split(", per step")[0]) < 80
    assert one_line(" a \n\n b\t", 9) == "a b" and one_line("abcdef", 3) == "ab…"
    text.encode()


FLOATS = st.lists(st.floats(), max_size=30).map(tuple)


@settings(max_examples=100, deadline=None)
@given(FLOATS, FLOATS, FLOATS, st.floats(), st.none() | st.floats(), st.none() | st.floats())
def test_any_feedback_has_words(curve, other, seeds, fit, solved, correlation):
    feedback = Feedback(
        steps=tuple(range(len(curve))),
        success=curve,
        length=other,
        seed_success=seeds,
        terms=(TermCurve(name="", mean=other, minimum=curve, maximum=seeds, share=fit),),
        value_fit=fit,
        return_solved=solved,
        return_failed=fit,
        return_success_correlation=correlation,
        diverged=len(seeds),
    )
    assert all(text == text.strip() and "\n" not in text for text in lines(feedback))
