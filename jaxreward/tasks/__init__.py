"""Tasks: pure functions over a state pytree, their words and their metric."""

from __future__ import annotations

from jaxreward.tasks.documentation import card, document_state
from jaxreward.tasks.registry import make_task, task_names
from jaxreward.tasks.task import Box, Discrete, Drawable, Metric, Task

__all__ = ["Box", "Discrete", "Drawable", "Metric", "Task", "card", "document_state", "make_task", "task_names"]
