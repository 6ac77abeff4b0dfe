"""GRACE: who is drawn, who stays, and how the data are expanded."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.records import Failure, Feedback, ProgramSummary
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng


def ask(strategy, state, n, seed=0):
    return strategy.ask(state, n, derive_rng(seed, "ask", state.generation))


def told(strategy, state, results):
    return strategy.tell(state, results)


def names(state):
    return [member.candidate.id for member in state.memory.population]


@pytest.fixture
def founded(result):
    """A strategy of these options and its state after four founders of fitness -3 to 0."""

    def make(**options):
        strategy = make_strategy("grace", population=4, **{"reserve": 0, **options})
        founders = [result(id, mean) for id, mean in (("a", -3.0), ("b", -2.0), ("c", -1.0), ("d", 0.0))]
        return strategy, told(strategy, strategy.init(), founders)

    return make


def test_the_first_of_the_population_start_from_scratch(result, founded):
    strategy = make_strategy("grace", population=4)
    state = told(strategy, strategy.init(), [result("a", -3.0), result("b", None)])
    assert {request.operator for request in ask(strategy, state, 3)} == {"scratch"}
    strategy, state = founded()
    assert {request.operator for request in ask(strategy, state, 3)} == {"improve"}


def test_parents_are_drawn_by_softmax_of_fitness(founded):
    strategy, state = founded()
    drawn = Counter(request.parents[0].candidate.id for request in ask(strategy, state, 4000))
    weights = np.exp([-3.0, -2.0, -1.0, 0.0])
    expected = dict(zip("abcd", 4000 * weights / weights.sum(), strict=True))
    assert all(abs(drawn[id] - n) < 4 * np.sqrt(n) for id, n in expected.items())
    strategy, state = founded(temperature=0.01)
    assert {request.parents[0].candidate.id for request in ask(strategy, state, 50)} == {"d"}


def test_requests_choose_examples_by_the_chances(founded):
    strategy, state = founded()
    choices = [request.examples for request in ask(strategy, state, 4000)]
    for field, chance in (("trajectory", 0.25), ("only_wrong", 0.5), ("only_expert", 0.75)):
        assert abs(np.mean([getattr(choice, field) for choice in choices]) - chance) < 0.03
    strategy, state = founded(trajectory_chance=0.0, wrong_chance=1.0, expert_chance=1.0)
    (request,) = ask(strategy, state, 1)
    assert request.examples.only_wrong and request.examples.only_expert and not request.examples.trajectory


def test_the_best_of_old_and_new_stay(result, founded):
    strategy, state = founded()
    children = [result(id, mean, parents=("a",)) for id, mean in (("e", -0.5), ("f", -2.5))]
    assert names(told(strategy, state, children)) == ["d", "e", "c", "b"]


def test_with_an_elite_the_new_take_the_other_places(result, founded):
    strategy, state = founded(replacement="elite", elite=1)
    children = [result(id, mean, parents=("a",)) for id, mean in (("e", -9.0), ("f", -8.0), ("g", None))]
    assert names(told(strategy, state, children)) == ["d", "c", "f", "e"]


def expand(result, words="2 episodes", id="x"):
    failure = None if words else Failure(stage="declined", message="no")
    extra = {"words": words} if words else {"stage": "declined"}
    return result(id, None, operator="expand", parents=("d",), **extra).model_copy(update={"failure": failure})


def kept(result, parent, mean, accuracy=0.5):
    """A program scored again; it is still the same."""
    feedback, text = Feedback(extra_metrics={"accuracy": accuracy}), f"# {parent.replace('-again', '')}"
    return result(f"{parent}-again", mean, operator="keep", parents=(parent,), feedback=feedback, source=text)


def test_after_a_round_the_data_are_expanded_and_everyone_is_scored_again(result, founded):
    strategy, state = founded(generations=1, expansions=1, confirmations=0)
    state = told(strategy, state, [result(f"child{k}", -5.0, parents=("a",)) for k in range(4)])
    (request,) = ask(strategy, state, 3)
    assert request.operator == "expand" and [p.candidate.id for p in request.parents] == ["d"]
    assert not strategy.finished(state)
    state = told(strategy, state, [expand(result)])
    asked = ask(strategy, state, 3)
    assert [(r.operator, r.parents[0].candidate.id) for r in asked] == [("keep", id) for id in "dcba"], "all at once"
    again = {"d": -4.0, "c": -1.5, "b": None, "a": -2.0}
    state = told(strategy, state, [kept(result, id, mean) for id, mean in again.items()])
    assert strategy.best(state).candidate.id == "c-again"
    assert names(state) == ["c-again", "a-again", "d-again"]
    assert {request.operator for request in ask(strategy, state, 2)} == {"improve"} and not strategy.finished(state)
    state = told(strategy, state, [result(f"late{k}", -5.0, parents=("a-again",)) for k in range(4)])
    assert "1 generations are complete" in strategy.finished(state)


def test_without_generations_the_rounds_share_the_budget(result, founded):
    """The founders are of the first, a generation ends with its round, and none is left out."""
    strategy, state = founded(expansions=2, budget=18, confirmations=0)
    for round, children in (("e", 2), ("f", 6)):
        assert [request.operator for request in ask(strategy, state, 8)] == ["improve"] * children
        state = told(strategy, state, [result(f"{round}{k}", -5.0, parents=("a",)) for k in range(children)])
        assert [request.operator for request in ask(strategy, state, 3)] == ["expand"]
        state = told(strategy, state, [expand(result)])
        asked = [request.parents[0].candidate.id for request in ask(strategy, state, 4)]
        state = told(strategy, state, [kept(result, id, -1.0, accuracy=1.0) for id in asked])
    assert [request.operator for request in ask(strategy, state, 8)] == ["improve"] * 8
    state = told(strategy, state, [result(f"g{k}", -5.0, parents=("a",)) for k in range(6)])
    assert {request.operator for request in ask(strategy, state, 3)} == {"improve"} and not strategy.finished(state)


@pytest.mark.parametrize(
    ("budget", "founders", "children"), [(5, 2, 0), (8, 2, 1), (12, 3, 1), (18, 4, 2), (40, 4, 10)]
)
def test_a_search_of_few_candidates_begins_its_first_round_with_fewer(result, budget, founders, children):
    strategy = make_strategy("grace", population=4, expansions=2, budget=budget)
    state = strategy.init()
    assert [request.operator for request in ask(strategy, state, 3)] == ["scratch"] * min(3, founders)
    state = told(strategy, state, [result(f"a{k}", -1.0) for k in range(founders)])
    asked = [request.operator for request in ask(strategy, state, 20)]
    assert asked == (["improve"] * children or ["expand"])


def test_without_a_known_budget_data_are_never_expanded(result, founded):
    strategy, state = founded(expansions=2)
    assert {request.operator for request in ask(strategy, state, 3)} == {"improve"}, "no budget is known"


def test_a_reward_that_fits_the_new_data_is_not_changed(result, founded):
    strategy, state = founded(generations=1, expansions=2, enough=0.9, confirmations=0)
    state = told(strategy, state, [result(f"child{k}", -5.0, parents=("a",)) for k in range(4)])
    state = told(strategy, state, [expand(result)])
    state = told(strategy, state, [kept(result, id, -1.0, accuracy=0.95) for id in "abcd"])
    assert [request.operator for request in ask(strategy, state, 4)] == ["expand"]
    state = told(strategy, state, [expand(result)])
    state = told(strategy, state, [kept(result, f"{id}-again", -1.0, accuracy=0.95) for id in "abcd"])
    assert strategy.finished(state)


def test_where_nothing_can_expand_the_data_the_search_goes_on_without(result, founded):
    strategy, state = founded(generations=1, expansions=1)
    state = told(strategy, state, [result(f"child{k}", -5.0, parents=("a",)) for k in range(4)])
    state = told(strategy, state, [expand(result, words="")])
    assert names(state)[0] == "d" and {request.operator for request in ask(strategy, state, 2)} == {"improve"}


def test_the_last_generations_ask_for_a_growing_reward(result, founded):
    strategy, state = founded(generations=2, shaping_generations=1)
    assert {request.operator for request in ask(strategy, state, 4)} == {"improve"}
    state = told(strategy, state, [result(f"child{k}", -5.0, parents=("a",)) for k in range(4)])
    requests = ask(strategy, state, 4)
    assert {request.operator for request in requests} == {"shape"}
    assert all(request.examples.trajectory for request in requests)


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"elite": 30, "replacement": "elite"}, "elite"),
        ({"shaping_generations": 1}, "shaping_generations"),
        ({"shaping_generations": 3, "generations": 2}, "shaping_generations"),
        ({"temperature": 0.0}, "temperature"),
        ({"wrong_chance": 1.5}, "wrong_chance"),
        ({"replacement": "none"}, "replacement"),
    ],
)
def test_options_are_checked(options, setting):
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == (f"strategy.{setting}",)):
        make_strategy("grace", **options)


# ---- confirmation: the best is to be a reward whose policy was watched


def source(found, text):
    """The result with a program of this text."""
    return found.model_copy(update={"candidate": found.candidate.model_copy(update={"source": text})})


def again(result, strategy, state, fitness):
    """The state after everyone was scored again, `fitness` by source."""
    parents = [request.parents[0].candidate for request in ask(strategy, state, 3)]
    return told(
        strategy, state, [source(kept(result, p.id, fitness.get(p.source, -8.0)), p.source) for p in parents]
    )  # fmt: skip


@pytest.fixture
def over(result):
    """A strategy of these options, and its state when it has trained all candidates, `late` the best."""

    def make(**options):
        strategy = make_strategy("grace", population=2, expansions=1, budget=4, **options)
        state = strategy.tell(strategy.init(), [source(result("a", -2.0), "early"), result("b", -3.0)])
        state = strategy.tell(state, [expand(result)])
        state = again(result, strategy, state, {"early": -2.0})
        assert not strategy.unsettled(state)
        return strategy, strategy.tell(state, [source(result("c", -1.0), "late"), result("d", -9.0)])

    return make


def test_a_reward_whose_policy_pays_for_new_states_is_not_the_best(result, over):
    strategy, state = over()
    assert strategy.best(state).candidate.source == "late" and strategy.unsettled(state)
    (request,) = ask(strategy, state, 1)
    assert request.operator == "expand" and request.parents[0].candidate.source == "late"
    state = strategy.tell(state, [expand(result)])
    assert strategy.unsettled(state), "they wait to be scored again"
    state = again(result, strategy, state, {"late": -5.0, "early": -2.5})
    assert strategy.best(state).candidate.source == "early"
    assert not strategy.unsettled(state), "the policy of the earlier one was watched in the first round"


def test_confirmation_ends_with_its_number_of_times(result, over):
    strategy, state = over(confirmations=0)
    assert not strategy.unsettled(state)
    strategy, state = over(confirmations=1)
    state = strategy.tell(state, [expand(result)])
    state = again(result, strategy, state, {"late": -5.0, "early": -7.0})
    assert not strategy.unsettled(state) and strategy.best(state).candidate.source == "late"
    strategy, state = over()
    state = strategy.tell(state, [expand(result, words="")])
    assert not strategy.unsettled(state), "where data cannot be expanded nothing is"


def test_rounds_of_generations_end_with_a_confirmation(result, founded):
    strategy, state = founded(generations=1, expansions=1)
    state = told(strategy, state, [result(f"child{k}", -5.0, parents=("a",)) for k in range(4)])
    state = told(strategy, state, [expand(result)])
    state = told(strategy, state, [kept(result, id, -1.0) for id in "dcba"])
    better = source(result("better", 0.0, parents=("a-again",)), "better")
    state = told(strategy, state, [*[result(f"late{k}", -5.0, parents=("a-again",)) for k in range(3)], better])
    assert not strategy.finished(state) and strategy.unsettled(state)
    assert [request.operator for request in ask(strategy, state, 4)] == ["expand"]
    state = told(strategy, state, [expand(result)])
    assert not strategy.finished(state)
    state = again(result, strategy, state, {"better": 0.0})
    assert strategy.finished(state) and strategy.best(state).candidate.source == "better"


def told_apart(found, **fitness):
    """The result with its fitness on the episodes of each policy."""
    feedback = (found.feedback or Feedback()).model_copy(update={"told_apart": fitness})
    return found.model_copy(update={"feedback": feedback})


def test_of_whole_episodes_the_reward_is_the_best_whose_policy_is_nearest_to_the_expert(result, over):
    """One reward tells the policy of `late` from the expert, and none that of `early`."""
    strategy, state = over()
    first = next(iter(state.memory.watched)).expansion
    state = strategy.tell(state, [expand(result, id="second")])
    parents = [request.parents[0].candidate for request in ask(strategy, state, 3)]
    fitness, policies = {"early": -6.0, "late": -5.0}, {"early": {first: -1.3, "second": -0.2}}
    rest = {first: -1.2, "second": -1.3}
    state = strategy.tell(state, [
        told_apart(source(kept(result, p.id, fitness.get(p.source, -8.0)), p.source), **policies.get(p.source, rest))
        for p in parents
    ])  # fmt: skip
    assert not strategy.unsettled(state) and strategy.best(state).candidate.source == "early"
    assert strategy.best(state).score.mean == -6.0, "with its fitness on all data"


def test_of_a_reward_that_was_the_best_twice_both_policies_count(result):
    """One was near the expert by luck, and the other, of another training seed, was not."""
    strategy = make_strategy("grace", population=2, expansions=2, budget=4, confirmations=1)
    state = told(strategy, strategy.init(), [result("a", -1.0), result("b", -2.0)])
    state = told(strategy, state, [expand(result, id="first")])
    state = told(strategy, state, [kept(result, "a", -1.5), kept(result, "b", -2.5)])
    state = told(strategy, state, [result("c", -9.0, parents=("a-again",))])
    state = told(strategy, state, [expand(result, id="second")])
    state = told(
        strategy, state, [kept(result, "b-again", -1.5), kept(result, "a-again", -2.0), kept(result, "c", -9.0)]
    )
    state = told(strategy, state, [result("d", -9.0, parents=("b-again-again",))])
    (request,) = ask(strategy, state, 1)
    assert request.operator == "expand" and request.parents[0].candidate.source == "# b"
    state = told(strategy, state, [expand(result, id="third")])
    margins = {"first": -1.3, "second": -0.1, "third": -0.9}
    last = [request.parents[0].candidate for request in ask(strategy, state, 1)]
    state = told(strategy, state, [told_apart(kept(result, p.id, -3.0), **margins) for p in last])
    assert {w.expansion: w.reward.candidate.source for w in state.memory.watched} == {
        "first": "# a", "second": "# a", "third": "# b",
    }  # fmt: skip
    assert (best := strategy.best(state)) is not None
    assert best.candidate.source == "# b", "-0.9 on average, and a -0.7, though it has the -1.3"


def test_a_reward_whose_policy_was_seen_is_scored_on_all_data(result):
    """Though neither the population nor the reserve has a place for it any more."""
    strategy = make_strategy("grace", population=1, reserve=0, expansions=2, budget=6, confirmations=1)
    state = told(strategy, strategy.init(), [result("a", -1.0), result("b", -2.0)])
    state = told(strategy, state, [expand(result, id="first")])
    state = told(strategy, state, [told_apart(kept(result, "a", -3.0), first=-0.5)])
    state = told(strategy, state, [result("c", -0.5, parents=("a-again",)), result("d", -4.0, parents=("a-again",))])
    assert names(state) == ["c"]
    state = told(strategy, state, [expand(result, id="second")])
    assert [r.parents[0].candidate.source for r in ask(strategy, state, 1)] == ["# c", "# a"]
    state = told(strategy, state, [kept(result, "c", -0.7), kept(result, "a-again", -5.0)])
    watched = {w.expansion: w.reward.score.mean for w in state.memory.watched}
    assert names(state) == ["c-again"] and watched == {"first": -5.0, "second": -0.7}


def with_terms(found, *terms):
    summary = ProgramSummary(digest=found.candidate.id, observation_size=1, terms=terms, reward_nodes=1)
    return found.model_copy(update={"candidate": found.candidate.model_copy(update={"summary": summary})})


def test_new_data_give_what_was_left_behind_another_chance(result):
    """The best of every set of terms is scored again, though the population has no place for it."""
    strategy = make_strategy("grace", population=2, expansions=1, budget=8)
    members = (("a", -1.0, "faces"), ("b", -1.5, "faces"), ("c", -3.0, "opened"), ("d", -2.5, "opened"))
    state = told(strategy, strategy.init(), [with_terms(result(id, mean), term) for id, mean, term in members])
    assert names(state) == ["a", "b"]
    state = told(strategy, state, [expand(result)])
    asked = ask(strategy, state, 1)
    assert [r.parents[0].candidate.id for r in asked] == ["a", "b", "d", "c"]
    again = {"a": -4.0, "b": -4.5, "d": -2.0}
    state = told(strategy, state, [kept(result, id, mean) for id, mean in again.items()])
    assert names(state) == ["d-again", "a-again"]


def test_a_full_reserve_has_other_sets_of_terms_first(result):
    strategy = make_strategy("grace", population=1, expansions=1, budget=8, reserve=1)
    members = (("a", -1.0, "faces"), ("b", -1.5, "faces"), ("c", -3.0, "opened"))
    state = told(strategy, strategy.init(), [with_terms(result(id, mean), term) for id, mean, term in members])
    assert [member.candidate.id for member in state.memory.reserve] == ["c"]
