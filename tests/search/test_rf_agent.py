"""RF-Agent: expansions, words, decay and the rules that are compared with UCT."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.records import Failure, Result
from jaxreward.search import make_strategy
from jaxreward.search.rf_agent import ACTIONS, RFAgent
from jaxreward.search.seeding import derive_rng
from jaxreward.search.tree import ROOT

SILENT = {"align": False, "verify": False}


def ask(strategy, state, n=8, seed=0):
    return strategy.ask(state, n, derive_rng(seed, "ask", state.generation))


def founded(strategy, result, *means):
    return strategy.tell(strategy.init(), [result(f"f{k}", mean) for k, mean in enumerate(means)])


def grown(result, requests, mean: Any = 0.5):
    """A result for each request, scored `mean` or by a function of the request."""
    return [
        result(q.id, mean(q) if callable(mean) else mean, operator=q.operator,
               parents=tuple(p.candidate.id for p in q.parents))
        for q in requests
    ]  # fmt: skip


def ids(results):
    return [r.candidate.id for r in results]


def test_an_expansion_has_the_actions_of_the_paper(landscape):
    world = landscape("bumpy")
    state = world.search(make_strategy("rf-agent"), 60, 8)
    expanded = [n for n in state.memory.tree.nodes.values() if n.expansions]
    assert len(expanded) > 4 and expanded[0].id == ROOT
    for generation in range(state.generation):
        requests = [q for q in world.requests if q.generation == generation]
        if requests[0].parents and len(requests) == 8:
            assert len({q.parents[0].candidate.id for q in requests}) == 1
            assert Counter(q.operator for q in requests) == dict(zip(ACTIONS, (2, 2, 2, 1, 1), strict=False))
    assert all(q.thought for q in world.requests if q.operator not in ("align", "verify"))


def test_each_action_shows_its_programs(landscape, result):
    strategy = make_strategy("rf-agent", counts=(8, 8, 200, 8, 200), **SILENT)
    state = landscape("bumpy").search(make_strategy("rf-agent", **SILENT), 80, 8)
    tree, requests = state.memory.tree, ask(strategy, state, 424)
    node = tree.nodes[requests[0].parents[0].candidate.id]
    assert node.depth >= 2
    shown = {action: [q for q in requests if q.operator == action] for action in ACTIONS}
    assert all(ids(q.parents) == [node.id] for q in (*shown["structure"], *shown["weights"]))
    lines = [n.id for n in tree.lineage(node.id)][:4]
    assert all(ids(q.parents) == lines for q in shown["path"])
    for action in ("crossover", "different"):
        sizes = Counter(len(q.parents) for q in shown[action])
        assert set(sizes) == {2, 3, 4} and min(sizes.values()) > 200 / 3 - 30, "drawn uniformly"
        assert all(len(set(ids(q.parents))) == len(q.parents) for q in shown[action])
    assert {id for q in shown["crossover"] for id in ids(q.parents)[1:]} <= set(state.memory.elites)
    for q in shown["different"]:
        assert all(tree.nodes[id].branch != node.branch for id in ids(q.parents)[1:])


def test_a_path_has_at_most_four_programs(result):
    strategy = make_strategy("rf-agent", initial=1, counts=(0, 0, 0, 1, 0), exploration=0.0, **SILENT)
    state = founded(strategy, result, 0.1)
    shown = []
    for k in range(6):
        requests = ask(strategy, state)
        shown.append(ids(requests[0].parents))
        state = strategy.tell(state, grown(result, requests, 0.2 + 0.1 * k))
    line = ["f0", *(f"g{k:04d}-00" for k in range(1, 6))]
    assert shown == [line[max(0, k - 3) : k + 1][::-1] for k in range(6)]


def test_elites_are_the_best_and_drawn_by_rank(result):
    means = [0.1 * k for k in range(12)]
    strategy = make_strategy("rf-agent", initial=12, elites=3, context=(2, 2), counts=(0, 0, 3000, 0, 0), **SILENT)
    state = founded(strategy, result, *means)
    assert state.memory.elites == ("f11", "f10", "f9")
    requests = ask(strategy, state, 3000)
    assert {ids(q.parents)[0] for q in requests} == {"f11"}
    # ranks 0, 1, 2 weigh 1/2, 1/3, 1/4; rank 0 is the node itself
    share = sum(ids(q.parents)[1] == "f10" for q in requests) / 3000
    assert share == pytest.approx((1 / 3) / (1 / 3 + 1 / 4), abs=0.03)


def test_different_falls_back_to_its_own_subtree_and_crossover_to_improve(result):
    strategy = make_strategy("rf-agent", initial=1, counts=(0, 0, 1, 1, 1), **SILENT)
    state = founded(strategy, result, 0.5)
    requests = ask(strategy, state)
    assert [(q.operator, ids(q.parents)) for q in requests] == [
        ("improve", ["f0"]), ("path", ["f0"]), ("different", ["f0"])
    ]  # fmt: skip
    state = strategy.tell(state, grown(result, requests))
    (different,) = [q for q in ask(strategy, state) if q.operator == "different"]
    assert len(different.parents) > 1


def test_lambda_decays_linearly_over_the_candidates_of_expansions(landscape, result):
    strategy = RFAgent(budget=46, align=False, verify=False)
    state = founded(strategy, result, *[0.1] * 5, 0.6)
    assert strategy.exploration_at(state) == pytest.approx(0.4, abs=1e-15)
    for done in (8, 16, 24, 32, 40):
        state = strategy.tell(state, grown(result, ask(strategy, state)))
        assert strategy.exploration_at(state) == pytest.approx(0.4 * (40 - done) / 40, abs=1e-15)
    state = strategy.tell(state, grown(result, ask(strategy, state)))
    assert strategy.exploration_at(state) == 0.0
    unknown = RFAgent()
    assert unknown.exploration_at(landscape().search(unknown, 50, 8)) == 0.4


def test_candidates_that_never_trained_do_not_cool(result):
    strategy = RFAgent(budget=46, align=False, verify=False)
    state = founded(strategy, result, *[0.1] * 5, 0.6)
    state = strategy.tell(state, grown(result, ask(strategy, state), None))
    assert strategy.exploration_at(state) == 0.4 and state.memory.grown == 0


@pytest.mark.parametrize("n", [1, 3, 8, 20])
def test_an_expansion_is_the_same_in_any_generations(result, n):
    strategy = make_strategy("rf-agent", **SILENT)
    state = founded(strategy, result, 0.1, 0.3, 0.2, 0.2, 0.2, 0.2)
    asked = []
    while len(asked) < 8:
        assert state.memory.tree.nodes[ROOT].visits == 6, "nothing is backed up before the expansion is complete"
        requests = ask(strategy, state, n)
        assert len(requests) == min(n, 8 - len(asked))
        asked += requests
        state = strategy.tell(state, grown(result, requests, 0.5))
    assert {ids(q.parents)[0] for q in asked} == {"f1"}
    assert [q.operator for q in asked] == [a for a, k in zip(ACTIONS, (2, 2, 2, 1, 1), strict=False) for _ in range(k)]
    node = state.memory.tree.nodes["f1"]
    assert (node.visits, node.expansions) == (8, 1)
    assert node.q == pytest.approx(0.3 * 0.3 + 0.7 * 0.5, abs=1e-12)
    assert state.memory.tree.nodes[ROOT].visits == 13


def test_withdrawn_requests_of_an_expansion_are_asked_again(result):
    strategy = make_strategy("rf-agent", **SILENT)
    state = founded(strategy, result, 0.1, 0.3, 0.2, 0.2, 0.2, 0.2)
    first = ask(strategy, state)
    state = strategy.tell(state, grown(result, [first[1], first[4], first[7]]))
    again = ask(strategy, state)
    assert [q.operator for q in again] == ["structure", "weights", "weights", "crossover", "path"]
    state = strategy.tell(state, [])
    assert [q.operator for q in ask(strategy, state)] == [q.operator for q in again]
    state = strategy.tell(state, grown(result, ask(strategy, state)))
    assert state.memory.tree.nodes["f1"].expansions == 1


def test_a_repaired_candidate_is_one_child(result):
    strategy = make_strategy("rf-agent", **SILENT)
    state = founded(strategy, result, 0.1, 0.3, 0.2, 0.2, 0.2, 0.2)
    results = grown(result, ask(strategy, state), lambda q: None if q.id.endswith("-03") else 0.4)
    repaired = results[3].candidate.model_copy(update={"id": "again", "repairs": results[3].candidate.id})
    results.append(results[0].model_copy(update={"candidate": repaired}))
    state = strategy.tell(state, results)
    node = state.memory.tree.nodes["f1"]
    assert node.visits == len(node.children) == 8 and "again" in node.children
    assert results[3].candidate.id not in state.memory.tree.nodes


def test_the_first_layer_waits_for_a_score(result):
    strategy = make_strategy("rf-agent", initial=3)
    failed = [result(f"d{k}", None, stage="diverged") for k in range(3)]
    state = strategy.tell(strategy.init(), failed)
    assert [q.operator for q in ask(strategy, state)] == ["scratch"] * 3
    state = strategy.tell(state, [result("g", None)])
    state = strategy.tell(state, [result("x", 0.0)])
    assert ask(strategy, state)[0].operator == "align"


def test_programs_that_were_not_trained_are_made_up_for(result):
    strategy = make_strategy("rf-agent", **SILENT)
    state = founded(strategy, result, 0.1, None, 0.2, None, 0.3, 0.2)
    assert [q.operator for q in ask(strategy, state)] == ["scratch"] * 2


def test_where_every_node_is_closed_new_founders_are_asked_for(result):
    strategy = make_strategy("rf-agent", initial=2, max_depth=1, **SILENT)
    state = founded(strategy, result, 0.1, 0.2)
    for search in ("uct", "dfs", "bfs", "greedy"):
        closed = make_strategy("rf-agent", initial=2, max_depth=1, search=search, **SILENT)
        assert [q.operator for q in ask(closed, state)] == ["scratch"] * 2
    state = strategy.tell(state, [result("g", 0.3)])
    assert state.memory.tree.nodes[ROOT].visits == 3


# ---- words


def words_for(result, requests, text):
    return [
        result(q.id, None, operator=q.operator, parents=tuple(ids(q.parents)), source="", words=text(q))
        for q in requests
    ]


def test_thoughts_and_judgements_come_before_the_next_expansion(result):
    strategy = make_strategy("rf-agent", initial=2)
    state = founded(strategy, result, 0.1, 0.2, None)
    aligns = ask(strategy, state, 1)
    assert [(q.operator, ids(q.parents)) for q in aligns] == [("align", ["f0"]), ("align", ["f1"])]
    state = strategy.tell(state, words_for(result, aligns, lambda q: f"anew {q.parents[0].candidate.id}"))
    best = strategy.best(state)
    assert best is not None and best.candidate.thought == "anew f1"
    verifies = ask(strategy, state, 1)
    assert [q.operator for q in verifies] == ["verify"] * 2
    assert [q.parents[0].candidate.thought for q in verifies] == ["anew f0", "anew f1"]
    state = strategy.tell(state, words_for(result, verifies, lambda q: "-7" if q.id.endswith("00") else "0.5"))
    assert [state.memory.tree.nodes[id].verify for id in ("f0", "f1")] == [-1.0, 0.5]
    expansion = ask(strategy, state)
    assert {q.parents[0].candidate.thought for q in expansion} == {"anew f1"}


def test_an_expansion_in_several_generations_is_judged_once_it_is_complete(result):
    strategy = make_strategy("rf-agent", initial=1, counts=(2, 2, 0, 0, 0), align=False)
    state = founded(strategy, result, 0.1)
    state = strategy.tell(state, words_for(result, ask(strategy, state), lambda q: "0.5"))
    for _ in range(2):
        requests = ask(strategy, state, 2)
        assert requests[0].operator in ("structure", "weights")
        state = strategy.tell(state, grown(result, requests))
    assert [q.operator for q in ask(strategy, state, 2)] == ["verify"] * 4


@pytest.mark.parametrize("text", ["", "much", "nan", "inf"])
def test_a_judgement_that_is_none_is_not_asked_for_twice(result, text):
    strategy = make_strategy("rf-agent", initial=1, align=False)
    state = founded(strategy, result, 0.1)
    (request,) = ask(strategy, state)
    (answer,) = words_for(result, [request], lambda q: text or "x")
    if not text:
        answer = Result(candidate=answer.candidate, failure=Failure(stage="reply", message="no number"))
    state = strategy.tell(state, [answer])
    assert state.memory.tree.nodes["f0"].verify is None
    assert ask(strategy, state)[0].operator == "structure"


def test_a_withdrawn_judgement_is_asked_for_again(result):
    strategy = make_strategy("rf-agent", initial=2, align=False)
    state = founded(strategy, result, 0.1, 0.2)
    requests = ask(strategy, state)
    state = strategy.tell(state, words_for(result, requests[:1], lambda q: "1"))
    assert [(q.operator, ids(q.parents)) for q in ask(strategy, state)] == [("verify", ["f1"])]


@pytest.mark.parametrize(
    ("options", "operators"),
    [
        ({}, {"align", "verify"}),
        ({"align": False}, {"verify"}),
        ({"verify": False}, {"align"}),
        ({"align": False, "verify": False}, set()),
    ],
)
def test_requests_for_words_can_be_turned_off(landscape, options, operators):
    world = landscape(words=True)
    world.search(make_strategy("rf-agent", thoughts=False, **options), 40, 8)
    assert {q.operator for q in world.requests} - {"scratch", *ACTIONS} == operators
    assert not any(q.thought for q in world.requests)


def test_a_proposer_without_words_is_asked_once(landscape):
    world = landscape()
    state = world.search(make_strategy("rf-agent"), 40, 8)
    assert state.declined == {"align", "verify"}
    for operator in state.declined:
        assert len({q.generation for q in world.requests if q.operator == operator}) == 1


def test_judgements_steer_the_walk(result):
    strategy = make_strategy("rf-agent", initial=2, exploration=2.0, align=False)
    state = founded(strategy, result, 0.5, 0.5)
    requests = ask(strategy, state)
    for one, two, chosen in (("1", "-1", "f0"), ("-1", "1", "f1")):
        judged = strategy.tell(state, words_for(result, requests, lambda q, t=(one, two): t[int(q.id[-1])]))
        assert ask(strategy, judged)[0].parents[0].candidate.id == chosen


# ---- the rules that are compared with UCT


def order_of(strategy, result, mean, rounds):
    state = founded(strategy, result, 0.1, 0.3, 0.2)
    chosen = []
    for _ in range(rounds):
        requests = ask(strategy, state)
        chosen.append(requests[0].parents[0].candidate.id)
        state = strategy.tell(state, grown(result, requests, mean))
    return chosen


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("dfs", ["f1", "g0001-01", "g0002-01"]),  # always the best of the youngest siblings
        ("bfs", ["f0", "f1", "f2", "g0001-00"]),  # the first layer, then the second from its first born
        ("greedy", ["f1", "f2", "g0001-01"]),  # the best leaf
    ],
)
def test_other_search_rules_expand_in_their_order(result, search, expected):
    strategy = make_strategy("rf-agent", initial=3, counts=(1, 1, 0, 0, 0), search=search, **SILENT)
    assert order_of(strategy, result, lambda q: 0.15 + 0.01 * int(q.id[-1]), len(expected)) == expected


@pytest.mark.parametrize("search", ["dfs", "bfs", "greedy"])
def test_other_search_rules_leave_a_node_whose_children_all_failed(result, search):
    strategy = make_strategy("rf-agent", initial=3, search=search, **SILENT)
    assert len(set(order_of(strategy, result, None, 3))) == 3


def test_the_basic_action_is_the_sixth_count(result):
    strategy = make_strategy("rf-agent", initial=1, counts=(1, 0, 0, 0, 0, 2), **SILENT)
    state = founded(strategy, result, 0.5)
    assert [q.operator for q in ask(strategy, state)] == ["structure", "improve", "improve"]


# ---- the rest


@pytest.mark.parametrize(("n", "budget"), [(8, 80), (8, 30), (5, 33), (1, 21), (20, 64)])
def test_the_budget_is_met_exactly(landscape, n, budget):
    world = landscape("plateau", 8)
    state = world.search(make_strategy("rf-agent", budget=budget), budget, n)
    assert (
        state.num_results
        == budget
        == len([r for r in world.results if r.candidate.operator not in ("align", "verify")])
    )


def test_the_account_contains_the_tree(landscape):
    strategy, world = make_strategy("rf-agent", budget=50), landscape(words=True)
    state, nodes, expanded = strategy.init(), {}, 0
    final = world.search(strategy, 50, 8)
    for results in world.generations:
        before, state = state, strategy.tell(state, results)
        account = strategy.account(before, state)
        nodes |= {node["id"]: node for node in account["nodes"]}
        if "expanded" in account:
            expanded += 1
            assert account["expanded"] in nodes and 0.0 <= account["lambda"] <= 0.4
    assert state == final and expanded >= 5
    assert nodes == {
        n.id: {"id": n.id, "parent": n.parent, "Q": n.q, "N": n.visits, "verify": n.verify, "depth": n.depth}
        for n in final.memory.tree.nodes.values()
    }
    assert any(node["verify"] is not None for node in nodes.values())


def test_the_account_is_empty_where_nothing_changed(landscape):
    strategy, world = make_strategy("rf-agent"), landscape()
    world.search(strategy, 20, 8)
    state = strategy.init()
    for results in world.generations:
        before, state = state, strategy.tell(state, results)
        if all(r.failure and r.failure.stage == "declined" for r in results):
            assert strategy.account(before, state)["nodes"] == []
    assert state.declined


def test_visits_add_up(landscape):
    state = landscape("bumpy", repairs=True).search(make_strategy("rf-agent"), 100, 8)
    tree = state.memory.tree
    for node in tree.nodes.values():
        if node.children and node.expansions:
            assert node.visits == sum(tree.nodes[child].visits for child in node.children)
    # what an expansion that is not complete has brought so far is not counted yet
    leaves = [n for n in tree.nodes.values() if not n.expansions and n.parent and tree.nodes[n.parent].expansions]
    assert tree.nodes[ROOT].visits == len(leaves)
    assert np.isfinite([n.q for n in tree.nodes.values() if n.q is not None]).all()


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("counts", (0, 0, 0, 0, 0), "not all 0"),
        ("counts", (1, 1), "five or six"),
        ("counts", (1, 1, 1, 1, -1), "at least 0"),
        ("context", (3, 2), "the least and the most"),
        ("context", (1, 2), "at least 2"),
        ("eta", 1.2, "from 0 to 1"),
        ("search", "best", "uct, dfs, bfs, greedy"),
        ("verify", 1, "true or false"),
        ("exploration", -0.1, "at least 0"),
        ("max_depth", 0, "at least 1"),
    ],
)
def test_options_are_checked(option, value, says):
    with pytest.raises(InvalidSetting, match=says, check=lambda e: e.settings == (f"strategy.{option}",)):
        make_strategy("rf-agent", **{option: value})
