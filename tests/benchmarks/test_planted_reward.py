"""`benchmarks/planted_reward.py`: what is planted, and what a search chooses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from benchmarks.planted_reward import PLANTED, Planted, chosen
from jaxreward.proposers.genetic.genome import read
from jaxreward.records import Seen, Watched
from jaxreward.reports.run_view import RunView
from jaxreward.tasks import make_task
from jaxreward.tasks.documentation import card
from tests.proposers.material import request, result


def test_what_is_planted_pays_for_every_subtask_and_no_two_are_equal():
    made = Planted(card(make_task("door-open")))
    asked = [request("compose").model_copy(update={"id": f"g0001-0{k}"}) for k in range(2)]
    sources = [made.propose(each, np.random.default_rng(0)).source for each in asked]
    first, second = map(read, sources)
    assert dict(first.groups).keys() == {name for parts in PLANTED.values() for name in parts}
    assert set(dict(first.groups).values()) == set(PLANTED) and first.key != second.key
    weights = dict(first.genes("reward"))
    assert weights["passing"] > 100 * max(w for name, w in weights.items() if name not in PLANTED["go"])


def test_one_search_chooses_by_what_was_seen_and_the_other_by_success():
    hasty, careful = result("", 0.9, name="hasty"), result("", 0.8, name="careful")
    seen = {"hasty": 0.5, "careful": 0.7}
    answers = [
        result("", None, name=f"watch-{name}").model_copy(
            update={
                "words": Watched(subtasks={"go": (Seen(score=score, why="so"),)}).as_words(),
                "candidate": result("").candidate.model_copy(update={"operator": "watch", "parents": (name,)}),
            }
        )
        for name, score in seen.items()
    ]
    view = cast(RunView, SimpleNamespace(results={str(k): found for k, found in enumerate(answers)}))
    both: Any = [hasty, careful]
    assert chosen(view, both, "success") is hasty and chosen(view, both, "what was seen") is careful
