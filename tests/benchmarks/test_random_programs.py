"""Programs from scratch of `benchmarks/random_programs.py`: how they are drawn."""

from __future__ import annotations

import numpy as np

from benchmarks.random_programs import shuffled, sources_of
from jaxreward.proposers.genetic.genome import read
from jaxreward.tasks import card, make_task

CARD = card(make_task("xland-hard"))


def test_shuffled_subgoals_name_other_fragments_of_the_same_kind() -> None:
    mixed = shuffled(CARD.subgoals, CARD, np.random.default_rng(0))
    kinds = {fragment.name: fragment.kind for fragment in CARD.subgoals.joined(CARD.vocabulary).fragments}
    for own, other in zip(CARD.subgoals.chain, mixed.chain, strict=True):
        assert not {*own.names()} & {*other.names()} and len(own.names()) == len(other.names())
        assert [kinds[name] for name in other.names()] == [kinds[name] for name in own.names()]
    assert mixed.reward == CARD.subgoals.reward


def test_programs_of_a_kind_differ_and_those_of_blocks_have_the_tasks_reward() -> None:
    for kind in ("plain", "blocks", "shuffled"):
        sources = sources_of(CARD, kind, 12)
        assert len({read(source).key for source in sources}) == 12
        if kind != "plain":
            assert all(CARD.subgoals.reward in {g.name for g in read(s).genes("reward")} for s in sources)
