"""The bandit over operators and models."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.search import Draft, make_strategy
from jaxreward.search.bandit import CHEAPEST, EXPLORATION, FROM_MORE, FROM_ONE, Arm, Arms, Bandit
from tests.search.conftest import RETURN

NOBODY = Counter()


def test_the_index_is_gain_and_bound_over_cost():
    arms = Arms({"a": Arm(4, 2.0, usd=4.0), "b": Arm(12, 3.0, usd=36.0)}, largest=2.0)
    # mean gains 0.5 and 0.25, divided by 2; mean costs 1 and 3, relative to 2: 0.5 and 1.5; ln 16
    bounds = [EXPLORATION * np.sqrt(2 * np.log(16) / n) for n in (4, 12)]
    expected = [(0.25 + bounds[0]) / 0.5, (0.125 + bounds[1]) / 1.5]
    np.testing.assert_allclose(arms.indices(["a", "b"], NOBODY), expected, atol=1e-12)
    waiting = arms.indices(["a", "b"], {"a": 4})
    bounds = [EXPLORATION * np.sqrt(2 * np.log(20) / n) for n in (8, 12)]
    np.testing.assert_allclose(waiting, [(0.25 + bounds[0]) / 0.5, (0.125 + bounds[1]) / 1.5], atol=1e-12)


def test_what_was_never_tried_comes_first():
    arms = Arms({"a": Arm(1, 100.0)}, largest=100.0)
    assert arms.indices(["a", "b"], NOBODY)[1] == np.inf
    assert arms.best(["a", "b"], NOBODY, np.random.default_rng(0)) == "b"


@pytest.mark.parametrize(
    ("one", "two", "ratio"),
    [
        (Arm(2, usd=2.0, tokens=900), Arm(2, usd=6.0, tokens=10), 3.0),  # dollars before tokens
        (Arm(2, tokens=100), Arm(2, tokens=500), 5.0),
        (Arm(2), Arm(2), 1.0),
        (Arm(2), Arm(2, usd=1.0), 2.0 / CHEAPEST),  # what is free still has to be trained
    ],
)
def test_an_index_is_divided_by_the_cost_of_its_arm(one, two, ratio):
    indices = Arms({"one": one, "two": two}).indices(["one", "two"], NOBODY)
    assert indices[0] / indices[1] == pytest.approx(ratio)


def test_gains_are_reckoned_from_the_first_parent(result):
    results = [
        result("a", 0.2), result("b", 0.6),
        result("c", 0.5, operator="improve", parents=("a",), tokens=7),
        result("d", 0.5, operator="crossover", parents=("b", "a"), cost_usd=0.25),
        result("e", None, operator="improve", parents=("a",), tokens=5),
        result("f", 0.9, operator="improve", parents=("c",)),
    ]  # fmt: skip
    arms = Bandit().updated(results).operators
    improve = arms.arms["improve"]
    assert (improve.pulls, improve.tokens) == (3, 12) and improve.gain == pytest.approx(0.3 + 0.0 + 0.4)
    assert arms.arms["crossover"] == Arm(1, 0.0, usd=0.25)
    assert arms.largest == pytest.approx(0.4) and set(arms.arms) == {"improve", "crossover"}


def test_of_what_is_no_rate_the_gain_is_how_many_are_passed(result):
    """One program that diverged, and what made it good again, do not make all other gains vanish."""
    score = {"a": -10.0, "b": -1e4, "c": -9.5, "d": -9.0, "e": -9.2}
    parents = {"b": "a", "c": "b", "d": "c", "e": "d"}
    results = [
        result(name, mean, measure=RETURN, operator=f"by-{name}", parents=(parents[name],) if name in parents else ())
        for name, mean in score.items()
    ]
    arms = Bandit().updated(results).operators.arms
    # c passes a and itself of three known; d itself of four; b and e nothing
    assert [arms[f"by-{name}"].gain for name in "bcde"] == pytest.approx([0.0, 2 / 3, 1 / 4, 0.0])


def test_models_are_also_judged_by_programs_from_nothing(result):
    results = [
        result("a", 0.2, model="x"), result("b", 0.6, model="y"), result("c", None, model="x", tokens=3),
        result("d", 0.5, model="y"), result("e", 0.9, model="y", operator="improve", parents=("b",)),
    ]  # fmt: skip
    bandit = Bandit().updated(results)
    # b: 0.6 - 0.2; d: 0.5 - mean(0.2, 0.6); e: 0.9 - 0.6 of its parent
    assert bandit.models.arms["x"] == Arm(2, 0.0, tokens=3)
    assert bandit.models.arms["y"].gain == pytest.approx(0.4 + 0.1 + 0.3)
    assert (bandit.founders, bandit.founded) == (3, pytest.approx(1.3 / 3))


@pytest.mark.parametrize(("cost", "gain"), [({"a": 1.0, "b": 1.0}, {"a": 0.1, "b": 0.5}),
                                            ({"a": 1.0, "b": 0.2}, {"a": 0.4, "b": 0.3})])  # fmt: skip
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_the_better_or_cheaper_arm_wins(result, cost, gain, scale):
    def play():
        rng, bandit, pulls = np.random.default_rng(0), Bandit(), Counter()
        bandit = bandit.updated([result("p", 0.0)])
        for k in range(400):
            name = bandit.models.best(["a", "b"], NOBODY, rng)
            pulls[name] += 1
            mean = scale * float(rng.random() < gain[name])
            made = result(f"c{k}", mean, operator="improve", parents=("p",), model=name, cost_usd=cost[name])
            bandit = bandit.updated([made])
        return pulls

    pulls = play()
    assert pulls["b"] > 2 * pulls["a"] > 0 and pulls == play()


def test_a_generation_is_spread_over_the_arms(result):
    drafts = [Draft("improve", parents=(result("a", 0.5),))] * 10
    asked = Bandit().assigned(drafts, (), frozenset(), np.random.default_rng(0))
    assert Counter(draft.operator for draft in asked) == dict.fromkeys(FROM_ONE, 2)


def test_an_operator_gives_way_only_to_those_that_its_parents_suffice_for(result):
    one, two = result("a", 0.5), result("b", 0.4)
    rng = np.random.default_rng(0)

    def asked(draft, declined=frozenset()):
        return Bandit().assigned([draft] * 60, (), declined, rng)

    assert {d.operator for d in asked(Draft("crossover", parents=(one, two)))} == {*FROM_ONE, *FROM_MORE}
    assert {d.operator for d in asked(Draft("path", parents=(one, two)))} == {*FROM_ONE, *FROM_MORE, "path"}
    for draft in asked(Draft("crossover", parents=(one, two))):
        assert draft.parents == ((one,) if draft.operator in FROM_ONE else (one, two))
    assert "term" not in {d.operator for d in asked(Draft("improve", parents=(one,)), frozenset({"term"}))}
    for draft in (Draft("scratch"), Draft("implement", plan=one), Draft("verify", parents=(one,)),
                  Draft("keep", parents=(one,))):  # fmt: skip
        assert asked(draft) == [draft] * 60


def test_remarks_on_parents_that_are_dropped_go_with_them(result):
    said = ("program 1, slow", "program 1, late", "program 2, wild")
    draft = Draft("crossover", parents=(result("a", 0.5), result("b", 0.4)), remarks=said)
    for asked in Bandit().assigned([draft] * 60, (), frozenset(), np.random.default_rng(0)):
        assert asked.remarks == (("slow", "late") if asked.operator in FROM_ONE else said)
    alone = Draft("improve", parents=(result("a", 0.5),), remarks=("slow",))
    assert {d.remarks for d in Bandit().assigned([alone] * 60, (), frozenset(), np.random.default_rng(0))} == {
        ("slow",)
    }


def test_models_are_chosen_for_programs_only(result):
    drafts = [Draft("scratch")] * 4 + [Draft("verify", parents=(result("a", 0.5),))]
    asked = Bandit().assigned(drafts, ("x", "y"), frozenset(), np.random.default_rng(0))
    assert sorted(draft.model for draft in asked) == ["", "x", "x", "y", "y"]
    alone = Bandit().assigned(drafts, ("x",), frozenset(), np.random.default_rng(0))
    assert {draft.model for draft in alone} == {""}, "one model is no choice"


@pytest.mark.parametrize("name", ["limen", "eureka", "revolve", "rf-agent", "forge", "best-of-n"])
def test_the_bandit_is_off_by_default(name, landscape):
    plain, off = landscape(), landscape()
    state = plain.search(make_strategy(name), 40, 4)
    assert off.search(make_strategy(name, bandit=False), 40, 4) == state and state.bandit is None
    assert off.requests == plain.requests
    on = landscape()
    bandit = on.search(make_strategy(name, bandit=True), 40, 4).bandit
    assert sum(arm.pulls for arm in bandit.operators.arms.values()) == sum(
        bool(r.candidate.parents) for r in on.results if r.candidate.operator not in ("align", "verify")
    )
    grown = {request.operator for request in on.requests if request.parents} - {"align", "verify"}
    assert grown >= set(FROM_ONE) or name == "best-of-n"
    assert (on.requests == plain.requests) == (name == "best-of-n")


def test_options_are_checked():
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("strategy.bandit", "strategy.models")):
        make_strategy("limen", models=("a", "b"))
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("strategy.bandit",)):
        make_strategy("limen", bandit="yes")
