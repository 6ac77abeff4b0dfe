"""FORGE: plans, pairs, the pool and depth."""

from __future__ import annotations

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.records import SUCCESS, Failure, Result
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import fitness_pairs, pair_weights
from tests.search.conftest import RETURN


def ask(strategy, state, n=4):
    return strategy.ask(state, n, derive_rng(0, "ask", state.generation))


def operators(requests):
    return [request.operator for request in requests]


def plans_for(result, requests, *failing):
    planned = [result(q.id, None, operator="plan", source="", words=f"- reach: {q.id}") for q in requests]
    failure = Failure(stage="reply", message="no plan")
    return [Result(candidate=r.candidate, failure=failure) if k in failing else r for k, r in enumerate(planned)]


def planned_by(request):
    return request.plan.candidate.id


def carried_out(result, request):
    return result(request.id, 0.3, operator="implement", plan=planned_by(request))


# ---- pairs


def test_pairs_are_drawn_by_the_sum_of_their_scores(result):
    pairs, weights = pair_weights([result("a", 0.1), result("b", 0.2), result("c", 0.7)])
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    # W = 1 and K = 3: the sums 0.3, 0.8 and 0.9 add up to (K - 1) W = 2
    np.testing.assert_allclose(weights, [0.15, 0.4, 0.45], atol=1e-12)


@pytest.mark.parametrize(("mean", "measure"), [(0.0, SUCCESS), (0.3, SUCCESS), (-2.0, RETURN)])
def test_equal_scores_draw_pairs_evenly(result, mean, measure):
    _, weights = pair_weights([result(name, mean, measure=measure) for name in "abc"])
    np.testing.assert_allclose(weights, np.full(3, 1 / 3), atol=1e-12)


def test_of_what_is_no_rate_places_draw_pairs(result):
    scores = {"a": -500.0, "b": -4.0, "c": -2.0}
    _, weights = pair_weights([result(name, mean, measure=RETURN) for name, mean in scores.items()])
    np.testing.assert_allclose(weights, [3 / 12, 4 / 12, 5 / 12], atol=1e-12)  # of 1, 2 and 3


def test_drawn_pairs_follow_their_probabilities(result):
    pool = [result("a", 0.1), result("b", 0.2), result("c", 0.7)]
    drawn = fitness_pairs(pool, 6000, np.random.default_rng(0))
    share = {pair: sum(tuple(r.candidate.id for r in d) == pair for d in drawn) / 6000 for pair in
             (("a", "b"), ("a", "c"), ("b", "c"))}  # fmt: skip
    assert list(share.values()) == pytest.approx([0.15, 0.4, 0.45], abs=0.02)
    assert sum(share.values()) == 1.0


# ---- founders


def test_programs_carry_out_the_plans_that_came_first(result):
    strategy = make_strategy("forge", initial=6)
    state = strategy.init()
    for n in (4, 2):
        requests = ask(strategy, state)
        assert operators(requests) == ["plan"] * n
        state = strategy.tell(state, plans_for(result, requests))
        requests = ask(strategy, state)
        assert operators(requests) == ["implement"] * n
        assert [q.plan.words for q in requests if q.plan] == [f"- reach: {p.candidate.id}" for p in state.memory.plans]
        state = strategy.tell(state, [carried_out(result, q) for q in requests])
        assert state.memory.plans == ()
    assert operators(ask(strategy, state)) == ["crossover"] * 4


def test_without_words_founders_start_from_scratch(landscape):
    world = landscape()
    world.search(make_strategy("forge"), 20, 4)
    assert operators(world.requests[:12]) == ["plan"] * 4 + ["scratch"] * 8
    world = landscape(words=True)
    world.search(make_strategy("forge", planner=False), 20, 4)
    assert "plan" not in operators(world.requests)


def test_plans_that_failed_are_not_asked_for_twice_in_a_row(result):
    strategy = make_strategy("forge")
    requests = ask(strategy, strategy.init())
    state = strategy.tell(strategy.init(), plans_for(result, requests, 0, 2))
    assert operators(ask(strategy, state)) == ["implement"] * 2
    state = strategy.tell(strategy.init(), plans_for(result, requests, 0, 1, 2, 3))
    assert operators(ask(strategy, state)) == ["scratch"] * 4
    state = strategy.tell(state, [result("x", 0.1)])
    assert operators(ask(strategy, state)) == ["plan"] * 4, "and then again"


def test_fewer_may_be_trained_than_were_planned(result):
    strategy = make_strategy("forge")
    state = strategy.tell(strategy.init(), plans_for(result, ask(strategy, strategy.init())))
    first = ask(strategy, state, 1)
    state = strategy.tell(state, [result("x", None, operator="implement", plan=planned_by(first[0]))])
    second = ask(strategy, state, 8)
    assert len(first) == 1 and len(second) == 3
    assert not {q.plan.words for q in first if q.plan} & {q.plan.words for q in second if q.plan}


def test_a_plan_whose_request_was_withdrawn_is_carried_out_later(result):
    strategy = make_strategy("forge", initial=3)
    state = strategy.tell(strategy.init(), plans_for(result, ask(strategy, strategy.init(), 3)))
    first, _, third = ask(strategy, state, 3)
    state = strategy.tell(state, [carried_out(result, q) for q in (first, third)])
    assert [plan.candidate.id for plan in state.memory.plans] == ["g0000-01"]


# ---- the pool


def test_the_pool_keeps_the_best(result):
    strategy = make_strategy("forge", initial=1, pool=3)
    state = strategy.tell(strategy.init(), [result(f"a{k}", 0.1 * k) for k in range(5)])
    assert [r.candidate.id for r in state.memory.pool] == ["a4", "a3", "a2"]
    after = strategy.tell(state, [result("b", 0.35, parents=("a4", "a3"), depth=1), result("c", None)])
    assert [r.candidate.id for r in after.memory.pool] == ["a4", "b", "a3"]
    assert strategy.account(state, after) == {
        "pool": 3, "joined": ["b"], "pruned": ["a2"], "plans": 0, "depths": {"1": {"scored": 1, "best": 0.35}}
    }  # fmt: skip
    shown = {r.candidate.id for q in ask(strategy, after, 50) for r in q.parents}
    assert shown == {"a4", "b", "a3"}


def test_a_pool_of_one_is_improved_and_an_empty_one_founded_anew(result):
    strategy = make_strategy("forge", initial=2, planner=False)
    state = strategy.tell(strategy.init(), [result("a", None, stage="diverged"), result("b", None, stage="diverged")])
    assert operators(ask(strategy, state)) == ["scratch"] * 2
    state = strategy.tell(state, [result("c", 0.0)])
    requests = ask(strategy, state)
    assert operators(requests) == ["improve"] * 4 and requests[0].parents == state.memory.pool


# ---- depth


def told_depths(result, strategy, *depths):
    """A state after candidates of (depth, score)."""
    state = strategy.init()
    for k, (depth, mean) in enumerate(depths):
        state = strategy.tell(state, [result(f"c{k}", mean, depth=depth)])
    return state


def test_it_ends_once_depth_no_longer_pays(result):
    strategy = make_strategy("forge", patience=2, trials=2)
    start = [(0, 0.2), (1, 0.5), (1, 0.1), (2, 0.4), (2, 0.5), (3, 0.1)]
    state = told_depths(result, strategy, *start)
    assert strategy.finished(state) == "", "one candidate of depth 3 is no trial of it"
    ended = told_depths(result, strategy, *start, (3, 0.3))
    assert strategy.finished(ended).startswith(
        "depth no longer pays: 2 or more candidates of each of the depths 2 to 3"
    )
    assert strategy.finished(told_depths(result, strategy, *start, (3, None))) == ""
    better = told_depths(result, strategy, *start, (3, 0.51))
    assert strategy.finished(better) == "", "depth 3 is the best now"
    little = make_strategy("forge", patience=2, trials=2, gain=0.05)
    assert little.finished(told_depths(result, little, *start, (3, 0.51))), "an improvement that does not count"
    off = make_strategy("forge", patience=0, trials=2)
    assert off.finished(told_depths(result, off, *start, (3, 0.3))) == ""
    assert strategy.finished(strategy.init()) == ""


def test_a_search_ends_early_on_a_plain_and_not_on_a_hill(landscape):
    strategy = make_strategy("forge", patience=2)
    assert strategy.finished(landscape("level").search(strategy, 60, 4))
    assert not strategy.finished(landscape("narrow").search(strategy, 20, 4))


@pytest.mark.parametrize(("option", "value"), [("pool", 0), ("gain", float("inf")), ("planner", "no")])
def test_options_are_checked(option, value):
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == (f"strategy.{option}",)):
        make_strategy("forge", **{option: value})
