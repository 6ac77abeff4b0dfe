"""The documentation of a state that proposers get is true."""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.programs.spec import Spec
from jaxreward.records import Vocabulary
from jaxreward.tasks import card, document_state, make_task, task_names
from jaxreward.tasks.documentation import state_leaves
from jaxreward.tasks.metrics import Reached
from jaxreward.tasks.probe import Probe
from jaxreward.tasks.task import Box
from jaxreward.tasks.xland import XLand
from tests.compilation import jit
from tests.programs.pointtask import PointTask

pytestmark = pytest.mark.usefixtures("unoptimised")
NAMES = task_names()


class Nested(PointTask):
    """A dictionary at the top, tuples and keys that are no names below."""

    description, state_notes = "d", ""
    state_words: ClassVar[dict[str, str]] = {"a.1.b c": "words"}

    def terminated(self, state):
        return False

    def view(self, state):
        return {"a": (state.view.pos, {"b c": state.view.t, "items": state.view.vel}), "keys": state.view.goal}

    def vocabulary(self):
        return Vocabulary()

    def score(self):
        return Reached(lambda state: jnp.zeros((), bool))


class Mixed(Nested):
    """Named fields with a dictionary and a tuple below."""

    state_words: ClassVar[dict[str, str]] = {"info.gyro": "turn rate"}

    def view(self, state):
        return state.view._replace(agent=(state.view.pos, state.view.t))


@pytest.mark.long
@pytest.mark.parametrize(
    "task",
    [make_task("xland-hard"), make_task("probe-corridor"), Nested(), Mixed()],
    ids=["grid", "probe", "nested", "mixed"],
)
def test_every_array_is_listed_as_a_program_writes_it(checker, task):
    """A program that returns the documented expressions gets the arrays, with the documented dtypes and shapes."""
    found = re.findall(r"^(state\S*|state\['.*'\]) +([a-z]+[0-9]*) (\(.*?\))", document_state(task), re.MULTILINE)
    view = task.view(task.reset(jax.random.key(0)))
    assert [(t, s) for _, t, s in found] == [(x.dtype.name, str(x.shape)) for x in jax.tree.leaves(view)]
    parts = ", ".join(f"({e}).reshape(-1).astype(jnp.float32)" for e, *_ in found)
    source = (
        f"import jax.numpy as jnp\ndef get_observation(state):\n    return jnp.concatenate([{parts}])\n"
        f"def compute_reward(state, action, next_state):\n    return jnp.sum(({found[0][0]}).astype(jnp.float32))\n"
    )
    verdict, program = checker.check(source, Spec.of(task))
    assert program is not None, verdict.failure
    expected = np.concatenate([np.ravel(x).astype(np.float32) for x in jax.tree.leaves(view)])
    np.testing.assert_array_equal(program.observe(view), expected)
    assert card(task).state_doc == document_state(task)


def test_descriptions_follow_the_expressions():
    mixed, nested = (document_state(cast(Any, task)) for task in (Mixed(), Nested()))
    assert re.search(r"^state\.info\['gyro'\] +float32 \(3,\) +turn rate$", mixed, re.MULTILINE)
    assert re.search(r"^state\['a'\]\[1\]\['b c'\] +int32 \(\) +words$", nested, re.MULTILINE)


def test_the_range_of_real_actions_is_stated():
    task: Any = Mixed()
    task.action_space = Box((2,), -1.5, 2.0)
    assert re.search(r"^action .*\)  +from -1\.5 to 2$", document_state(task), re.MULTILINE)


def test_how_an_episode_ends_is_said():
    easy, corridor, choice = (
        document_state(make_task(name)).splitlines()[-1] for name in ("xland-easy", "probe-corridor", "probe-choice")
    )
    assert easy == "An episode ends in a state that the task declares final, at the latest after 80 steps."
    assert corridor.endswith("at the latest after 18 steps.")
    assert choice == "An episode ends after 1 step, never earlier."
    assert "Reaching the goal ends the episode." in document_state(make_task("xland-hard"))


@pytest.mark.parametrize("environment", ["R1-9x9", "R2-9x9", "R4-13x13", "R6-13x13", "R9-16x16"])
def test_rooms_and_doors_are_said_as_they_are(environment):
    easy = cast(XLand, make_task("xland-easy"))
    task = XLand("t", f"XLand-MiniGrid-{environment}", easy.ruleset, 10)
    grid = np.asarray(jit(task.reset)(jax.random.key(3)).grid[..., 0])
    rooms, doors, text = int(environment[1]), int((grid == 9).sum()), document_state(task)
    if rooms == 1:
        assert doors == 0 and "one room: there are no inner walls and no doors" in text
    else:
        assert f"into {rooms} rooms, joined by {doors if doors > 1 else 'one'} closed door" in text
        assert "toggled open" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_words_are_of_arrays_that_exist(name):
    task = make_task(name)
    assert set(task.state_words) <= {*state_leaves(task), "action"}


def test_the_page_of_xland_easy_is_as_expected():
    lines = document_state(make_task("xland-easy")).splitlines()
    assert lines[0] == "state.grid             uint8 (9, 9, 2)  [tile id, colour id] of every cell, by row and column"
    assert lines[5].startswith("action                 int32 ()         0 forward")
    assert lines[6].startswith("tile ids: 0 empty")
    assert "(13, 13, 2)" in document_state(make_task("xland-hard"))


def test_undescribed_arrays_are_listed():
    class Bare(Probe):
        @property
        def state_words(self):
            return {}

        @property
        def action_space(self):  # pyright: ignore[reportIncompatibleMethodOverride]
            return Box((3,), -1.0, 2.0)

    text = document_state(Bare("choice"))
    assert "state.place   int32 ()\n" in text
    assert "action        float32 (3,)  from -1 to 2\n" in text
