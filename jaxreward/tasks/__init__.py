"""Tasks: pure functions over a state pytree, with a description, a vocabulary and a metric."""

from __future__ import annotations

from typing import Any

from jaxreward.config import file_of, is_file, label_of
from jaxreward.records import Fragment, Measure, Vocabulary
from jaxreward.tasks.adapters import from_brax, from_functions, from_gymnax, from_jumanji, from_playground
from jaxreward.tasks.arguments import make_task_of, options_of, unchecked_task_of
from jaxreward.tasks.base import BaseTask
from jaxreward.tasks.documentation import card, document_state
from jaxreward.tasks.finding import Finding, Location
from jaxreward.tasks.registry import OPEN_NAMES, extra_of, has_real_actions, is_task_name, make_task, task_names
from jaxreward.tasks.source_locator import SourceLocator
from jaxreward.tasks.stepping import batched_step, slice_limit
from jaxreward.tasks.task import (
    Box,
    Compiled,
    Demonstrated,
    Dense,
    Discrete,
    Drawable,
    ExtraMetrics,
    Measured,
    Metric,
    SlicedTask,
    Task,
    compiler_options,
    measure_of,
    metric_names,
    mission_of,
    progress_names,
)
from jaxreward.tasks.validation import InvalidTask, mistakes_in, require_none, require_sound
from jaxreward.user_files import digest_of

__all__ = [
    "OPEN_NAMES",
    "BaseTask",
    "Box",
    "Compiled",
    "Demonstrated",
    "Dense",
    "Discrete",
    "Drawable",
    "ExtraMetrics",
    "Finding",
    "Fragment",
    "InvalidTask",
    "Location",
    "Measure",
    "Measured",
    "Metric",
    "SlicedTask",
    "SourceLocator",
    "Task",
    "Vocabulary",
    "batched_step",
    "card",
    "compiler_options",
    "digest_of",
    "document_state",
    "extra_of",
    "file_of",
    "from_brax",
    "from_functions",
    "from_gymnax",
    "from_jumanji",
    "from_playground",
    "has_real_actions",
    "is_file",
    "is_task_name",
    "label_of",
    "make_task",
    "make_task_of",
    "measure_of",
    "metric_names",
    "mission_of",
    "mistakes_in",
    "options_of",
    "progress_names",
    "require_none",
    "require_sound",
    "slice_limit",
    "task_names",
    "unchecked_task_of",
]

_OLD_NAMES = {
    "Author": "SourceLocator",
    "InSlices": "SlicedTask",
    "Place": "Location",
    "Telling": "ExtraMetrics",
    "at_once": "slice_limit",
    "stepper": "batched_step",
    "told_beside": "metric_names",
}


def __getattr__(name: str) -> Any:
    """Names of earlier versions."""
    if name in _OLD_NAMES:
        return globals()[_OLD_NAMES[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
