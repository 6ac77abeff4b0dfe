"""REvolve: Elo, acceptance, migration, and votes of people."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.records import Failure, Result
from jaxreward.search import make_strategy
from jaxreward.search.elo import expected, rated, read_preference
from jaxreward.search.islands import migrate, settle
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import scored


def score(result):
    return scored(result).mean


def ids(results):
    return [result.candidate.id for result in results]


def ask(strategy, state, n=4, seed=0):
    return strategy.ask(state, n, derive_rng(seed, "ask", state.generation))


def best_id(strategy, state):
    best = strategy.best(state)
    return None if best is None else best.candidate.id


@pytest.fixture
def island(result):
    """Founders of one island from different scores, named by them."""
    return lambda k, *means: tuple(result(f"i{k}:{mean}", mean, island=k) for mean in means)


# ---- Elo


def test_the_expected_share_follows_elo():
    assert expected(1500.0, 1500.0) == 0.5
    assert expected(1900.0, 1500.0) == pytest.approx(10 / 11, abs=1e-12)
    assert expected(1500.0, 1900.0) == pytest.approx(1 / 11, abs=1e-12)


def test_ratings_move_by_k_times_the_surprise():
    ratings = rated({}, "a", "b", "first")
    assert ratings == {"a": 1516.0, "b": 1484.0}
    ratings = rated(ratings, "c", "a", "first")
    # c was expected to win 1 / (1 + 10^(16/400)) = 0.4769904127...: it gains 32 * 0.5230095872...
    assert ratings["c"] == pytest.approx(1516.736306793522, abs=1e-9)
    assert ratings["c"] + ratings["a"] == pytest.approx(1500.0 + 1516.0, abs=1e-9)
    assert rated({"a": 1600.0, "b": 1600.0}, "a", "b", "equal") == {"a": 1600.0, "b": 1600.0}
    assert rated({}, "a", "b", "second") == {"a": 1484.0, "b": 1516.0}


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("first", ("first", "")),
        ("Second\nstumbles\n at the door", ("second", "stumbles at the door")),
        ("equal\n", ("equal", "")),
        ("neither", (None, "")),
        ("", (None, "")),
    ],
)
def test_answers_are_read(words, read):
    assert read_preference(words) == read


# ---- islands


def test_children_join_if_they_are_at_least_the_mean(island, result):
    islands = (island(0, 0.25, 0.75), island(1, 0.5))
    children = [
        result("below", 0.49, parents=("x",)), result("at", 0.5, parents=("x",)),
        result("also", 0.5, parents=("x",)), result("there", 0.4, parents=("x",), island=1),
    ]  # fmt: skip
    settled = settle(islands, children, score, 8)
    assert ids(settled[0]) == ["i0:0.25", "i0:0.75", "at", "also"], "the mean is that before the generation"
    assert ids(settled[1]) == ["i1:0.5"]
    reversed_too = settle(islands, children[::-1], score, 8)
    assert [set(ids(i)) for i in reversed_too] == [set(ids(i)) for i in settled]


def test_founders_join_and_an_empty_island_takes_all(island, result):
    settled = settle((island(0, 0.9), ()), [result("f", 0.1), result("c", -5.0, parents=("x",), island=1)], score, 8)
    assert [ids(i) for i in settled] == [["i0:0.9", "f"], ["c"]]


def test_the_worst_leaves_and_of_equals_the_oldest(island, result):
    child = [result("c", 0.6, parents=("x",)), result("d", 0.2)]
    assert ids(settle((island(0, 0.2, 0.5, 0.4),), child, score, 3)[0]) == ["i0:0.5", "i0:0.4", "c"]
    assert ids(settle((island(0, 0.5),), [result("c", 0.5, parents=("x",))], score, 1)[0]) == ["c"]


def test_a_migrant_leaves_its_home_and_no_best_one_migrates(island):
    islands = (island(0, 0.1, 0.2), island(1, 0.9, 0.3), island(2, 0.8, 0.85), island(3, 0.15))
    homes = Counter()
    for seed in range(200):
        moved = migrate(islands, score, np.random.default_rng(seed))
        everyone = [id for members in moved for id in ids(members)]
        assert len(everyone) == len(set(everyone)), "a migrant leaves its home"
        assert {"i1:0.9", "i2:0.85"} <= set(ids(moved[1]) + ids(moved[2])), "the best stay"
        assert ids(moved[0])[0] == "i0:0.2" and ids(moved[3])[0] == "i3:0.15", "the weaker half keeps its best"
        migrants = ids(moved[0])[1:] + ids(moved[3])[1:]
        assert sorted(migrants) == ["i1:0.3", "i2:0.8"], "each gets one that is not the best"
        homes[migrants[0]] += 1
    assert min(homes.values()) > 60, "from a random stronger island"
    assert [len(members) for members in islands] == [2, 2, 2, 1]


def test_no_program_migrates_if_no_island_can_spare_one(island):
    moved = migrate((island(0, 0.1, 0.05), island(1, 0.9)), score, np.random.default_rng(0))
    assert [ids(i) for i in moved] == [["i0:0.1"], ["i1:0.9"]]
    assert migrate((island(0, 0.1, 0.05),), score, np.random.default_rng(0))[0] == island(0, 0.1, 0.05)


# ---- the strategy


def test_founders_are_dealt_to_the_emptiest_islands(result):
    strategy = make_strategy("revolve")
    requests = ask(strategy, strategy.init(), 6)
    assert [(q.operator, q.island) for q in requests] == [("scratch", k) for k in (0, 1, 2, 3, 0, 1)]
    results = [result(q.id, None if q.island == 1 else 0.5, island=q.island) for q in requests]
    state = strategy.tell(strategy.init(), results)
    assert [(q.operator, q.island) for q in ask(strategy, state, 6)[:4]] == [("scratch", k) for k in (1, 1, 2, 3)]


def test_an_island_without_members_gets_a_founder_at_any_time(result):
    strategy = make_strategy("revolve", initial=0, islands=2)
    state = strategy.tell(strategy.init(), [result("a", 0.5, island=0)])
    requests = ask(strategy, state)
    assert [(q.operator, q.island) for q in requests] == [("scratch", 1)] + [("term", 0)] * 3


def settled(strategy, *islands):
    return strategy.tell(strategy.init(), [member for island in islands for member in island])


def test_islands_and_parents_are_drawn_by_softmax(island):
    strategy = make_strategy("revolve", initial=0, islands=2, temperature=0.5, crossover=0.0)
    requests = ask(strategy, settled(strategy, island(0, -10.0, -8.0), island(1, -6.0)), 6000)
    # mapped to [0, 1]: 0, 0.5 and 1; means 0.25 and 1; divided by the temperature 0.5 and 2
    share = np.exp(0.5) / (np.exp(0.5) + np.exp(2.0))
    homes = [q.island for q in requests]
    assert homes.count(0) / 6000 == pytest.approx(share, abs=0.02)
    local = [ids(q.parents) for q in requests if q.island == 0]
    assert local.count(["i0:-8.0"]) / len(local) == pytest.approx(np.e / (1 + np.e), abs=0.03)
    assert {q.operator for q in requests} == {"term"}


def test_crossover_takes_two_of_one_island(island):
    strategy = make_strategy("revolve", initial=0, islands=2, crossover=0.5)
    requests = ask(strategy, settled(strategy, island(0, 0.4, 0.6), island(1, 0.5)), 3000)
    crossed = [q for q in requests if q.operator == "crossover"]
    assert {q.island for q in crossed} == {0} and all(len(set(ids(q.parents))) == 2 for q in crossed)
    assert len(crossed) / sum(q.island == 0 for q in requests) == pytest.approx(0.5, abs=0.04)
    assert all(len(q.parents) == 1 for q in requests if q.operator == "term")


@pytest.mark.parametrize("batch", [2, 8])
def test_migration_happens_by_chance_and_by_count(landscape, batch):
    def migrations(chance, seeds):
        strategy = make_strategy("revolve", migration=chance)
        return [landscape("narrow").search(strategy, 120, batch, seed).memory.migrations for seed in range(seeds)]

    assert migrations(0.0, 2) == [0, 0] and migrations(1.0, 2) == [8, 8]
    assert np.mean(migrations(0.3, 16)) == pytest.approx(0.3 * 8, abs=1.0)


def test_nothing_migrates_on_one_island_or_while_one_is_empty(result):
    options = {"migration": 1.0, "migration_interval": 1, "initial": 0}
    lone = make_strategy("revolve", islands=1, **options)
    assert settled(lone, [result("a", 0.1), result("b", 0.2)]).memory.migrations == 0
    strategy = make_strategy("revolve", islands=2, **options)
    state = settled(strategy, [result("a", 0.1), result("b", 0.2)])
    assert ids(state.memory.islands[0]) == ["a", "b"] and state.memory.migrations == 0
    state = strategy.tell(state, [result("c", 0.9, island=1)])
    assert [ids(island) for island in state.memory.islands] == [["b"], ["c"]] and state.memory.migrations == 1


def test_islands_stay_within_their_size(landscape):
    strategy = make_strategy("revolve", island_size=3)
    state = landscape("narrow").search(strategy, 100, 7)
    assert all(1 <= len(island) <= 3 for island in state.memory.islands)
    members = [id for island in state.memory.islands for id in ids(island)]
    assert len(members) == len(set(members))


# ---- preferences


def voted(result, requests, *answers):
    """Answers to requests to prefer; None fails."""
    found = []
    for q, answer in zip(requests, answers, strict=True):
        made = result(q.id, None, operator="prefer", parents=tuple(ids(q.parents)), source="", words=answer or "x")
        failure = Failure(stage="reply", message="no vote")
        found.append(made if answer else Result(candidate=made.candidate, failure=failure))
    return found


def preferring(**options):
    return make_strategy("revolve", fitness="preference", islands=1, initial=2, **options)


def test_votes_follow_a_generation_and_no_pair_is_shown_twice(result):
    strategy = preferring(votes=2)
    state = strategy.tell(strategy.init(), [result(id, 0.5) for id in "abc"])
    requests = ask(strategy, state, 1)
    assert {q.operator for q in requests} == {"prefer"}
    pairs = [frozenset(ids(q.parents)) for q in requests]
    assert sorted(map(sorted, pairs)) == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert state.memory.islands == ((),) and ids(state.memory.pending) == ["a", "b", "c"]


def test_ratings_decide_who_joins_and_who_is_best(result):
    strategy = preferring(votes=1)
    state = strategy.tell(strategy.init(), [result("a", 0.9), result("b", 0.1)])
    (request,) = ask(strategy, state)
    answer = "second\nstumbles" if ids(request.parents)[0] == "a" else "first\nstumbles"
    state = strategy.tell(state, voted(result, [request], answer))
    assert dict(state.memory.ratings) == {"b": 1516.0, "a": 1484.0}
    assert best_id(strategy, state) == "b" and ids([state.best]) == ["a"]
    assert state.memory.pending == () and len(state.memory.islands[0]) == 2

    worse, better = result("worse", 0.99, parents=("a",)), result("better", 0.0, parents=("b",))
    state = strategy.tell(state, [worse, better])
    requests = ask(strategy, state)
    answers = ["second" if ids(q.parents)[0] == "worse" else "first\nreaches the goal" for q in requests]
    state = strategy.tell(state, voted(result, requests, *answers))
    assert "better" in ids(state.memory.islands[0]) and "worse" not in ids(state.memory.islands[0])
    assert best_id(strategy, state) in ("b", "better")
    rating = state.memory.ratings
    assert rating[best_id(strategy, state)] == max(rating.values())


def test_remarks_reach_the_next_requests(result):
    strategy = preferring(votes=1, crossover=0.0)
    state = strategy.tell(strategy.init(), [result("a", 0.9), result("b", 0.1)])
    requests = ask(strategy, state)
    state = strategy.tell(state, voted(result, requests, "first\nwalks\n upright"))
    first, second = ids(requests[0].parents)
    expected = {
        first: ("preferred to another agent: walks upright",),
        second: ("another agent was preferred: walks upright",),
    }
    children = ask(strategy, state, 30)
    assert {q.operator for q in children} == {"term"}
    assert all(q.remarks == expected[ids(q.parents)[0]] for q in children)
    crossing = preferring(votes=1, crossover=1.0)
    (child,) = ask(crossing, state, 1)
    one, two = ids(child.parents)
    assert child.remarks == (f"program 1, {expected[one][0]}", f"program 2, {expected[two][0]}")


@pytest.mark.parametrize(
    ("words", "side_of_first", "preferred"),
    [
        ("first\nleft: first", "left", "the left"),
        ("first\nleft: second", "right", "the right"),
        ("second\nleft: first", "left", "the right"),
        ("equal\nleft: second", "right", "neither"),
    ],
)
def test_a_remark_says_on_which_side_its_program_stood(result, words, side_of_first, preferred):
    strategy = preferring(votes=1)
    state = strategy.tell(strategy.init(), [result("a", 0.5), result("b", 0.4)])
    (request,) = ask(strategy, state)
    state = strategy.tell(state, voted(result, [request], f"{words}\nthe left one limps"))
    sides = (side_of_first, "right" if side_of_first == "left" else "left")
    for id, side in zip(ids(request.parents), sides, strict=True):
        assert state.memory.remarks[id] == (f"on the {side} of two, {preferred} was preferred: the left one limps",)


def test_remarks_of_parents_that_the_bandit_drops_go_with_them(result):
    strategy = preferring(votes=1, crossover=1.0, bandit=True)
    state = strategy.tell(strategy.init(), [result("a", 0.5), result("b", 0.4)])
    state = strategy.tell(state, voted(result, ask(strategy, state), "first\nleft: first\nlimps"))
    children = ask(strategy, state, 40)
    assert {len(q.parents) for q in children} == {1, 2}
    for child in children:
        said = [state.memory.remarks[id][0] for id in ids(child.parents)]
        numbered = [f"program {k}, {one}" for k, one in enumerate(said, 1)]
        assert list(child.remarks) == (numbered if len(said) > 1 else said)


def test_only_the_latest_remarks_are_kept(result):
    strategy = preferring(votes=6)
    state = strategy.tell(strategy.init(), [result(id, 0.5) for id in "abcdefg"])
    requests = ask(strategy, state)
    assert len(requests) == 21, "everyone meets everyone once"
    state = strategy.tell(state, voted(result, requests, *(f"equal\nremark {k}" for k in range(21))))
    met = [k for k, q in enumerate(requests) if "a" in ids(q.parents)]
    assert state.memory.remarks["a"] == tuple(f"as good as another agent: remark {k}" for k in met[-3:])


def test_a_failed_vote_changes_nothing(result):
    strategy = preferring(votes=1)
    state = strategy.tell(strategy.init(), [result("a", 0.5), result("b", 0.4)])
    state = strategy.tell(state, voted(result, ask(strategy, state), None))
    assert not state.memory.ratings and best_id(strategy, state) == "a"
    assert len(state.memory.islands[0]) == 2, "all are equal as long as nobody has judged"


def test_a_lone_candidate_needs_no_vote(result):
    strategy = preferring()
    state = strategy.tell(strategy.init(), [result("a", 0.5), result("b", None)])
    assert ids(state.memory.islands[0]) == ["a"] and ask(strategy, state)[0].operator == "scratch"


def test_without_people_the_score_decides(landscape, result):
    world = landscape("narrow")
    strategy = make_strategy("revolve", fitness="preference")
    state = world.search(strategy, 40, 8)
    assert len({q.generation for q in world.requests if q.operator == "prefer"}) == 1
    account = strategy.account(strategy.init(), state)
    assert account["fitness"] == "score" and "declined" in account["note"]
    assert strategy.best(state) == state.best and state.memory.pending == ()


def test_scores_decide_from_the_moment_that_nobody_answers(result):
    strategy = preferring(votes=1)
    state = strategy.tell(strategy.init(), [result("a", 0.4), result("b", 0.6)])
    state = strategy.tell(state, voted(result, ask(strategy, state), "equal"))
    state = strategy.tell(state, [result("low", 0.49, parents=("a",)), result("high", 0.5, parents=("a",))])
    requests = ask(strategy, state)
    nobody = Failure(stage="declined", message="nobody")
    declined = [Result(candidate=r.candidate, failure=nobody) for r in voted(result, requests, *["x"] * len(requests))]
    state = strategy.tell(state, declined)
    assert ids(state.memory.islands[0]) == ["a", "b", "high"]
    assert best_id(strategy, state) == "b"


def test_preferences_lead_where_scores_would(landscape):
    world = landscape("narrow", words=True)
    strategy = make_strategy("revolve", fitness="preference", votes=3)
    state = world.search(strategy, 60, 6)
    rank = sorted((r for r in world.results if r.score is not None), key=score, reverse=True)
    assert strategy.best(state) in rank[:10]
    assert strategy.account(state, state)["fitness"] == "preference"
    assert strategy.asks_people and not make_strategy("revolve").asks_people


@pytest.mark.parametrize(("option", "value"), [("temperature", 0), ("fitness", "elo"), ("votes", 0), ("migration", 2)])
def test_options_are_checked(option, value):
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == (f"strategy.{option}",)):
        make_strategy("revolve", **{option: value})
