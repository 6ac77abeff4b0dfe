"""The genetic proposer's linear model of a run's scores, and the programs that it picks."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.started import started_settings
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import Gene, Genome, read, write
from jaxreward.proposers.genetic.surrogate import LEAST, PRECISION, Surrogate, features
from jaxreward.proposers.proposer import Context, Known
from jaxreward.search import make_strategy
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


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "parents"), [("scratch", 0), ("improve", 1), ("crossover", 2)])
def test_the_better_of_many_draws_is_proposed(operator, parents):
    chosen = proposals(proposer(16, known(60)), operator, parents)
    first = proposals(proposer(0, known(60)), operator, parents)
    assert np.mean([*map(has, chosen)]) > np.mean([*map(has, first)]) + 0.2
    assert len(set(chosen)) > 20, "every request draws programs of its own"


def test_with_few_scores_the_first_draw_is_proposed():
    first = proposals(proposer(0, []))
    for programs in ([], known(LEAST - 1), [Known(s, (0.0, 0.0)) for s in SOURCES[:50]]):
        assert proposals(proposer(16, programs)) == first


@pytest.mark.long
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


@pytest.mark.long
def test_the_model_is_bayesian_linear_regression():
    programs = known(200)
    found = Surrogate.of(programs)
    assert found is not None
    genes = [features(read(x.source)) for x in programs]
    rows = np.array([[own.get(name, 0.0) for name in found.names] for own in genes])
    rows -= rows.mean(axis=0)
    precision = rows.T @ rows + PRECISION * np.eye(len(found.names))
    places = np.argsort(np.argsort([x.merit for x in programs], axis=0)[:, 0]) + 0.5
    targets = np.array([NormalDist().inv_cdf(place / len(programs)) for place in places])
    assert found.weights == pytest.approx(np.linalg.inv(precision) @ rows.T @ targets, abs=1e-9)
    best = dict(zip(found.names, found.weights, strict=True))
    assert max(best, key=lambda name: best[name]) == GOOD


def test_programs_that_cannot_be_read_and_unknown_genes_are_nothing():
    programs = [*known(40), Known("def broken(", (9.0, 0.0))]
    found = Surrogate.of(programs)
    other = read("def get_observation(state):\n    return state.x\n")
    without = Surrogate.of(known(40))
    assert found is not None and without is not None and (found.weights == without.weights).all()
    assert found.choice([other, other]) == 0


def test_programs_that_pursue_more_subgoals_are_expected_to_do_better_where_those_did():
    """By their number alone: no program that was trained has the genes of those that are chosen between."""
    made = GeneticProposer(card(make_task("xland-hard")), blocks=True)
    blocks = made.blocks
    assert blocks is not None
    first, last = blocks.chain[0], blocks.chain[-1]

    def genome(*features: str) -> Genome:
        return Genome(tuple(map(Gene, ("agent_position", *features))), (Gene(blocks.reward, 1.0),))

    def source(genome: Genome) -> str:
        names = [gene.name for gene in (*genome.genes("observation"), *genome.genes("reward"))]
        return write(genome.with_statements(made.lexicon.definition(names))[0])

    one, two = genome(*first.directions[:1]), genome(*first.directions[:1], *first.flags[:1])
    more, fewer = genome(last.directions[0], *last.flags[:1]), genome(last.directions[0], "agent_facing")
    assert [sum(map(sum, blocks.roles_played(g))) for g in (one, two, more, fewer)] == [1, 2, 2, 1]
    trained = [Known(source(g), (score + 0.01 * k, 0.0)) for k in range(6) for g, score in ((one, 0.0), (two, 1.0))]
    found = Surrogate.of(trained, blocks)
    assert found is not None and found.choice([fewer, more]) == 1 and found.choice([more, fewer]) == 0
    without = Surrogate.of(trained)
    assert without is not None and without.choice([fewer, more]) == without.choice([more, fewer]) == 0


def test_it_is_an_option_of_the_genetic_proposer():
    assert EvolveSettings(surrogate=32).proposer_options() == {"surrogate": 32}
    with pytest.raises(InvalidSetting, match="surrogate"):
        EvolveSettings(surrogate=32, proposer="llm").check()
    with pytest.raises(InvalidSetting, match="does not go by the scores so far.*surrogate"):
        EvolveSettings(surrogate=32, strategy="best-of-n").check()


def test_by_default_large_generations_draw_fewer_and_samples_one():
    draws = {n: EvolveSettings(candidates=2048, generation=n).draws for n in (1, 8, 32, 64, 256, 2048)}
    assert draws == {1: 32, 8: 32, 32: 32, 64: 16, 256: 4, 2048: 4}
    others = (
        EvolveSettings(strategy="best-of-n"),
        EvolveSettings(proposer="llm"),
        EvolveSettings(objective="demonstrations"),
    )
    assert [other.draws for other in others] == [0, 0, 0]
    assert EvolveSettings(surrogate=0).draws == 0
    assert EvolveSettings().as_config()["surrogate"] == 32
    EvolveSettings(strategy="best-of-n").check()


def test_runs_of_before_go_on_without_it(tmp_path):
    for number, written in enumerate(("", "surrogate = 0\n", "surrogate = 8\n")):
        (tmp_path / "config.toml").write_text(f'task = "xland-easy"\n{written}')
        assert started_settings(tmp_path).draws == (0, 0, 8)[number]


def test_with_it_half_of_the_requests_of_limen_are_new(tmp_path):
    def fresh(**settings: Any) -> Any:
        made = EvolveSettings(**settings)
        strategy: Any = make_strategy(made.strategy, **made.strategy_options())
        assert f"fresh={strategy.fresh}" in made.as_config()["option"]
        return strategy.fresh

    assert (fresh(), fresh(surrogate=0), fresh(proposer="llm")) == (0.5, 0.0, 0.0)
    assert (fresh(option=("fresh=0.25",)), fresh(option=("fresh=0",))) == (0.25, 0.0)
    (tmp_path / "config.toml").write_text('task = "xland-easy"\nsurrogate = 32\noption = ["islands=2"]\n')
    begun = started_settings(tmp_path)  # before there was such an option
    again: Any = make_strategy("limen", **begun.strategy_options())
    assert again.fresh == 0.0
