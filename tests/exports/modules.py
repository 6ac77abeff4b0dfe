"""Exported modules, made and imported."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

from jaxreward.exports import Export, Target, export
from jaxreward.programs import Checker
from jaxreward.programs.spec import Spec

INTERFACES = Path(__file__).resolve().parents[2] / "interfaces"
_numbers = itertools.count()


def exported(source: str, task: Any, target: Target, checker: Checker, name: str = "", played: bool = False) -> Export:
    """A module of `source`, which is checked on random arrays unless the task is `played`: that may take long to
    compile, and is needed where a program has one half."""
    on = task if played else Spec.of(task)
    return export(source, task, name or task.name, target, lambda text: checker.load(text, on))


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
