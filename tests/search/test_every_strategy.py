"""Every strategy in situations that are rare and must not matter."""

from __future__ import annotations

import time

import pytest

from jaxreward.operators import OPERATORS, PLANNED, WORDS
from jaxreward.records import Failure, Result
from jaxreward.search import STRATEGIES, make_strategy
from jaxreward.search.seeding import derive_rng

VARIANTS = [
    *((name, {}) for name in sorted(STRATEGIES)),
    ("eureka", {"carry": "iteration"}),
    ("revolve", {"fitness": "preference"}),
    ("revolve", {"islands": 1, "initial": 0}),
    *(("rf-agent", {"search": search}) for search in ("dfs", "bfs", "greedy")),
    ("rf-agent", {"counts": (0, 0, 8, 0, 0), "max_depth": 3}),
    ("grace", {"population": 4, "generations": 2, "expansions": 2, "shaping_generations": 1, "replacement": "elite"}),
    *((name, {"bandit": True, "models": ("one", "two")}) for name in sorted(STRATEGIES) if name != "rda"),
    *((name, {"ablations": 2}) for name in sorted(STRATEGIES) if STRATEGIES[name].ablates),
]
SITUATIONS = {
    "usual": {},
    "words": {"words": True},
    "nothing works": {"formula": "nowhere"},
    "all are equal and zero": {"formula": "level"},
    "negative scores": {"formula": "depths", "words": True},
    "repairs": {"repairs": True, "words": True},
    "withdrawals": {"withdrawn": 0.4, "words": True, "repairs": True},
}

every_variant = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
in_any_situation = pytest.mark.parametrize("situation", list(SITUATIONS))


def told_again(strategy, generations):
    state = strategy.init()
    for results in generations:
        state = strategy.tell(state, results)
    return state


@every_variant
@in_any_situation
@pytest.mark.parametrize("batch", [1, 20])
def test_a_search_runs_and_is_pure(name, options, situation, batch, landscape):
    strategy, world = make_strategy(name, budget=26, **options), landscape(**SITUATIONS[situation])
    state = world.search(strategy, 26, batch, seed=3)
    again = told_again(strategy, world.generations)
    assert state == again, "the same results give the same state"
    first, second = (strategy.ask(state, batch, derive_rng(1, "ask")) for _ in range(2))
    assert first == second and state == again, "asking changes nothing"
    strategy.tell(state, world.answer(first, 9))
    assert state == again, "telling neither"
    for request in world.requests:
        assert len(request.parents) >= OPERATORS[request.operator].parents
        assert all(parent.score is not None for parent in request.parents), "failures are never parents"
        planned = PLANNED | {"revise"}
        assert request.operator not in planned or request.plan is not None
        assert request.plan is None or request.operator in planned | {"watch"}
        assert request.plan is None or request.plan.words
        if request.operator in ("implement", "compose") or not OPERATORS[request.operator].parents:
            assert not request.parents
        assert bool(request.model) == (bool(options.get("models")) and request.operator not in WORDS)
    best = strategy.best(state)
    assert (best is None) == (SITUATIONS[situation].get("formula") == "nowhere")


@every_variant
def test_declined_words_are_asked_for_once(name, options, landscape):
    world = landscape()
    state = world.search(make_strategy(name, **options), 60, 5)
    for operator in state.declined:
        assert len({request.generation for request in world.requests if request.operator == operator}) == 1


@every_variant
@pytest.mark.parametrize("operator", ["reflect", "term", "crossover", "structure", "implement"])
def test_a_declined_program_is_asked_for_in_another_way(name, options, operator, landscape):
    world = landscape(words=True)
    evaluate = world.evaluate

    def declining(request, rng):
        found = evaluate(request, rng)
        failure = Failure(stage="declined", message="unknown")
        return Result(candidate=found.candidate, failure=failure) if request.operator == operator else found

    world.evaluate = declining
    world.search(make_strategy(name, **options), 60, 5)
    assert len({request.generation for request in world.requests if request.operator == operator}) <= 1
    assert all(len(request.parents) == 1 for request in world.requests if request.operator == "improve")


@every_variant
def test_one_candidate_is_a_search(name, options, landscape):
    state = landscape("narrow", words=True).search(make_strategy(name, budget=1, **options), 1, 1)
    assert state.best is not None and state.counts.trained == 1


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_metrics_of_another_scale_search_alike(name, landscape):
    """Scores of -300 to 0 in place of 0 to 1: the same draws, unless the size of a rate itself means something."""
    means_zero = name in ("limen", "forge", "grace")
    runs = []
    for formula in ("bumpy", "depths"):
        world = landscape(formula)
        world.search(make_strategy(name, budget=60), 60, 6)
        runs.append([result.candidate.source for result in world.results])
    assert (runs[0] == runs[1]) != means_zero


@pytest.mark.long
@pytest.mark.parametrize("name", ["eureka", "revolve", "rf-agent", "forge", "grace"])
def test_thousands_of_candidates_take_seconds(name, landscape):
    began = time.process_time()
    landscape("plateau", 8, words=True).search(make_strategy(name, budget=2000), 2000, 8)
    assert time.process_time() - began < 10.0


@pytest.mark.parametrize("name", ["eureka", "revolve", "rf-agent", "forge", "grace"])
def test_every_strategy_evolves_the_reward_by_default(name):
    assert STRATEGIES[name].natural == "reward"
