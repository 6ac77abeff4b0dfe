"""What a proposer is told of a state is the truth about it."""

from __future__ import annotations

import re

import jax
import pytest

from jaxreward.tasks import card, document_state, make_task, task_names
from jaxreward.tasks.documentation import state_leaves
from jaxreward.tasks.probe import Probe
from jaxreward.tasks.task import Box

NAMES = task_names()


@pytest.mark.parametrize("name", NAMES)
def test_every_array_is_listed_as_it_is(name):
    task = make_task(name)
    view = task.view(task.reset(jax.random.key(0)))
    text = document_state(task)
    for path in state_leaves(task):
        leaf = view
        for step in path.split("."):
            leaf = getattr(leaf, step)
        assert re.search(rf"^state\.{path} +{leaf.dtype.name} {re.escape(str(leaf.shape))}(  |$)", text, re.MULTILINE)
    assert len(state_leaves(task)) == len(jax.tree.leaves(view))
    assert card(task).state_doc == text


@pytest.mark.parametrize("name", NAMES)
def test_words_are_of_arrays_that_exist(name):
    task = make_task(name)
    assert set(task.state_words) <= {*state_leaves(task), "action"}


def test_the_page_of_easy_reads_well():
    lines = document_state(make_task("xland-easy")).splitlines()
    assert lines[0] == "state.grid             uint8 (9, 9, 2)  [tile id, colour id] of every cell, by row and column"
    assert lines[5].startswith("action                 int32 ()         0 forward")
    assert lines[6].startswith("tile ids: 0 empty")
    assert "(13, 13, 2)" in document_state(make_task("xland-hard"))


def test_what_has_no_words_is_listed_all_the_same():
    class Bare(Probe):
        @property
        def state_words(self):
            return {}

        @property
        def action_space(self):  # pyright: ignore[reportIncompatibleMethodOverride]
            return Box((3,), -1.0, 2.0)

    text = document_state(Bare("choice"))
    assert "state.place   int32 ()\n" in text
    assert text.endswith("action        float32 (3,)  from -1 to 2")
