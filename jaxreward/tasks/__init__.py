"""Tasks: pure functions over a state pytree, their words and their metric."""

from __future__ import annotations

from jaxreward.tasks.arguments import make_task_of, options_of
from jaxreward.tasks.documentation import card, document_state
from jaxreward.tasks.from_file import digest_of, file_of, is_file
from jaxreward.tasks.lanes import at_once, stepper
from jaxreward.tasks.registry import has_real_actions, make_task, task_names
from jaxreward.tasks.task import (
    Box,
    Compiled,
    Dense,
    Discrete,
    Drawable,
    InSlices,
    Measured,
    Metric,
    Task,
    Telling,
    compiler_options,
    measure_of,
    told_beside,
)

__all__ = [
    "Box",
    "Compiled",
    "Dense",
    "Discrete",
    "Drawable",
    "InSlices",
    "Measured",
    "Metric",
    "Task",
    "Telling",
    "at_once",
    "card",
    "compiler_options",
    "digest_of",
    "document_state",
    "file_of",
    "has_real_actions",
    "is_file",
    "make_task",
    "make_task_of",
    "measure_of",
    "options_of",
    "stepper",
    "task_names",
    "told_beside",
]
