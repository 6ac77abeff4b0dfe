"""Exported modules as texts: the program stands in them as it is, what it lacks is added, names do not clash."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from jaxreward.errors import UserError
from jaxreward.exports import TARGETS, export, task_line
from jaxreward.exports.export import BEGIN, DEFAULT, END
from jaxreward.exports.halves import agrees
from jaxreward.programs import Program, Spec
from jaxreward.programs.play import sample_transitions
from jaxreward.records import ProgramSummary
from tests.exports.modules import INTERFACES, exported, imported, same

PATHS = sorted(INTERFACES.glob("*/*.py"))
EASY = (INTERFACES / "xland_easy" / "genetic.py").read_text()
REWARD = "def compute_reward(state, action, next_state):\n    return 2.0 * (action == PICK_UP)\n\n\nPICK_UP = 3\n"


def unchecked(source: str) -> Any:
    """In place of a program that has passed its checks."""
    summary = ProgramSummary(
        digest="0" * 64, observation_size=3, terms=("goal",), reward_nodes=1, operations=1, flops=1, elements=1,
        observation_reads=(), reward_reads=(),
    )  # fmt: skip
    return SimpleNamespace(summary=summary)


@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_shipped_interface_stands_in_its_module_word_for_word(path, task_of):
    source = path.read_text()
    (name, *arguments) = task_line(source)
    assert name == path.parent.name.replace("_", "-") and not arguments
    text = export(source, task_of(name), name, "plain", unchecked).text
    tree = ast.parse(text)
    assert text.split(f"{BEGIN}\n\n")[1].split(f"\n\n{END}")[0] == source.strip("\n")
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imports |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imports <= {"jax", "jax.numpy", "jax.nn", "jax.lax", "jax.numpy.linalg"}
    assert ast.get_docstring(tree)


@pytest.mark.parametrize(("line", "task"), [
    ("# An interface found by jaxreward\n# task: reacher backend=mjx horizon=9\n", ("reacher", "backend=mjx", "horizon=9")),
    ("# Task: hopper (run forward).\n", ("hopper",)),
    ("import jax\n", ()),
])  # fmt: skip
def test_the_task_stands_in_the_first_lines(line, task):
    assert task_line(line) == task


def test_plain_functions_compute_what_the_tape_does(checker, task_of, tmp_path):
    task = task_of("xland-easy")
    program = checker.load(EASY, task)
    module = imported(export(EASY, task, task.name, "plain", lambda _: program).text, tmp_path)
    views, actions, following = sample_transitions(task)
    total, terms = jax.vmap(program.reward)(views, actions, following)
    same(module.observations(views), jax.vmap(program.observe)(views))
    paid, parts = module.rewards(views, actions, following)
    same((paid, np.stack([parts[name] for name in module.TERMS], 1)), (total, terms))
    assert program.terms == module.TERMS and program.observation_size == module.OBSERVATION_SIZE
    assert np.any(total)


def test_what_a_program_leaves_to_its_task_is_written_into_the_module(checker, task_of, tmp_path):
    task = task_of("xland-easy")
    written = exported(f"{REWARD}\nVIEW = 99\nBLUE = None\n", task, "plain", checker, played=True)
    assert written.defaults == ("get_observation",) and DEFAULT in written.text
    module = imported(written.text, tmp_path)
    assert (module.VIEW, module.VIEW_2, module.BLUE) == (99, 7, None)
    views, actions, following = sample_transitions(task)
    own = Program.default(task)
    same(module.observations(views), jax.vmap(own.observe)(views))
    same(module.rewards(views, actions, following)[0], 2.0 * (actions == 3))
    observing = exported(EASY.split("def compute_reward")[0], task, "plain", checker, played=True)
    assert observing.defaults == ("compute_reward",)
    same(imported(observing.text, tmp_path).rewards(views, actions, following)[0],
         jax.vmap(own.reward)(views, actions, following)[0])  # fmt: skip


def test_a_reward_of_the_next_state_alone_is_one(checker, task_of, tmp_path):
    source = "def reward(state):\n    return state.step_num == 1\n"
    module = imported(exported(source, task_of("xland-easy"), "plain", checker, played=True).text, tmp_path)
    views, actions, following = sample_transitions(task_of("xland-easy"))
    same(module.rewards(views, actions, following)[0], following.step_num == 1)


def test_names_of_the_module_give_way_to_those_of_the_program(checker, task_of, tmp_path):
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
    ("brax", "xland-easy", "plain, gymnasium and xminigrid"),
    ("playground", "hopper", "plain, gymnasium and brax"),
    ("xminigrid", "panda-tracking", "plain, gymnasium, brax and playground"),
])  # fmt: skip
def test_a_target_that_is_not_for_a_task_names_those_that_are(target, name, others, task_of):
    with pytest.raises(UserError, match=f"--to {target} is for .*, which {name} is not; for it there are {others}"):
        export(EASY, task_of(name), name, target, unchecked)


def test_the_text_of_a_half_is_that_of_the_usual_options(checker, task_of):
    usual = (INTERFACES / "panda_tracking" / "sparse.py").read_text()
    for horizon, fits in ((500, True), (250, False)):  # the observation tells which part of the episode is over
        task = task_of("panda-tracking", (f"horizon={horizon}",))
        program = checker.load(usual, Spec.of(task))
        assert agrees(program, task, "get_observation") == fits and agrees(program, task, "compute_reward")
    short = task_of("xland-easy", ("horizon=40",))
    assert exported(REWARD, short, "plain", checker, "xland-easy", played=True).defaults == ("get_observation",)


def test_a_half_that_no_text_tells_is_a_mistake(task_of):
    with pytest.raises(UserError, match="has no get_observation, and that of reacher"):
        export(REWARD, task_of("reacher"), "reacher", "plain", unchecked)


def test_what_is_refused_is_not_written(checker, task_of):
    with pytest.raises(UserError, match="rejected: guard"):
        exported("import os\n" + REWARD, task_of("xland-easy"), "plain", checker)


def test_every_target_makes_a_module_for_every_kind_of_task(task_of):
    """Texts alone: that they are Python, and what they import."""
    tasks = ("xland-hard", "hopper", "ant-lie-down", "ant-patrol-return", "reacher", "panda-tracking", "probe-aim")
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
