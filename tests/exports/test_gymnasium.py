"""Modules for Gymnasium against Gymnasium's own checker and against the tasks themselves."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.compilation import jit
from tests.exports.modules import INTERFACES, exported, imported, same, unplayed

gymnasium = pytest.importorskip("gymnasium")
pytestmark = [
    pytest.mark.usefixtures("unoptimised"),
    # What an interface shows has no bounds that anybody knows.
    pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum) value is -?infinity"),
]
EASY = (INTERFACES / "xland_easy" / "expert.py").read_text()
HORIZON = 25


@pytest.fixture(scope="module")
def grid(checker, task_of, tmp_path_factory):
    """The task with short episodes, its program, and the module."""
    task = task_of("xland-easy", (f"horizon={HORIZON}",))
    program = checker.load(EASY, unplayed(task))
    text = exported(EASY, task, "gymnasium", checker, "xland-easy").text
    return task, program, imported(text, tmp_path_factory.mktemp("grid"))


@pytest.fixture(scope="module")
def env(grid):
    """One of the module's environments; it is compiled once."""
    return grid[2].Env()


def first_key(seed: int) -> jax.Array:
    """The key of an environment's first episode after `reset(seed=seed)`."""
    return jax.random.key(int(gymnasium.utils.seeding.np_random(seed)[0].integers(2**31)))


@pytest.mark.long
def test_gymnasium_finds_nothing_wrong(grid, env):
    from gymnasium.utils.env_checker import check_env

    check_env(env, skip_render_check=True)
    seen, info = env.reset(seed=1)
    assert seen.dtype == np.float32 and info == {"success": 0.0, "terms": dict.fromkeys(grid[1].terms, 0.0)}
    assert env.observation_space.shape == (grid[1].observation_size,) and env.action_space == gymnasium.spaces.Discrete(
        6
    )


@pytest.mark.long
def test_the_exported_environment_plays_the_episodes_of_the_task(grid, env):
    """From the same states with the same actions: observations, rewards and metrics, and when episodes end."""
    task, program, _ = grid
    metric, begin = task.score(), jit(lambda key: both(task.reset(key)))

    def both(state: Any) -> Any:
        return state, program.observe(task.view(state))

    @jit
    def taken(state: Any, action: jax.Array, measured: Any) -> Any:
        after, seen = both(task.step(state, action))
        paid, terms = program.reward(task.view(state), action, task.view(after))
        measured = metric.update(measured, state, action, after)
        return after, measured, (seen, paid, task.terminated(after), metric.value(measured), terms)

    rng, goals, cuts = np.random.default_rng(0), 0, 0
    for seed in range(60):
        seen, info = env.reset(seed=seed)
        (state, begun), measured = begin(first_key(seed)), metric.init()
        same(seen, begun)
        for number in range(HORIZON):
            action = int(rng.choice([0, 0, 0, 1, 2, 3, 3]))
            seen, paid, terminated, truncated, info = env.step(action)
            assert [type(x) for x in (seen, paid, terminated)] == [np.ndarray, float, bool]
            state, measured, theirs = taken(state, action, measured)
            terms = np.array([info["terms"][name] for name in program.terms])
            same((seen, paid, terminated, info["success"], terms), theirs)
            assert truncated == (number == HORIZON - 1 and not terminated)
            if terminated:
                break
        goals, cuts = goals + terminated, cuts + truncated
    assert goals and cuts


@pytest.mark.slow
def test_vectorised_environments_equal_single_ones(grid, env):
    """Each lane plays what one environment plays from the same state; an episode that is over is followed by one."""
    _, _, module = grid
    lanes, rng = 4, np.random.default_rng(3)
    envs = module.VectorEnv(lanes)
    assert envs.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP
    seen, info = envs.reset(seed=7)
    assert envs.observation_space.contains(seen) and info["_success"].all()
    over = np.zeros(lanes, bool)
    begun = 0
    for _ in range(2 * HORIZON + 3):
        before, actions = jax.device_get(envs.episodes), rng.choice([0, 0, 1, 3], lanes)
        seen, paid, terminated, truncated, info = envs.step(actions)
        for lane in range(lanes):
            if over[lane]:  # a new one, whatever the action
                assert (paid[lane], terminated[lane], truncated[lane]) == (0.0, False, False)
                assert int(envs.episodes.steps[lane]) == 0 and info["success"][lane] == 0.0
                begun += 1
                continue
            alone = env._next(jax.tree.map(lambda x, k=lane: x[k], before), actions[lane])[1:]
            measured = {name: value for name, value in info.items() if not name.startswith("_")}
            measured["terms"] = {name: value for name, value in measured["terms"].items() if not name.startswith("_")}
            same(jax.tree.map(lambda x, k=lane: x[k], (seen, paid, terminated, truncated, measured)), alone)
        over = terminated | truncated
    assert begun >= lanes
    again, _ = envs.reset(seed=7)
    assert not np.array_equal(again, seen) and np.array_equal(again, envs.reset(seed=7)[0])


def test_wrappers_of_gymnasium_go_around_it(env):
    env = gymnasium.wrappers.RecordEpisodeStatistics(env)
    env.reset(seed=0)
    for _ in range(HORIZON):
        *_, over, cut, info = env.step(1)
    assert cut and not over and info["episode"]["l"] == HORIZON


@pytest.mark.slow  # compiles a simulation
@pytest.mark.parametrize("name", ["quadcopter-hover", "hopper"])
def test_the_exported_robot_plays_the_episodes_of_the_task(name, checker, task_of, tmp_path):
    """Real actions, also out of range; the metric at the end of an episode is the task's."""
    task = task_of(name, ("horizon=40",))
    source = (INTERFACES / name.replace("-", "_") / "expert.py").read_text()
    module, metric = imported(exported(source, task, "gymnasium", checker, name).text, tmp_path), task.score()
    env = module.Env()
    program = checker.load(source, unplayed(task))
    seen, _ = env.reset(seed=2)
    state, measured, over = jit(task.reset)(first_key(2)), metric.init(), False
    same(seen, program.observe(task.view(state)))
    step, rng = jit(task.step), np.random.default_rng(0)
    while not over:
        action = rng.uniform(-1.5, 1.5, task.action_space.shape).astype(np.float32)
        seen, paid, terminated, truncated, info = env.step(action)
        action = np.clip(action, -1.0, 1.0)
        after = step(state, action)
        same(seen, program.observe(task.view(after)), 1e-3)
        same(paid, program.reward(task.view(state), action, task.view(after))[0], 1e-3)
        assert terminated == bool(task.terminated(after))
        measured, state, over = metric.update(measured, state, action, after), after, terminated or truncated
    same(info[module.METRIC], metric.value(measured), 1e-3)
