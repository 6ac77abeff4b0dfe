"""What an exported module needs of a task to simulate it without jaxreward: a template, and the task's numbers."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from jaxreward.tasks import Box, Task, make_task, measure_of, options_of


class Simulation(NamedTuple):
    """`template` simulates a task with `numbers`; a module that holds it needs `packages`."""

    template: str
    packages: tuple[str, ...]
    numbers: Mapping[str, Any]


def simulation_of(task: Task, name: str, task_file: str = "") -> Simulation:
    """How a module simulates `task`, which goes by `name`: by its simulator alone where nothing of ours is in it, else
    by jaxreward.

    Args:
        task_file: of a task in a file, its name by the path from the module's folder.
    """
    space, metric = task.action_space, re.sub(r"\W+", "_", measure_of(task).name)
    discrete = {"n": None if isinstance(space, Box) else space.n}
    real = {"shape": space.shape, "low": space.low, "high": space.high} if isinstance(space, Box) else {}
    common = {"metric": metric, "horizon": task.horizon, "actions": discrete | real}
    if is_grid(task):
        return Simulation("grid", ("xminigrid",), common | _grid(task))
    if (numbers := _brax(task)) is not None:
        return Simulation("brax_task", ("brax",), common | numbers)
    return Simulation("ours", ("jaxreward",), common | _ours(task, name, task_file))


def is_grid(task: Any) -> bool:
    """Whether it is a task of XLand-MiniGrid."""
    return _is(task, "xland", "XLand")


def is_mujoco(task: Any) -> bool:
    """Whether it is a task on a MuJoCo model."""
    module = sys.modules.get("jaxreward.tasks.robots.mujoco_task")  # imported by whoever made such a task
    return module is not None and isinstance(task, module.MuJoCoTask)


def _is(task: Any, module: str, *names: str) -> bool:
    """Whether the class of `task` is one of ours, none that a user derived from it. Nothing is imported."""
    kind = type(task)
    return kind.__module__ == f"jaxreward.tasks.{module}" and kind.__name__ in names


def _grid(task: Any) -> dict[str, Any]:
    ruleset = task.ruleset
    listed = lambda x: np.asarray(x).tolist()  # noqa: E731
    return {
        "environment": task.environment, "goal": listed(ruleset.goal), "rules": listed(np.atleast_2d(ruleset.rules)),
        "init_tiles": listed(ruleset.init_tiles), "options": {},
    }  # fmt: skip


def _brax(task: Any) -> dict[str, Any] | None:
    """The numbers of a task on an environment of Brax; None for any other."""
    numbers: dict[str, Any]
    if _is(task, "brax.suite", "Run"):
        numbers = {"kind": task.metric, "by_mass": task.body.by_mass}
    elif _is(task, "brax.small", "InvertedPendulum", "Reacher"):
        numbers = {"kind": "return", "by_mass": False}
    elif _is(task, "brax.ant_tasks", "AntLieDown"):
        from jaxreward.tasks.brax.ant_tasks import BELLY_UP

        numbers = {"kind": "lie_down", "belly_up": BELLY_UP}
    elif _is(task, "brax.ant_tasks", "AntPatrolReturn"):
        from jaxreward.tasks.brax.ant_tasks import NEAR

        numbers = {"kind": "patrol", "checkpoint": float(task.checkpoint), "near": NEAR}
    else:
        return None
    from jaxreward.tasks.brax.environment import FASTEST

    return numbers | {
        "env_name": task.env_name, "backend": task.backend, "solid": task.solid, "fastest": FASTEST,
        "options": dict(task.compiler_options("cpu")),
    }  # fmt: skip


def _ours(task: Any, name: str, task_file: str) -> dict[str, Any]:
    usual = options_of(make_task(name))
    options = {key: value for key, value in options_of(task).items() if usual.get(key) != value}
    compiled = task.compiler_options("cpu") if hasattr(task, "compiler_options") else {}
    return {
        "name": task_file or name, "task_file": task_file, "task_options": options, "options": dict(compiled),
        "model_file": _model_file(task),
    }  # fmt: skip


def _model_file(task: Any) -> str:
    """The file of ours that holds the model of `task`; empty if there is none."""
    if not is_mujoco(task):
        return ""
    folder = resources.files("jaxreward.tasks.robots")
    models = [p for p in folder.iterdir() if p.name.endswith(".xml")]
    return next((p.name for p in models if p.read_text(encoding="utf-8") == task.xml), "")
