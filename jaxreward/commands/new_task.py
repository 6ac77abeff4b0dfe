"""`jaxreward new-task`: a file with a task to start from."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile

TEMPLATE = '''from typing import NamedTuple

import jax
import jax.numpy as jnp

import jaxreward as jr

MOVES = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


class State(NamedTuple):
    agent: jax.Array
    key: jax.Array
    has_key: jax.Array
    goal: jax.Array


class KeyAndDoor(jr.BaseTask):
    """Fetch the key, then walk through the door to the goal. A wall parts the 7 x 7 cells; its door is at (3, 3)."""

    horizon = 60
    action_space = jr.Discrete(4)
    state_words = {"agent": "[row, column]", "key": "[row, column]", "action": "0 up, 1 right, 2 down, 3 left"}

    def reset(self, key):
        left, right = jax.random.split(key)
        agent, key = jax.random.randint(left, (2, 2), 0, jnp.array([7, 3]))
        goal = jax.random.randint(right, (2,), jnp.array([0, 4]), 7)
        return State(agent, key, jnp.all(agent == key), goal)

    def step(self, state, action):
        to = jnp.clip(state.agent + MOVES[action], 0, 6)
        free = (to[1] != 3) | ((to[0] == 3) & state.has_key)
        agent = jnp.where(free, to, state.agent)
        return state._replace(agent=agent, has_key=state.has_key | jnp.all(agent == state.key))

    def success(self, state):
        return jnp.all(state.agent == state.goal)
'''
"""The example of docs/tasks.md. Its class gets another name."""


@dataclass(frozen=True)
class NewTaskSettings:
    """Write NAME.py with a small task, a grid with a key and a door, to be changed into your own."""

    name: Annotated[str, Arg(positional="NAME")] = ""
    """Name of the file and the class: letters, digits and _, such as key_and_door."""


def run(resolved: Resolved[NewTaskSettings]) -> int:
    """Write the file."""
    name = resolved.settings.name.removesuffix(".py").replace("-", "_")
    if not name:
        raise InvalidSetting("say what the task is called: jaxreward new-task NAME", "name")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        message = f"'{resolved.settings.name}' cannot be the name of a Python file and class: use letters, digits and _"
        raise InvalidSetting(message, "name")
    path = Path(f"{name}.py")
    if path.exists():
        raise UnusableFile(f"{path} exists already: choose another name", path, FileProblem.EXISTS)
    if find_spec(name) is not None:
        message = f"{path} would hide the Python module {name} from what runs in this folder: choose another name"
        raise InvalidSetting(message, "name")
    kind = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    with path.open("x", encoding="utf-8") as file:
        file.write(TEMPLATE.replace("KeyAndDoor", kind))
    print(f"{path}: class {kind}, a task to start from\nnext: jaxreward check {path}, jaxreward evolve --task {path}")
    return 0


COMMANDS = (Command("new-task", NewTaskSettings, run=run, config=False, examples=("new-task key_and_door",)),)
