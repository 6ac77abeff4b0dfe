"""Draws and the order of merit."""

from __future__ import annotations

import numpy as np
import pytest

from jaxreward.records import SUCCESS, Feedback, Measure, Score
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import (
    better,
    draw,
    fitness_proportional,
    fitness_weights,
    lexicase_weights,
    merit,
    rank_logits,
    sample,
    softmax,
    stages,
    tells,
    top,
    uniform,
    unit_range,
    without,
)
from tests.search.conftest import RETURN

MISS = Measure(name="miss", unit="m", rate=False, higher_is_better=False, worst=9.0)


def test_fitness_weights_are_shares_of_the_sum(result):
    weights = fitness_weights([result("a", 0.1), result("b", 0.3), result("c", 0.0)])
    np.testing.assert_allclose(weights, [0.25, 0.75, 0.0])


@pytest.mark.parametrize("measure", [SUCCESS, RETURN, MISS])
@pytest.mark.parametrize("means", [(0.0, 0.0), (0.5,), (0.3, 0.3, 0.3)])
def test_equal_fitness_is_uniform(result, means, measure):
    weights = fitness_weights([result(str(k), mean, measure=measure) for k, mean in enumerate(means)])
    np.testing.assert_allclose(weights, np.full(len(means), 1 / len(means)))


@pytest.mark.parametrize(
    ("measure", "means", "places"),
    [
        (MISS, (0.01, 0.012, 0.02, 3.0), (4, 3, 2, 1)),  # in proportion the first three would be alike
        (RETURN, (5000.0, 5500.0, 6000.0), (1, 2, 3)),
        (RETURN, (-1.0, 0.0, 2.0, 0.0), (1, 2.5, 4, 2.5)),
        (RETURN, (1e308, -1e308, 1e307), (3, 1, 2)),
    ],
)
def test_of_what_is_no_rate_the_place_counts(result, measure, means, places):
    weights = fitness_weights([result(str(k), mean, measure=measure) for k, mean in enumerate(means)])
    np.testing.assert_allclose(weights, np.asarray(places) / sum(places))


def test_draws_of_what_is_no_rate_follow_the_places(result):
    results = [result(str(k), mean, measure=MISS) for k, mean in enumerate((0.02, 0.01, 3.0))]
    rng = np.random.default_rng(0)
    drawn = [fitness_proportional(results, rng).candidate.id for _ in range(3000)]
    assert [drawn.count(name) / 3000 for name in "012"] == pytest.approx([2 / 6, 3 / 6, 1 / 6], abs=0.03)


def test_draws_follow_their_distribution(result):
    results = [result("a", 0.1), result("b", 0.3)]
    rng = np.random.default_rng(0)
    proportional = sum(fitness_proportional(results, rng).candidate.id == "b" for _ in range(2000)) / 2000
    even = sum(uniform(results, rng).candidate.id == "b" for _ in range(2000)) / 2000
    assert proportional == pytest.approx(0.75, abs=0.04)
    assert even == pytest.approx(0.5, abs=0.04)


def test_merit_breaks_ties_by_error_and_not_by_length(result):
    base = result("a", 0.5, se=0.1, source="xx")
    assert better(result("b", 0.6, se=0.9), base)
    assert better(result("b", 0.5, se=0.05, source="xxxx"), base)
    assert not better(result("b", 0.5, se=0.1, source="x"), base), "a plain of zeros would shrink all programs"
    assert not better(result("b", 0.5, se=0.1, source="yy"), base), "a draw keeps the incumbent"
    assert not better(result("b", 0.5, se=float("nan"), source="x"), base), "an unknown error ranks last"


def test_a_failure_cannot_be_selected(result):
    with pytest.raises(ValueError, match="candidate b has no score"):
        top([result("a", 0.5), result("b", None)], 1)


def test_sample_has_no_repeats_and_without_removes_by_id(result):
    results = [result(name, 0.5) for name in "abcd"]
    drawn = sample(results, 3, np.random.default_rng(1))
    assert len({r.candidate.id for r in drawn}) == 3
    assert len(sample(results, 9, np.random.default_rng(1))) == 4
    assert [r.candidate.id for r in without(results, results[1:3])] == ["a", "d"]


def test_softmax_gives_shares_and_ranks_their_reciprocals():
    np.testing.assert_allclose(softmax([0.0, np.log(3.0)]), [0.25, 0.75], atol=1e-12)
    np.testing.assert_allclose(softmax([1e6, 1e6]), [0.5, 0.5])
    np.testing.assert_allclose(softmax(rank_logits(3)), np.array([6, 4, 3]) / 13, atol=1e-12)  # 1/2, 1/3, 1/4


@pytest.mark.parametrize(
    ("values", "expected"),
    [((0.2, 0.6, 1.0), (0.0, 0.5, 1.0)), ((-300.0, -100.0), (0.0, 1.0)), ((4.0, 4.0), (0.0, 0.0)),
     ((-1.7e308, 1.7e308), (0.0, 1.0))],
)  # fmt: skip
def test_scores_are_scaled_to_the_unit_range(values, expected):
    np.testing.assert_allclose(unit_range(values), expected, atol=1e-12)


def test_draws_without_replacement_follow_the_weights_that_are_left():
    rng = np.random.default_rng(0)
    drawn = [draw("abc", np.log([0.5, 0.3, 0.2]), 2, rng) for _ in range(8000)]
    assert all(len(set(pair)) == 2 for pair in drawn)
    assert sum(pair == ("a", "b") for pair in drawn) / 8000 == pytest.approx(0.5 * 0.3 / 0.5, abs=0.02)
    assert sum(pair == ("c", "a") for pair in drawn) / 8000 == pytest.approx(0.2 * 0.5 / 0.8, abs=0.02)
    assert set(draw("abc", [0.0, -1e5, -1e6], 5, rng)) == set("abc"), "also where a probability vanishes"
    assert draw("", [], 2, rng) == ()


def test_derived_generators_depend_on_place_alone():
    assert derive_rng(1, "ask", 3).random() == derive_rng(1, "ask", 3).random()
    places = [(1, "ask", 3), (2, "ask", 3), (1, "ask", 4), (1, "propose", 3), (1, "ask", "3"), (1, "ask")]
    assert len({derive_rng(seed, *path).random() for seed, *path in places}) == len(places)


RANDOM = Score(mean=0.02, se=0.01, n=1, episodes=256)


def come(found, untrained=RANDOM, success=(0.0, 0.0), **progress):
    """The result with how far its two seeds came."""
    feedback = Feedback(progress=progress, seed_success=success, untrained=untrained)
    return found.model_copy(update={"feedback": feedback})


def test_where_no_success_says_anything_programs_are_compared_by_how_far_episodes_came(result):
    near = come(result("near", 0.0), held=(0.9, 0.8), made=(0.2, 0.1))
    lucky = come(result("lucky", 0.03), success=(0.06, 0.0), held=(0.1, 0.1), made=(0.0, 0.0))
    solves = come(result("solves", 0.4), success=(0.4, 0.4), held=(0.5, 0.5), made=(0.4, 0.4))
    assert [r.candidate.id for r in top([lucky, near, solves], 3)] == ["solves", "near", "lucky"]
    plain = [
        r.model_copy(update={"feedback": r.feedback.model_copy(update={"untrained": None})}) for r in (near, lucky)
    ]
    assert better(plain[1], plain[0]), "by success alone, where a search does not look at progress"
    assert merit(plain[0]) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("higher", [True, False])
def test_of_a_metric_that_is_no_rate_the_interval_is_by_the_errors(result, higher):
    """And how far episodes came is the mean over stages alone: its unit means nothing beside theirs."""
    sign, measure = (1.0 if higher else -1.0), Measure(name="pipes", rate=False, higher_is_better=higher)
    score = lambda mean, se: Score(mean=sign * mean, se=se, n=2, episodes=256, measure=measure)  # noqa: E731

    def of(name, mean, **played):
        found = come(result(name, 0.0), untrained=score(0.5, 0.1), success=(sign * mean, sign * mean), **played)
        return found.model_copy(update={"score": score(mean, 0.2)})

    lucky, near, scores = of("lucky", 1.0, played=(0.1, 0.1)), of("near", 0.2, played=(0.3, 0.1)), of("scores", 1.2)
    assert [r.candidate.id for r in top([lucky, near, scores], 3)] == ["scores", "near", "lucky"]
    assert merit(near) == (0.5, pytest.approx(0.2), 0.2, -0.2), "in the direction of the measure"
    assert stages(near).shape == (1, 2)


def test_what_tells_a_program_from_random_actions_are_its_episodes(result):
    """Not its seeds: two that agree by chance are no certainty, and one that plays well is enough."""
    measure = Measure(name="pipes", rate=False)
    nothing = Score(mean=0.0, se=0.0, n=1, episodes=256, measure=measure)

    def of(name, one, other, error):
        found = come(result(name, 0.0), untrained=nothing, success=(one, other), played=(0.1, 0.1))
        mean, se = (one + other) / 2, abs(one - other) / 2
        score = Score(mean=mean, se=se, n=2, episodes=512, measure=measure)
        feedback = found.feedback.model_copy(update={"episode_error": error})
        return found.model_copy(update={"score": score, "feedback": feedback})

    lucky, good = of("lucky", 1 / 256, 1 / 256, 0.0028), of("good", 36.0, 0.0, 0.3)
    unknown = of("unknown", 50.0, 50.0, float("nan"))
    assert [tells(r) for r in (lucky, good, unknown)] == [False, True, False]
    assert merit(good) > merit(lucky)


def test_a_program_that_is_the_best_at_one_stage_is_drawn_whatever_its_mean(result):
    """And one that is nowhere the best is not."""
    pool = [
        come(result("picks", 0.0), held=(0.9, 0.9), made=(0.0, 0.0)),
        come(result("makes", 0.0), held=(0.2, 0.2), made=(0.5, 0.5)),
        come(result("both badly", 0.0), held=(0.1, 0.1), made=(0.0, 0.0)),
    ]
    weights = fitness_weights(pool)
    assert weights[0] > 0.2 and weights[1] > 0.2 and weights[2] == 0.0 and weights.sum() == pytest.approx(1.0)
    told = [*pool, come(result("solves", 0.5), success=(0.5, 0.5), held=(0.5, 0.5), made=(0.5, 0.5))]
    np.testing.assert_allclose(fitness_weights(told), [0.0, 0.0, 0.0, 1.0])


def test_lexicase_is_that_of_all_orders_of_cases():
    """Of two cases in either order, without a deviation that lets others stay."""
    cases = [np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]), np.array([[0.0], [0.0]])]
    np.testing.assert_allclose(lexicase_weights(cases), [0.5, 0.5, 0.0, 0.0], atol=0.1)
    np.testing.assert_allclose(lexicase_weights([np.zeros((0, 0))] * 4), 0.25)
    np.testing.assert_allclose(lexicase_weights([np.zeros((2, 3))] * 2), 0.5)
