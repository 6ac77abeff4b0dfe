"""The policy that a search keeps is that of its best candidate, by the order of merit that the search has."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from jaxreward.evolution.policies import POLICY, Policies
from jaxreward.objectives.training.generation import Agents
from jaxreward.records import Candidate, Feedback, Result, Score
from jaxreward.search import make_strategy


class Trained:
    """A training of one program, which only says whose it is."""

    stopped = np.zeros(1)
    diverged = np.zeros((1, 1), bool)

    def __init__(self, name: str) -> None:
        self.programs = [SimpleNamespace(digest=name)]

    def best_seed(self, row: int) -> int:
        return 0

    def variables(self, row: int, seed: int) -> str:
        return self.programs[row].digest


def scored(name: str, mean: float, se: float, stage: float | None = None) -> Result:
    """A success, and where a search looks at progress the part of the way there."""
    more: dict[str, Any] = {}
    if stage is not None:
        untrained = Score(mean=0.0, se=0.0, n=1, episodes=64)
        more["feedback"] = Feedback(progress={"near": (stage,)}, untrained=untrained, seed_success=(mean,))
    candidate = Candidate(id=name, generation=0, operator="scratch")
    return Result(candidate=candidate, score=Score(mean=mean, se=se, n=2, episodes=128), **more)


@pytest.mark.parametrize(
    ("results", "kept"),
    [
        ([scored("a", 0.5, 0.1), scored("b", 0.5, 0.0), scored("c", 0.5, 0.1)], "b"),
        ([scored("a", 0.0, 0.0, 0.1), scored("b", 0.0, 0.0, 0.6), scored("c", 0.0, 0.0, 0.3)], "b"),
        ([scored("a", 0.7, 0.1), scored("b", 0.6, 0.0), scored("c", 0.7, 0.2)], "a"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_ties_are_decided_as_the_search_does(results: list[Result], kept: str, together: bool, tmp_path: Path):
    strategy = make_strategy("best-of-n")
    saved: dict[str, Any] = {}
    run, store = SimpleNamespace(path=tmp_path), SimpleNamespace(save=saved.__setitem__)
    nothing: Any = None
    policies = Policies(cast(Any, run), cast(Any, store), nothing, nothing, strategy, None, print)
    state = strategy.init()
    for part in [results] if together else [[result] for result in results]:
        sound = [Agents(r.candidate, cast(Any, Trained(r.candidate.id)), 0) for r in part]
        policies.save(sound, [r.candidate for r in part], part, state)
        state = strategy.tell(state, tuple(part))
    best = strategy.best(state)
    assert best is not None and best.candidate.id == kept == saved["best-policy"]
    assert json.loads((tmp_path / POLICY).read_text())["digest"] == kept
