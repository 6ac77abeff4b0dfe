"""The vocabulary of levels: what its fragments say of states that experts reach."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from jaxreward.function_source.definitions import source_of
from jaxreward.programs import Checker
from jaxreward.tasks.levels import codes
from jaxreward.tasks.levels.expert import expert_actions
from jaxreward.tasks.levels.vocabulary import level_vocabulary
from tests.compilation import jit
from tests.tasks.levels_played import at, level, play, starts

VOCABULARY = level_vocabulary()
FEATURES = [f for f in VOCABULARY.fragments if f.kind == "feature"]


def features(view: Any) -> dict[str, np.ndarray]:
    names: dict[str, Any] = {}
    exec(source_of(VOCABULARY, [f.name for f in FEATURES]), names)  # a text of this package
    found = jit(lambda v: {f.name: names[f.name](v) for f in FEATURES})(jax.tree.map(jax.numpy.asarray, view))
    return {name: np.asarray(x) for name, x in found.items()}


def ends(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], Any]:
    """Features of the first and of the last state of an expert's episode, and the last view."""
    state, task = starts(name)[1], level(name)
    played = play(name, state, expert_actions(name, state))
    last = at(played.views, played.ends - 1)
    return features(task.view(state)), features(last), last


def test_features_have_the_size_that_they_say() -> None:
    first, _, _ = ends("PickupDist")
    assert {f.name: f.size for f in FEATURES} == {name: x.shape[0] for name, x in first.items()}
    assert all(x.dtype == np.float32 for x in first.values())


def test_what_is_picked_up_is_carried_and_was_faced() -> None:
    first, last, view = ends("PickupDist")
    kind, colour, _ = map(int, view.carrying)
    assert not first["carries"][0] and last["carries"][0] and last["carries_named"][0]
    assert np.flatnonzero(last["carried"]).tolist() == [(kind - codes.DOOR) * 6 + colour]
    assert first["lying"].sum() == last["lying"].sum() + 1


def test_what_was_gone_to_is_faced() -> None:
    first, last, _ = ends("GoToObjS4")
    assert last["faces_named"][0] and last["facing"].sum() == 1 and last["way_named"][0] == pytest.approx(0.1)
    assert last["beside"].sum() >= 1 and first["lying"].sum() == 1


def test_doors_that_were_opened_are_open() -> None:
    first, last, _ = ends("OpenTwoDoors")
    assert not first["opened_named"].any() and last["opened_named"].all()
    assert last["doors_open"].sum() == 2 and last["faces_opened_named"][1] and last["facing_door"].tolist() == [1, 0, 0]


def test_what_was_put_between_is_in_the_middle() -> None:
    first, last, _ = ends("PlaceBetween")
    assert not first["middle_named"][0] and last["middle_named"][0] and last["middle"].sum() >= 1


def test_what_was_sorted_lies_on_its_side() -> None:
    first, last, _ = ends("SortColors")
    red, blue = codes.RED, codes.BLUE
    assert first["balls_left"][red] and first["balls_right"][blue]
    assert last["balls_right"][red] and last["balls_left"][blue]


@pytest.mark.long
def test_every_fragment_passes_the_checks(checker: Checker) -> None:
    """Of a program with all of the terms, and of one with all of the features."""
    terms = [f.name for f in VOCABULARY.fragments if f.kind == "term"]
    total = " + ".join(f"{name}(state, action, next_state)" for name in terms)
    reward = f"def compute_reward(state, action, next_state):\n    return {total}\n"
    seen = ", ".join(f"{f.name}(state)" for f in FEATURES)
    observation = f"def get_observation(state):\n    return jnp.concatenate([{seen}])\n"
    sources = [f"{source_of(VOCABULARY, terms)}\n\n{reward}",
               f"{source_of(VOCABULARY, [f.name for f in FEATURES])}\n\n{observation}"]  # fmt: skip
    for verdict, _ in checker.check_many(sources, level("OpenRedDoor")):
        assert verdict.ok, str(verdict.failure)
