"""Exported modules, made and imported."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import numpy as np

from jaxreward.exports import Export, Target, export
from jaxreward.programs import Checker
from jaxreward.records import ProgramSummary

INTERFACES = Path(__file__).resolve().parents[2] / "interfaces"
_numbers = itertools.count()


@functools.cache
def unplayed(task: Any) -> Any:
    """What of `task` the checks of a program need that do not play it, which would take long to compile."""
    needed = ("name", "reset", "view", "action_space", "default_observation", "sparse_reward")
    return SimpleNamespace(**{name: getattr(task, name) for name in needed})


def exported(source: str, task: Any, target: Target, checker: Checker, name: str = "") -> Export:
    """A module of `source`, which is checked on random arrays."""
    return export(source, task, name or task.name, target, lambda text: checker.load(text, unplayed(task)))


def unchecked(source: str, size: int = 3) -> Any:
    """In place of a program that has passed its checks."""
    summary = ProgramSummary(
        digest="0" * 64, observation_size=size, terms=("goal",), reward_nodes=1, operations=1, flops=1, elements=1,
        observation_reads=(), reward_reads=(),
    )  # fmt: skip
    return SimpleNamespace(summary=summary)


def imported(text: str, folder: Path) -> ModuleType:
    """`text` as a module, from a file in `folder`."""
    name = f"exported_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def same(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    """That two trees hold the same numbers, but for rounding."""
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)
