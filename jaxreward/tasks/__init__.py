"""Tasks: pure functions over a state pytree, their words and their metric."""

from __future__ import annotations

from jaxreward.tasks.documentation import card, document_state
from jaxreward.tasks.registry import make_task, task_names
from jaxreward.tasks.task import Box, Compiled, Discrete, Drawable, Metric, Task, Telling, compiler_options, told_beside

__all__ = [
    "Box",
    "Compiled",
    "Discrete",
    "Drawable",
    "Metric",
    "Task",
    "Telling",
    "card",
    "compiler_options",
    "document_state",
    "make_task",
    "task_names",
    "told_beside",
]
