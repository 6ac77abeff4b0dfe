"""Rewards with one term for each subtask, by the genetic proposer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jaxreward.evolution.subtask_terms import broken_contract
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import Gene, read, write
from jaxreward.proposers.genetic.subtasks import groups_of
from jaxreward.records import (
    Instruction,
    Notice,
    ProgramSummary,
    Seen,
    Subgoals,
    Subtask,
    Verdict,
    Watched,
    read_subtasks,
)
from jaxreward.tasks import card, make_task
from tests.proposers.material import request, result

CARD = card(make_task("panda-cabinet"))
PROPOSER = GeneticProposer(CARD)
INSTRUCTION = CARD.instruction or Instruction(words="Go.")
SUBTASKS = INSTRUCTION.subtasks
NAMES = [subtask.name for subtask in SUBTASKS]
WORDS = PROPOSER.propose(request("divide"), np.random.default_rng(0)).words


def rng(seed=0):
    return np.random.default_rng(seed)


def plan(words=WORDS, operator="divide"):
    answer = result("", name="plan")
    candidate = answer.candidate.model_copy(update={"operator": operator})
    return answer.model_copy(update={"words": words, "candidate": candidate})


def watched(**scores):
    seen = Watched(subtasks={name: (Seen(score=score),) for name, score in scores.items()})
    return result("", name="seen").model_copy(update={"words": seen.as_words()})


def composed(seed=0, words=WORDS, **more):
    return PROPOSER.propose(request("compose", plan=plan(words), **more), rng(seed)).source


def terms(source):
    """The fragments of each term of the reward, in order."""
    genome = read(source)
    groups, found = dict(genome.groups), dict[str, list[str]]()
    for gene in genome.genes("reward"):
        found.setdefault(groups.get(gene.name, gene.name), []).append(gene.name)
    return found


def test_the_subtasks_are_the_tasks_own():
    assert [s.name for s in read_subtasks(WORDS)] == NAMES == ["reach", "hold", "pull", "gently"]


def test_a_term_for_each_subtask_of_what_pays_for_it():
    programs = [composed(seed) for seed in range(40)]
    assert len({read(source).key for source in programs}) > 30
    for source in programs:
        assert list(terms(source)) == NAMES
        for subtask in SUBTASKS:
            assert set(terms(source)[subtask.name]) <= set(subtask.terms)
    assert {len(parts) for source in programs for parts in terms(source).values()} == {1, 2}


def test_sums_are_read_as_they_are_written():
    for seed in range(20):
        source = composed(seed, evolve="reward")
        assert write(read(source)) == source


def test_what_was_seen_to_be_done_badly_is_changed_most():
    parent = result(composed(3, evolve="reward"), 0.5)
    before, changed = read(parent.candidate.source), dict.fromkeys(NAMES, 0)
    for seed in range(60):
        asked = request("amend", parent, plan=plan(), watched=watched(reach=1.0, hold=1.0, pull=0.0, gently=1.0),
                        evolve="reward")  # fmt: skip
        source = PROPOSER.propose(asked, rng(seed)).source
        assert list(terms(source)) == NAMES
        groups, weights = dict(read(source).groups), dict(before.genes("reward"))
        for gene in read(source).genes("reward"):
            changed[groups.get(gene.name, gene.name)] += gene.weight != weights.get(gene.name)
    assert changed["pull"] > 4 * max(changed[name] for name in NAMES if name != "pull")


def test_without_a_contract_it_is_changed_most_too():
    parent = result(PROPOSER.propose(request(evolve="reward"), rng(1)).source, 0.5)
    before, changed = dict(read(parent.candidate.source).genes("reward")), dict.fromkeys(NAMES, 0)
    paid = {term: subtask.name for subtask in SUBTASKS for term in subtask.terms}
    for seed in range(60):
        asked = request("reflect", parent, watched=watched(reach=1.0, hold=1.0, pull=0.0, gently=1.0), evolve="reward")
        after = dict(read(PROPOSER.propose(asked, rng(seed)).source).genes("reward"))
        for name in before.keys() | after.keys():
            if name in paid:
                changed[paid[name]] += before.get(name) != after.get(name)
    assert changed["pull"] > 4 * max(changed[name] for name in NAMES if name != "pull")
    unseen = PROPOSER.propose(request("reflect", parent, evolve="reward"), rng(0)).source
    assert (
        unseen
        == PROPOSER.propose(request("reflect", parent, watched=watched(dance=0.0), evolve="reward"), rng(0)).source
    ), "of subtasks that the task does not know nothing follows"


def test_parents_of_another_form_get_the_terms():
    parent = result(PROPOSER.propose(request(evolve="reward"), rng(0)).source, 0.1)
    asked = request("amend", parent, plan=plan(), evolve="reward")
    assert all(list(terms(PROPOSER.propose(asked, rng(seed)).source)) == NAMES for seed in range(10))


def test_subtasks_that_the_task_does_not_know():
    words = "- reach: come near\n- dance: turn twice"
    source = composed(words=words)
    assert list(terms(source)) == ["reach", "dance"]
    others = {name for subtask in SUBTASKS if subtask.name == "reach" for name in subtask.terms}
    assert not others & set(terms(source)["dance"])


def test_without_subtasks_it_starts_from_scratch():
    assert read(PROPOSER.propose(request("compose"), rng(0)).source).genes("reward")
    parent = result(PROPOSER.propose(request(), rng(1)).source, 0.5)
    assert PROPOSER.propose(request("amend", parent), rng(0)).source != parent.candidate.source


def test_a_fragment_pays_for_the_first_subtask_that_lists_it():
    own = INSTRUCTION.model_copy(update={"subtasks": (
        Subtask(name="one", words="x", terms=("near", "gone")), Subtask(name="two", words="y"),
    )})  # fmt: skip
    assert groups_of(own.subtasks, own, ["near", "closer"]) == {"one": ("near",), "two": ("closer",)}
    overlapping = own.model_copy(update={"subtasks": (
        Subtask(name="one", words="x", terms=("near", "far")), Subtask(name="two", words="y", terms=("far", "closer")),
    )})  # fmt: skip
    groups = groups_of(overlapping.subtasks, overlapping, ["near", "far", "closer"])
    assert groups == {"one": ("near", "far"), "two": ("closer",)}
    narrow = own.model_copy(update={"subtasks": (
        Subtask(name="one", words="x", terms=("near", "far")), Subtask(name="two", words="y", terms=("far",)),
    )})  # fmt: skip
    assert groups_of(narrow.subtasks, narrow, ["near", "far"]) == {"one": ("near",), "two": ("far",)}
    unlisted = [Subtask(name=name, words="z") for name in ("one", "two")]
    assert groups_of(unlisted, None, list("abcde")) == {"one": tuple("ace"), "two": tuple("bd")}


def test_many_subtasks_have_a_term_each():
    words = "\n".join(f"- part_{k}: do {k}" for k in range(8))
    assert all(len(terms(composed(seed, words, evolve="reward"))) == 8 for seed in range(20))


def test_a_subtask_that_nothing_can_pay_for_is_declined():
    few = CARD.vocabulary.model_copy(update={
        "fragments": tuple(f for f in CARD.vocabulary.fragments if f.kind == "feature" or f.name == "drawer_out")
    })  # fmt: skip
    proposer = GeneticProposer(CARD.model_copy(update={"vocabulary": few, "subgoals": Subgoals()}))
    answer = proposer.propose(request("compose", plan=plan()), rng())
    assert answer.failure is not None and answer.failure.stage == "declined" and "'" in answer.failure.message


def test_every_subtask_has_a_term_where_the_task_lists_none():
    words = "- dance: turn twice\n- sing: be loud\n- rest: stay"
    for seed in range(10):
        source = composed(seed, words)
        assert list(terms(source)) == ["dance", "sing", "rest"]
        asked = request("amend", result(source, 0.5), plan=plan(words), watched=watched(dance=0.0), evolve="reward")
        assert list(terms(PROPOSER.propose(asked, rng(seed)).source)) == ["dance", "sing", "rest"]


@pytest.mark.parametrize("key", ["a b", 'x"y', "", "1st"])
def test_keys_that_are_no_names_are_not_written(key):
    source = composed(1, evolve="reward").replace('"reach"', repr(key))
    again = write(read(source))
    assert key not in dict(read(source).groups).values() and write(read(again)) == again


def test_long_sums_are_read():
    genome = read(composed(1, evolve="reward"))
    names = [f.name for f in CARD.vocabulary.fragments if f.kind == "term"]
    whole, _ = genome.with_statements(PROPOSER.lexicon.definition(names))
    whole = replace(whole.with_half("reward", tuple(Gene(n) for n in names)), groups=tuple((n, "all") for n in names))
    again = read(write(whole))
    assert again.genes("reward") == whole.genes("reward") and set(dict(again.groups).values()) == {"all"}
    assert max(map(len, write(whole).splitlines())) <= 120


# --- the contract


def verdict(*names):
    return Verdict(summary=ProgramSummary(digest="d", observation_size=1, terms=names))


def test_the_contract():
    asked = request("compose", plan=plan())
    assert broken_contract(asked, verdict(*NAMES)) is None
    assert broken_contract(asked, verdict(*reversed(NAMES))) is None
    lacking = broken_contract(asked, verdict("reach", "hold", "pull", "speed"))
    assert lacking is not None and lacking.stage == "contract"
    assert "lacks gently" in str(lacking) and "has speed, which is no subtask" in str(lacking)
    assert broken_contract(request("improve", result("", 0.5)), verdict("speed")) is None
    assert broken_contract(request("implement", plan=plan(operator="plan")), verdict("speed")) is None
    assert broken_contract(asked, Verdict()) is None
    apart = verdict(*NAMES).model_copy(update={"notices": (Notice(kind="terms_do_not_sum", message="apart"),)})
    assert "they do not sum to it" in str(broken_contract(asked, apart))
    assert broken_contract(request("improve", result("", 0.5)), apart) is None, "a remark elsewhere"


def test_a_repair_is_held_to_it_too():
    asked = request("repair", plan=plan(operator="revise"), failed=result("", name="f"))
    assert broken_contract(asked, verdict("speed")) is not None
