"""Programs that may be the best are scored again when the search ends."""

from __future__ import annotations

import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.search import STRATEGIES, make_strategy
from jaxreward.search.confirmation import AT_ONCE, MOST, Confirmation
from jaxreward.search.seeding import derive_rng
from tests.search.conftest import RETURN

CONFIRMING = sorted(name for name, kind in STRATEGIES.items() if kind.confirms)


def again(found, result, mean, **more):
    """A program that is scored again."""
    parent = found.candidate.id
    return result(f"{parent}-again", mean, operator="keep", source=found.candidate.source, parents=(parent,), **more)


def names(drafts):
    return [draft.parents[0].candidate.id for draft in drafts]


def test_the_best_is_scored_again_with_what_overlaps_it(result):
    found = [result(name, mean, se=0.1) for name, mean in (("a", 0.9), ("b", 0.8), ("c", 0.2), ("d", 0.7))]
    confirmation = Confirmation().updated(found, ())
    assert names(confirmation.drafts()) == ["a", "b", "d"]
    assert {draft.operator for draft in confirmation.drafts()} == {"keep"}


def test_the_rest_follows_until_the_best_is_confirmed(result):
    a, b, c = (result(name, mean, se=0.01) for name, mean in (("a", 0.95), ("b", 0.6), ("c", 0.3)))
    first = Confirmation().updated((a, b, c), ())
    assert names(first.drafts()) == ["a"]
    second = first.updated((), (again(a, result, 0.2),))
    assert second.best is b and names(second.drafts()) == ["b"]
    third = second.updated((), (again(b, result, 0.4),))
    assert third.best is not None and third.best.candidate.id == "b-again"
    assert not third.drafts(), "0.4 is more than c ever had"
    lost = second.updated((), (again(b, result, None),))
    assert lost.best is c, "what has no score any more is out"


def test_a_rate_of_one_seed_has_the_error_of_its_episodes(result):
    sure, close = result("a", 1.0, se=0.0), result("b", 0.98, se=0.0)
    assert names(Confirmation().updated((sure, close), ()).drafts()) == ["a", "b"]
    by_return = [r.model_copy(update={"score": r.score.model_copy(update={"measure": RETURN})}) for r in (sure, close)]
    assert names(Confirmation().updated(by_return, ()).drafts()) == ["a"]


def test_there_is_an_end_to_it(result):
    found = [result(str(k), 0.5, se=0.1) for k in range(40)]
    confirmation, rounds = Confirmation().updated(found, ()), 0
    while drafts := confirmation.drafts():
        assert len(drafts) <= AT_ONCE
        confirmation = confirmation.updated((), [again(draft.parents[0], result, 0.1) for draft in drafts])
        rounds += 1
    assert rounds == MOST // AT_ONCE


@pytest.mark.parametrize("name", CONFIRMING)
def test_every_strategy_confirms_once_its_budget_is_spent(name, landscape):
    strategy, world = make_strategy(name, budget=20, confirm=True), landscape()
    state = strategy.init()
    while state.counts.trained < 20:
        requests = strategy.ask(state, 4, derive_rng(0, state.generation))
        assert all(request.operator != "keep" for request in requests)
        state = strategy.tell(state, world.answer(requests, 0))
    before, trained = strategy.best(state), state.counts.trained
    assert strategy.unsettled(state)
    requests = strategy.ask(state, 4, derive_rng(0, "ask"))
    assert {request.operator for request in requests} == {"keep"}
    sources = {request.id: request.parents[0].candidate.source for request in requests}
    results = [r for r in world.answer(requests, 0) if r.score]
    results = [
        r.model_copy(update={"candidate": r.candidate.model_copy(update={"source": sources[r.candidate.id]})})
        for r in results
    ]
    after = strategy.tell(state, results)
    assert strategy.best(after) != before
    assert after.memory == state.memory and after.counts.trained == trained, "they are no new candidates"


def test_who_confirms_in_another_way_refuses():
    with pytest.raises(InvalidSetting, match="grace confirms its best in its own way"):
        make_strategy("grace", confirm=True)
    with pytest.raises(InvalidSetting, match="revolve goes by people's preferences"):
        make_strategy("revolve", fitness="preference", confirm=True)
