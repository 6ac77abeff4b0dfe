"""What a task's own functions say: its sparse reward and its default observation as texts, which arrays its reward,
metric and end depend on, and the numbers that they compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxreward.tasks.automatic.draft import Draft
from jaxreward.tasks.automatic.expressions import (
    UNKNOWN,
    Comparison,
    following,
    inputs_read,
    paths_of,
    written,
)
from jaxreward.tasks.automatic.play import Array, Play
from jaxreward.tasks.automatic.terms import gain, scales, term
from jaxreward.tasks.fragment_template import Template
from jaxreward.tasks.task import Box, Task

WIDEST = 128
"""Values of a default observation that is a feature."""
MOST_COMPARISONS = 16
RARE = 0.003
"""Share of the transitions of random play in which a condition holds that is rare."""
LONGEST = 240
"""Characters of a comparison's side."""


@dataclass(frozen=True)
class Clues:
    """The task's own observation and reward, terms of the conditions that its functions check, and the leaves of the
    view that reward, metric or end depend on."""

    own: tuple[Draft, ...]
    conditions: tuple[Draft, ...]
    reads: frozenset[int]


def clues_of(task: Task, played: Play) -> Clues:
    """What the functions of `task` say, as far as they are short."""
    state = jax.eval_shape(task.reset, jax.eval_shape(lambda: jax.random.key(0)))
    view = jax.eval_shape(task.view, state)
    space = task.action_space
    real = isinstance(space, Box)
    action = jax.ShapeDtypeStruct(space.shape if real else (), jnp.float32 if real else jnp.int32)

    n = len(jax.tree.leaves(view))
    paths = [*paths_of("state", view), "action", *paths_of("next_state", view)]
    paid = written(task.sparse_reward, (view, action, view), paths)
    own = (*_observation(task, view, played), *_reward(paid.outputs[0].text, played))
    reads = {k % (n + 1) for k in inputs_read(task.sparse_reward, (view, action, view))} - {n}

    shown = _shown(task, state)
    count = len(jax.tree.leaves(state))
    metric = task.score()
    acc = jax.eval_shape(metric.init)
    now, then = ([name + shown[k] if k in shown else UNKNOWN for k in range(count)] for name in ("state", "next_state"))
    before = [UNKNOWN] * len(jax.tree.leaves(acc))
    ended = written(task.terminated, (state,), then)
    folded = written(metric.update, (acc, state, action, state), [*before, *now, "action", *then])
    of_view = {path: k for k, path in enumerate(paths_of("", view))}
    needed = set(inputs_read(task.terminated, (state,)))
    needed |= {(k - len(before)) % (count + 1) for k in inputs_read(metric.update, (acc, state, action, state))
               if k >= len(before)} - {count}  # fmt: skip
    reads |= {of_view[shown[k]] for k in needed if k in shown}

    leaf = {path: k for k, path in shown.items()}
    of_state = {leaf[path] for path, k in of_view.items() if k in reads and path in leaf}
    sizes = [int(np.prod(x.shape)) for x in jax.tree.leaves(state)]
    decided = frozenset(k for k in needed | of_state if sizes[k] == 1)
    named = {k: then[k] for k in shown if k not in decided}
    kept = _kept(task, state, action)
    before = [then[k] if k in kept else now[k] for k in range(count)]
    stepped = following(task.step, (state, action), [*before, "action"], named, decided) if decided else ended
    found = [*paid.comparisons, *ended.comparisons, *folded.comparisons, *stepped.comparisons]
    return Clues(own, tuple(_conditions(found, played)), frozenset(reads))


def _observation(task: Task, view: Any, played: Play) -> Iterator[Draft]:
    text = written(task.default_observation, (view,), paths_of("state", view)).outputs[0].text
    size = jax.eval_shape(task.default_observation, view).shape[0]
    if UNKNOWN in text or size > WIDEST:
        return
    told = jax.vmap(task.default_observation)(played.views)
    if np.allclose(_evaluated(text, played), np.asarray(told).reshape(len(played), -1), rtol=1e-3, atol=1e-4):
        template = Template("own_observation", "own basic", "The task's own observation.", _bare(text), size)
        yield Draft(template, "feature", 1.5)


def _reward(text: str, played: Play) -> Iterator[Draft]:
    if UNKNOWN in text or not ("state" in text or "action" in text):
        return
    if np.allclose(_evaluated(text, played), played.reward, rtol=1e-3, atol=1e-4):
        template = Template("task_reward", "milestone basic", "The task's own reward.", _bare(text), 1, (1.0, 2.0, 5.0))
        yield Draft(template, "term", 2.0, is_plain=True)


def _shown(task: Task, state: Any) -> dict[int, str]:
    """The paths in the view of those leaves of the state that it shows as they are."""
    jaxpr, view = jax.make_jaxpr(task.view, return_shape=True)(state)
    place = {var: k for k, var in enumerate(jaxpr.jaxpr.invars)}
    pairs = zip(jaxpr.jaxpr.outvars, paths_of("", view), strict=True)
    return {place[var]: path for var, path in pairs if isinstance(var, core.Var) and var in place}


def _kept(task: Task, state: Any, action: Any) -> frozenset[int]:
    """The leaves of a state that a step leaves as they are."""
    jaxpr = jax.make_jaxpr(task.step)(state, action).jaxpr
    return frozenset(k for k, var in enumerate(jaxpr.outvars) if var is jaxpr.invars[k])


def _conditions(comparisons: Sequence[Comparison], played: Play) -> Iterator[Draft]:
    """Terms of how far comparisons of one state are from holding.

    One that hardly ever holds in random play may be what is to be reached; of another, random play tells more.
    """
    seen: dict[str, None] = {}
    for operator, left, right in comparisons:
        sides = f"{left.text} {right.text}"
        here = "state" in sides.replace("next_state", "")
        if UNKNOWN in sides or "action" in sides or here == ("next_state" in sides) or len(sides) > LONGEST:
            continue
        if not all(np.dtype(x.dtype).kind in "if" for x in (left, right)):
            continue
        if operator == "lt" and right.text == "0":  # how an index is checked
            continue
        one, other = (x.text.replace("next_state", "{s}").replace("state", "{s}") for x in (left, right))
        gap = f"jnp.abs({one} - {other})"
        if operator != "eq":
            gap = f"({one} - {other})" if operator in ("lt", "le") else f"({other} - {one})"
        whole = max(np.prod(left.shape), np.prod(right.shape)) > 1
        seen.setdefault(f"jnp.sum({gap}).astype(jnp.float32)" if whole else f"{gap}.astype(jnp.float32)")
    for k, value in enumerate(list(seen)[:MOST_COMPARISONS], 1):
        before, gaps = (_evaluated(value.format(s=name), played) for name in ("state", "next_state"))
        span = float(np.ptp(gaps))
        if not np.isfinite(span) or span == 0.0 or np.ptp(gaps - before) < 1e-6 * span:  # a count of steps
            continue
        weight = 1.5 if (gaps <= 1e-6).mean() < RARE else 0.5
        none: frozenset[int] = frozenset()
        words = "what is missing to a condition that the task checks"
        yield gain(f"condition_{k}_potential", "potential", f"Potential: minus {words}.", value, none, span, weight, -1)
        yield gain(f"condition_{k}_away", "potential", f"Potential: {words}.", value, none, span, 0.3)
        yield term(f"condition_{k}", "shaping", f"Minus {words}.", value, "-{1}", none, 0.5 * weight, scales(span)[::2])


def _evaluated(text: str, played: Play) -> Array:
    """The values of an expression of state, action and next_state in random play (N, ...)."""
    function = eval(f"lambda state, action, next_state: {text}", {"jnp": jnp, "jax": jax})  # a text of this package
    return np.asarray(jax.jit(jax.vmap(function))(played.views, played.actions, played.next_views))


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
