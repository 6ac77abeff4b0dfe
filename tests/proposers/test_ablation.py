"""Programs without one group of their genes, and what such programs say of the genes."""

from __future__ import annotations

import numpy as np
import pytest

from jaxreward.proposers.genetic.ablation import Named, Parent, Worth, groups, without, worth
from jaxreward.proposers.genetic.blocks import Blocks
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import ENTRY, Gene, Genome, Part, read, write
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.records import Result, Score
from jaxreward.tasks import card, make_task
from tests.proposers.material import HAND_WRITTEN, XLAND, curve, feedback, request, result

PROPOSER = GeneticProposer(XLAND)
FEATURES = ("agent_position", "yellow_pyramid_offset", "green_square_offset")
TERMS = ("got_yellow_pyramid", "near_yellow_pyramid_potential", "facing_green_square", "time_cost")


def rng(seed=0):
    return np.random.default_rng(seed)


def genome(features=FEATURES, terms=TERMS, proposer=PROPOSER):
    observation, reward = (tuple(Gene(name, 1.0) for name in names) for names in (features, terms))
    return Genome(observation, reward, proposer.lexicon.definition([*features, *terms]))


def scored(genome, mean, se=0.01, name="a") -> Result:
    found = result(write(genome), mean, feedback(curve("time_cost", 0.1), curve("got_yellow_pyramid", 0.6)), name=name)
    return found.model_copy(update={"score": Score(mean=mean, se=se, n=2, episodes=100)})


def parent(mean=0.5, of=None, se=0.01):
    own = genome() if of is None else of
    return Parent(scored(own, mean, se), own)


def ablated(*genes, mean, se=0.01, of=None):
    left = without(genome() if of is None else of, genes)
    assert left is not None
    return Parent(scored(left, mean, se, "child"), left)


def test_groups_are_bonuses_what_can_be_farmed_each_subject_and_single_genes():
    found = groups(parent(), Variation(PROPOSER.lexicon, rng()))
    assert found[:2] == [{("reward", "facing_green_square")}, {("reward", "facing_green_square"), ("reward", TERMS[0])}]
    yellow, green = (
        {(p, n) for p, names in HALVES.items() for n in names if s in n} for s in ("yellow_pyramid", "green_square")
    )
    assert {frozenset(yellow), frozenset(green)} <= set(found[2:4])
    single = [group for group in found if len(group) == 1]
    halves = [next(iter(group))[0] for group in single]
    assert halves == sorted(halves, reverse=True), "terms before features"
    rest = [next(iter(group))[1] for group in single[1:4]]
    assert rest[:2] == ["got_yellow_pyramid", "time_cost"], "by their share of the reward"
    assert len(set(found)) == len(found)


HALVES: dict[Part, tuple[str, ...]] = {"observation": FEATURES, "reward": TERMS}


def test_with_blocks_a_stage_is_a_group_and_the_tasks_reward_in_none():
    own = card(make_task("xland-hard"))
    proposer = GeneticProposer(own, blocks=True)
    program = proposer.propose(request(), rng(3)).source
    found = groups(
        Parent(result(program, 0.5), read(program)), Variation(proposer.lexicon, rng(), blocks=proposer.blocks)
    )
    assert all(own.subgoals.reward not in {name for _, name in group} for group in found)
    stages = [set(names) for names in Blocks(own.subgoals).names_of_stages()]
    assert any({name for _, name in group} <= stage for group in found[:3] for stage in stages)


@pytest.mark.parametrize("group", range(6))
def test_an_ablation_is_the_parent_without_one_group_to_the_letter(group):
    own = parent()
    found = groups(own, Variation(PROPOSER.lexicon, rng()))
    child = read(PROPOSER.propose(request("ablate", own.result, group=group), rng()).source)
    left = without(own.genome, found[group])
    assert left is not None and child.key == left.key
    for part in ENTRY:
        kept = [gene for gene in own.genome.genes(part) if (part, gene.name) not in found[group]]
        assert list(child.genes(part)) == kept


@pytest.mark.parametrize("source", [write(genome(("agent_position",), ("got_yellow_pyramid",))), HAND_WRITTEN])
def test_where_there_is_no_such_group_the_parent_is_improved(source):
    child = PROPOSER.propose(request("ablate", result(source, 0.5), group=50), rng()).source
    assert child and read(child).key != read(source).key


def test_genes_are_needed_or_harmful_where_programs_differ_by_their_errors():
    genes: list[Named] = [("reward", name) for name in TERMS[:3]]
    a, b, c = genes
    children = [ablated(a, mean=0.1), ablated(b, mean=0.9), ablated(c, mean=0.52)]
    assert worth(parent(), children) == Worth(frozenset({a}), frozenset({b}))
    assert worth(parent(se=0.5), children) == Worth(), "nothing is known within the errors"
    both = [ablated(a, b, mean=0.9), ablated(a, mean=0.1)]
    assert worth(parent(), both) == Worth(frozenset({a}), frozenset({b})), "what one program needed is not harmful"
    swapped = genome(FEATURES, ("near_green_square_potential", *TERMS[1:]))
    other = [Parent(scored(swapped, 0.1, name="child"), swapped)]
    assert worth(parent(), other) == Worth(), "a program that has another gene in its place says nothing of it"
    failed = Result(candidate=children[0].result.candidate)
    assert worth(parent(), [Parent(failed, children[0].genome)]) == Worth()


def test_harmful_genes_go_and_needed_ones_stay():
    bonus, got = ("reward", "facing_green_square"), ("reward", "got_yellow_pyramid")
    known = tuple(p.result for p in (ablated(bonus, mean=0.9), ablated(got, mean=0.0)))
    seen = [
        read(PROPOSER.propose(request("improve", parent().result, ablations=known), rng(seed)).source)
        for seed in range(60)
    ]
    names = [{gene.name for gene in child.genes("reward")} for child in seen]
    # an edit may draw a whole new half, or exchange the subjects of all genes
    assert np.mean(["got_yellow_pyramid" in of for of in names]) > 0.6
    without_bonus = np.mean(["facing_green_square" not in of for of in names])
    unknown = [read(PROPOSER.propose(request("improve", parent().result), rng(seed)).source) for seed in range(60)]
    assert without_bonus > 0.9
    assert without_bonus > np.mean(["facing_green_square" not in {g.name for g in c.genes("reward")} for c in unknown])
    assert all(child.key not in {genome().key, *(read(r.candidate.source).key for r in known)} for child in seen)


def test_single_edits_never_drop_a_needed_gene():
    needed: set[Named] = {("reward", "got_yellow_pyramid"), ("observation", "agent_position")}
    for seed in range(40):
        variation = Variation(PROPOSER.lexicon, rng(seed), needed=needed)
        for part in ENTRY:
            for edit in (variation.remove, variation.replace):
                left = {(part, gene.name) for gene in edit(genome(), part).genes(part)}
                assert {gene for gene in needed if gene[0] == part} <= left
    only = Variation(PROPOSER.lexicon, rng(), needed={("reward", name) for name in TERMS})
    assert only.remove(genome(), "reward").key == only.replace(genome(), "reward").key == genome().key
