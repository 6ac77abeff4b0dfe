"""What the genetic proposer writes passes the same checks as everybody else's programs."""

from __future__ import annotations

import numpy as np
import pytest

from jaxreward.programs import Checker
from jaxreward.proposers.genetic import GeneticProposer
from jaxreward.proposers.genome import Gene, Genome, write
from jaxreward.records import TaskCard
from jaxreward.tasks.registry import make_task
from tests.proposers.material import request


@pytest.mark.parametrize("name", ["xland-medium", "xland-hard"])
def test_programs_pass_the_checks(name):
    task = make_task(name)
    vocabulary = task.vocabulary()
    proposer = GeneticProposer(TaskCard(name=name, description="", state_doc="", vocabulary=vocabulary))
    sources = [proposer.propose(request(), np.random.default_rng(seed)).source for seed in range(4)]
    features = [f.name for f in vocabulary.fragments if f.kind == "feature"]
    terms = [f.name for f in vocabulary.fragments if f.kind == "term"]
    for start in range(0, 40, 10):  # among them, the fragments of the first object
        some = (features[start : start + 10], terms[start : start + 10])
        genes = [tuple(Gene(fragment) for fragment in part) for part in some]
        sources.append(write(Genome(genes[0], genes[1], proposer.lexicon.definition([*some[0], *some[1]]))))
    with Checker() as checker:
        for source, (verdict, _) in zip(sources, checker.check_many(sources, task), strict=True):
            assert verdict.ok, f"{verdict.failure}\n{source}"
