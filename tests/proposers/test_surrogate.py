"""The genetic proposer's linear model of a run's scores, and the programs that it picks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import read
from jaxreward.proposers.genetic.surrogate import LEAST, NOISE, PRECISION, Surrogate, features
from jaxreward.proposers.proposer import Context, Known
from jaxreward.tasks import card, make_task
from tests.proposers.material import request, result

CARD = card(make_task("xland-medium"))
SOURCES = [GeneticProposer(CARD).propose(request(), np.random.default_rng(k)).source for k in range(200)]
GENES = [set(features(read(source))) for source in SOURCES]
GOOD = min(
    sorted({name for genes in GENES for name in genes if name.startswith("reward ")}),
    key=lambda name: abs(sum(name in genes for genes in GENES) - 60),
)
"""The planted gene, which is worth something: a term that about every third program has."""


def has(source: str) -> bool:
    return GOOD in features(read(source))


def known(count: int) -> list[Known]:
    """Programs with merits that are higher with the planted gene, and otherwise noise."""
    noise = np.random.default_rng(3).normal(size=count)
    return [Known(s, (2.0 * has(s) + float(e), 0.0)) for s, e in zip(SOURCES[:count], noise, strict=True)]


def proposer(draws: int, programs: list[Known]) -> GeneticProposer:
    made = GeneticProposer(CARD, surrogate=draws)
    made.open(Context(folder=Path(), known=lambda: programs))
    return made


def proposals(made: GeneticProposer, operator: str = "scratch", parents: int = 0, count: int = 30) -> list[str]:
    shown = [result(SOURCES[k], 0.1, name=str(k)) for k in range(parents)]
    asked = [request(operator, *shown).model_copy(update={"id": f"r{k}"}) for k in range(count)]
    return [p.source for p in made.propose_all(asked, lambda r: np.random.default_rng(1000 + int(r.id[1:]))).proposals]


@pytest.mark.parametrize(("operator", "parents"), [("scratch", 0), ("improve", 1), ("crossover", 2)])
def test_the_better_of_many_draws_is_proposed(operator, parents):
    chosen = proposals(proposer(16, known(60)), operator, parents)
    first = proposals(proposer(0, known(60)), operator, parents)
    assert np.mean([*map(has, chosen)]) > np.mean([*map(has, first)]) + 0.2
    assert len(set(chosen)) > 20, "what the scores leave open is decided differently every time"


def test_with_few_scores_the_first_draw_is_proposed():
    first = proposals(proposer(0, []))
    for programs in ([], known(LEAST - 1), [Known(s, (0.0, 0.0)) for s in SOURCES[:50]]):
        assert proposals(proposer(16, programs)) == first


def test_answers_depend_on_the_request_and_the_scores_alone():
    """So a resumed run proposes what an uninterrupted one would have."""
    made = proposer(8, known(60))
    whole = proposals(made, count=8)
    assert whole == proposals(proposer(8, known(60)), count=8)
    assert whole[:3] == proposals(made, count=3)


def test_only_the_order_of_merits_counts():
    programs = known(60)
    stretched = [Known(x.source, (float(np.exp(9 * x.merit[0])), 0.0)) for x in programs]
    assert proposals(proposer(8, programs), count=6) == proposals(proposer(8, stretched), count=6)


def test_the_model_is_bayesian_linear_regression():
    programs = known(200)
    found = Surrogate.of(programs)
    assert found is not None
    genes = [features(read(x.source)) for x in programs]
    rows = np.array([[own.get(name, 0.0) for name in found.names] for own in genes])
    rows -= rows.mean(axis=0)
    precision = rows.T @ rows + PRECISION * np.eye(len(found.names))
    assert found.root @ found.root.T == pytest.approx(NOISE**2 * np.linalg.inv(precision), abs=1e-9)
    best = dict(zip(found.names, found.mean, strict=True))
    assert max(best, key=lambda name: best[name]) == GOOD


def test_programs_that_cannot_be_read_and_unknown_genes_are_nothing():
    programs = [*known(40), Known("def broken(", (9.0, 0.0))]
    found = Surrogate.of(programs)
    other = read("def get_observation(state):\n    return state.x\n")
    without = Surrogate.of(known(40))
    assert found is not None and without is not None and (found.mean == without.mean).all()
    assert all(found.choice([other, other], np.random.default_rng(k)) == 0 for k in range(3))


def test_it_is_an_option_of_the_genetic_proposer():
    assert EvolveSettings(surrogate=32).proposer_options() == {"surrogate": 32}
    with pytest.raises(InvalidSetting, match="surrogate"):
        EvolveSettings(surrogate=32, proposer="llm").check()
