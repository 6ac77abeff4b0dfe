"""The XLand tasks are xminigrid's environments, seen through our protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xminigrid

from jaxreward.errors import FileProblem, InvalidSetting, UnknownName, UnusableFile, UserError
from jaxreward.tasks import make_task, metric_names, progress_names
from jaxreward.tasks.xland import XLand, tile
from tests.compilation import jit


def xland(name: str) -> XLand:
    task = make_task(name)
    assert isinstance(task, XLand)
    return task


pytestmark = pytest.mark.usefixtures("unoptimised")
NAMES = ("xland-easy", "xland-medium", "xland-hard")
STEPS, LANES = 60, 64


@pytest.fixture(scope="module", params=NAMES)
def played(request):
    """Random play of our task and of xminigrid's own environment, from the same levels."""
    task = xland(request.param)
    env, params = xminigrid.make(task.environment, ruleset=task.ruleset, max_steps=task.horizon, view_size=7)

    def play(key):
        reset_key, action_key = jax.random.split(key)
        # picking up and putting down more often than by chance, so that goals are reached
        actions = jax.random.choice(action_key, jnp.array([0, 0, 1, 3, 3, 4, 5]), (STEPS,))

        def step(carry, action):
            ours, theirs = carry
            following, timestep = task.step(ours, action), env.step(params, theirs, action)
            reward = task.sparse_reward(task.view(ours), action, task.view(following))
            obs = task.default_observation(task.view(following))
            return (following, timestep), (following, timestep.state, timestep.reward > 0, reward, obs,
                                           jnp.asarray(timestep.observation).reshape(-1))  # fmt: skip

        start = task.reset(reset_key)
        return start, jax.lax.scan(step, (start, env.reset(params, reset_key)), actions)[1]

    return task, jit(jax.vmap(play))(jax.random.split(jax.random.key(0), LANES))


def test_every_step_is_that_of_xminigrid(played):
    _, (_, (ours, theirs, *_)) = played
    np.testing.assert_array_equal(ours.grid, theirs.grid)
    np.testing.assert_array_equal(ours.agent.position, theirs.agent.position)
    np.testing.assert_array_equal(ours.agent.direction, theirs.agent.direction)
    np.testing.assert_array_equal(ours.agent.pocket, theirs.agent.pocket)
    np.testing.assert_array_equal(ours.step_num, theirs.step_num)


def test_success_is_the_environments_own_goal_event(played):
    task, (start, (ours, _, goal, reward, *_)) = played
    np.testing.assert_array_equal(ours.solved, goal)
    np.testing.assert_array_equal(reward, goal.astype(np.float32))
    if task.name == "xland-easy":
        assert goal.any(), "the test needs goals that are reached"
    # nothing is solved at the start, not even where the two tiles of medium start side by side
    assert not start.solved.any()


def test_the_default_observation_is_the_egocentric_view(played):
    _, (_, (*_, ours, theirs)) = played
    assert ours.shape[-1] == 98 and ours.dtype == np.float32
    np.testing.assert_array_equal(ours, theirs.astype(np.float32))


def test_what_must_come_before_the_goal_is_measured(played):
    """Held or made in any state after the first; success is as without."""
    task, (_, (ours, *_)) = played
    stages = {"xland-easy": (), "xland-medium": ("held_yellow_pyramid",), "xland-hard": ("made_green_ball",)}[task.name]
    assert metric_names(task) == progress_names(task) == stages
    metric: Any = task.score()

    def fold(acc, states):
        return jax.lax.scan(lambda acc, state: (metric.update(acc, state, 0, state), None), acc, states)[0]

    acc = jit(jax.vmap(lambda states: fold(metric.init(), states)))(ours)
    np.testing.assert_array_equal(jax.vmap(metric.value)(acc), np.asarray(ours.solved.any(1), np.float32))
    if stages:
        thing = {"xland-medium": tile("pyramid", "yellow"), "xland-hard": tile("ball", "green")}[task.name]
        held = (np.asarray(ours.agent.pocket) == np.asarray(thing)).all(-1).any(1)
        reached = np.asarray(jax.vmap(metric.also)(acc))[:, 0]
        assert held.any() and not held.all() and (reached >= held).all()
        lies = (np.asarray(ours.grid) == np.asarray(thing)).all(-1).any((1, 2, 3))
        np.testing.assert_array_equal(reached, held if task.name == "xland-medium" else held | lies)


@pytest.mark.parametrize(
    ("name", "horizon", "size", "objects"),
    [
        ("xland-easy", 80, 9, {(5, 3), (3, 1)}),
        ("xland-medium", 80, 9, {(5, 5), (4, 2)}),
        ("xland-hard", 400, 13, {(5, 3), (11, 5), (3, 4), (4, 8), (3, 2), (12, 6)}),
    ],
)
def test_horizons_sizes_and_objects_are_those_of_the_paper(name, horizon, size, objects):
    task = xland(name)
    assert (task.horizon, task.height, task.width) == (horizon, size, size)
    assert set(task.objects) == objects
    assert task.action_space.n == 6


def test_hard_turns_the_pyramid_into_a_ball_and_wants_it_beside_the_hex():
    task = make_task("xland-hard")
    step = jit(task.step)
    state = jit(task.reset)(jax.random.key(1))
    grid = jnp.zeros_like(state.grid).at[:].set(jnp.array([1, 7], jnp.uint8))
    grid = grid.at[5, 5].set(jnp.array([5, 3], jnp.uint8)).at[4, 4].set(jnp.array([11, 5], jnp.uint8))
    agent = state.agent.replace(position=jnp.array([5, 4]), direction=jnp.int32(1), pocket=jnp.zeros(2, jnp.uint8))
    state = state.replace(grid=grid, agent=agent)
    holding = step(state, jnp.int32(3))
    assert holding.agent.pocket.tolist() == [3, 2] and not holding.solved
    wrong = step(holding, jnp.int32(4))
    assert wrong.grid[5, 5].tolist() == [3, 2] and not wrong.solved
    turned = step(step(holding, jnp.int32(2)), jnp.int32(2))
    assert turned.agent.direction == 3
    diagonal = step(turned, jnp.int32(4))
    assert not diagonal.solved  # (5, 3) is diagonal to the hex
    moved = holding.replace(agent=holding.agent.replace(position=jnp.array([4, 6]), direction=jnp.int32(3)))
    placed = step(moved, jnp.int32(4))
    assert placed.grid[4, 5].tolist() == [3, 2] and placed.solved
    metric = task.score()
    assert metric.value(metric.update(metric.init(), moved, jnp.int32(4), placed)) == 1.0


def test_words_name_the_goal_and_the_rules():
    text = make_task("xland-hard").description
    for part in ("green ball", "yellow hex", "blue pyramid becomes a green ball", "400 steps"):
        assert part in text
    assert "Pick up the blue pyramid" in make_task("xland-easy").description


GRID = "xland/XLand-MiniGrid-R1-9x9"
RULESET = """\
goal = [3, 5, 3]
rules = [[0]]
init_tiles = [[5, 3], [3, 1]]
horizon = 50
"""


def test_a_ruleset_is_read_from_a_file(tmp_path: Path):
    path = tmp_path / "near.toml"
    path.write_text(RULESET)
    task = make_task(f"xland/XLand-MiniGrid-R1-9x9/{path}")
    assert task.horizon == 50
    assert "Walk next to the blue pyramid" in task.description
    state = jit(lambda key: task.step(task.reset(key), jnp.int32(0)))(jax.random.key(0))
    assert state.solved.shape == ()


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("xland-eazy", {"kind": "task", "name": "xland-eazy", "nearest": "xland-easy"}),
        ("xland/XLand-MiniGrid-R1-9x8/a.toml", {"kind": "XLand environment", "nearest": "XLand-MiniGrid-R1-9x9"}),
        (f"{GRID}/trivial:1", {"kind": "benchmark", "name": "trivial"}),
    ],
)
def test_an_unknown_name_has_the_nearest_one(name: str, fields: dict[str, Any]):
    with pytest.raises(UnknownName) as error:
        make_task(name)
    assert fields.items() <= vars(error.value).items()


@pytest.mark.parametrize(
    ("name", "setting"), [(GRID, "task.ruleset"), (f"{GRID}/trivial-21k:x", "task.ruleset.number")]
)
def test_a_name_without_a_ruleset_is_refused(name: str, setting: str):
    with pytest.raises(InvalidSetting) as error:
        make_task(name)
    assert error.value.settings == (setting,)


@pytest.mark.parametrize(("text", "problem"), [(None, FileProblem.MISSING), ("goal = ", FileProblem.DAMAGED)])
def test_an_unusable_ruleset_file_is_named(tmp_path: Path, text: str | None, problem: FileProblem):
    path = tmp_path / "rules.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UnusableFile) as error:
        make_task(f"{GRID}/{path}")
    assert (error.value.path, error.value.problem) == (path, problem)


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ("horizon", "horizn", {"kind": "key", "name": "horizn", "nearest": "horizon"}),
        ("[3, 5, 3]", "[99]", {"settings": ("goal",)}),
        ("[3, 5, 3]", "[0]", {"settings": ("task.ruleset",)}),
        ("[5, 3], [3, 1]", "[5]", {"settings": ("init_tiles",)}),
    ],
)
def test_an_invalid_key_of_a_ruleset_file_is_named(tmp_path: Path, old: str, new: str, fields: dict[str, Any]):
    path = tmp_path / "rules.toml"
    path.write_text(RULESET.replace(old, new))
    with pytest.raises(UserError) as error:
        make_task(f"{GRID}/{path}")
    assert fields.items() <= vars(error.value).items()
