"""Programs in blocks: one for every subgoal that the task says, and the task's own reward always."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jaxreward.comparison.cells import with_defaults
from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Objects, Setup
from jaxreward.evolution.started import started_settings
from jaxreward.identity import Identity
from jaxreward.proposers.genetic.blocks import CHANCES, Blocks
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import Genome, read
from jaxreward.proposers.genetic.planning import named
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.proposers.registry import make_proposer
from jaxreward.records import Vocabulary
from jaxreward.records.subgoals import FEATURES, TERMS
from jaxreward.runs.run import read_config
from jaxreward.tasks import card, make_task
from tests.proposers.material import ROBOT, feedback, request, result

CARD = card(make_task("xland-hard"))
PROPOSER = GeneticProposer(CARD, blocks=True)
HOLD, JOIN = CARD.subgoals.chain
REWARD = CARD.subgoals.reward


def rng(seed=0):
    return np.random.default_rng(seed)


def variation(seed=0, parts=("observation", "reward")):
    return Variation(PROPOSER.lexicon, rng(seed), parts, PROPOSER.blocks)


def names(source, part):
    return {gene.name for gene in read(source).genes(part)}


def has(source, subgoal):
    """Whether a program says where to go for a subgoal, and pays for it."""
    pays = {*subgoal.approaches, *subgoal.completions, *subgoal.events}
    return bool(names(source, "observation") & {*subgoal.directions}) and bool(names(source, "reward") & pays)


@pytest.mark.long
def test_most_programs_from_scratch_have_a_block_for_every_subgoal():
    blocks = [PROPOSER.propose(request(), rng(seed)).source for seed in range(100)]
    without_blocks = GeneticProposer(CARD, blocks=False)
    plain = [without_blocks.propose(request(), rng(seed)).source for seed in range(100)]
    share = [np.mean([has(s, HOLD) and has(s, JOIN) for s in sources]) for sources in (blocks, plain)]
    assert share[0] > 0.4 > 0.1 > share[1]
    assert all(REWARD in names(source, "reward") for source in blocks), "the task's own reward is always a term"
    assert len({read(source).key for source in blocks}) > 95


def test_without_blocks_nothing_changes():
    bare = CARD.model_copy(update={"subgoals": type(CARD.subgoals)()})
    for seed in range(20):
        off = GeneticProposer(CARD, blocks=False).propose(request(), rng(seed))
        assert off == GeneticProposer(bare).propose(request(), rng(seed))


@pytest.mark.parametrize("operator", ["improve", "reflect", "crossover", "structure", "weights", "different", "path"])
def test_every_operator_keeps_the_tasks_own_reward(operator):
    parents = [result(PROPOSER.propose(request(), rng(k)).source, 0.2, name=str(k)) for k in (1, 2)]
    for seed in range(20):
        assert REWARD in names(PROPOSER.propose(request(operator, *parents), rng(seed)).source, "reward")


def test_a_block_is_added_and_dropped_whole():
    blocks, change = Blocks(CARD.subgoals), variation(3)
    genome = change.with_basic(change.with_basic(Genome((), ()), "observation"), "reward")
    added = next(g for g in (blocks.add(genome, 1, variation(k)) for k in range(50)) if blocks.has(g, 1))
    assert not blocks.has(genome, 1) and not blocks.has(added, 0)
    both = next(g for g in (blocks.add(added, 0, variation(k)) for k in range(50)) if blocks.has(g, 0))
    assert blocks.drop(both, 0).key == added.key, "what the other subgoal needs stays"
    assert blocks.add(both, 0, variation(1)).genes("observation")[: len(both.genes("observation"))] == both.genes(
        "observation"
    ), "what is there is not exchanged"


def test_blocks_cross_whole():
    blocks, empty = Blocks(CARD.subgoals), Genome((), ())
    one = blocks.with_reward(blocks.add(blocks.add(empty, 0, variation(1)), 1, variation(2)), variation())
    other = blocks.with_reward(blocks.add(blocks.add(empty, 0, variation(5)), 1, variation(7)), variation())
    for seed in range(30):
        child = blocks.crossover(one, other, variation(seed))
        for subgoal in (HOLD, JOIN):
            own = [
                {g.name for part in ("observation", "reward") for g in genome.genes(part)} & {*subgoal.names()}
                for genome in (child, one, other)
            ]
            assert own[0] in own[1:]


def test_the_first_subgoal_that_no_episode_reached_is_pursued_in_another_way():
    """Its flag is constant, which without blocks would be a reason to drop it."""
    blocks = Blocks(CARD.subgoals)
    genome = next(
        g
        for g in (blocks.add(Genome((), ()), 0, variation(k)) for k in range(50))
        if len(g.genes("observation")) == 2 and len(g.genes("reward")) > 1
    )
    (flag,) = HOLD.flags
    changed = {blocks.repaired(genome, [flag], variation(k)).key for k in range(20)}
    assert len(changed) > 3
    assert blocks.repaired(genome, [], variation(1)) is genome


def test_a_dead_flag_of_a_subgoal_stays():
    sources = [PROPOSER.propose(request(), rng(seed)).source for seed in range(60)]
    source = next(s for s in sources if names(s, "observation") & {*JOIN.flags})
    genes = read(source).genes("observation")
    columns = [PROPOSER.lexicon.fragments[g.name].size for g in genes]
    at = next(k for k, gene in enumerate(genes) if gene.name in JOIN.flags)
    dead = tuple(range(sum(columns[:at]), sum(columns[: at + 1])))
    parent = result(source, 0.2, feedback=feedback(dead_features=dead), size=sum(columns))
    kept = [PROPOSER.propose(request("reflect", parent), rng(k)).source for k in range(40)]
    assert np.mean([bool(names(s, "observation") & {*JOIN.flags}) for s in kept]) > 0.4


def test_parts_that_may_not_change_are_left_out():
    child = variation(0, ("observation",)).scratch()
    assert child.genes("observation") and child.half("reward") is None


def whole(sources):
    """The share of programs with a block for every subgoal."""
    return np.mean([all(has(source, subgoal) for subgoal in CARD.subgoals.chain) for source in sources])


def test_plans_are_made_and_carried_out_in_blocks():
    sources = []
    for seed in range(60):
        words = PROPOSER.propose(request("plan"), rng(seed)).words
        assert 5 <= len(named(words)) <= 10
        plan = result("", name="plan").model_copy(update={"words": words})
        sources.append(PROPOSER.propose(request("implement", plan=plan), rng(seed)).source)
    assert whole(sources) > 0.25
    assert all(REWARD in names(source, "reward") for source in sources)


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["reflect", "different"])
def test_a_program_written_anew_is_in_blocks(operator):
    """From parents without success that pursue some subgoals alone."""
    parents = [result(PROPOSER.propose(request(), rng(seed)).source, 0.0) for seed in (1, 4)]
    assert not whole([parent.candidate.source for parent in parents])
    asked = [(parent, seed) for parent in parents for seed in range(40)]
    assert whole([PROPOSER.propose(request(operator, parent), rng(seed)).source for parent, seed in asked]) > 0.2


@pytest.mark.parametrize("operator", ["improve", "reflect", "term", "crossover", "different", "weights"])
def test_the_tasks_own_reward_is_a_term_where_the_parent_cannot_be_read(operator):
    parent = result("this is no program", 0.0)
    sources = [PROPOSER.propose(request(operator, parent), rng(seed)).source for seed in range(20)]
    assert all(REWARD in names(source, "reward") for source in sources)


def test_a_derived_part_takes_no_name_of_the_subgoals():
    theirs = CARD.subgoals.vocabulary.fragments[0]
    other = theirs.model_copy(update={"source": f"def {theirs.name}(state, action, next_state):\n    return 2.0"})
    given = Objects(vocabulary=Vocabulary(fragments=(other.model_copy(update={"kind": "term"}),)))
    proposer = Setup.of(EvolveSettings(task="xland-hard"), make_task("xland-hard"), given=given).proposer
    assert isinstance(proposer, GeneticProposer)
    have = {f.name: f.source for f in proposer.vocabulary.fragments}
    assert have[theirs.name] == theirs.source and "return 2.0" in have[f"{theirs.name}_2"]


def test_a_model_of_one_draw_is_none():
    for surrogate, draws, fresh in ((None, 32, 0.5), (1, 0, None), (0, 0, None), (2, 2, 0.5)):
        settings = EvolveSettings(surrogate=surrogate)
        assert (settings.draws, settings.strategy_options().get("fresh")) == (draws, fresh)
    assert EvolveSettings(strategy="rf-agent").draws == EvolveSettings(strategy="best-of-n").draws == 0


def test_blocks_need_subgoals_and_the_genetic_proposer():
    with pytest.raises(InvalidSetting, match="robot says no subgoals"):
        make_proposer("genetic", ROBOT, blocks=True)
    with pytest.raises(InvalidSetting, match="blocks"):
        EvolveSettings(blocks="on", proposer="llm").check()
    with pytest.raises(UnknownName, match="blocks.*True"):
        EvolveSettings(blocks=True).check()  # type: ignore[arg-type]
    EvolveSettings(blocks="off", proposer="manual").check()
    EvolveSettings(blocks="off", proposer="replay", recording=Path("a")).check()
    options = [EvolveSettings(blocks=said).proposer_options() for said in ("auto", "on", "off")]
    assert [o.get("blocks") for o in options] == [None, True, False]
    assert GeneticProposer(CARD).blocks is not None and GeneticProposer(ROBOT).blocks is None
    assert {*CHANCES} == {*FEATURES, *TERMS}


def test_runs_of_before_go_on_without_blocks(tmp_path):
    """Their setting was a flag, or there was none."""
    for number, written in enumerate(("", "blocks = false\n", "blocks = true\n", 'blocks = "auto"\n')):
        (tmp_path / "config.toml").write_text(f'task = "xland-easy"\n{written}')
        found = started_settings(tmp_path)
        assert found.blocks == ("off", "off", "on", "auto")[number]
        assert with_defaults(read_config(tmp_path), "limen")["blocks"] == found.blocks


def test_a_vocabulary_of_the_users_has_no_parts_of_the_tasks_subgoals():
    some = Vocabulary(fragments=CARD.vocabulary.fragments[:20], helpers=CARD.vocabulary.helpers,
                      constants=CARD.vocabulary.constants)  # fmt: skip
    settings, task = EvolveSettings(task="xland-hard"), make_task("xland-hard")
    whose = {"vocabulary": Identity("20 fragments")}

    def names_of(given: Objects) -> set[str]:
        proposer = Setup.of(settings, task, given=given).proposer
        assert isinstance(proposer, GeneticProposer)
        return {*proposer.lexicon.fragments}

    assert names_of(Objects(vocabulary=some, identities=whose)) == {f.name for f in some.fragments}
    assert names_of(Objects(vocabulary=CARD.vocabulary)) == names_of(Objects()), "as best-of-n has that of the search"
