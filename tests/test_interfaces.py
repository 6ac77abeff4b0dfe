"""The shipped interfaces: they say where they come from, pass their checks, and the baselines are the tasks' own."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from jaxreward.programs import Checker, Program
from jaxreward.tasks import make_task

ROOT = Path(__file__).resolve().parents[1] / "interfaces"
TASKS = {"xland_easy": "xland-easy", "xland_medium": "xland-medium", "xland_hard": "xland-hard"}
PATHS = sorted(ROOT.glob("*/*.py"))


@pytest.fixture(scope="module")
def checker():
    with Checker() as checker:
        yield checker


def test_every_task_has_a_baseline_an_expert_and_what_the_search_found():
    for folder in TASKS:
        assert {"sparse.py", "expert.py", "genetic.py"} <= {p.name for p in (ROOT / folder).glob("*.py")}


@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_it_passes_its_check_and_has_a_header(path, checker):
    text = path.read_text()
    assert text.startswith("#") and TASKS[path.parent.name] in text.split("import")[0]
    verdict, program = checker.check(text, make_task(TASKS[path.parent.name]))
    assert program is not None, verdict.failure
    if path.name == "genetic.py":
        header = text.split("import")[0]
        assert f"# digest: {program.digest}" in header and "jaxreward evolve" in header


@pytest.mark.parametrize("folder", TASKS)
def test_the_sparse_baseline_is_the_tasks_own(folder, checker):
    """Equal outputs along random play in which goals are reached or nearly so."""
    task = make_task(TASKS[folder])
    sparse, own = checker.load(ROOT / folder / "sparse.py", task), Program.default(task)

    def play(key):
        reset_key, action_key = jax.random.split(key)
        actions = jax.random.choice(action_key, np.array([0, 0, 1, 3, 3, 4, 5]), (60,))

        def step(state, action):
            following = task.step(state, action)
            views = task.view(state), action, task.view(following)
            pairs = [(p.observe(views[2]), p.reward(*views)[0]) for p in (sparse, own)]
            return following, pairs

        return jax.lax.scan(step, task.reset(reset_key), actions)[1]

    (obs, reward), (own_obs, own_reward) = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(3), 64))
    np.testing.assert_array_equal(obs, own_obs)
    np.testing.assert_array_equal(reward, own_reward)
    assert folder == "xland_hard" or own_reward.any()
