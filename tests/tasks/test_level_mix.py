"""Levels that are mixed: each episode is as in its own level, and the mission tells which it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.demonstrations import record_expert
from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.tasks import make_task
from tests.compilation import jit
from tests.tasks.levels_played import level

ROOM = ("GoToRedBall", "PickupLoc", "PlaceBetween")
PAIR = ("OpenRedDoor", "SortColors")


def mix(*names: str) -> Any:
    return make_task(f"babyai/{'+'.join(names)}", starts=8)


@pytest.mark.slow
@pytest.mark.parametrize("names", [ROOM, PAIR], ids=["one room", "two rooms"])
def test_an_episode_is_as_in_its_own_level(names: tuple[str, ...]) -> None:
    task, rng = mix(*names), np.random.default_rng(0)
    step, reward, see = jit(task.step), jit(task.sparse_reward), jit(task.default_observation)
    for name in names:
        own = level(name)
        state = jax.tree.map(lambda x: jnp.asarray(x)[0], own.bank())
        actions = [*own.expert_actions(jax.device_get(state))[:-1], *rng.integers(0, 7, 12)]
        last = own.expert_actions(jax.device_get(state))[-1]
        own_step, own_see = jit(own.step), jit(own.default_observation)
        for action in [*actions[:-12], last, *actions[-12:]]:
            after, expected = step(state, jnp.int32(action)), own_step(state, jnp.int32(action))
            jax.tree.map(np.testing.assert_array_equal, after, expected)
            views = own.view(state), own.view(after)
            assert reward(views[0], action, views[1]) == own.sparse_reward(views[0], action, views[1])
            seen = own_see(views[1])
            np.testing.assert_array_equal(see(views[1])[: len(seen)], seen)
            assert not see(views[1])[len(seen) :].any()
            state = after
            if action == last and bool(after.solved):
                break
        assert bool(state.solved), name


@pytest.mark.long
def test_every_level_is_drawn_and_its_expert_plays_it() -> None:
    task = mix(*ROOM)
    found = record_expert(task, 30, seed=1)
    assert (found.success == 1).all()
    kinds = Counter(text.split()[0] for text in found.texts)
    assert set(kinds) == {"go", "pick", "put"} and min(kinds.values()) >= 4
    assert "in each episode one of 3" in task.description and "go to a red ball" in task.description


@pytest.mark.parametrize(
    ("names", "error", "says"),
    [
        (("GoToObj", "OpenRedDoor"), InvalidSetting, "GoToObj goes with GoToRedBallNoDist, GoToRedBall, PickupLoc"),
        (("GoToObj", "GoToObj"), InvalidSetting, "name it once"),
        (("GoToObj", "PickUpLoc"), UnknownName, "PickupLoc"),
    ],
)
def test_levels_that_do_not_go_together_are_refused(names: tuple[str, ...], error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        mix(*names)
