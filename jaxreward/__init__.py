"""Discovers how a reinforcement learning agent should see its task and be rewarded for it.

    import jaxreward as jr

    task = jr.make_task("xland-easy")
    programs = [jr.load_program(path, task) for path in paths]
    result = jr.train(task, programs, jr.PPO(), seeds=3, steps=1_000_000)
    result.success  # (candidates, seeds)

A name is imported when it is first used, and so are the packages inside, such as `jr.programs`: `import jaxreward`
itself loads neither JAX nor a simulator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxreward import comparison as comparison
    from jaxreward import errors as errors
    from jaxreward import evolution as evolution
    from jaxreward import exports as exports
    from jaxreward import programs as programs
    from jaxreward import proposers as proposers
    from jaxreward import records as records
    from jaxreward import reports as reports
    from jaxreward import runs as runs
    from jaxreward import search as search
    from jaxreward import tasks as tasks
    from jaxreward import tracking as tracking
    from jaxreward import training as training
    from jaxreward.comparison.from_python import Comparison, compare
    from jaxreward.errors import UserError
    from jaxreward.evolution.from_python import evolve
    from jaxreward.evolution.search_run import SearchRun, open_run
    from jaxreward.evolution.task_check import check_task
    from jaxreward.evolution.task_remarks import remarks_on
    from jaxreward.evolution.text_search import evolve_texts
    from jaxreward.evolution.watching import CompletedGeneration
    from jaxreward.function_source import UnreadableFunction, source_of
    from jaxreward.programs import Program, ProgramRejected, Spec, check_program, load_program
    from jaxreward.records import Fragment, Measure, Vocabulary
    from jaxreward.table import Table
    from jaxreward.tasks import (
        BaseTask,
        Box,
        Discrete,
        Task,
        from_brax,
        from_functions,
        from_gymnax,
        from_jumanji,
        from_playground,
        make_task,
    )
    from jaxreward.tasks.metrics import Both, Mean, MeanBelow, Reached, Sum, WithExtraMetrics
    from jaxreward.tasks.robots.mujoco_task import MuJoCoTask as MuJoCoTask
    from jaxreward.training import (
        AIRL,
        GAIL,
        PPO,
        SAC,
        Cloning,
        Imitation,
        Policy,
        Rung,
        TrainResult,
        imitate,
        train,
    )

__version__ = "0.1.0"

__all__ = [
    "AIRL",
    "GAIL",
    "PPO",
    "SAC",
    "BaseTask",
    "Both",
    "Box",
    "Cloning",
    "Comparison",
    "CompletedGeneration",
    "Discrete",
    "Fragment",
    "Imitation",
    "Mean",
    "MeanBelow",
    "Measure",
    "Policy",
    "Program",
    "ProgramRejected",
    "Reached",
    "Rung",
    "SearchRun",
    "Spec",
    "Sum",
    "Table",
    "Task",
    "TrainResult",
    "UnreadableFunction",
    "UserError",
    "Vocabulary",
    "WithExtraMetrics",
    "__version__",
    "check_program",
    "check_task",
    "compare",
    "evolve",
    "evolve_texts",
    "from_brax",
    "from_functions",
    "from_gymnax",
    "from_jumanji",
    "from_playground",
    "imitate",
    "load_program",
    "make_task",
    "open_run",
    "remarks_on",
    "source_of",
    "train",
]

_ROOMS = {
    "comparison.from_python": ("Comparison", "compare"),
    "errors": ("UserError",),
    "evolution.from_python": ("evolve",),
    "evolution.search_run": ("SearchRun", "open_run"),
    "evolution.watching": ("CompletedGeneration",),
    "function_source": ("UnreadableFunction", "source_of"),
    "programs": ("Program", "ProgramRejected", "Spec", "check_program", "load_program"),
    "records": ("Fragment", "Measure", "Vocabulary"),
    "table": ("Table",),
    "evolution.task_check": ("check_task",),
    "evolution.task_remarks": ("remarks_on",),
    "evolution.text_search": ("evolve_texts",),
    "tasks": (
        *("BaseTask", "Box", "Discrete", "Task", "make_task"),
        *("from_brax", "from_functions", "from_gymnax", "from_jumanji", "from_playground"),
    ),
    "tasks.metrics": ("Both", "Mean", "MeanBelow", "Reached", "Sum", "WithExtraMetrics"),
    "tasks.robots.mujoco_task": ("MuJoCoTask",),
    "training": (
        *("AIRL", "GAIL", "PPO", "SAC", "Cloning", "Imitation", "Policy", "Rung", "TrainResult", "imitate", "train"),
    ),
}
_OF_EXTRAS = ("MuJoCoTask",)
"""Names that need an extra: not in `__all__`, since `from jaxreward import *` must work without it."""
_PACKAGES = (
    *("comparison", "errors", "evolution", "exports", "programs", "proposers", "records", "reports", "runs", "search"),
    *("tasks", "tracking", "training"),
)
"""Packages and modules inside that are attributes without being imported before."""

_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"jaxreward.{name}")  # which makes it an attribute
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'jaxreward' has no attribute {name!r}")
    value = getattr(import_module(f"jaxreward.{room}"), name)
    globals()[name] = value  # the next look-up is a plain one
    return value


def __dir__() -> list[str]:
    return [*__all__, *_OF_EXTRAS, *_PACKAGES]
