"""Levels beside MiniGrid's own: every step of the same actions, and what levels are like."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from benchmarks import minigrid_levels as beside
from jaxreward.tasks.levels.bank import start_states
from jaxreward.tasks.levels.catalogue import LEVELS
from jaxreward.tasks.levels.codes import BALL, BOX, DOOR, KEY
from jaxreward.tasks.levels.mission import mission_sentence
from jaxreward.tasks.levels.state import LevelState

MOST = 100


@pytest.mark.parametrize("name", ["GoToObjS4", "PickupLoc", "OpenTwoDoors"])
def test_every_step_is_as_in_minigrid(name):
    steps, wrong, won = beside.compared(name, 6)
    assert steps > 20 and wrong == 0 and won > 0


def test_every_grid_has_the_size_of_minigrids():
    sizes = {name: (env.height, env.width) for name in beside.PUBLIC for env in [beside.environment(name)]}
    assert {name: (LEVELS[name].height, LEVELS[name].width) for name in beside.PUBLIC} == sizes


@pytest.mark.slow
def test_a_hundred_thousand_steps_are_as_in_minigrid():
    found = {name: beside.compared(name, 220) for name in beside.PUBLIC}
    assert sum(steps for steps, _, _ in found.values()) >= 100_000
    assert {name: wrong for name, (_, wrong, _) in found.items() if wrong} == {}
    assert all(won for _, _, won in found.values())


def test_a_difference_is_found():
    env = beside.environment("PickupDist")
    episode = beside.play(env, 0, beside.bot_actions(0, 0.0), MOST)
    replayed = beside.replay("PickupDist", MOST)
    episode.agents[1, 2] += 1
    episode.solved[-1] = False
    assert replayed(episode) == 2


def figures(state: LevelState) -> list[float]:
    """What a start state is like, in numbers."""
    kinds, colours = state.grid[:, :, 0], state.grid[:, :, 1]
    things = [float((kinds == kind).sum()) for kind in (DOOR, KEY, BALL, BOX)]
    row, column = state.position
    near = [np.abs(np.argwhere(state.targets[k][state.ids]) - state.position).sum(1).min(initial=99) for k in range(2)]
    lies = np.argwhere(state.ids)
    return [
        *things, float(colours[state.ids > 0].mean()), float((state.grid[:, :, 2] == 2).sum()), float(row),
        float(column),
        *(float(state.direction == d) for d in range(4)), *map(float, near), *map(float, lies.mean(0)),
        *map(float, state.targets.sum(1)), *(float(x) for x in state.mission[:, 1:].ravel()),
        *(float(state.mission[0, 3] == place) for place in range(4)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "n"),
    [("PickupLoc", 150), ("GoToDoor", 150), *(pytest.param(x, 600, marks=pytest.mark.slow) for x in beside.PUBLIC)],
)
def test_levels_are_like_those_of_minigrid(name: str, n: int):
    """No mean of a figure differs by more than chance allows; what is the same in all levels there, is here."""
    env: Any = beside.environment(name)
    theirs = [beside.begin(env, seed) for seed in range(n)]
    said = env.mission
    ours = list(islice(start_states(name, 0), n))
    assert ours[0].grid.shape == theirs[0].grid.shape
    one, other = np.array([figures(x) for x in ours]), np.array([figures(x) for x in theirs])
    error = np.sqrt((one.var(0) + other.var(0)) / n)
    assert np.all(np.abs(one.mean(0) - other.mean(0)) <= 4.5 * error)
    assert mission_sentence(theirs[-1].mission) == said.replace(" a ", " the ")
