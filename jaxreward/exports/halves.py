"""The halves of a program: which it has, and the other as text."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib import resources
from typing import Any

import jax
import numpy as np

from jaxreward.function_source.statements import closure, fresh_name, joined, split
from jaxreward.programs import Program
from jaxreward.tasks import make_task, options_of
from jaxreward.views import view_shapes


def entry_points(source: str) -> set[str]:
    """Those of a program's functions that a trainer calls: `get_observation`, `compute_reward`, or `reward`, which is
    GRACE's form of the latter where it takes one argument."""
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    found = {"get_observation", "compute_reward"} & functions.keys()
    grace = functions.get("reward")
    if "compute_reward" not in found and grace is not None and len(grace.args.posonlyargs + grace.args.args) == 1:
        found.add("reward")
    return found


def baseline(name: str) -> str | None:
    """The shipped program that computes what the task called `name` does by default with its usual options; None if
    there is none."""
    file = resources.files("jaxreward") / "interfaces" / name.replace("-", "_") / "sparse.py"
    return file.read_text(encoding="utf-8") if file.is_file() else None


def is_usual(task: Any, name: str) -> bool:
    """Whether `task` has the options that `make_task(name)` gives it."""
    return options_of(task) == options_of(make_task(name))


def agrees(program: Program, task: Any, entry: str) -> bool:
    """Whether the function `entry` of `program` computes what `task` does by default, on random inputs."""
    own, rng = Program.default(task), np.random.default_rng(0)
    view = view_shapes(task)

    def some(x: Any) -> Any:
        if np.issubdtype(x.dtype, np.floating):
            return rng.normal(size=(64, *x.shape)).astype(x.dtype)
        return rng.integers(0, 2, (64, *x.shape)).astype(x.dtype)

    before, after = jax.tree.map(some, view), jax.tree.map(some, view)
    action = some(program.spec.action.struct())

    def computed(by: Program) -> Any:
        if entry == "get_observation":
            return jax.jit(jax.vmap(by.observe))(before)
        return jax.jit(jax.vmap(lambda *step: by.reward(*step)[0]))(before, action, after)

    theirs, ours = computed(program), computed(own)
    return theirs.shape == ours.shape and np.allclose(theirs, ours, rtol=1e-3, atol=1e-4, equal_nan=True)


def half_of(source: str, entry: str, taken: Iterable[str]) -> str:
    """The function `entry` of `source` with all that it needs, under names that are not in `taken`; imports stay as
    they are."""
    needed = closure([entry], split(source))
    theirs, ours = set(taken), {name for statement in needed for name in statement.binds}
    names: dict[str, str] = {}
    for name in (n for s in needed if not s.is_import for n in s.binds if n in theirs):
        names.setdefault(name, fresh_name(name, {*theirs, *ours, *names.values()}))
    imports = sorted({s.text for s in needed if s.is_import})
    rest = joined([s.renamed(names) for s in needed if not s.is_import])
    return "\n\n\n".join(filter(None, ["\n".join(imports), rest]))
