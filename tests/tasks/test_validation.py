"""Mistakes in a user's task: each is found, in one sentence, at the user's own line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from jaxreward.tasks.validation import mistakes_in

HEAD = '''"""A ball on a line."""

from dataclasses import dataclass
from typing import Any, NamedTuple
import random
import jax
import jax.numpy as jnp
import numpy as np
from jaxreward.records import Fragment, Instruction, Measure, Subtask, Vocabulary
from jaxreward.tasks import Box, Discrete
from jaxreward.tasks.metrics import WithExtraMetrics, Mean, Reached, Sum


class Plain:
    def __init__(self, x):
        self.x = x

'''

PARTS = {
    "fields": '    name = "ball"\n    description = "Roll to 1."\n    state_notes = ""\n    horizon = 8',
    "action_space": "    action_space = Discrete(2)",
    "state_words": '    state_words = {"at": "where", "t": "steps", "action": "0 left, 1 right"}',
    "reset": (
        "    def reset(self, key):\n"
        '        return {"at": jax.random.normal(key), "t": jnp.zeros((), jnp.int32), "key": key}'
    ),
    "step": (
        "    def step(self, state, action):\n"
        '        return {"at": state["at"] + 0.1 * (2 * action - 1), "t": state["t"] + 1, "key": state["key"]}'
    ),
    "terminated": '    def terminated(self, state):\n        return state["at"] > 1.0',
    "view": '    def view(self, state):\n        return {"at": state["at"], "t": state["t"]}',
    "score": '    def score(self):\n        return Reached(lambda state: state["at"] > 1.0)',
    "default_observation": '    def default_observation(self, view):\n        return jnp.stack([view["at"]])',
    "sparse_reward": (
        "    def sparse_reward(self, view, action, next_view):\n"
        '        return (next_view["at"] > 1.0).astype(jnp.float32)'
    ),
    "vocabulary": "    def vocabulary(self):\n        return Vocabulary()",
}


def written(folder: Path, **parts: str) -> Path:
    """A file with the task of `PARTS`, some of them in place of its own; `also` stands before the class."""
    text = HEAD + parts.pop("also", "") + "\n@dataclass(frozen=True)\nclass Ball:\n"
    file = folder / "ball.py"
    file.write_text(text + "\n\n".join({**PARTS, **parts}.values()) + "\n")
    return file


def module_of(file: Path) -> ModuleType:
    """The file as a library user would import it."""
    spec = importlib.util.spec_from_file_location("ball_of_a_user", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def marked(file: Path) -> int:
    """The line with the mark."""
    return next(n for n, line in enumerate(file.read_text().splitlines(), 1) if "# <-" in line)


MISTAKES = {
    "score gives nothing": (
        {"score": '    def score(self):  # <-\n        Reached(lambda state: state["at"] > 1.0)'},
        "`score` returns None: end it with a return statement",
    ),
    "score gives a class": (
        {"score": "    def score(self):\n        return Reached  # <-"}, "`score` returns the class Reached",
    ),
    "score gives no metric": (
        {"score": "    def score(self):\n        return 0.5  # <-"}, "returns a float without init, update, value",
    ),
    "a figure fails": (
        {"score": '    def score(self):\n        return Mean(lambda s, a, n: n["nowhere"], 8)  # <-'},
        "`Mean.figure` fails: KeyError: 'nowhere'",
    ),
    "a gathered sum changes its dtype": (
        {"also": "class Count:\n    def init(self):\n        return jnp.zeros((), jnp.int32)\n\n"
                 "    def update(self, acc, state, action, next_state):\n        return acc + 0.5  # <-\n\n"
                 "    def value(self, acc):\n        return acc\n\n",
         "score": "    def score(self):\n        return Count()"},
        "from int32 () into float32 (): add .astype(jnp.int32)",
    ),
    "a value of many": (
        {"score": '    def score(self):\n        return Sum(lambda s, a, n: jnp.stack([n["at"], n["at"]]), Measure('
                  'name="x", rate=False))  # <-'},
        "`Sum.figure` returns float32 (2,), and must return a real number, shape (): select one",
    ),
    "progress that is no metric": (
        {"also": "class Staged(Reached):\n    progress = ('near',)\n\n",
         "score": "    def score(self):\n        return Staged(lambda state: state['at'] > 1.0)  # <-"},
        "the metric's `progress` names 'near', which is none of its extra metrics: they are none",
    ),
    "progress that is no tuple": (
        {"also": "class Staged(Reached):\n    progress = 'near'\n\n",
         "score": "    def score(self):\n        return Staged(lambda state: state['at'] > 1.0)  # <-"},
        "the metric's `progress` is a str: make it a tuple of names of extra metrics",
    ),
    "terminated gives nothing": (
        {"terminated": '    def terminated(self, state):  # <-\n        state["at"] > 1.0'},
        "`terminated` returns None",
    ),
    "terminated gives a number": (
        {"terminated": '    def terminated(self, state):\n        return state["at"] * 1.0  # <-'},
        "`terminated` returns float32 (), and must return a bool of shape ()",
    ),
    "terminated gives several": (
        {"terminated": '    def terminated(self, state):\n        return jnp.stack([state["at"], 0.0]) > 1.0  # <-'},
        "`terminated` returns bool (2,)",
    ),
    "an if in terminated": (
        {"terminated": '    def terminated(self, state):\n        if state["at"] > 1:  # <-\n            return True\n'
                       "        return False"},
        "`terminated` fails: `if`, `while`, `and`, `or` or `not` is asked about an array",
    ),
    "an if in step": (
        {"step": '    def step(self, state, action):\n        if action == 1:  # <-\n            return state\n'
                 "        return state"},
        "`step` fails: `if`, `while`, `and`, `or` or `not` is asked about an array",
    ),
    "a dtype that changes": (
        {"step": '    def step(self, state, action):\n        return {\n            "at": state["at"],\n'
                 '            "t": state["t"] + 1.0,  # <-\n            "key": state["key"],\n        }'},
        "`step` turns state.t from int32 () into float32 (): add .astype(jnp.int32)",
    ),
    "a shape that changes": (
        {"step": '    def step(self, state, action):\n        return {**state, "at": jnp.stack([state["at"]])}  # <-'},
        "`step` turns state.at from float32 () into float32 (1,): keep its shape",
    ),
    "a field that goes": (
        {"step": '    def step(self, state, action):\n        return {"at": state["at"], "key": state["key"]}  # <-'},
        "`step` returns a tree without state.t: its fields must stay the same",
    ),
    "step gives nothing": (
        {"step": '    def step(self, state, action):  # <-\n        state["at"] + 1.0'}, "`step` returns None",
    ),
    "a name in state_words": (
        {"state_words": '    state_words = {\n        "at": "where",\n        "tt": "steps",  # <-\n    }'},
        "`state_words` names 'tt', which is no array of the view: did you mean 't'?",
    ),
    "words that are no text": (
        {"state_words": '    state_words = {\n        "at": 3,  # <-\n    }'}, "`state_words` has an int for 'at'",
    ),
    "reset gives a text": (
        {"reset": '    def reset(self, key):\n        return {"at": "left"}  # <-'},
        "`reset` returns a str at state.at, which is no array: use jnp arrays",
    ),
    "reset gives an object": (
        {"reset": "    def reset(self, key):\n        return Plain(jnp.zeros(()))  # <-"},
        "`reset` returns a Plain, which is no array: make its class a flax.struct.PyTreeNode or a NamedTuple",
    ),
    "reset gives no array": ({"reset": "    def reset(self, key):\n        return {}  # <-"}, "a state without arrays"),
    "reset takes an old key": (
        {"reset": '    def reset(self, key):\n        return {"at": key[0] * 1.0}  # <-'}, "`reset` fails: ",
    ),
    "numpy draws in reset": (
        {"reset": '    def reset(self, key):\n        at = np.random.normal()  # <-\n'
                  '        return {"at": jnp.zeros(()) + at, "t": jnp.zeros((), jnp.int32), "key": key}'},
        "`reset` computes something else each time it is compiled",
    ),
    "Python draws in step": (
        {"step": '    def step(self, state, action):\n        push = random.random()  # <-\n'
                 '        return {**state, "at": state["at"] + push}'},
        "`step` computes something else each time it is compiled",
    ),
    "an array that is left behind": (
        {"also": "LEFT = []\n\n\n",
         "reset": '    def reset(self, key):\n        LEFT.append(jax.random.normal(key))\n'
                  '        return {"at": LEFT[-1], "t": jnp.zeros((), jnp.int32), "key": key}',
         "step": '    def step(self, state, action):\n        return {**state, "at": state["at"] + LEFT[0]}  # <-'},
        "`step` fails: it uses an array that an earlier call left behind",
    ),
    "numpy in step": (
        {"step": '    def step(self, state, action):\n        return {**state, "at": np.sin(state["at"])}  # <-'},
        "`step` fails: numpy is given an array of JAX",
    ),
    "a state that is assigned to": (
        {"also": "class State(NamedTuple):\n    at: Any\n    t: Any\n\n\n",
         "reset": "    def reset(self, key):\n        return State(jax.random.normal(key), jnp.zeros((), jnp.int32))",
         "terminated": "    def terminated(self, state):\n        return state.at > 1.0",
         "view": '    def view(self, state):\n        return {"at": state.at, "t": state.t}',
         "score": "    def score(self):\n        return Reached(lambda state: state.at > 1.0)",
         "step": "    def step(self, state, action):\n        state.at = state.at + 1.0  # <-\n        return state"},
        "`step` fails: AttributeError: can't set attribute",
    ),
    "a default observation of two axes": (
        {"default_observation": '    def default_observation(self, view):\n        return jnp.zeros((2, 3))  # <-'},
        "`default_observation` returns float32 (2, 3), and must return a float32 vector",
    ),
    "a default observation of integers": (
        {"default_observation": '    def default_observation(self, view):\n'
                                '        return jnp.stack([view["t"]])  # <-'},
        "`default_observation` returns int32 (1,), and must return a float32 vector: add .astype(jnp.float32)",
    ),
    "a sparse reward of many": (
        {"sparse_reward": '    def sparse_reward(self, view, action, next_view):\n        return jnp.zeros(2)  # <-'},
        "`sparse_reward` returns float32 (2,), and must return a real number",
    ),
    "too few arguments": (
        {"sparse_reward": '    def sparse_reward(self, view, action):  # <-\n        return jnp.zeros(())'},
        "`sparse_reward` takes (view, action) and is called with (view, action, next_view)",
    ),
    "too many arguments": (
        {"reset": '    def reset(self, key, size):  # <-\n        return {"at": jnp.zeros(())}'},
        "`reset` takes (key, size) and is called with (key): write def reset(self, key)",
    ),
    "a generator": (
        {"reset": '    def reset(self, key):  # <-\n        yield key'}, "`reset` must be a plain function",
    ),
    "an action space of another kind": ({"action_space": "    action_space = (2,)  # <-"}, "`action_space` is a tuple"),
    "a horizon that is a method": (
        {"fields": '    name = "ball"\n    description = ""\n    state_notes = ""\n\n    def horizon(self):  # <-\n'
                   "        return 8\n"},
        "`horizon` is a method: write @property over its def",
    ),
    "a view with a key": (
        {"view": "    def view(self, state):\n        return state  # <-"}, "`view` shows a random key",
    ),
    "a vocabulary that is a list": (
        {"vocabulary": "    def vocabulary(self):\n        return []  # <-"}, "`vocabulary` returns a list",
    ),
    "a fragment that cannot be": (
        {"vocabulary": '    def vocabulary(self):\n        return Fragment(name="a", kind="noun", source="")  # <-'},
        "`vocabulary` fails: ValidationError: ",
    ),
    "a metric that is not a number": (
        {"also": "class Odd:\n    def init(self):\n        return jnp.zeros(())\n\n"
                 "    def update(self, acc, state, action, next_state):\n        return acc\n\n"
                 "    def value(self, acc):\n        return acc / acc  # <-\n\n",
         "score": "    def score(self):\n        return Odd()"},
        "the value of the metric is NaN after a few steps",
    ),
    "a rate that is none": (
        {"also": "class Odd:\n    def init(self):\n        return jnp.zeros(())\n\n"
                 "    def update(self, acc, state, action, next_state):\n        return acc + 1.0\n\n"
                 "    def value(self, acc):\n        return acc  # <-\n\n",
         "score": "    def score(self):\n        return Odd()"},
        "the metric is a rate of success, between 0 and 1, and is 8 after a few steps",
    ),
    "a subtask whose metric is no share": (
        {"instruction": '    def instruction(self):\n        part = Subtask(name="a", words="Roll.", metric="steps")\n'
                        '        return Instruction(words="Roll.", subtasks=(part,))  # <-',
         "score": '    def score(self):\n        steps = Mean(lambda state, action, following: jnp.ones(()), 1)\n'
                  '        return WithExtraMetrics(Reached(lambda s: s["at"] > 9.0), {"steps": steps})'},
        "'steps', by which the subtask 'a' is measured, is 8 after a few steps, and must be between 0 and 1",
    ),
    "a subtask whose metric is no number": (
        {"instruction": '    def instruction(self):\n        part = Subtask(name="a", words="Roll.", metric="steps")\n'
                        '        return Instruction(words="Roll.", subtasks=(part,))  # <-',
         "score": '    def score(self):\n        steps = Mean(lambda s, action, following: 0.0 / jnp.zeros(()), 1)\n'
                  '        return WithExtraMetrics(Reached(lambda s: s["at"] > 9.0), {"steps": steps})'},
        "'steps', by which the subtask 'a' is measured, is NaN after a few steps",
    ),
    "a reward that is not a number": (
        {"sparse_reward": "    def sparse_reward(self, view, action, next_view):\n"
                          "        return 0.0 / jnp.zeros(())  # <-"},
        "the sparse reward is NaN with random actions",
    ),
    "a picture that fails": (
        {"draw": '    def draw(self, state):\n        return state["nowhere"]  # <-'},
        "`draw` fails: KeyError: 'nowhere'",
    ),
    "a picture of one colour": (
        {"draw": "    def draw(self, state):\n        return np.zeros((8, 8))  # <-"},
        "`draw` returns float64 (8, 8), and must return a numpy array, uint8 (height, width, 3)",
    ),
    "a name of two lines": (
        {"fields": '    name = "a\\nball"  # <-\n    description = "Roll."\n    state_notes = ""\n    horizon = 8'},
        "`name` must be one line of at most 100",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_found_at_the_users_line(what, tmp_path):
    parts, says = MISTAKES[what]
    file = written(tmp_path, **parts)
    found = mistakes_in(module_of(file).Ball())
    assert len(found) == 1, found
    assert says in found[0].message and "\n" not in str(found[0])
    assert (found[0].file, found[0].line) == (str(file), marked(file))
    assert str(found[0]).endswith(f"(ball.py, line {marked(file)})")


def test_a_sound_task_has_no_mistake(tmp_path):
    assert mistakes_in(module_of(written(tmp_path)).Ball()) == ()
