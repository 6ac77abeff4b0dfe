"""Each operator of the genetic proposer does what it says, and nothing else."""

from __future__ import annotations

import ast
from itertools import pairwise

import numpy as np
import pytest

from jaxreward.operators import OPERATORS, OWN, WORDS
from jaxreward.proposers.genetic.breeding import BREEDERS
from jaxreward.proposers.genetic.continuation import next_step
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import ENTRY, Gene, Genome, Part, read, write
from jaxreward.proposers.genetic.lexicon import Lexicon, subjects
from jaxreward.proposers.genetic.planning import named
from jaxreward.proposers.genetic.variation import MOST, Variation
from jaxreward.records import Fragment, Request, Result, TaskCard, Vocabulary
from tests.proposers.material import HAND_WRITTEN, IN_FORM, ROBOT, XLAND, curve, feedback, request, result

PROPOSER = GeneticProposer(XLAND)
LEXICON = PROPOSER.lexicon
PARTS: tuple[Part, ...] = tuple(ENTRY)
SEEDS = range(25)
PROGRAMS = sorted(set(OPERATORS) - WORDS - OWN)

FEATURES = {"agent_position": 1.0, "agent_facing": 1.0, "yellow_pyramid_offset": 2.0}
TERMS = {"got_yellow_pyramid": 1.0, "near_yellow_pyramid_potential": 0.1, "time_cost": 0.01}

BEFORE: tuple[tuple[Part, dict[str, float]], ...] = (("observation", FEATURES), ("reward", TERMS))


def rng(seed=0):
    return np.random.default_rng(seed)


def program(features=None, terms=None) -> str:
    features, terms = FEATURES if features is None else features, TERMS if terms is None else terms
    genes = [tuple(Gene(k, v) for k, v in part.items()) for part in (features, terms)]
    return write(Genome(genes[0] or None, genes[1] or None, LEXICON.definition([*features, *terms])))


def child(wanted: Request, seed: int) -> Genome:
    proposal = PROPOSER.propose(wanted, rng(seed))
    assert proposal.failure is None and not proposal.words
    return read(proposal.source)


def genes(genome: Genome, part: Part) -> dict[str, float]:
    return dict(genome.genes(part))


def asked_for_words(operator: str, *parents: Result, plan: str = "", **more) -> Request:
    planned = result("", name="plan").model_copy(update={"words": plan})
    return request(operator, *parents, plan=planned if plan else None, **more)


# --- what holds for all


def test_every_operator_for_programs_is_bred():
    assert set(BREEDERS) == set(PROGRAMS) - {"repair"}  # a genetic answer is never sent back


@pytest.mark.slow
@pytest.mark.parametrize("operator", [*PROGRAMS, "of_another_version"])
@pytest.mark.parametrize("evolve", ["both", "observation", "reward"])
def test_new_programs_have_the_parts_that_may_change(operator, evolve, shapes):
    pool = [program(), HAND_WRITTEN, IN_FORM, program(terms={"bump": 0.05, "time_cost": 0.01}), program(terms={})]
    for seed in range(6):
        some = [pool[i] for i in rng(seed).permutation(len(pool))[: 1 + seed % 4]]
        parents = [result(s, 0.2 * k, feedback(curve("time_cost", 0.001)), 8, str(k)) for k, s in enumerate(some)]
        wanted = request(operator, *parents, evolve=evolve, thought=True)
        source = PROPOSER.propose(wanted, rng(seed)).source
        assert source == GeneticProposer(XLAND).propose(wanted, rng(seed)).source
        observation, reward = shapes(source)
        assert (observation is None) <= (evolve != "observation") and (reward is None) <= (evolve != "reward")
        assert (observation is None) >= (evolve == "reward") and (reward is None) >= (evolve == "observation")
        shown = [read(s) for s in some]
        if evolve != "both":
            other = "reward" if evolve == "observation" else "observation"
            shown = [genome.with_half(other, None) for genome in shown]
        assert read(source).key not in {genome.key for genome in shown}


@pytest.mark.parametrize("operator", PROGRAMS)
def test_without_a_readable_parent_it_starts_from_scratch(operator):
    for parents in ((), (result("def get_observation(state:\n"),)):
        genome = child(request(operator, *parents), 3)
        assert genome.genes("observation") and genome.genes("reward")


@pytest.mark.parametrize("operator", ["crossover", "path"])
def test_with_too_few_parents_it_improves(operator):
    parent = result(program(), 0.5)
    for seed in SEEDS:
        assert child(request(operator, parent), seed) == child(request("improve", parent), seed)


def test_an_unknown_operator_improves():
    parent = result(program(), 0.5)
    for seed in SEEDS:
        assert child(request("sharpen", parent), seed) == child(request("improve", parent), seed)


def test_words_that_it_has_not_are_declined():
    for operator in WORDS - {"plan"}:
        proposal = PROPOSER.propose(request(operator, result(program(), 0.5)), rng())
        assert proposal.failure is not None and proposal.failure.stage == "declined"
        assert "has no words" in proposal.failure.message and not proposal.source and not proposal.words
    blind = TaskCard(
        name="b", description="", state_doc="", vocabulary=Vocabulary(fragments=ROBOT.vocabulary.fragments[1:3])
    )
    assert GeneticProposer(blind).propose(request("plan"), rng()).failure is not None


def test_a_vocabulary_with_one_program_does_not_hang():
    fragment = ROBOT.vocabulary.fragments[1]
    tiny = GeneticProposer(
        TaskCard(name="t", description="", state_doc="", vocabulary=Vocabulary(fragments=(fragment,)))
    )
    seen: list[Result] = []
    for seed in range(3):
        source = tiny.propose(request(evolve="observation", best=tuple(seen)), rng(seed)).source
        assert source not in [r.candidate.source for r in seen]
        seen.append(result(source, 0.1, name=str(seed)))


def test_no_reward_is_of_constant_terms_alone():
    """Such as a cost of every step: the checks refuse it."""
    made = program(terms={"time_cost": 0.01, "got_yellow_pyramid": 1.0})
    failed = program(terms={"time_cost": 0.01})
    for operator in PROGRAMS:
        for seed in range(4):
            for source in (made, failed):
                names = {*genes(child(request(operator, result(source, 0.3)), seed), "reward")}
                assert names and names != {"time_cost"}
    costs = tuple(
        Fragment(name=f"cost_{k}", kind="term", source=f"def cost_{k}(state, action, next_state):\n    return -1.0",
                 tags=("milestone",))
        for k in range(8)
    )  # fmt: skip
    near = ROBOT.vocabulary.fragments[3].model_copy(update={"weight": 1e-4})
    lexicon = Lexicon(Vocabulary(fragments=(*ROBOT.vocabulary.fragments[1:3], *costs, near)))
    for seed in SEEDS:
        assert "near" in genes(Variation(lexicon, rng(seed)).scratch(), "reward")


def test_subjects_are_exchanged_in_names_word_by_word():
    names = ("a_to_b_potential", "b_to_a_potential", "bag_to_a_near", "bag_to_b_near")
    term = ROBOT.vocabulary.fragments[3]
    made = [
        term.model_copy(update={"name": n, "source": f"def {n}(state, action, next_state):\n    return 1.0"})
        for n in names
    ]
    lexicon = Lexicon(Vocabulary(fragments=tuple(made)))
    assert lexicon.counterpart("a_to_b_potential", "a", "b") == "b_to_a_potential"
    assert lexicon.counterpart("bag_to_a_near", "a", "b") == "bag_to_b_near"


# --- one parent


@pytest.mark.parametrize("success", [0.0, 0.5, 0.8, 0.97])
def test_structure_changes_genes_and_no_weights(success):
    kinds = set()
    for seed in SEEDS:
        after = child(request("structure", result(program(), success)), seed)
        for part, before in BEFORE:
            now = genes(after, part)
            assert all(now[name] == before[name] for name in now.keys() & before.keys())
            kinds |= {"added"} if now.keys() - before.keys() else set()
            kinds |= {"removed"} if before.keys() - now.keys() else set()
        assert set(genes(after, "observation")) != set(FEATURES) or set(genes(after, "reward")) != set(TERMS)
    assert kinds == {"added", "removed"}


def test_structure_of_an_opaque_parent_adds_to_it(shapes):
    kept = 0
    for seed in SEEDS:
        after = child(request("structure", result(HAND_WRITTEN, 0.4), evolve="reward"), seed)
        kept += Gene("inherited_reward_total", 1.0) in after.genes("reward") and len(after.genes("reward")) > 1
        shapes(write(after))
    assert kept > 0.7 * len(SEEDS)
    without = HAND_WRITTEN.replace("progress + cost, {", "(progress + cost) if True else progress, {").replace(
        "    cost = -0.01", "    cost = -0.01\n    if False:\n        return cost"
    )
    assert child(request("structure", result(without, 0.4), evolve="reward"), 0).genes("reward")


@pytest.mark.parametrize("success", [0.0, 0.5, 0.97])
def test_weights_change_and_nothing_else(success):
    moved = set()
    for seed in SEEDS:
        after = child(request("weights", result(program(), success)), seed)
        assert list(genes(after, "observation")) == list(FEATURES) and list(genes(after, "reward")) == list(TERMS)
        before = {**FEATURES, **TERMS}
        moved.add(sum(before[g.name] != g.weight for part in PARTS for g in after.genes(part)))
    assert 0 not in moved and 1 in moved and len(moved) > 1


def test_weights_of_an_opaque_parent_are_its_literals():
    def blank(source: str) -> str:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, float):
                node.value = 0.0
        return ast.dump(tree)

    for seed in SEEDS:
        after = PROPOSER.propose(request("weights", result(HAND_WRITTEN, 0.4), evolve="reward"), rng(seed)).source
        assert blank(after) == blank(write(read(HAND_WRITTEN).with_half("observation", None)))


@pytest.mark.parametrize("success", [0.0, 0.5, 0.97])
@pytest.mark.parametrize("evolve", ["both", "observation", "reward"])
def test_term_changes_exactly_one_gene(success, evolve):
    kinds = set()
    for seed in SEEDS:
        after = child(request("term", result(program(), success), evolve=evolve), seed)
        gone, new, other = 0, 0, 0
        for part, before in BEFORE:
            if evolve not in ("both", part):
                continue
            now = genes(after, part)
            gone, new = gone + len(before.keys() - now.keys()), new + len(now.keys() - before.keys())
            other += sum(now[name] != before[name] for name in now.keys() & before.keys())
        assert (gone, new, other) in {(0, 0, 1), (1, 0, 0), (0, 1, 0), (1, 1, 0)}
        kinds.add((gone, new, other))
    assert len(kinds) > 1


def test_term_of_an_opaque_parent_is_one_literal_or_one_gene():
    before = read(HAND_WRITTEN).with_half("observation", None)
    for seed in SEEDS:
        after = child(request("term", result(HAND_WRITTEN, 0.4), evolve="reward"), seed)
        if after.genes("reward"):
            assert after.genes("reward")[0].name == "inherited_reward_total"
            assert len(after.genes("reward")) == 2
        else:
            lines = zip(write(before).splitlines(), write(after).splitlines(), strict=True)
            assert sum(one != other for one, other in lines) == 1


def test_reflect_does_what_the_feedback_says():
    given = feedback(curve("got_yellow_pyramid", 0.03), curve("near_yellow_pyramid_potential", 0.96))
    for seed in SEEDS:
        after = child(request("reflect", result(program(), 0.5, given), evolve="reward"), seed)
        weight = genes(after, "reward").get("near_yellow_pyramid_potential", 0.0)
        edits = len({*after.genes("reward")} - {Gene(k, v) for k, v in TERMS.items()})
        assert weight < 0.1 or edits <= 2  # an edit may come on top
    calm = feedback(*(curve(name, 0.33) for name in TERMS))
    for seed in SEEDS:
        after = child(request("reflect", result(program(), 0.8, calm), evolve="reward"), seed)
        assert len({*after.genes("reward")} ^ {Gene(k, v) for k, v in TERMS.items()}) <= 4


def test_reflect_rewrites_what_fails():
    """Near zero, half of the programs have hardly a gene of the parent; with success, all keep most."""

    def kept(success: float) -> list[int]:
        wanted = request("reflect", result(program(), success), evolve="reward")
        return [len(genes(child(wanted, seed), "reward").keys() & TERMS.keys()) for seed in SEEDS]

    assert sum(k <= 1 for k in kept(0.0)) > 6
    assert min(kept(0.8)) >= 1 and sum(k <= 1 for k in kept(0.8)) <= 2


# --- several parents


def test_crossover_of_many_is_made_of_their_genes():
    pools = [{"bump": 0.05, "time_cost": 0.01}, {"turning": 0.005, "got_red_ball": 1.0}, {"got_green_square": 2.0}]
    parents = [result(program({}, terms), 0.95, name=str(k)) for k, terms in enumerate(pools)]
    mates = set()
    for seed in range(60):
        names = set(genes(child(request("crossover", *parents, evolve="reward"), seed), "reward"))
        mates |= {k for k, terms in enumerate(pools) if names & terms.keys()}
    assert mates == {0, 1, 2}


def line(*steps: tuple[float | None, dict[str, float]]) -> list[tuple[float | None, Genome]]:
    return [(score, read(program({}, terms))) for score, terms in steps]


def stepped(*steps, seed=0) -> dict[str, float]:
    return genes(next_step(line(*steps), Variation(LEXICON, rng(seed), ("reward",))), "reward")


def test_path_keeps_what_helped_and_drops_what_hurt():
    base = {"got_yellow_pyramid": 1.0}
    helped, hurt = {**base, "bump": 0.05}, {**base, "bump": 0.05, "turning": 0.005}
    assert stepped((0.4, hurt), (0.6, helped), (0.2, base)) == helped
    assert stepped((0.6, hurt), (0.4, helped), (0.2, base)) == hurt
    assert stepped((0.1, base), (0.6, helped)) == helped  # what went and was missed comes back
    later = {**hurt, "time_cost": 0.01}
    assert stepped((0.5, later), (0.4, hurt), (0.6, helped)) == {**helped, "time_cost": 0.01}


def test_path_moves_weights_on_in_the_direction_that_helped():
    for seed in SEEDS:
        assert stepped((0.6, {"bump": 0.1}), (0.2, {"bump": 0.05}), seed=seed)["bump"] > 0.1
        assert stepped((0.2, {"bump": 0.1}), (0.6, {"bump": 0.05}), seed=seed)["bump"] == 0.05
        far = stepped((0.6, {"bump": 2.9}), (0.2, {"bump": 1e-3}), seed=seed)["bump"]
        assert far == pytest.approx(0.1 * 30)
    assert stepped((0.6, {"bump": -0.1}), (0.2, {"bump": 0.05}))["bump"] == -0.1


def test_path_learns_nothing_from_steps_without_scores():
    base, more = {"bump": 0.05}, {"bump": 0.1, "turning": 0.005}
    for steps in (((0.4, more), (0.4, base)), ((None, more), (0.4, base)), ((0.4, more), (None, base))):
        assert stepped(*steps) == more


def test_path_goes_back_from_a_worse_opaque_half_and_on_from_a_better_one():
    worse = HAND_WRITTEN.replace("* 0.25", "* 9.0")
    variation = Variation(LEXICON, rng(), ("reward",))
    back = next_step([(0.1, read(worse)), (0.5, read(HAND_WRITTEN))], variation)
    assert back.reward == read(HAND_WRITTEN).reward
    on = next_step([(0.5, read(worse)), (0.1, read(HAND_WRITTEN))], variation)
    assert on.reward != read(worse).reward and "lax.sub" in write(on)


def test_different_shares_little():
    parents = [result(PROPOSER.propose(request(), rng(seed)).source, 0.5, name=str(seed)) for seed in range(3)]
    shown = {part: {name for p in parents for name in genes(read(p.candidate.source), part)} for part in PARTS}
    for seed in SEEDS:
        after = child(request("different", *parents), seed)
        for part in PARTS:
            assert after.genes(part) and not genes(after, part).keys() & shown[part]
    about = {s for name in TERMS if name in LEXICON.fragments for s in subjects(LEXICON.fragments[name])}
    spoken = []
    for seed in SEEDS:
        after = child(request("different", result(program(), 0.5), evolve="reward"), seed)
        spoken += [s in about for name in genes(after, "reward") for s in subjects(LEXICON.fragments[name])]
    assert sum(spoken) < 0.25 * len(spoken)


def test_different_has_an_answer_where_all_was_shown():
    proposer = GeneticProposer(ROBOT)
    parent = result(proposer.propose(request(evolve="reward"), rng(0)).source, 0.5)
    assert proposer.propose(request("different", parent, evolve="reward"), rng(1)).source != parent.candidate.source


# --- plans


def test_a_plan_is_terms_of_the_vocabulary():
    plans = {PROPOSER.propose(request("plan", evolve="reward"), rng(seed)).words for seed in SEEDS}
    assert len(plans) == len(SEEDS)
    for words in plans:
        lines = words.splitlines()
        assert 5 <= len(lines) <= 10 and len(named(words)) == len(lines)
        for text, name in zip(lines, named(words), strict=True):
            assert LEXICON.fragments[name].kind == "term" and text == f"- {name}: {LEXICON.fragments[name].doc}"


def test_implement_carries_a_plan_out():
    words = "- got_red_ball: having it\n- bump: bumping costs\n- of_my_own: something"
    for seed in SEEDS:
        after = child(asked_for_words("implement", plan=words), seed)
        assert list(genes(after, "reward")) == ["got_red_ball", "bump"]
        for name, weight in genes(after, "reward").items():
            assert weight in LEXICON.fragments[name].scales
        assert "red_ball" in " ".join(genes(after, "observation"))
        assert child(asked_for_words("implement", plan=words, evolve="observation"), seed).reward is None


def test_implement_takes_some_of_a_long_plan():
    names = [f.name for f in XLAND.vocabulary.fragments if f.kind == "term"][:20]
    words = "\n".join(f"- {name}: x" for name in names)
    some = [list(genes(child(asked_for_words("implement", plan=words), seed), "reward")) for seed in SEEDS]
    for chosen in some:
        assert 4 <= len(chosen) <= 10 and chosen[0] == names[0] and set(chosen) <= set(names)
    assert len({tuple(chosen) for chosen in some}) > 10


def test_implement_of_unknown_names_goes_by_what_they_speak_of():
    words = "- grasp: hold the red ball, and keep it\n- speed: be quick"
    for seed in SEEDS:
        spoken = [
            s
            for name in genes(child(asked_for_words("implement", plan=words, evolve="reward"), seed), "reward")
            for s in subjects(LEXICON.fragments[name])
        ]
        assert "red_ball" in spoken
    assert child(asked_for_words("implement"), 0).genes("reward")


def test_a_line_of_operators_stays_valid(shapes):
    """All operators in turn, each from what came before."""
    sources = [PROPOSER.propose(request(), rng(0)).source]
    for step, operator in enumerate(PROGRAMS * 3):
        parents = [result(source, 0.1 * (step % 9), name=str(k)) for k, source in enumerate(sources[-3:][::-1])]
        sources.append(PROPOSER.propose(request(operator, *parents), rng(step)).source)
    for one, other in pairwise(sources):
        assert one != other
    for source in sources[::4]:
        shapes(source)


def test_replacing_a_term_of_a_full_reward_keeps_it_full():
    variation = Variation(Lexicon(XLAND.vocabulary), np.random.default_rng(0), ("reward",))
    genome = variation.scratch()
    while len(genome.genes("reward")) < MOST["reward"]:
        genome = variation.add_one(genome, "reward")
    for _ in range(5):
        name = genome.genes("reward")[0].name
        child = variation.replace(genome, "reward", name)
        assert len(child.genes("reward")) == MOST["reward"] and name not in dict(child.genes("reward"))
