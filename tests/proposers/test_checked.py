"""What the genetic proposer writes passes the same checks as everybody else's programs."""

from __future__ import annotations

import numpy as np
import pytest

from jaxreward.proposers.genetic.breeding import BREEDERS
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import Gene, Genome, write
from jaxreward.records import Evolve, TaskCard
from jaxreward.tasks import card
from tests.proposers.material import HAND_WRITTEN, IN_FORM, curve, feedback, request, result


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xland-medium", pytest.param("xland-hard", marks=pytest.mark.slow)])
def test_programs_pass_the_checks(name, checker, task_of):
    task = task_of(name)
    vocabulary = task.vocabulary()
    proposer = GeneticProposer(TaskCard(name=name, description="", state_doc="", vocabulary=vocabulary))
    sources = [proposer.propose(request(), np.random.default_rng(seed)).source for seed in range(4)]
    features = [f.name for f in vocabulary.fragments if f.kind == "feature"]
    terms = [f.name for f in vocabulary.fragments if f.kind == "term"]
    for start in range(0, 40, 10):  # among them, the fragments of the first object
        some = (features[start : start + 10], terms[start : start + 10])
        genes = [tuple(Gene(fragment) for fragment in part) for part in some]
        sources.append(write(Genome(genes[0], genes[1], proposer.lexicon.definition([*some[0], *some[1]]))))
    for source, (verdict, _) in zip(sources, checker.check_many(sources, task), strict=True):
        assert verdict.ok, f"{verdict.failure}\n{source}"


@pytest.mark.slow
def test_what_operators_make_passes_the_checks(checker, task_of):
    """Every operator and half, from parents of the vocabulary and from others."""
    task = task_of("xland-easy")
    proposer = GeneticProposer(card(task))
    pool = [proposer.propose(request(), np.random.default_rng(seed)).source for seed in range(4)]
    pool += [HAND_WRITTEN, IN_FORM]
    plan = result("", name="plan").model_copy(update={"words": proposer.propose(request("plan"), _rng(0)).words})
    halves: tuple[Evolve, ...] = ("both", "observation", "reward")
    sources = []
    for operator in BREEDERS:
        for seed, evolve in enumerate(halves):
            shown = [pool[i] for i in _rng(seed).permutation(len(pool))[:3]]
            flat_term = feedback(curve("time_cost", 0.001), dead_features=(0, 1))
            parents = [result(source, 0.2 * k, flat_term, 20, str(k)) for k, source in enumerate(shown)]
            wanted = request(operator, *parents, evolve=evolve, plan=plan)
            sources.append(proposer.propose(wanted, _rng(seed)).source)
    for source, (verdict, _) in zip(sources, checker.check_many(sources, task), strict=True):
        assert verdict.ok, f"{verdict.failure}\n{source}"


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
