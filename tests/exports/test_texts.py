"""Exported modules as texts: the program stands in them as it is, what it lacks is added, names do not clash."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from jaxreward.exports import TARGETS, export
from jaxreward.exports.halves import agrees
from jaxreward.exports.module import BEGIN, DEFAULT, END, MissingFunction
from jaxreward.exports.targets import UnsuitableTarget
from jaxreward.programs import Program, ProgramRejected
from jaxreward.runs.provenance import named_task
from tests.compilation import jit
from tests.exports.modules import INTERFACES, exported, imported, same, unchecked, unplayed

PATHS = sorted(INTERFACES.glob("*/*.py"))
EASY = (INTERFACES / "xland_easy" / "expert.py").read_text()
REWARD = "def compute_reward(state, action, next_state):\n    return 2.0 * (action == PICK_UP)\n\n\nPICK_UP = 3\n"


@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_shipped_interface_stands_in_its_module_word_for_word(path, monkeypatch):
    source = path.read_text()
    (name, *arguments) = named_task(source)
    assert name == path.parent.name.replace("_", "-") and not arguments
    monkeypatch.setattr("jaxreward.exports.module.document_state", lambda task: "the arrays of a state")
    task: Any = SimpleNamespace(name=name, description="It is said elsewhere.", horizon=9)
    text = export(source, task, name, "plain", unchecked).text
    tree = ast.parse(text)
    assert text.split(f"{BEGIN}\n\n")[1].split(f"\n\n{END}")[0] == source.strip("\n")
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imports |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imports <= {"jax", "jax.numpy", "jax.nn", "jax.lax", "jax.numpy.linalg"}
    assert "the arrays of a state" in str(ast.get_docstring(tree))


def test_the_task_stands_in_the_first_lines():
    found = "# An interface found by jaxreward\n# task: reacher backend=mjx horizon=9\n# score: none\n"
    assert named_task(found) == ("reacher", "backend=mjx", "horizon=9")
    assert named_task("# Task: hopper (run forward).\n") == ("hopper",)
    assert named_task("import jax\n") == ()


@pytest.fixture(scope="module")
def steps(task_of) -> tuple[Any, Any, Any]:
    """Views, actions and further views of xland-easy: 64 beginnings of episodes each."""
    task = task_of("xland-easy")
    begin = jit(jax.vmap(lambda key: task.view(task.reset(key))))
    before, after = (begin(jax.random.split(jax.random.key(k), 64)) for k in (0, 1))
    return before, np.arange(64, dtype=np.int32) % 6, after


def test_plain_functions_compute_what_the_tape_does(checker, task_of, steps, tmp_path):
    task = task_of("xland-easy")
    program = checker.load(EASY, unplayed(task))
    text = export(EASY, task, task.name, "plain", lambda _: program).text
    assert "state.agent.position   int32 (2,)" in text
    module = imported(text, tmp_path)
    views, actions, following = steps
    total, terms = jit(jax.vmap(program.reward))(views, actions, following)
    same(module.observations(views), jit(jax.vmap(program.observe))(views))
    paid, parts = module.rewards(views, actions, following)
    same((paid, np.stack([parts[name] for name in module.TERMS], 1)), (total, terms))
    assert program.terms == module.TERMS and program.observation_size == module.OBSERVATION_SIZE
    assert np.any(total)


def test_what_a_program_leaves_to_its_task_is_written_into_the_module(checker, task_of, steps, tmp_path):
    task = task_of("xland-easy")
    written = exported(f"{REWARD}\nVIEW = 99\nBLUE = None\n", task, "plain", checker)
    assert written.defaults == ("get_observation",) and DEFAULT in written.text
    module = imported(written.text, tmp_path)
    assert (module.VIEW, module.VIEW_2, module.BLUE) == (99, 7, None)
    views, actions, following = steps
    own = Program.default(task)
    same(module.observations(views), jit(jax.vmap(own.observe))(views))
    same(module.rewards(views, actions, following)[0], 2.0 * (actions == 3))
    observing = exported(EASY.split("def compute_reward")[0], task, "plain", checker)
    assert observing.defaults == ("compute_reward",)
    same(imported(observing.text, tmp_path).rewards(views, actions, following)[0],
         jit(jax.vmap(own.reward))(views, actions, following)[0])  # fmt: skip


def test_a_reward_of_the_next_state_alone_is_one(checker, task_of, steps, tmp_path):
    source = "def reward(state):\n    return state.agent.direction\n"
    module = imported(exported(source, task_of("xland-easy"), "plain", checker).text, tmp_path)
    views, actions, following = steps
    same(module.rewards(views, actions, following)[0], following.agent.direction)


@pytest.mark.slow
def test_module_names_are_changed_if_the_program_uses_them(checker, task_of, tmp_path):
    """It binds what the wrapper would: a function, classes, an import, constants and builtins."""
    source = '''"""Words of its own."""
from __future__ import annotations

import jax.numpy as np
from jax.lax import select as struct

HORIZON = 2.0
TERMS = 3.0
View = 5.0
Simulation = 7.0


def make_grid(state):
    return np.stack([state.step_num * HORIZON * TERMS * View * Simulation])


def isinstance(x):
    return x


def float(x):
    return struct(x > 0, 11.0, 13.0)


def get_observation(state):
    return isinstance(make_grid(state))


def compute_reward(state, action, next_state):
    return float(action), {"half": 0.5}
'''
    gymnasium = pytest.importorskip("gymnasium")
    task = task_of("xland-easy")
    module = imported(exported(source, task, "gymnasium", checker).text, tmp_path)
    env = module.Env()
    assert gymnasium.Env in type(env).__mro__ and module.HORIZON == 2.0
    env.reset(seed=0)
    seen, paid, _, _, info = env.step(0)
    assert (seen.tolist(), paid, info["terms"]) == ([210.0], 13.0, {"half": 0.5})
    assert env.step(1)[:2] == (np.array([420.0]), 11.0)


@pytest.mark.parametrize(("target", "name", "others"), [
    ("brax", "xland-easy", ("plain", "gymnasium", "xminigrid")),
    ("playground", "hopper", ("plain", "gymnasium", "brax")),
    ("xminigrid", "panda-tracking", ("plain", "gymnasium", "brax", "playground")),
])  # fmt: skip
def test_a_target_that_is_not_for_a_task_names_those_that_are(target, name, others, task_of):
    with pytest.raises(UnsuitableTarget) as error:
        export(EASY, task_of(name), name, target, unchecked)
    assert (error.value.target, error.value.fitting) == (target, others)


def test_the_text_of_a_half_serves_other_options_if_it_computes_the_same(checker, task_of, monkeypatch):
    short = task_of("xland-easy", ("horizon=40",))
    assert exported(REWARD, short, "plain", checker, "xland-easy").defaults == ("get_observation",)
    usual = (INTERFACES / "xland_easy" / "sparse.py").read_text()
    for text, fits in (
        (usual, True),
        (usual.replace("VIEW = 7", "VIEW = 5"), False),
        (usual.replace("t32)\n", "t32) + 1\n"), False),
    ):
        program = checker.load(text, unplayed(short))
        assert agrees(program, short, "get_observation") == fits
    monkeypatch.setattr("jaxreward.exports.module.agrees", lambda *_: False)
    with pytest.raises(MissingFunction) as error:
        exported(REWARD, short, "plain", checker, "xland-easy")
    assert error.value.missing == ("get_observation",)


def test_a_half_without_source_text_is_refused(task_of):
    with pytest.raises(MissingFunction) as error:
        export(REWARD, task_of("reacher"), "reacher", "plain", unchecked)
    assert error.value.missing == ("get_observation",)


def test_what_is_refused_is_not_written(checker, task_of):
    with pytest.raises(ProgramRejected) as error:
        exported("import os\n" + REWARD, task_of("xland-easy"), "plain", checker)
    assert (error.value.failure.stage, error.value.failure.line) == ("guard", 1)


def test_every_target_makes_a_module_for_every_kind_of_task(task_of, monkeypatch):
    """Texts alone: that they are Python, and what they import."""
    monkeypatch.setattr("jaxreward.exports.module.document_state", lambda task: "")
    tasks = ("xland-hard", "hopper", "ant-lie-down", "ant-patrol-return", "panda-tracking", "probe-aim")
    for name in tasks:
        task = task_of(name)
        for target, kind in TARGETS.items():
            if not kind.fits(task):
                continue
            written = export(
                "def get_observation(state): ...\n\n\ndef compute_reward(a, b, c): ...", task, name, target, unchecked
            )
            ours = target != "plain" and name in ("panda-tracking", "probe-aim")
            assert ("jaxreward" in written.needs) == ours == ("import make_task" in written.text)
            assert ("jaxreward is there for the simulation alone" in written.text) == ours
