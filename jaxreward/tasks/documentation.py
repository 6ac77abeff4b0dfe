"""A task in words for a proposer, with the shapes of its state taken from the state itself."""

from __future__ import annotations

from typing import Any

import jax
from jax import tree_util

from jaxreward.records import TaskCard
from jaxreward.tasks.task import Discrete, Task


def state_leaves(task: Task) -> dict[str, jax.ShapeDtypeStruct]:
    """The arrays that programs see, by path, such as `agent.position`."""
    view = jax.eval_shape(lambda: task.view(task.reset(jax.random.key(0))))
    return {".".join(map(_name, path)): leaf for path, leaf in tree_util.tree_flatten_with_path(view)[0]}


def document_state(task: Task) -> str:
    """Every array that programs see, and the action, with dtype, shape and the task's words; then its notes."""
    rows = [
        (f"state.{path}" if path else "state", f"{leaf.dtype.name} {leaf.shape}", task.state_words.get(path, ""))
        for path, leaf in state_leaves(task).items()
    ]
    rows.append(("action", *_action(task)))
    widths = [max(len(row[k]) for row in rows) for k in (0, 1)]
    lines = [f"{name:{widths[0]}}  {kind:{widths[1]}}  {words}".rstrip() for name, kind, words in rows]
    return "\n".join([*lines, *([task.state_notes] if task.state_notes else [])])


def card(task: Task) -> TaskCard:
    """The words and the vocabulary by which a proposer knows `task`."""
    return TaskCard(
        name=task.name, description=task.description, state_doc=document_state(task), vocabulary=task.vocabulary()
    )


def _action(task: Task) -> tuple[str, str]:
    space, words = task.action_space, task.state_words.get("action", "")
    if isinstance(space, Discrete):
        return "int32 ()", words or f"0 .. {space.n - 1}"
    return f"float32 {tuple(space.shape)}", words or f"from {space.low:g} to {space.high:g}"


def _name(key: Any) -> str:
    """One step of a path, as a program would write it."""
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
