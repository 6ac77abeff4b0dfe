"""LIMEN's choices, and that its islands and migration do something."""

from __future__ import annotations

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.records import Feedback
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import scored


def asked(strategy, state, n, seed=0):
    return strategy.ask(state, n, derive_rng(seed, "test"))


def test_the_first_generation_starts_from_scratch_on_all_islands():
    strategy = make_strategy("limen")
    requests = asked(strategy, strategy.init(), 6)
    assert {request.operator for request in requests} == {"scratch"}
    assert [request.island for request in requests] == [0, 1, 2, 0, 1, 2]


def test_islands_take_turns_in_generations_of_one(landscape):
    world = landscape()
    world.search(make_strategy("limen"), 9, 1)
    assert [request.island for request in world.requests] == [0, 1, 2] * 3


def test_parents_come_globally_by_fitness_or_locally_at_random(result):
    strategy = make_strategy("limen", initial=1, crossover=0.0, islands=2)
    far = result("far", 0.9, size=300, island=0)
    near, poor = result("near", 0.1, island=1), result("poor", 0.0, size=100, island=1)
    state = strategy.tell(strategy.init(), [far, near, poor])
    requests = [request for request in asked(strategy, state, 4000) if request.island == 1]
    share = {
        name: sum(request.parents[0].candidate.id == name for request in requests) / len(requests)
        for name in ("far", "near", "poor")
    }
    assert share["far"] == pytest.approx(0.7 * 0.9, abs=0.03)
    assert share["near"] == pytest.approx(0.7 * 0.1 + 0.3 * 0.5, abs=0.03)
    assert share["poor"] == pytest.approx(0.3 * 0.5, abs=0.03)


def test_an_island_without_elites_starts_its_own(result):
    strategy = make_strategy("limen", initial=1, global_share=0.0, islands=2)
    state = strategy.tell(strategy.init(), [result("a", 0.5, island=0)])
    requests = asked(strategy, state, 4)
    assert [request.operator for request in requests] == ["scratch" if r.island == 1 else "improve" for r in requests]


def test_parents_of_score_zero_are_still_drawn(result):
    strategy = make_strategy("limen", initial=1, islands=1, crossover=0.0)
    state = strategy.tell(strategy.init(), [result("a", 0.0, size=1), result("b", 0.0, size=100)])
    assert {request.parents[0].candidate.id for request in asked(strategy, state, 40)} == {"a", "b"}


@pytest.mark.parametrize(("crossover", "share"), [(0.0, 0.0), (0.3, 0.3), (1.0, 1.0)])
def test_crossover_has_its_share_and_two_parents(result, crossover, share):
    strategy = make_strategy("limen", initial=1, crossover=crossover)
    results = [result(f"c{k}", 0.1 * (k + 1), size=40 * k + 1, island=k % 3) for k in range(5)]
    requests = asked(strategy, strategy.tell(strategy.init(), results), 1000)
    crossed = [request for request in requests if request.operator == "crossover"]
    assert len(crossed) / 1000 == pytest.approx(share, abs=0.05)
    assert all(len({parent.candidate.id for parent in request.parents}) == 2 for request in crossed)
    assert all(len(request.parents) == 1 for request in requests if request.operator == "improve")


def test_a_single_elite_cannot_be_crossed(result):
    strategy = make_strategy("limen", initial=1, crossover=1.0, islands=1)
    state = strategy.tell(strategy.init(), [result("a", 0.5)])
    assert {request.operator for request in asked(strategy, state, 20)} == {"improve"}


def test_the_context_repeats_nothing_and_is_what_it_says(landscape):
    strategy, world = make_strategy("limen"), landscape()
    state = world.search(strategy, 60, 6)
    grid = state.memory.archive.grid
    for request in asked(strategy, state, 30):
        shown = [r.candidate.id for r in (*request.parents, *request.best, *request.diverse)]
        assert len(set(shown)) == len(shown)
        assert len(request.best) == 3 and len(request.diverse) == 2 and len(request.failures) == 2
        means = [scored(r).mean for r in request.best]
        assert means == sorted(means, reverse=True)
        assert all(grid.cell(r) != grid.cell(request.parents[0]) for r in request.diverse)
        assert all(r.failure is not None for r in request.failures)


@pytest.mark.parametrize("batch", [1, 4, 5, 6, 7, 8, 9, 10])
def test_a_run_of_thirty_migrates(landscape, batch):
    state = landscape().search(make_strategy("limen"), 30, batch)
    assert state.memory.migrations >= 2
    homes = [{r.candidate.id for r in island.values()} for island in state.memory.archive.islands]
    assert any(homes[k] & homes[(k + 1) % 3] for k in range(3)), "somebody lives on two islands"


@pytest.mark.parametrize("batch", [1, 6])
def test_migration_and_islands_change_the_search(landscape, batch):
    changed_by_migration = changed_by_islands = 0
    for seed in range(5):
        runs = {}
        for name, options in {"on": {}, "off": {"migration_interval": 0}, "one": {"islands": 1}}.items():
            world = landscape()
            state = world.search(make_strategy("limen", initial=1, **options), 30, batch, seed)
            runs[name] = [r.candidate.source for r in world.results]
            assert (state.memory.migrations > 0) == (name == "on")
        changed_by_migration += runs["on"] != runs["off"]
        changed_by_islands += runs["on"] != runs["one"]
    assert changed_by_migration >= 4 and changed_by_islands >= 4


def test_without_migration_islands_share_no_elite(landscape):
    state = landscape().search(make_strategy("limen", initial=1, migration_interval=0), 60, 6)
    homes = [{r.candidate.id for r in island.values()} for island in state.memory.archive.islands]
    assert all(homes) and not (homes[0] & homes[1] or homes[1] & homes[2] or homes[0] & homes[2])
    for k, island in enumerate(state.memory.archive.islands):
        assert {r.candidate.island for r in island.values()} == {k}


@pytest.mark.parametrize("formula", ["bumpy", "narrow"])
def test_the_archive_stays_diverse(landscape, formula):
    for seed in range(5):
        stats = landscape(formula).search(make_strategy("limen"), 60, 6, seed).memory.archive.stats()
        assert stats.occupied >= 12 and min(stats.elites) >= 4


def test_evolution_climbs_a_peak_that_samples_miss(landscape):
    found = {}
    for name in ("limen", "best-of-n"):
        strategy = make_strategy(name)
        states = [landscape("narrow").search(strategy, 60, 6, seed) for seed in range(20)]
        found[name] = np.mean([state.best.score.mean for state in states])
    assert found["limen"] > found["best-of-n"] + 0.1


def test_initial_candidates_start_from_scratch(landscape):
    world = landscape("narrow")
    world.search(make_strategy("limen", initial=9), 20, 3)
    assert [request.operator == "scratch" for request in world.requests[:9]] == [True] * 9
    assert sum(request.operator == "scratch" for request in world.requests[9:]) <= 3


@pytest.mark.long
def test_an_initial_pool_keeps_a_short_search_out_of_traps(landscape):
    found = {}
    for name, options in {"best-of-n": {}, "limen": {"initial": 1}, "limen ": {"initial": 10}}.items():
        strategy = make_strategy(name.strip(), **options)
        best = [landscape("plateau", 8).search(strategy, 30, 1, seed).best for seed in range(40)]
        found[name] = np.mean([result.score.mean if result else 0.0 for result in best])
    assert found["limen "] > found["limen"] + 0.1
    assert found["limen "] > found["best-of-n"] - 0.03


@pytest.mark.parametrize(("patience", "restarts", "fresh"), [(2, 0.2, 2), (2, 1.0, 8), (2, 0.0, 0), (0, 0.2, 0)])
def test_a_share_starts_afresh_once_the_best_no_longer_changes(result, patience, restarts, fresh):
    strategy = make_strategy("limen", initial=1, patience=patience, restarts=restarts)
    state = strategy.tell(strategy.init(), [result(f"a{k}", 0.5, island=k) for k in range(3)])
    counts = []
    for k in range(4):
        requests = asked(strategy, state, 8)
        counts.append(sum(request.operator == "scratch" for request in requests))
        assert [request.island for request in requests] == [(state.num_results + i) % 3 for i in range(8)]
        state = strategy.tell(state, [result(f"b{k}", 0.1, operator="improve", parents=("a0",))])
    assert counts == [0, 0, fresh, fresh], "after two generations without a better program"
    state = strategy.tell(state, [result("c", 0.9, generation=5, operator="improve", parents=("a0",))])
    assert all(request.operator != "scratch" for request in asked(strategy, state, 8))


@pytest.mark.parametrize(("fresh", "least", "most"), [(0.0, 0, 0), (0.5, 170, 230), (1.0, 400, 400)])
def test_a_share_is_new_at_any_time(result, fresh, least, most):
    strategy = make_strategy("limen", initial=1, fresh=fresh)
    state = strategy.tell(strategy.init(), [result(f"a{k}", 0.5, island=k) for k in range(3)])
    requests = asked(strategy, state, 400)
    assert least <= sum(request.operator == "scratch" for request in requests) <= most
    assert [request.island for request in requests[:6]] == [(state.num_results + i) % 3 for i in range(6)]


def test_by_behaviour_programs_of_one_structure_are_kept_apart(result):
    strategy = make_strategy("limen", initial=1, islands=1, descriptors="behaviour", crossover=0.0)
    long, short = (result(name, 0.5, feedback=Feedback(length=(n,))) for name, n in (("long", 80.0), ("short", 9.0)))
    state = strategy.tell(strategy.init(), [long, short])
    assert {request.parents[0].candidate.id for request in asked(strategy, state, 40)} == {"long", "short"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"restarts": 0.5}, "restarts once its patience is over: set patience too"),
        ({"descriptors": "behaviour", "reward_max": 10}, "reward_max for descriptors of structure alone"),
    ],
)
def test_options_without_effect_are_refused(options, says):
    with pytest.raises(InvalidSetting, match=says):
        make_strategy("limen", **options)
