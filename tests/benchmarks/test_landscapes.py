"""The landscapes, the proposer that moves on them, and the arithmetic of the comparison."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import landscape_table, search_landscapes
from benchmarks.landscape_entries import ABLATIONS, EXPECTED, LEFT_OUT, STRATEGIES
from benchmarks.landscape_proposer import TRIES, SyntheticProposer, distance, opinions
from benchmarks.landscape_trial import Trial, World, run
from benchmarks.landscapes import BOUND, LANDSCAPES, TERMS, Goal, Landscape, Program, read, write
from benchmarks.markdown import results
from benchmarks.search_landscapes import Interval, LandscapeSettings, paired
from jaxreward.operators import OPERATORS, WORDS
from jaxreward.records import TRAINED_STAGES, Candidate, Failure, Request, Result, Score
from jaxreward.search import STRATEGIES as KNOWN
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(5)


def result(program: Program, id: str = "a", thought: str = "", words: str = "") -> Result:
    candidate = Candidate(id=id, generation=0, operator="scratch", source=write(program), thought=thought)
    return Result(candidate=candidate, score=Score(mean=0.5, se=0.0, n=3, episodes=96), words=words)


def request(operator: str, *parents: Result, **more: Any) -> Request:
    return Request(id="x", generation=1, operator=operator, parents=parents, **more)


def children(proposer: SyntheticProposer, asked: Request, n: int = 200) -> list[Program]:
    return [read(proposer.propose(asked, derive_rng(k, "test")).source) for k in range(n)]


def dull(name: str = "smooth", seed: int = 0, **options: Any) -> SyntheticProposer:
    return SyntheticProposer(LANDSCAPES[name](seed), insight=0.0, **options)


PARENT: dict[int, float] = {1: 0.5, 4: -0.25, 9: 1.0, 20: 0.0}


# ---- landscapes


@pytest.mark.parametrize("name", LANDSCAPES)
def test_the_optimum_is_one_and_nothing_is_above(name: str):
    for seed in SEEDS:
        landscape = LANDSCAPES[name](seed)
        best = landscape.optimum
        assert landscape.truth(best) == 1.0 and landscape.failure(best) is None
        assert landscape.truth(read(write(best))) == 1.0, "it can be written down"
        proposer = SyntheticProposer(landscape)
        rng = derive_rng(seed, "near")
        others = [proposer.improve(best, rng) for _ in range(200)] + [proposer.scratch(rng) for _ in range(200)]
        values = [landscape.truth(program) for program in others if program != best]
        assert min(values) >= 0.0 and max(values) < 1.0


def test_the_closeness_to_a_goal_equals_a_calculation_by_hand():
    goal = Goal({0: 0.0, 1: 0.7})
    assert goal.closeness({0: 0.0, 1: 0.7}) == 1.0
    assert goal.closeness({0: 0.0}) == 0.5
    assert goal.closeness({0: 0.0, 5: 0.0}) == 0.5 - 0.03
    assert goal.closeness({0: 0.35}) == pytest.approx((0.4 + 0.6 * np.exp(-0.5)) / 2)
    assert goal.closeness({5: 0.0}) == 0.0


def scratches(name: str) -> list[tuple[Landscape, Program]]:
    found = []
    for seed in range(10):
        landscape = LANDSCAPES[name](seed)
        proposer, rng = SyntheticProposer(landscape), derive_rng(seed, "scratch")
        found += [(landscape, proposer.scratch(rng)) for _ in range(200)]
    return found


def test_the_plateau_is_flat_where_most_programs_are():
    values = [landscape.truth(program) for landscape, program in scratches("plateau")]
    assert 0.92 < np.mean(np.asarray(values) == 0.0) < 0.98


def test_half_of_all_programs_fail_and_failures_come_in_clusters():
    drawn = scratches("failures")
    stages = [landscape.failure(program) for landscape, program in drawn]
    assert 0.4 < np.mean([stage is not None for stage in stages]) < 0.6
    assert {stage in TRAINED_STAGES for stage in stages if stage} == {True, False}
    landscape = drawn[0][0]
    proposer, rng = SyntheticProposer(landscape), derive_rng(0, "children")
    failing = {True: [], False: []}
    for _, program in drawn[:200]:
        child = proposer.improve(program, rng)
        failing[landscape.failure(program) is not None].append(landscape.failure(child) is not None)
    assert np.mean(failing[True]) > np.mean(failing[False]) + 0.3


def test_the_deceptive_landscape_has_two_tops_and_a_valley():
    for seed in SEEDS:
        landscape: Any = LANDSCAPES["deceptive"](seed)
        trap, goal = landscape.trap.weights, landscape.goal.weights
        assert landscape.truth(trap) == landscape.HEIGHT and len(trap.keys() & goal.keys()) == 2
        proposer, rng = SyntheticProposer(landscape), derive_rng(seed, "trap")
        assert max(landscape.truth(proposer.term(trap, rng)) for _ in range(500)) <= landscape.HEIGHT + 1e-12
        # Towards the goal term by term, the trap's own last: down first, then up.
        program, path = dict(trap), []
        for term in goal:
            program[term] = goal[term]
            path.append(landscape.truth(program))
        for term in trap.keys() - goal.keys():
            del program[term]
            path.append(landscape.truth(program))
        assert min(path) < 0.9 * landscape.HEIGHT and path[-1] == 1.0
        # From half of the goal every further term helps.
        terms = list(goal)
        climb = [landscape.truth({t: goal[t] for t in terms[:k]}) for k in range(4, 9)]
        assert climb == sorted(set(climb)) and climb[0] < landscape.HEIGHT


def test_a_block_that_lacks_a_term_is_worth_nothing():
    landscape: Any = LANDSCAPES["modular"](3)
    terms = list(landscape.goal.weights)
    assert all(b == a + 1 for k in range(0, 12, 3) for a, b in zip(terms[k : k + 2], terms[k + 1 : k + 3]))
    block = {t: landscape.goal.weights[t] for t in terms[:3]}
    assert landscape.truth(block) == pytest.approx(0.25)
    assert landscape.truth({t: block[t] for t in terms[:2]}) == 0.0


def test_the_needle_has_no_structure():
    landscape = LANDSCAPES["needle"](0)
    proposer, rng = SyntheticProposer(landscape), derive_rng(0, "needle")
    pairs = []
    for _ in range(2000):
        program = proposer.scratch(rng)
        pairs.append((landscape.truth(program), landscape.truth(proposer.improve(program, rng))))
    assert abs(np.corrcoef(np.asarray(pairs).T)[0, 1]) < 0.06
    assert landscape.hint(proposer.scratch(rng)) == landscape.hint(landscape.optimum) == 0.0


def test_noise_is_in_the_score_and_not_in_the_truth():
    landscape = LANDSCAPES["noisy"](0)
    program = dict(list(landscape.optimum.items())[:6])
    rng = derive_rng(0, "noise")
    scores = [landscape.score(program, rng) for _ in range(2000)]
    assert np.mean(scores) == pytest.approx(landscape.truth(program), abs=0.01)
    assert np.std(scores) == pytest.approx(landscape.noise, abs=0.01)
    assert LANDSCAPES["smooth"](0).score(program, rng) == landscape.truth(program)


# ---- operators


def test_every_operator_is_answered():
    proposer = dull()
    parents = [result(PARENT, "a"), result({1: 0.0, 7: 0.3}, "b")]
    plan = result(PARENT, "p", words="- term_3: x\n- term_5: y")
    asked_by_searches = [o for o in OPERATORS.values() if not o.own and o.name != "identify"]  # of `jaxreward clean`
    for operator in asked_by_searches:
        asked = request(
            operator.name, *parents[: operator.parents], plan=plan if operator.name == "implement" else None
        )
        proposal = proposer.propose(asked, derive_rng(0))
        assert bool(proposal.words) == operator.words and bool(proposal.source) != operator.words
        assert proposal.failure is None
        if not operator.words:
            program = read(proposal.source)
            assert program and all(0 <= t < TERMS and abs(w) <= BOUND for t, w in program.items())


def test_weights_keep_the_terms():
    for child in children(dull(), request("weights", result(PARENT))):
        assert child.keys() == PARENT.keys() and child != PARENT


def test_structure_keeps_the_weights():
    found = children(dull(), request("structure", result(PARENT)))
    for child in found:
        assert child.keys() != PARENT.keys() or len(child.items() & PARENT.items()) >= 2
    assert {len(child) for child in found} >= {3, 4, 5}
    kept = [PARENT[t] == child[t] for child in found for t in child.keys() & PARENT.keys()]
    assert np.mean(kept) > 0.95


def test_term_changes_exactly_one():
    seen = set()
    for child in children(dull(), request("term", result(PARENT))):
        gone, new = PARENT.keys() - child.keys(), child.keys() - PARENT.keys()
        moved = [t for t in child.keys() & PARENT.keys() if child[t] != PARENT[t]]
        assert (len(gone), len(new), len(moved)) in {(0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 0, 0)}
        seen.add((len(gone), len(new), len(moved)))
    assert len(seen) == 4


def test_crossover_mixes_its_parents():
    mother, father = result(PARENT, "a"), result({2: 0.1, 3: 0.2, 10: 0.3, 21: 0.4}, "b")
    found = children(dull(), request("crossover", mother, father))
    known = PARENT.items() | read(father.candidate.source).items()
    pure = [child for child in found if child.items() <= known]
    assert 0.55 < len(pure) / len(found) < 0.85
    assert np.mean([len(child.keys() & PARENT.keys()) for child in pure]) > 2.0
    assert np.mean([len(child.keys() - PARENT.keys()) for child in pure]) > 0.7


def test_path_goes_on_as_it_went():
    newest, oldest = {**PARENT, 1: 0.5}, {1: 0.0, 4: -0.25, 9: 1.2}
    found = children(dull(), request("path", result(newest, "b"), result(oldest, "a")))
    same = [child for child in found if child.keys() == newest.keys()]
    strides = [(child[1] - 0.5, (1.0 - child[9]) * 2.5) for child in same if child[4] == -0.25 and child[20] == 0.0]
    on = [one for one, other in strides if one == pytest.approx(other, abs=0.002)]
    assert len(on) > 80 and 0.0 <= min(on) < 0.1 and 0.4 < max(on) <= 0.5


def test_different_is_far_from_all_that_is_shown():
    proposer = dull()
    shown = (result(PARENT), result({t: 0.0 for t in range(0, 12)}, "b"))
    far = children(proposer, request("different", *shown))
    usual = children(proposer, request("scratch"))
    closest = [[min(distance(p, read(s.candidate.source)) for s in shown) for p in group] for group in (far, usual)]
    assert np.mean(closest[0]) > np.mean(closest[1]) + 0.05


def test_a_plan_is_carried_out():
    proposer = dull()
    words = proposer.propose(request("plan"), derive_rng(1)).words
    plan = result(PARENT, "p", words=words)
    assert 8 <= len(words.splitlines()) <= 12 and all(line.startswith("- term_") for line in words.splitlines())
    planned = {int(line.split(":")[0].removeprefix("- term_")) for line in words.splitlines()}
    found = children(proposer, request("implement", plan=plan))
    assert all(child.keys() <= planned for child in found)
    assert np.mean([len(child) / len(planned) for child in found]) == pytest.approx(0.8, abs=0.05)


def test_repair_takes_a_term_away():
    failed = Result(
        candidate=Candidate(id="f", generation=0, operator="scratch", source=write(PARENT)),
        failure=Failure(stage="numeric", message="no"),
    )
    for child in children(dull(), request("improve", result({2: 0.0}), failed=failed), 50):
        assert child.items() < PARENT.items() and len(child) == 3


def test_no_program_that_was_shown_comes_back():
    single = result({3: 0.0})
    for operator in ("crossover", "structure", "improve", "reflect"):
        assert all(child != {3: 0.0} for child in children(dull(), request(operator, single), 100))


def test_insight_is_the_chance_of_a_better_program():
    landscape = LANDSCAPES["smooth"](1)
    parent = {term: weight + 0.5 for term, weight in list(landscape.optimum.items())[:5]}
    level = landscape.truth(parent)

    def share(insight: float, operator: str) -> float:
        proposer = SyntheticProposer(landscape, insight=insight)
        found = children(proposer, request(operator, result(parent)), 300)
        return float(np.mean([landscape.truth(child) > level for child in found]))

    blind, half, full = share(0.0, "improve"), share(0.25, "reflect"), share(1.0, "improve")
    assert 0.05 < blind < 0.5 and full == pytest.approx(1.0 - (1.0 - blind) ** (TRIES + 1), abs=0.1)
    assert half == pytest.approx((blind + full) / 2, abs=0.1)


def test_insight_says_nothing_where_there_is_no_structure():
    landscape = LANDSCAPES["needle"](1)
    asked = request("reflect", result(PARENT))
    values = {
        insight: [landscape.truth(c) for c in children(SyntheticProposer(landscape, insight=insight), asked, 400)]
        for insight in (0.0, 0.5)
    }
    assert np.mean(values[0.5]) == pytest.approx(float(np.mean(values[0.0])), abs=0.03)


# ---- words


def test_requests_in_words_are_declined_without_words():
    proposer, parent = dull(words=False), result(PARENT)
    for operator in WORDS:
        proposal = proposer.propose(request(operator, parent, parent), derive_rng(0))
        assert proposal.failure is not None and proposal.failure.stage == "declined" and not proposal.words
    assert not proposer.propose(request("improve", parent, thought=True), derive_rng(0)).thought


def test_a_judgement_is_right_as_often_as_its_fidelity():
    landscape = LANDSCAPES["smooth"](0)
    asked = request("verify", result(landscape.optimum))

    def judged(fidelity: float) -> list[float]:
        proposer = SyntheticProposer(landscape, fidelity=fidelity)
        return [float(proposer.propose(asked, derive_rng(k)).words) for k in range(200)]

    assert set(judged(1.0)) == {1.0}
    assert all(-1.0 <= value <= 1.0 for value in judged(0.0)) and abs(np.mean(judged(0.0))) < 0.15
    assert np.mean(judged(0.5)) == pytest.approx(0.5, abs=0.12)


def test_a_vote_is_for_the_better_one():
    landscape = LANDSCAPES["smooth"](0)
    asked = request("prefer", result({}, "a"), result(landscape.optimum, "b"))
    assert SyntheticProposer(landscape, fidelity=1.0).propose(asked, derive_rng(0)).words == "second"


def test_a_thought_rates_terms():
    landscape = LANDSCAPES["smooth"](2)
    good = next(iter(landscape.optimum))
    bad = next(t for t in range(TERMS) if t not in landscape.optimum)
    program = {good: landscape.optimum[good], bad: 0.0}
    thought = SyntheticProposer(landscape, blur=0.0).propose(request("align", result(program)), derive_rng(0)).words
    assert opinions(thought) == {good: True, bad: False}
    assert opinions("") == {} and opinions("Useful: none known. Useless: none known.") == {}


@pytest.mark.parametrize("operator", ["crossover", "path"])
def test_crossover_and_path_read_thoughts(operator: str):
    mother, father = {1: 0.0, 2: 0.0, 3: 0.0}, {4: 0.0, 5: 0.0, 6: 0.0}
    proposer = dull(heed=1.0)

    def share(thought: str, term: int) -> float:
        asked = request(operator, result(mother, "a"), result(father, "b", thought))
        return float(np.mean([term in child for child in children(proposer, asked)]))

    assert share("Useful: 5. Useless: 4.", 5) > 0.75 > share("", 5) + 0.1
    assert share("Useful: 5. Useless: 4.", 4) < share("", 4) + 0.02
    assert share("Useful: 17.", 17) < 0.2, "what the parent does not have cannot be taken from it"


@pytest.mark.parametrize("operator", ["crossover", "path"])
def test_children_are_better_with_thoughts_and_best_with_true_ones(operator: str):
    gains: dict[str, list[float]] = {"aligned": [], "missing": [], "astray": []}
    for seed in range(12):
        landscape = LANDSCAPES["smooth"](seed)
        proposer, rng = SyntheticProposer(landscape), derive_rng(seed, "thoughts")
        terms = list(landscape.optimum.items())
        # Halves of the optimum, each with two terms that do not belong there.
        halves = [dict(terms[:5]), dict(terms[3:])]
        for half in halves:
            half |= {t: 0.0 for t in rng.permutation(TERMS)[:10].tolist() if t not in landscape.optimum}
        for kind, found in gains.items():
            thoughts = ["", ""]
            if kind != "missing":
                about = halves if kind == "aligned" else [proposer.scratch(rng) for _ in halves]
                thoughts = [proposer.thought(program, rng) for program in about]
            asked = request(operator, *(result(h, str(k), thoughts[k]) for k, h in enumerate(halves)))
            start = landscape.truth(halves[0])
            found += [landscape.truth(child) - start for child in children(proposer, asked, 40)]
    means = {kind: np.mean(found) for kind, found in gains.items()}
    assert means["aligned"] > means["missing"] + 0.05 and means["aligned"] > means["astray"] + 0.05


def test_a_first_thought_is_about_another_program_now_and_then():
    landscape = LANDSCAPES["smooth"](0)
    proposer = SyntheticProposer(landscape, drift=0.3, blur=0.0)
    asked = request("weights", result(dict(landscape.optimum)), thought=True)
    thoughts = [proposer.propose(asked, derive_rng(k)).thought for k in range(300)]
    astray = [not opinions(thought).keys() <= landscape.optimum.keys() for thought in thoughts]
    assert np.mean(astray) == pytest.approx(0.3, abs=0.08)


# ---- searches


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("strategy", sorted(KNOWN))
def test_a_search_is_determined_by_its_seed(strategy: str, words: bool):
    trial = Trial("failures", strategy, 30, 1, words=words)
    first, again, other = run(trial), run(trial), run(dataclasses.replace(trial, seed=2))
    assert (first.truth, first.curve, first.asked) == (again.truth, again.curve, again.asked)
    assert first.curve != other.curve
    assert first.trained == 30 or first.ended
    assert first.attempts >= first.trained


@pytest.mark.parametrize("strategy", ["rf-agent", "forge"])
def test_words_are_answered_or_declined_once(strategy: str):
    assert run(Trial("smooth", strategy, 40, 0)).asked >= 8
    world = World(Trial("smooth", strategy, 40, 0, words=False))
    searcher = make_strategy(strategy, budget=40)
    state, asked = searcher.init(), []
    while state.counts.trained < 40:
        requests = searcher.ask(state, 8, derive_rng(0, "ask", state.generation))
        asked += [{r.operator for r in requests} & WORDS]
        state = searcher.tell(state, [world.answer(r) for r in requests])
    operators = [operator for group in asked for operator in group]
    assert set(operators) == state.declined and len(operators) == len(set(operators)) > 0


def test_all_strategies_begin_with_the_same_scratch_programs():
    curves = [run(Trial("smooth", name, 6, 3)).curve for name in ("best-of-n", "limen")]
    assert curves[0] == curves[1]


def test_a_repeated_program_is_not_trained_again():
    world = World(Trial("smooth", "best-of-n", 10, 0))
    asked = request("scratch")
    first = world.answer(asked)
    world.scratches = 0
    again = world.answer(asked.model_copy(update={"id": "y"}))
    assert first.score is not None and again.failure is not None
    assert again.failure.stage == "duplicate" and again.failure.same_as == "x"


def test_a_search_is_scored_by_the_true_value_of_its_choice():
    outcome = run(Trial("noisy", "best-of-n", 64, 0))
    world = World(Trial("noisy", "best-of-n", 64, 0))
    results = [
        world.answer(request("scratch").model_copy(update={"id": f"g{k // 8:04d}-{k % 8:02d}"})) for k in range(64)
    ]
    chosen = max(results, key=lambda r: r.score.mean if r.score else -1.0)
    best = max(world.truth(r) for r in results)
    assert outcome.truth == world.truth(chosen) <= best
    assert chosen.score is not None and chosen.score.mean > outcome.truth


# ---- the comparison


def test_paired_differences_equal_a_calculation_by_hand():
    found = paired([0.3, 0.5, 0.7, 0.9], [0.1, 0.4, 0.4, 0.5])
    assert found.mean == pytest.approx(0.25)
    assert found.half == pytest.approx(3.182446 * statistics.stdev([0.2, 0.1, 0.3, 0.4]) / 2)
    assert found.verdict == "better"
    assert paired([0.1, 0.4], [0.3, 0.5]).verdict == "no difference"
    assert Interval(-0.2, 0.1).verdict == "worse" and Interval(0.0, 0.0).verdict == "no difference"


def test_entries_are_strategies_with_their_options():
    entries = [*STRATEGIES, *(e for group in ABLATIONS.values() for e in group)]
    for entry in entries:
        make_strategy(entry.strategy, budget=80, **entry.options)
    assert {entry.strategy for entry in STRATEGIES} == set(EXPECTED) == set(KNOWN) - set(LEFT_OUT)
    assert all(set(names) <= set(LANDSCAPES) - {"needle"} for names in EXPECTED.values())
    for entry in (e for group in ABLATIONS.values() for e in group):
        assert sum(entry.options.get("counts", (8,))) == 8


def test_a_tiny_run_fills_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "results" / "tiny.json"
    assert search_landscapes.main(["--tiny", "--out", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["device"] and report["versions"]["numpy"] and report["commit"] and report["settings"]["tiny"]
    base = next(r for r in report["strategies"] if r["entry"] == "best-of-n")
    for row in report["strategies"]:
        if row["landscape"] == base["landscape"]:
            difference = statistics.fmean(a - b for a, b in zip(row["truth"], base["truth"]))
            assert row["difference"] == pytest.approx(difference)
            assert row["verdict"] == Interval(row["difference"], row["difference_half"]).verdict
    assert {row["percent"] for row in report["ablations"] if row["entry"] == "full"} == {0.0}
    page, drawn = tmp_path / "page.md", tmp_path / "pictures" / "picture.png"
    page.write_text("before\n<!-- results -->\nstale\n<!-- /results -->\nafter\n")
    monkeypatch.setattr(landscape_table, "PAGE", page)
    monkeypatch.setattr(landscape_table, "PICTURE", drawn)
    assert landscape_table.main([str(out)]) == 0 and drawn.stat().st_size > 1000
    text = page.read_text()
    assert text.startswith("before") and text.endswith("after\n") and "stale" not in text
    for line in (line for line in text.splitlines() if line.startswith("|")):
        assert line.count("|") >= 4 and "nan" not in line
    capsys.readouterr()


def test_tables_are_those_of_the_page():
    page = landscape_table.PAGE.read_text()
    committed = results(search_landscapes.RESULTS, "search_landscapes")
    assert landscape_table.fill(page, committed) == page, "run benchmarks/landscape_table.py"


@pytest.mark.parametrize(
    "words", [["--seeds", "1"], ["--landscapes", "hilly"], ["--insight", "0.9"], ["--processes", "0"]]
)
def test_an_invalid_setting_is_named(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert search_landscapes.main(words) == 2
    assert words[0] in capsys.readouterr().err


def test_defaults_are_what_the_page_says():
    page = landscape_table.PAGE.read_text()
    settings = LandscapeSettings()
    assert f"With chance {settings.insight}" in page and settings.insight == SyntheticProposer.insight
    assert all(f"| `{name}` |" in page for name in (*LANDSCAPES, *(n for n in EXPECTED if n != "best-of-n")))
