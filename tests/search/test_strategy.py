"""What every strategy keeps alike, and how strategies are made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest

from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.search import STRATEGIES, Draft, SearchStrategy, make_strategy
from jaxreward.search.best_of_n import BestOfN
from jaxreward.search.seeding import derive_rng
from jaxreward.search.strategy import MAX_FAILURES
from jaxreward.search.strategy_options import (
    require_choice,
    require_flag,
    require_integer,
    require_number,
    require_share,
)

ALL = sorted(STRATEGIES)


def ask(strategy, state, n, seed=0):
    return strategy.ask(state, n, derive_rng(seed, "ask", state.generation))


@pytest.mark.parametrize("name", ALL)
def test_asking_is_pure(name, landscape):
    strategy = make_strategy(name)
    state = landscape().search(strategy, 12, 4)
    assert ask(strategy, state, 5) == ask(strategy, state, 5)
    requests = ask(strategy, state, 3)
    assert [request.id for request in requests] == [f"g{state.generation:04d}-{k:02d}" for k in range(len(requests))]


@pytest.mark.parametrize("name", ALL)
def test_telling_the_same_results_again_gives_the_same_state(name, landscape):
    strategy, world = make_strategy(name), landscape()
    final = world.search(strategy, 30, 4, seed=5)
    state = strategy.init()
    for results in world.generations:
        state = strategy.tell(state, results)
    assert state == final
    assert ask(strategy, state, 4) == ask(strategy, final, 4)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("evolve", ["both", "observation", "reward"])
def test_the_ablation_is_on_every_request(name, evolve, landscape):
    if (name, evolve) == ("rda", "observation"):
        pytest.skip("it designs rewards")
    world = landscape()
    world.search(make_strategy(name, evolve=evolve), 10, 5)
    assert {request.evolve for request in world.requests} == {evolve}


@pytest.mark.parametrize("name", ALL)
def test_failures_and_nan_never_become_best_or_parents(name, result):
    strategy = make_strategy(name)
    results = [
        result("nan", math.nan),
        result("inf", math.inf),
        result("both", 0.9).model_copy(update={"failure": result("x", None).failure}),
        result("neither", 0.9).model_copy(update={"score": None}),
        result("guard", None),
        result("filtered", None, stage="filtered"),
        result("double", None, stage="duplicate"),
    ]
    state = strategy.tell(strategy.init(), results)
    assert strategy.best(state) is None
    assert (state.counts.trained, state.counts.failed, state.counts.duplicate) == (4, 2, 1)
    assert all(failure.score is None and failure.failure is not None for failure in state.failures)
    assert "double" not in {failure.candidate.id for failure in state.failures}
    assert all(
        request.operator in ("scratch", "plan", "divide") and not request.parents for request in ask(strategy, state, 9)
    )
    after = strategy.tell(state, [result("good", 0.0)])
    best = strategy.best(after)
    assert best is not None and best.candidate.id == "good"


def test_recent_failures_come_newest_first_and_are_bounded(result):
    strategy = make_strategy("limen")
    state = strategy.init()
    for k in range(MAX_FAILURES + 3):
        state = strategy.tell(state, [result(f"f{k}", None), result(f"empty{k}", None, source="")])
    names = [failure.candidate.id for failure in state.failures]
    assert names == [f"f{k}" for k in range(MAX_FAILURES + 2, 2, -1)]


def test_best_keeps_the_first_of_equals(result):
    strategy = make_strategy("best-of-n")
    state = strategy.tell(strategy.init(), [result("a", 0.5), result("b", 0.5)])
    best = strategy.best(strategy.tell(state, [result("c", 0.5)]))
    assert best is not None and best.candidate.id == "a"


def test_best_of_n_shows_nothing(landscape):
    world = landscape()
    world.search(make_strategy("best-of-n"), 20, 6)
    assert {request.operator for request in world.requests} == {"scratch"}
    assert not any((*r.parents, *r.best, *r.diverse, *r.failures) for r in world.requests)


@pytest.mark.parametrize(
    ("name", "options", "kind", "nearest"),
    [
        ("limn", {}, "strategy", "limen"),
        ("zzz", {}, "strategy", None),
        ("limen", {"island": 2}, "option of strategy limen", "islands"),
        ("best-of-n", {"islands": 3}, "option of strategy best-of-n", None),
    ],
)
def test_an_unknown_name_comes_with_the_nearest(name, options, kind, nearest):
    with pytest.raises(UnknownName) as raised:
        make_strategy(name, **options)
    error = raised.value
    assert (error.kind, error.name, error.nearest) == (kind, next(iter(options), name), nearest)
    assert kind != "strategy" or error.known == (
        "best-of-n",
        "eureka",
        "forge",
        "grace",
        "limen",
        "rda",
        "revolve",
        "rf-agent",
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("islands", 0),
        ("islands", 2.5),
        ("global_share", 1.5),
        ("crossover", float("nan")),
        ("evolve", "neither"),
    ],
)
def test_options_are_checked(option, value):
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == (f"strategy.{option}",)):
        make_strategy("limen", **{option: value})


@pytest.mark.parametrize(
    ("check", "remedy"),
    [
        (lambda: require_integer("s", "o", 2.5, 1), "give a whole number of at least 1."),
        (lambda: require_share("s", "o", 1.5), "give a number from 0 to 1."),
        (lambda: require_number("s", "o", -1.0), "give a number of at least 0."),
        (lambda: require_number("s", "o", 0, above=True), "give a number greater than 0."),
        (lambda: require_choice("s", "o", "c", ("a", "b")), "choose one of a, b."),
        (lambda: require_flag("s", "o", "yes"), "give true or false."),
    ],
)
def test_the_sentence_about_an_option_ends_with_the_remedy(check, remedy):
    with pytest.raises(InvalidSetting, match=rf"^Option o of strategy s is .*: {remedy}$"):
        check()


@dataclass(frozen=True)
class Chatty(SearchStrategy[None]):
    name: ClassVar[str] = "chatty"

    def _validate(self):
        pass

    def _init(self):
        pass

    def _ask(self, state, n, rng):
        return [Draft("scratch")] * (n + 1)

    def _tell(self, state, results):
        pass


def test_a_strategy_cannot_ask_for_more_than_it_may():
    with pytest.raises(ValueError, match="chatty drafted 3 requests, 3 of them for programs, where 1 to 2"):
        ask(Chatty(), Chatty().init(), 2)
    with pytest.raises(ValueError, match="at least one"):
        ask(make_strategy("limen"), make_strategy("limen").init(), 0)


def test_the_old_hook_for_words_still_works(result):
    """`_hear` and `state.told` are names of earlier versions."""

    class Old(BestOfN):
        def _hear(self, state, results):
            return len(results)

    strategy = Old()
    state = strategy.tell(strategy.init(), [result("a", None, operator="plan", words="- reach")])
    assert state.memory == 1 and state.told == state.num_results == 0
