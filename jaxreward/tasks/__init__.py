"""Tasks: pure functions over a state pytree, their words and their metric."""

from __future__ import annotations

from jaxreward.config import file_of, is_file, label_of
from jaxreward.records import Fragment, Measure, Vocabulary
from jaxreward.tasks.arguments import make_task_of, options_of, unchecked_task_of
from jaxreward.tasks.documentation import card, document_state
from jaxreward.tasks.findings import Author, Finding, Place
from jaxreward.tasks.from_file import digest_of
from jaxreward.tasks.lanes import at_once, stepper
from jaxreward.tasks.registry import has_real_actions, make_task, task_names
from jaxreward.tasks.soundness import in_a_sentence, is_shipped, mistakes_in, require_sound
from jaxreward.tasks.task import (
    Box,
    Compiled,
    Dense,
    Discrete,
    Drawable,
    ExtraMetrics,
    InSlices,
    Measured,
    Metric,
    Task,
    compiler_options,
    measure_of,
    metric_names,
)

__all__ = [
    "Author",
    "Box",
    "Compiled",
    "Dense",
    "Discrete",
    "Drawable",
    "ExtraMetrics",
    "Finding",
    "Fragment",
    "InSlices",
    "Measure",
    "Measured",
    "Metric",
    "Place",
    "Task",
    "Vocabulary",
    "at_once",
    "card",
    "compiler_options",
    "digest_of",
    "document_state",
    "file_of",
    "has_real_actions",
    "in_a_sentence",
    "is_file",
    "is_shipped",
    "label_of",
    "make_task",
    "make_task_of",
    "measure_of",
    "metric_names",
    "mistakes_in",
    "options_of",
    "require_sound",
    "stepper",
    "task_names",
    "unchecked_task_of",
]
