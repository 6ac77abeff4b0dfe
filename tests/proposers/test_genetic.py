"""The genetic proposer: valid, distinct, reproducible programs, guided by feedback."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import Gene, Genome, read, write
from jaxreward.proposers.genetic.guidance import dead_features, is_farmed, repaired
from jaxreward.proposers.genetic.lexicon import Lexicon, subjects
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.proposers.registry import make_proposer
from jaxreward.records import Failure, Notice, TaskCard
from tests.proposers.material import HAND_WRITTEN, IN_FORM, ROBOT, XLAND, curve, feedback, request, result

PROPOSER = GeneticProposer(XLAND)
LEXICON = PROPOSER.lexicon


def rng(seed=0):
    return np.random.default_rng(seed)


def program(features, terms) -> Genome:
    """A genome of vocabulary fragments with the given weights."""
    statements = LEXICON.definition([*features, *terms])
    return Genome(
        tuple(Gene(k, v) for k, v in features.items()), tuple(Gene(k, v) for k, v in terms.items()), statements
    )


def source_of(features=None, terms=None) -> str:
    return write(program(features or {"agent_position": 1.0, "agent_facing": 1.0}, terms or {"time_cost": 0.01}))


def names(source, part):
    return [g.name for g in read(source).genes(part)]


@pytest.mark.slow
def test_many_scratch_programs_are_valid_and_differ(shapes):
    sources = [PROPOSER.propose(request(), rng(seed)).source for seed in range(200)]
    assert len({read(s).key for s in sources}) >= 195
    for source in sources[:30]:
        observation, (_, terms) = shapes(source)
        assert 3 <= observation.shape[0] <= 384 and 2 <= len(terms) <= 7
    assert max(map(len, sources)) < 32_000


@pytest.mark.long
def test_scratch_programs_run_under_jit(state):
    for seed in range(3):
        namespace: dict = {}
        exec(PROPOSER.propose(request(), rng(seed)).source, namespace)
        observation = jax.jit(namespace["get_observation"])(state)
        total, terms = jax.jit(namespace["compute_reward"])(state, jnp.int32(0), state)
        assert np.isfinite(observation).all() and np.abs(observation).max() <= 10
        assert float(total) == pytest.approx(sum(map(float, terms.values())), abs=1e-5)


def test_scratch_programs_keep_to_a_theme():
    """Features and guiding terms mostly speak of the things that the milestone speaks of."""
    hits = total = 0
    for seed in range(60):
        genome = read(PROPOSER.propose(request(), rng(seed)).source)
        fragments = [LEXICON.fragments[g.name] for part in ("observation", "reward") for g in genome.genes(part)]
        theme = subjects(LEXICON.fragments[genome.genes("reward")[0].name])
        spoken = [s for f in fragments for s in subjects(f)]
        hits, total = hits + sum(s in theme for s in spoken), total + len(spoken)
    assert hits / total > 0.6


@pytest.mark.parametrize("operator", ["scratch", "improve", "crossover"])
def test_proposals_are_a_function_of_request_and_generator(operator):
    parents = [result(PROPOSER.propose(request(), rng(k)).source, 0.3, name=str(k)) for k in (1, 2)]
    wanted = request(operator, *parents)
    first, second = PROPOSER.propose(wanted, rng(5)), GeneticProposer(XLAND).propose(wanted, rng(5))
    assert first == second and first.request_id == "r1" and first.proposer == "genetic"
    assert PROPOSER.propose(wanted, rng(6)) != first


@pytest.mark.parametrize("success", [0.0, 0.3, 0.7, 0.97, None])
def test_a_lineage_stays_valid(success, shapes):
    """Mutation and crossover applied again and again: every program traces, none repeats a parent."""
    generator = rng(3)
    pool = [PROPOSER.propose(request(), generator).source for _ in range(2)]
    for step in range(25):
        parents = [result(source, success, name=str(k)) for k, source in enumerate(pool[-2:])]
        operator = "crossover" if step % 2 else "improve"
        source = PROPOSER.propose(request(operator, *parents, best=tuple(parents)), generator).source
        assert source not in pool[-2:]
        assert write(read(source)) == source
        pool.append(source)
    for source in pool[::3]:
        shapes(source)


def test_a_proposal_is_never_a_program_that_was_shown():
    card = TaskCard(name="r", description="", state_doc="", vocabulary=ROBOT.vocabulary)
    proposer = GeneticProposer(card)
    shown, keys = [], set()
    for step in range(30):
        wanted = request(
            "improve", *shown[:1], best=tuple(shown[:10]), diverse=tuple(shown[10:20]), failures=tuple(shown[20:])
        )
        source = proposer.propose(wanted, rng(step)).source
        assert read(source).key not in keys
        keys.add(read(source).key)
        shown.append(result(source, 0.95, name=str(step)))


@pytest.mark.parametrize("part", ["observation", "reward"])
@pytest.mark.parametrize("operator", ["scratch", "improve", "crossover"])
def test_only_what_may_evolve_is_written(part, operator, shapes):
    parents = [result(source_of(), 0.2), result(HAND_WRITTEN, 0.2, name="b"), result(IN_FORM, 0.1, name="c")]
    for seed in range(4):
        for pair in (parents[:2], parents[1:]):
            source = PROPOSER.propose(request(operator, *pair, evolve=part), rng(seed)).source
            observation, reward = shapes(source)
            assert (observation is None) == (part == "reward") and (reward is None) == (part == "observation")


@pytest.mark.parametrize(
    "parents", [(HAND_WRITTEN, IN_FORM), (HAND_WRITTEN, HAND_WRITTEN.replace("SIZE = 9.0", "SIZE = 7.0"))]
)
@pytest.mark.parametrize("operator", ["improve", "crossover"])
def test_parents_of_other_forms_are_varied(parents, operator, shapes):
    results = [result(source, 0.4, name=str(k)) for k, source in enumerate(parents)]
    seen = set()
    for seed in range(12):
        source = PROPOSER.propose(request(operator, *results), rng(seed)).source
        shapes(source)
        seen.add(read(source).key)
    assert len(seen) > 6
    assert not seen & {read(source).key for source in parents}


def test_crossover_of_opaque_halves_resolves_clashes(shapes, state):
    """The observation of one and the reward of the other, which use one name for two things."""
    other = HAND_WRITTEN.replace("SIZE = 9.0", "SIZE = 3.0").replace("k // 9, k % 9", "k // 3, k % 3")
    variation = Variation(LEXICON, rng())
    child = write(variation.graft(read(HAND_WRITTEN), read(other), "reward"))
    spaces: list[dict] = [{}, {}, {}]
    for source, space in zip((HAND_WRITTEN, other, child), spaces, strict=True):
        exec(source, space)
    mine, theirs, mixed = spaces
    np.testing.assert_array_equal(mixed["get_observation"](state), mine["get_observation"](state))
    moved = state._replace(agent=state.agent._replace(position=state.agent.position + 1))
    assert mixed["compute_reward"](state, 0, moved)[0] == theirs["compute_reward"](state, 0, moved)[0]
    assert "where_2" in child


def test_opened_halves_mean_the_same_and_can_be_added_to(state):
    variation = Variation(LEXICON, rng())
    genome = variation.open(variation.open(read(HAND_WRITTEN), "observation"), "reward")
    assert genome.genes("observation") == (Gene("inherited_observation"),)
    assert genome.genes("reward") == (Gene("inherited_reward_total"),)
    before: dict = {}
    after: dict = {}
    exec(HAND_WRITTEN, before)
    exec(write(genome), after)
    np.testing.assert_array_equal(before["get_observation"](state), after["get_observation"](state))
    assert before["compute_reward"](state, 0, state)[0] == after["compute_reward"](state, 0, state)[0]
    grown = variation.add(genome, "reward", LEXICON.fragments["time_cost"])
    assert [g.name for g in read(write(grown)).genes("reward")] == ["inherited_reward_total", "time_cost"]
    assert variation.open(read("def compute_reward(state):\n    return 1.0\n"), "reward").genes("reward") == ()


def test_perturb_changes_float_literals_only():
    variation = Variation(LEXICON, rng())
    before = read(HAND_WRITTEN)
    after = variation.perturb(before, "reward")
    assert write(after) != write(before)
    assert write(after).replace(" ", "").count("\n") == write(before).replace(" ", "").count("\n")
    assert read(write(after)).observation == before.observation


# --- guidance


def reflected(source, success=0.3, given=None, size=None, seed=0):
    parent = result(source, success, given, size)
    return repaired(read(source), parent, Variation(LEXICON, rng(seed)))


def test_dead_features_are_dropped():
    source = source_of({"agent_position": 1.0, "door_offset": 1.0, "agent_facing": 2.0})
    genome = reflected(source, given=feedback(dead_features=(2, 3)), size=8)
    assert [g.name for g in genome.genes("observation")] == ["agent_position", "agent_facing"]
    partly = reflected(source, given=feedback(dead_features=(2, 5)), size=8)
    assert len(partly.genes("observation")) == 3
    child = PROPOSER.propose(request("improve", result(source, 0.95, feedback(dead_features=(2, 3)), 8)), rng(1)).source
    assert names(child, "observation").count("door_offset") == 0


def test_dead_features_next_to_one_of_unknown_size_are_found_by_the_total():
    source = source_of({"agent_position": 1.0, "door_offset": 1.0, "agent_facing": 1.0})
    source = source.replace("state.agent.position / SPAN", "jnp.tile(state.agent.position / SPAN, 2)")
    parent = result(source, 0.2, feedback(dead_features=(4, 5)), size=10)
    assert dead_features(read(source), parent, Variation(LEXICON, rng())) == ["door_offset"]
    unknown = result(source, 0.2, feedback(dead_features=(4, 5)))
    assert dead_features(read(source), unknown, Variation(LEXICON, rng())) == []


TERMS = {"got_yellow_pyramid": 1.0, "near_yellow_pyramid_potential": 0.1, "facing_yellow_pyramid": 0.05}


def test_dominant_terms_shrink_and_flat_ones_grow():
    given = feedback(
        curve("got_yellow_pyramid", 0.004),
        curve("near_yellow_pyramid_potential", 0.95),
        curve("facing_yellow_pyramid", 0.046),
    )
    genome = reflected(source_of(terms=TERMS), given=given)
    weight = dict(genome.genes("reward"))
    assert weight["near_yellow_pyramid_potential"] <= 0.05
    assert weight["got_yellow_pyramid"] >= 2.0
    assert weight["facing_yellow_pyramid"] == 0.05


def test_a_term_that_never_fired_gets_a_guide_or_goes():
    given = feedback(curve("got_yellow_pyramid", 0.0, fired=False), curve("time_cost", 0.5))
    outcomes = set()
    for seed in range(12):
        genome = reflected(source_of(terms={"got_yellow_pyramid": 1.0, "time_cost": 0.01}), given=given, seed=seed)
        genes = [g.name for g in genome.genes("reward")]
        if "got_yellow_pyramid" in genes:
            assert len(genes) == 3 and "yellow_pyramid" in genes[2]
        outcomes.add("got_yellow_pyramid" in genes)
    assert outcomes == {True, False}


def test_farmed_bonuses_are_dropped():
    farmed = feedback(notices=(Notice(kind="farmed", message="return rises while success falls"),))
    assert is_farmed(farmed) and is_farmed(feedback(return_solved=1.0, return_failed=4.0))
    assert not is_farmed(feedback(return_solved=4.0, return_failed=1.0)) and not is_farmed(feedback(return_failed=1.0))
    assert not is_farmed(feedback(return_solved=1.0, return_failed=4.0, success=(0.5, 0.97)))
    genome = reflected(source_of(terms=TERMS), given=farmed)
    assert [g.name for g in genome.genes("reward")] == ["got_yellow_pyramid", "near_yellow_pyramid_potential"]
    without = {k: v for k, v in TERMS.items() if "facing" not in k}
    genome = reflected(source_of(terms=without), given=farmed)
    assert [g.name for g in genome.genes("reward")] == ["near_yellow_pyramid_potential"]
    never_fired = feedback(
        notices=(Notice(kind="farmed", message="term 'near_yellow_pyramid_potential' pays in failed episodes"),)
    )
    genome = reflected(source_of(terms=without), given=never_fired)
    assert [g.name for g in genome.genes("reward")] == ["got_yellow_pyramid"]


def test_good_parents_are_changed_less():
    source = PROPOSER.propose(request(), rng(8)).source
    genes = {g for part in ("observation", "reward") for g in read(source).genes(part)}

    def distance(success):
        total = 0
        for seed in range(40):
            child = read(PROPOSER.propose(request("improve", result(source, success)), rng(seed)).source)
            total += len(genes ^ {g for part in ("observation", "reward") for g in child.genes(part)})
        return total / 40

    assert distance(0.95) < distance(0.5) < distance(0.0)


def test_retarget_exchanges_subjects_in_both_halves():
    genome = program({"yellow_pyramid_offset": 1.0}, {"put_yellow_pyramid_beside_green_square": 5.0})
    found = set()
    for seed in range(30):
        child = Variation(LEXICON, rng(seed)).retarget(genome)
        found.add((child.genes("observation")[0].name, child.genes("reward")[0].name))
    assert ("red_ball_offset", "put_red_ball_beside_green_square") in found
    assert ("green_square_offset", "put_green_square_beside_yellow_pyramid") in found


# --- other vocabularies, bad input


def test_it_works_with_the_vocabulary_of_another_task():
    proposer = GeneticProposer(ROBOT)
    for seed in range(10):
        source = proposer.propose(request(), rng(seed)).source
        assert "def get_observation" in source and names(source, "reward")
        child = proposer.propose(request("improve", result(source, 0.1)), rng(seed)).source
        assert child != source
    assert Lexicon(ROBOT.vocabulary).subjects == ("tip",)


def test_unreadable_or_failed_parents_are_replaced_by_new_programs():
    broken = result("def get_observation(state:\n")
    failed = result(source_of()).model_copy(update={"failure": Failure(stage="numeric", message="not finite")})
    for operator in ("improve", "crossover"):
        assert names(PROPOSER.propose(request(operator, broken), rng(1)).source, "reward")
        assert names(PROPOSER.propose(request(operator, failed, broken), rng(1)).source, "reward")


def test_a_proposer_that_cannot_be_made_is_a_mistake():
    bare = TaskCard(name="bare", description="", state_doc="")
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("proposer",)):
        make_proposer("genetic", bare)
    with pytest.raises(UnknownName, check=lambda e: (e.kind, e.nearest) == ("proposer", "genetic")):
        make_proposer("genetik", XLAND)
    with pytest.raises(UnknownName, check=lambda e: (e.name, e.nearest) == ("speed", None)):
        make_proposer("genetic", XLAND, speed=3)
    with pytest.raises(UnknownName, check=lambda e: (e.name, e.nearest) == ("recordin", "recording")):
        make_proposer("replay", XLAND, recordin="x")
    assert make_proposer("genetic", XLAND).name == "genetic"
