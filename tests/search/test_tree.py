"""RF-Agent's arithmetic on trees worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jaxreward.search.tree import ROOT, Tree

ETA = 0.7
LAMBDA = 0.4


def values(tree, id, exploration=LAMBDA):
    return {node.id: value for node, value in tree.uct(id, exploration)}


def near(**expected):
    return pytest.approx(expected, abs=1e-12)


def with_verify(tree, **judgements):
    return tree.amended({id: replace(tree.nodes[id], verify=v) for id, v in judgements.items()})


@pytest.fixture
def first_layer(result):
    """Scores 0.2 and 0.6, and a failure."""
    founders = [result("a", 0.2), result("b", 0.6), result("c", None)]
    return Tree().grow(ROOT, founders, 16).backup(ROOT, ETA)


@pytest.fixture
def expanded(first_layer, result):
    """The node b with scores 0.5 and 0.9, and a failure."""
    children = [result("b1", 0.5), result("b2", 0.9), result("b3", None)]
    return first_layer.grow("b", children, 16).backup("b", ETA)


def test_each_child_of_the_root_is_one_visit(first_layer):
    nodes = first_layer.nodes
    assert nodes[ROOT].visits == 3 and nodes[ROOT].q is None
    assert [nodes[id].visits for id in "abc"] == [1, 1, 1]
    assert [nodes[id].q for id in "abc"] == [0.2, 0.6, None]
    assert (first_layer.low, first_layer.high) == (0.2, 0.6)
    # 0.4 * sqrt(2 ln(3 + 1) / 1), and 1 more for the best
    assert values(first_layer, ROOT) == near(a=0.6660436889261582, b=1.666043688926158)
    assert first_layer.walk(LAMBDA) == "b"


def test_an_expansion_is_backed_up_to_the_root(expanded):
    nodes = expanded.nodes
    assert nodes["b"].q == pytest.approx(0.3 * 0.6 + 0.7 * 0.9, abs=1e-12)
    assert (nodes["b"].visits, nodes[ROOT].visits, nodes["a"].visits) == (3, 5, 1)
    assert nodes[ROOT].q is None and nodes["a"].q == 0.2
    assert (expanded.low, expanded.high) == (0.2, 0.9)
    # a: 0 + 0.4 sqrt(2 ln 6); b: (0.81 - 0.2) / 0.7 + 0.4 sqrt(2 ln 6 / 3)
    assert values(expanded, ROOT) == near(a=0.7572073891299382, b=1.3086024613751153)
    assert values(expanded, "b") == near(b1=1.0946151174975869, b2=1.666043688926158)
    assert expanded.walk(LAMBDA) == "b2"
    assert expanded.nodes["b1"].branch == "b" and [n.id for n in expanded.lineage("b1")] == ["b1", "b"]


def test_backup_goes_up_to_the_root_once(expanded, result):
    tree = expanded.grow("b2", [result("b21", 0.1)], 16).backup("b2", ETA)
    assert tree.nodes["b2"].q == pytest.approx(0.34, abs=1e-12)
    assert tree.nodes["b"].q == pytest.approx(0.3 * 0.81 + 0.7 * 0.5, abs=1e-12)
    assert [tree.nodes[id].visits for id in ("b2", "b", ROOT)] == [1, 3, 5]
    assert tree.low == 0.1
    assert values(tree, ROOT) == near(a=0.8822073891299382, b=1.0534238899465436)


def test_judgements_count_by_softmax_over_siblings(first_layer):
    judged = with_verify(first_layer, a=0.5, b=-0.5)
    # the softmax of 0.5 and -0.5 is 0.7310585786300049 and 0.2689414213699951
    assert values(judged, ROOT) == near(a=0.9584671203781602, b=1.7736202574741564)
    # a missing judgement is 0: the same difference
    shifted = with_verify(first_layer, a=1.0)
    assert values(shifted, ROOT) == near(a=0.9584671203781602, b=1.7736202574741564)
    assert values(judged, ROOT, 0.0) == near(a=0.0, b=1.0)


def test_equal_scores_leave_exploration_alone(result):
    tree = Tree().grow(ROOT, [result("a", -3.0), result("b", -3.0)], 16).backup(ROOT, ETA)
    assert values(tree, ROOT, 0.0) == near(a=0.0, b=0.0)
    assert tree.walk(0.4) == "a", "the first born of equals"


def test_negative_scores_are_normalised_from_the_real_lowest(result):
    tree = Tree().grow(ROOT, [result("a", -30.0), result("b", -20.0), result("f", None)], 16).backup(ROOT, ETA)
    assert (tree.low, tree.high) == (-30.0, -20.0)
    assert values(tree, ROOT, 0.0) == near(a=0.0, b=1.0)


def test_a_failed_program_is_a_visit_and_nothing_else(expanded):
    assert "b3" not in values(expanded, "b") and "c" not in values(expanded, ROOT)
    assert expanded.branches == {"a": ("a",), "b": ("b", "b1", "b2")}
    with pytest.raises(ValueError, match="no score"):
        expanded.result("b3")


def test_a_node_whose_children_all_failed_keeps_its_value_and_stays_a_leaf(first_layer, result):
    tree = first_layer.grow("b", [result(f"x{k}", None) for k in range(8)], 16).backup("b", ETA)
    assert tree.nodes["b"].q == 0.6 and tree.nodes["b"].visits == 8 and not tree.nodes["b"].closed
    assert tree.walk(0.0) == "b"
    assert {leaf.id for leaf in tree.open_leaves()} == {"a"}, "expanded least often first"


def test_the_deepest_nodes_are_not_expanded(first_layer, result):
    tree = first_layer.grow("b", [result("b1", 0.9), result("b2", 0.8)], 2).backup("b", ETA)
    assert tree.nodes["b1"].closed and tree.nodes["b"].closed and not tree.nodes[ROOT].closed
    assert tree.walk(0.0) == "a", "the closed subtree is skipped though it is better"
    tree = tree.grow("a", [result("a1", 0.1)], 2).backup("a", ETA)
    assert tree.nodes[ROOT].closed and tree.walk(LAMBDA) is None and tree.open_leaves() == []


def test_trees_are_not_changed_by_what_is_made_of_them(first_layer, result):
    before = dict(first_layer.nodes)
    first_layer.grow("a", [result("a1", 0.9)], 16).backup("a", ETA)
    assert dict(first_layer.nodes) == before and first_layer.high == 0.6
    with pytest.raises(TypeError):
        first_layer.nodes["a"] = before["b"]
