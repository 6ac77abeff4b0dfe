"""Programs from scratch of `benchmarks/random_programs.py`: how they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import random_programs
from benchmarks.random_programs import RandomProgramsSettings, run, shuffled, sources_of
from jaxreward.errors import UserError
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


def test_the_same_command_goes_on_with_the_tasks_that_are_left(tmp_path, monkeypatch) -> None:
    measured = list[str]()

    def row(name, s):
        if name == "stop":
            raise KeyboardInterrupt
        measured.append(name)
        return {"task": name, **{kind: {"success": [0.0, 0.6], "solved": 0.5} for kind in s.kinds}}

    monkeypatch.setattr(random_programs, "task_row", row)
    out = tmp_path / "random_programs.json"
    with pytest.raises(KeyboardInterrupt):
        run(RandomProgramsSettings(tasks=("one", "stop"), out=out))
    report = run(RandomProgramsSettings(tasks=("one", "two"), out=out))
    assert measured == ["one", "two"] == [row["task"] for row in report["rows"]]
    with pytest.raises(UserError, match="results of other settings"):
        run(RandomProgramsSettings(tasks=("three",), steps=10, out=out))
