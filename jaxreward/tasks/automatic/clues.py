"""What a task's own functions say: its sparse reward and default observation as texts, what its reward, metric and end
read, and the numbers that they compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.tasks.automatic.draft import Draft
from jaxreward.tasks.automatic.expressions import (
    Comparison,
    Inexpressible,
    inputs_read,
    paths_of,
    written,
)
from jaxreward.tasks.automatic.fields import Field
from jaxreward.tasks.automatic.terms import gain, term
from jaxreward.tasks.fragment_template import Template
from jaxreward.tasks.task import Box, Task

WIDEST = 128
"""Values of a default observation that is a feature."""
_HIDDEN = "hidden"


@dataclass(frozen=True)
class Clues:
    """`reads` are the leaves of the view that reward, metric or end depend on."""

    drafts: tuple[Draft, ...]
    reads: frozenset[int]


def clues_of(task: Task, fields: Sequence[Field]) -> Clues:
    """What the functions of `task` say, as far as they are short."""
    state = jax.eval_shape(task.reset, jax.eval_shape(lambda: jax.random.key(0)))
    view = jax.eval_shape(task.view, state)
    space = task.action_space
    real = isinstance(space, Box)
    action = jax.ShapeDtypeStruct(space.shape if real else (), jnp.float32 if real else jnp.int32)
    n = len(jax.tree.leaves(view))
    drafts: list[Draft] = []
    comparisons: list[Comparison] = []

    def attempt(function: Callable[..., Any], arguments: Sequence[Any], paths: Sequence[str]) -> str:
        try:
            result = written(function, arguments, paths)
        except Inexpressible:
            return ""
        comparisons.extend(result.comparisons)
        return result.outputs[0].text if len(result.outputs) == 1 else ""

    text = attempt(task.default_observation, (view,), paths_of("state", view))
    size = jax.eval_shape(task.default_observation, view).shape[0]
    if text and size <= WIDEST:
        template = Template("own_observation", "own basic", "The task's own observation.", _bare(text), size)
        drafts.append(Draft(template, "feature", 1.5))
    paths = [*paths_of("state", view), "action", *paths_of("next_state", view)]
    comparisons.clear()
    text = attempt(task.sparse_reward, (view, action, view), paths)
    if text and "state" in text:
        template = Template("task_reward", "milestone basic", "The task's own reward.", _bare(text), 1, (1.0, 2.0, 5.0))
        drafts.append(Draft(template, "term", 2.0))
    reads = {k % (n + 1) for k in inputs_read(task.sparse_reward, (view, action, view)) if k % (n + 1) != n}
    shown = _shown(task, state)
    metric = task.score()
    acc = jax.eval_shape(metric.init)
    of_state = [shown.get(k, _HIDDEN) for k in range(len(jax.tree.leaves(state)))]
    leaf_of = {path: k for k, path in enumerate(paths_of("", view))}
    attempt(task.terminated, (state,), _named("next_state", of_state))
    hidden = [_HIDDEN] * len(jax.tree.leaves(acc))
    folded = (acc, state, action, state)
    attempt(metric.update, folded, [*hidden, *_named("state", of_state), "action", *_named("next_state", of_state)])
    for function, arguments, skip in ((task.terminated, (state,), 0), (metric.update, folded, len(hidden))):
        for k in inputs_read(function, arguments):
            path = of_state[(k - skip) % (len(of_state) + 1)] if k >= skip and _is_state(k, skip, of_state) else _HIDDEN
            reads |= {leaf_of[path]} if path in leaf_of else set()
    del fields
    drafts.extend(_compared(comparisons, n))
    return Clues(tuple(drafts), frozenset(reads))


def _is_state(k: int, skip: int, of_state: Sequence[str]) -> bool:
    return (k - skip) % (len(of_state) + 1) != len(of_state)


def _named(state: str, paths: Sequence[str]) -> list[str]:
    return [path if path == _HIDDEN else state + path for path in paths]


def _shown(task: Task, state: Any) -> dict[int, str]:
    """The paths in the view of those leaves of the state that it shows as they are."""
    jaxpr, view = jax.make_jaxpr(task.view, return_shape=True)(state)
    place = {var: k for k, var in enumerate(jaxpr.jaxpr.invars)}
    outvars = jaxpr.jaxpr.outvars
    return {place[v]: path for v, path in zip(outvars, paths_of("", view), strict=True) if v in place}


def _compared(comparisons: Sequence[Comparison], n: int) -> Iterator[Draft]:
    """Potentials of how far a comparison of the next state is from holding."""
    seen: dict[str, None] = {}
    for operator, left, right in comparisons:
        sides = f"{left.text} {right.text}"
        reads = left.reads | right.reads
        if _HIDDEN in sides or "action" in sides or not reads or not all(_is_number(x.dtype) for x in (left, right)):
            continue
        if "next_state" in sides and "state" in sides.replace("next_state", ""):
            continue  # of a change, not of a state
        l, r = (x.text.replace("next_state", "{s}").replace("state", "{s}") for x in (left, right))
        short = f"jnp.abs({l} - {r})" if operator == "eq" else (
            f"jnp.maximum({r} - {l}, 0.0)" if operator in ("ge", "gt") else f"jnp.maximum({l} - {r}, 0.0)"
        )
        big = max(np.prod(left.shape), np.prod(right.shape)) > 1
        seen.setdefault(f"jnp.sum({short}).astype(jnp.float32)" if big else f"({short}).astype(jnp.float32)")
        if operator != "eq":  # room to the bound, from the side where it holds not yet as well as from the other
            seen.setdefault(f"jnp.sum({l} - {r}).astype(jnp.float32)" if big else f"({l} - {r}).astype(jnp.float32)")
    for k, value in enumerate(seen):
        name = f"goal_{k}" if k else "goal"
        none: frozenset[int] = frozenset()
        yield gain(f"{name}_gap_potential", "potential", "Potential: minus what is missing to what the task asks for.",
                   value, none, 1.0, 2.0, -1)  # fmt: skip
        yield term(f"{name}_gap", "shaping", "Minus what is missing to what the task asks for.", value, "-{1}", none,
                   1.0)  # fmt: skip


def _is_number(dtype: Any) -> bool:
    return np.dtype(dtype).kind in "if"


def _bare(text: str) -> str:
    """`text` without parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]
