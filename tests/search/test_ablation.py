"""New best programs are tried without parts of theirs, and what that showed is shown with them."""

from __future__ import annotations

import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.records import Failure, Result
from jaxreward.search import STRATEGIES, make_strategy
from jaxreward.search.ablation import ABLATE, Ablations
from jaxreward.search.seeding import derive_rng

ABLATING = sorted(name for name, kind in STRATEGIES.items() if kind.ablates)


def asked(strategy, state, n=8):
    return strategy.ask(state, n, derive_rng(0, "test"))


def answered(requests, result, **means):
    """A result for each request, with the mean of its operator or 0.1."""
    return [
        result(
            q.id, means.get(q.operator, 0.1), operator=q.operator, parents=tuple(p.candidate.id for p in q.parents),
            group=q.group,
        )
        for q in requests
    ]  # fmt: skip


def groups(requests):
    return [(r.parents[0].candidate.id, r.group) for r in requests if r.operator == ABLATE]


def test_a_new_best_is_tried_without_each_of_its_groups_once(result):
    strategy = make_strategy("limen", initial=2, ablations=3)
    state = strategy.tell(strategy.init(), [result("a", 0.5)])
    assert not groups(asked(strategy, state)), "a founder is still to come"
    state = strategy.tell(state, [result("b", 0.3)])
    requests = asked(strategy, state)
    assert groups(requests) == [("a", 0), ("a", 1), ("a", 2)] and len(requests) == 8
    assert groups(asked(strategy, state, 2)) == [("a", 0), ("a", 1)], "no more than asked for"
    state = strategy.tell(state, answered(requests, result))
    assert not groups(asked(strategy, state))
    state = strategy.tell(state, [result("c", 0.9, operator="improve", parents=("a",))])
    assert groups(asked(strategy, state)) == [("c", 0), ("c", 1), ("c", 2)]


def test_what_was_withdrawn_is_asked_for_again(result):
    strategy = make_strategy("limen", initial=1, ablations=3)
    state = strategy.tell(strategy.init(), [result("a", 0.5)])
    first, _, third, *rest = asked(strategy, state)
    state = strategy.tell(state, answered([first, third, *rest], result))
    assert groups(asked(strategy, state)) == [("a", 1)]


def test_a_better_ablation_is_the_best_and_ablated_in_its_turn(result):
    strategy = make_strategy("limen", initial=1, ablations=1)
    state = strategy.tell(strategy.init(), [result("a", 0.5)])
    requests = asked(strategy, state)
    state = strategy.tell(state, answered(requests, result, ablate=0.8))
    assert state.best is not None and state.best.candidate.operator == ABLATE
    assert groups(asked(strategy, state)) == [(requests[0].id, 0)]


def test_results_are_shown_with_their_first_parent_alone(result):
    strategy = make_strategy("eureka", ablations=2)
    state = strategy.tell(strategy.init(), [result("a", 0.5)])
    requests = asked(strategy, state)
    assert all(not request.ablations for request in requests)
    results = answered(requests, result)
    lost = Failure(stage="numeric", message="no")
    results[1] = Result(candidate=results[1].candidate, failure=lost)
    state = strategy.tell(state, results)
    for request in asked(strategy, state):
        assert [r.candidate.id for r in request.ablations] == [requests[0].id], "those with a score"
    state = strategy.tell(state, [result("c", 0.9, operator="reflect", parents=("a",))])
    assert all(not request.ablations for request in asked(strategy, state)), "another parent"


def test_a_repaired_ablation_takes_the_place_of_the_failed_one(result):
    failed = result("x", None, operator=ABLATE, parents=("a",))
    known = Ablations().updated([failed, result("y", 0.1, operator=ABLATE, parents=("a",))])
    repaired = result("x-r1", 0.2, operator=ABLATE, parents=("a",), repairs="x")
    assert [r.candidate.id for r in known.updated([repaired]).results["a"]] == ["y", "x-r1"]


@pytest.mark.parametrize("name", ABLATING)
def test_founders_of_every_strategy_come_first(name, landscape):
    world = landscape()
    world.search(make_strategy(name, budget=40, ablations=2), 40, 4)
    founders = getattr(STRATEGIES[name], "initial", 1)
    operators = [request.operator for request in world.requests if request.operator != "plan"]
    assert ABLATE in operators and ABLATE not in operators[:founders]


def test_the_tree_of_rf_agent_has_no_ablations(landscape):
    plain, with_them = landscape("narrow"), landscape("narrow")
    state = with_them.search(make_strategy("rf-agent", budget=60, ablations=2), 60, 8)
    ablated = {r.candidate.id for r in with_them.results if r.candidate.operator == ABLATE}
    assert ablated and not ablated & set(state.memory.tree.nodes)
    assert state.memory.grown == state.counts.trained - 6, "they are candidates of the budget, and no founders"
    plain.search(make_strategy("rf-agent", budget=60), 60, 8)
    expansions = [{r.operator for r in world.requests} - {ABLATE} for world in (plain, with_them)]
    assert expansions[0] == expansions[1]


def test_an_iteration_of_eureka_has_its_ablations_in_it(result):
    strategy = make_strategy("eureka", carry="iteration", ablations=1)
    state = strategy.tell(strategy.init(), [result("a", 0.5)])
    state = strategy.tell(state, answered(asked(strategy, state), result, reflect=0.4, ablate=0.2))
    assert state.memory.score.mean == 0.4


@pytest.mark.parametrize("name", sorted(set(STRATEGIES) - set(ABLATING)))
def test_strategies_without_ablations_refuse_them(name):
    with pytest.raises(InvalidSetting, match=f"Strategy {name} makes no ablations: leave .*ablations"):
        make_strategy(name, ablations=1)


def test_a_proposer_that_knows_none_is_asked_once(result):
    strategy = make_strategy("limen", initial=1, ablations=3)
    state = strategy.tell(strategy.init(), [result("a", 0.5)])
    results = answered(asked(strategy, state), result)
    declined = Failure(stage="declined", message="unknown")
    results = [
        r if r.candidate.operator != ABLATE else Result(candidate=r.candidate, failure=declined) for r in results
    ]
    state = strategy.tell(state, [*results, result("c", 0.9, operator="improve", parents=("a",))])
    assert not groups(asked(strategy, state))
