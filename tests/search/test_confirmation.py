"""Programs that may be the best are scored again when the search ends."""

from __future__ import annotations

import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.search import STRATEGIES, make_strategy
from jaxreward.search.confirmation import AT_ONCE, MOST, Confirmation
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import scored
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
    sure, close = result("a", 1.0, se=0.0, n=1), result("b", 0.98, se=0.0, n=1)
    assert names(Confirmation().updated((sure, close), ()).drafts()) == ["a", "b"]
    by_return = [r.model_copy(update={"score": r.score.model_copy(update={"measure": RETURN})}) for r in (sure, close)]
    assert names(Confirmation().updated(by_return, ()).drafts()) == ["a"]


def test_what_nothing_can_exceed_is_scored_again_alone(result):
    """Others at most equal it; where it does not hold they come together, as always."""
    found = [result(name, 1.0, n=2) for name in "abcde"]
    first = Confirmation().updated(found, ())
    assert names(first.drafts()) == ["a"]
    assert not first.updated((), (again(found[0], result, 1.0),)).drafts()
    assert names(first.updated((), (again(found[0], result, 0.9),)).drafts()) == ["b", "c", "d", "e"]


@pytest.mark.parametrize("close", [40, 3])
def test_there_is_an_end_to_it_and_a_confirmed_one_wins(result, close):
    """Of programs that are alike the best was lucky: one that was not scored again is no winner."""
    found = [result(str(k), 0.5 - k / 1000 * (close < 40), se=0.1 / close) for k in range(40)]
    confirmation, batches = Confirmation().updated(found, ()), list[int]()
    while drafts := confirmation.drafts():
        batches.append(len(drafts))
        means = [0.1 + 0.01 * sum(batches) + 0.001 * k for k in range(len(drafts))]
        confirmation = confirmation.updated(
            (), [again(draft.parents[0], result, mean) for draft, mean in zip(drafts, means, strict=True)]
        )
    assert max(batches) <= AT_ONCE and sum(batches) == MOST
    assert confirmation.best is confirmation.leader
    assert confirmation.best is not None and confirmation.best.candidate.operator == "keep"
    means = [scored(r).mean for r in confirmation.confirmed.values()]
    assert scored(confirmation.best).mean == max(means)


@pytest.mark.parametrize("name", CONFIRMING)
def test_every_strategy_confirms_what_it_found(name, landscape, result):
    strategy, world = make_strategy(name, budget=20, confirm=True), landscape()
    state = world.search(strategy, 20, 4)
    assert all(request.operator != "keep" for request in world.requests)
    before, trained = strategy.best(state), state.counts.trained
    requests = strategy.to_confirm(state)
    assert {request.operator for request in requests} == {"keep"}
    results = [again(request.parents[0], result, 0.01) for request in requests]
    after = strategy.tell(state, results)
    assert strategy.best(after) != before
    assert after.memory == state.memory and after.counts.trained == trained, "they are no new candidates"
    assert not make_strategy(name, budget=20).to_confirm(state.__class__(state.memory))


def test_a_confirmed_program_is_not_ablated_again(result):
    strategy = make_strategy("limen", initial=1, ablations=2, confirm=True)
    a = result("a", 0.9)
    state = strategy.tell(strategy.init(), [a])
    state = strategy.tell(state, [again(a, result, 0.8)])
    assert all(request.operator != "ablate" for request in strategy.ask(state, 8, derive_rng(0, "ask")))


def test_who_confirms_in_another_way_refuses():
    with pytest.raises(InvalidSetting, match="grace confirms its best in its own way"):
        make_strategy("grace", confirm=True)
    with pytest.raises(InvalidSetting, match="revolve goes by people's preferences"):
        make_strategy("revolve", fitness="preference", confirm=True)
