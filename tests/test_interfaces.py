"""The shipped interfaces: they say where they come from, pass their checks, compute what they say, and the baselines
are the tasks' own."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxreward.programs import Program
from jaxreward.programs.play import sample_transitions
from jaxreward.programs.spec import Spec
from jaxreward.views import view_shapes
from tests.compilation import jit

pytestmark = pytest.mark.usefixtures("unoptimised")
ROOT = Path(__file__).resolve().parents[1] / "interfaces"
TASKS = {folder.name: folder.name.replace("_", "-") for folder in sorted(ROOT.iterdir()) if folder.is_dir()}
GRIDS = [folder for folder in TASKS if folder.startswith("xland")]
GAMES = ["flappy_bird", "snake", "tetris"]
REAL = [folder for folder in TASKS if folder not in (*GRIDS, *GAMES)]
NOT_SEARCHED = {"ant", "ant_lie_down", "ant_patrol_return", "ball_roll", "cube_place", "cube_stack", "door_open",
                "flappy_bird", "go1_push_recovery", "hopper", "humanoid", "package_push", "panda_cabinet", "panda_push",
                "peg_insert", "quadruped_velocity", "snake", "tetris", "walker2d"}  # fmt: skip
NOT_TRAINED = {"humanoid"}
PATHS = sorted(ROOT.glob("*/*.py"))


@pytest.fixture(scope="module")
def loaded(checker, task_of):
    """The program in a file, checked when it is first asked for: on states of the task; of a robot, whose simulation
    takes long to compile, on random inputs of its shapes."""

    @functools.cache
    def load(path: Path) -> Program:
        task = task_of(TASKS[path.parent.name])
        verdict, program = checker.check(path.read_text(), Spec.of(task) if path.parent.name in REAL else task)
        assert program is not None, verdict.failure
        return program

    return load


def inputs(folder: str, task: Any) -> tuple[Any, Any, Any]:
    """Some views, actions and following views of a task; of a robot random ones of their shapes."""
    if folder not in REAL:
        return jax.tree.map(lambda x: x[::50], sample_transitions(task))
    rng = np.random.default_rng(0)
    view = view_shapes(task)

    def some(x: Any) -> Any:
        if np.issubdtype(x.dtype, np.floating):
            drawn = (0.3 * rng.normal(size=(16, *x.shape))).astype(np.float32)
            rotations = len(x.shape) == 2 and x.shape[-1] == 4  # of bodies, unit quaternions
            return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True) if rotations else drawn
        return rng.integers(0, 2, (16, *x.shape)).astype(x.dtype)

    actions = rng.uniform(-1.0, 1.0, (16, *task.action_space.shape)).astype(np.float32)
    return jax.tree.map(some, view), actions, jax.tree.map(some, view)


def test_every_task_has_a_baseline_an_expert_and_what_the_search_found():
    for folder in TASKS:
        found = {p.name for p in (ROOT / folder).glob("*.py")}
        assert {"sparse.py", "expert.py"} <= found
        assert ("genetic.py" in found) == (folder not in NOT_SEARCHED)


@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_it_passes_its_check_and_has_a_header(path, loaded):
    text = path.read_text()
    assert text.startswith("#") and TASKS[path.parent.name] in text.split("import")[0]
    assert ("not measured yet" in text.split("import")[0]) == (path.parent.name in NOT_TRAINED)
    program = loaded(path)
    if path.name == "genetic.py":
        header = text.split("import")[0]
        assert f"# digest: {program.digest}" in header
        assert "jaxreward evolve" in header or "jaxreward compare" in header


@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_its_tape_computes_what_its_source_computes(path, loaded, task_of):
    program, names = loaded(path), dict[str, Any]()
    exec(program.source, names)
    some = inputs(path.parent.name, task_of(TASKS[path.parent.name]))

    @jit
    @jax.vmap
    def both(before: Any, action: Any, after: Any) -> Any:
        paid = names["compute_reward"](before, action, after)
        source = names["get_observation"](before), paid[0] if isinstance(paid, tuple) else paid
        return (program.observe(before), program.reward(before, action, after)[0]), source

    (seen, total), (true_seen, true_total) = both(*some)
    np.testing.assert_allclose(seen, true_seen, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(total, true_total, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("folder", REAL)
def test_the_sparse_baseline_of_a_robot_is_the_tasks_own(folder, loaded, task_of):
    task = task_of(TASKS[folder])
    programs = loaded(ROOT / folder / "sparse.py"), Program.default(task)
    outputs = [
        jit(jax.vmap(lambda v, a, n, p=p: (p.observe(v), p.reward(v, a, n)[0])))(*inputs(folder, task))
        for p in programs
    ]
    for ours, tasks in zip(*outputs, strict=True):
        np.testing.assert_allclose(ours, tasks, rtol=1e-3, atol=1e-4)


PUBLISHED = (("go1", "go1_push_recovery", 98), ("panda", "panda_tracking", 94))


@pytest.mark.parametrize(("file", "folder", "features"), PUBLISHED)
def test_the_published_interfaces_of_robots_load_as_they_are(file, folder, features, checker, task_of):
    text = (Path(__file__).parent / "programs" / "published" / f"{file}.py").read_text()
    verdict, program = checker.check(text, Spec.of(task_of(TASKS[folder])))
    assert program is not None, verdict.failure
    assert program.observation_size == features


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*REAL, *GAMES])
def test_interfaces_of_robots_and_games_pass_on_true_states(folder, checker, task_of):
    task = task_of(TASKS[folder])
    paths = sorted((ROOT / folder).glob("*.py"))
    published = [
        Path(__file__).parent / "programs" / "published" / f"{f}.py" for f, name, _ in PUBLISHED if name == folder
    ]
    for path in (*paths, *published):
        verdict, program = checker.check(path.read_text(), task)
        assert program is not None, (path, verdict.failure)
    transitions = sample_transitions(task)
    sparse = checker.check((ROOT / folder / "sparse.py").read_text(), task)[1]
    outputs = [
        jax.vmap(lambda v, a, n, p=p: (p.observe(v), p.reward(v, a, n)[0]))(*transitions)
        for p in (sparse, Program.default(task))
    ]
    for ours, tasks in zip(*outputs, strict=True):
        np.testing.assert_allclose(ours, tasks, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("folder", GRIDS)
def test_the_sparse_baseline_is_the_tasks_own(folder, loaded, task_of):
    """Equal outputs along random play in which goals are reached or nearly so."""
    task = task_of(TASKS[folder])
    sparse, own = loaded(ROOT / folder / "sparse.py"), Program.default(task)

    def play(key):
        reset_key, action_key = jax.random.split(key)
        actions = jax.random.choice(action_key, np.array([0, 0, 1, 3, 3, 4, 5]), (60,))

        def step(state, action):
            following = task.step(state, action)
            views = task.view(state), action, task.view(following)
            pairs = [(p.observe(views[2]), p.reward(*views)[0]) for p in (sparse, own)]
            return following, pairs

        return jax.lax.scan(step, task.reset(reset_key), actions)[1]

    (obs, reward), (own_obs, own_reward) = jit(jax.vmap(play))(jax.random.split(jax.random.key(3), 64))
    np.testing.assert_array_equal(obs, own_obs)
    np.testing.assert_array_equal(reward, own_reward)
    assert folder == "xland_hard" or own_reward.any()
