"""What a task's own functions say: its sparse reward and its default observation as texts, which arrays its reward,
metric and end depend on, what they compare and subtract, and of what they take sines."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxreward.tasks.automatic.angles import turned_elements
from jaxreward.tasks.automatic.conditions import Checked, conditions, evaluated
from jaxreward.tasks.automatic.draft import Draft
from jaxreward.tasks.automatic.expressions import following, inputs_read, written
from jaxreward.tasks.automatic.fields import unreadable
from jaxreward.tasks.automatic.leaves import Leaves
from jaxreward.tasks.automatic.play import Play
from jaxreward.tasks.automatic.scene import Hints
from jaxreward.tasks.automatic.texts import ACTION, AFTER, BEFORE, UNKNOWN, named
from jaxreward.tasks.fragment_template import Template
from jaxreward.tasks.task import Box, Task

WIDEST = 128
"""Values of a default observation that is a feature."""


@dataclass(frozen=True)
class Clues:
    """The task's own observation and reward, terms of the conditions that its functions check, and hints."""

    own: tuple[Draft, ...]
    conditions: tuple[Draft, ...]
    hints: Hints


def clues_of(task: Task, played: Play) -> Clues:
    """What the functions of `task` say, as far as they are short."""
    state = jax.eval_shape(task.reset, jax.eval_shape(lambda: jax.random.key(0)))
    view = jax.eval_shape(task.view, state)
    space = task.action_space
    real = isinstance(space, Box)
    action = jax.ShapeDtypeStruct(space.shape if real else (), jnp.float32 if real else jnp.int32)
    leaves = Leaves.of(view, unreadable(played))

    n = len(leaves.paths)
    paths = [*leaves.written(BEFORE), ACTION, *leaves.written(AFTER)]
    paid = written(task.sparse_reward, (view, action, view), paths)
    seen = written(task.default_observation, (view,), leaves.written(AFTER))
    observation = _observation(task, view, seen.outputs[0].text, played)
    own = (*observation, *_reward(paid.outputs[0].text, played))
    paid_by = {k % (n + 1) for k in inputs_read(task.sparse_reward, (view, action, view))} - {n}

    shown = {k: leaf for k, leaf in _shown(task, state).items() if leaf not in leaves.hidden}
    count = len(jax.tree.leaves(state))
    metric = task.score()
    acc = jax.eval_shape(metric.init)
    now, then = (
        [place + leaves.paths[shown[k]] if k in shown else UNKNOWN for k in range(count)] for place in (BEFORE, AFTER)
    )
    before = [UNKNOWN] * len(jax.tree.leaves(acc))
    ended = written(task.terminated, (state,), then)
    folded = written(metric.update, (acc, state, action, state), [*before, *now, ACTION, *then])
    ends = set(inputs_read(task.terminated, (state,)))
    measured = {(k - len(before)) % (count + 1) for k in inputs_read(metric.update, (acc, state, action, state))
                if k >= len(before)} - {count}  # fmt: skip
    reads = paid_by | {shown[k] for k in ends | measured if k in shown}

    sizes = [int(np.prod(x.shape)) for x in jax.tree.leaves(state)]
    of_leaf = {leaf: k for k, leaf in shown.items()}
    fair = {k for k in ends | {of_leaf[leaf] for leaf in paid_by if leaf in of_leaf} if sizes[k] == 1}
    decided = fair | {k for k in measured if sizes[k] == 1}
    decided |= {k for k in (of_leaf[leaf] for leaf in reads if leaf in of_leaf) if sizes[k] == 1}
    names = {k: then[k] for k in shown if k not in decided}
    kept = _kept(task, state, action)
    start = [*(then[k] if k in kept else now[k] for k in range(count)), ACTION]
    found = [(paid, True), (ended, True), (folded, False)]
    for only, is_paid in ((fair, True), (decided - fair, False)):
        if only:
            found.append((following(task.step, (state, action), start, names, frozenset(only)), is_paid))
    checked = [Checked(comparison, is_paid) for says, is_paid in found for comparison in says.comparisons]
    pairs = [pair for says in (seen, *(says for says, _ in found)) for pair in says.differences]
    turned = turned_elements(task.default_observation, (view,))
    for k, elements in turned_elements(task.step, (state, action)).items():
        if k in shown:
            turned[shown[k]] = turned.get(shown[k], frozenset()) | elements
    hints = Hints(frozenset(reads), frozenset(_subtracted(pairs, leaves)), turned)
    return Clues(own, tuple(conditions(checked, played, leaves)), hints)


def _subtracted(pairs: Iterable[tuple[str, str]], leaves: Leaves) -> Iterator[frozenset[int]]:
    for pair in pairs:
        both = [leaves.whole(text) for text in pair]
        if None not in both and both[0] != both[1]:
            yield frozenset(k for k in both if k is not None)


def _observation(task: Task, view: Any, text: str, played: Play) -> Iterator[Draft]:
    size = jax.eval_shape(task.default_observation, view).shape[0]
    if UNKNOWN in text or size > WIDEST:
        return
    text = text.replace(AFTER, BEFORE)
    told = jax.vmap(task.default_observation)(played.views)
    if np.allclose(evaluated([text], played)[0], np.asarray(told).reshape(len(played), -1), rtol=1e-3, atol=1e-4):
        template = Template("own_observation", "own basic", "The task's own observation.", _bare(named(text)), size)
        yield Draft(template, "feature", 1.5)


def _reward(text: str, played: Play) -> Iterator[Draft]:
    if UNKNOWN in text or not any(place in text for place in (BEFORE, ACTION, AFTER)):
        return
    if np.allclose(evaluated([text], played)[0], played.reward, rtol=1e-3, atol=1e-4):
        template = Template("task_reward", "milestone basic", "The task's own reward.", _bare(named(text)), 1,
                            (1.0, 2.0, 5.0))  # fmt: skip
        yield Draft(template, "term", 2.0, is_plain=True)


def _shown(task: Task, state: Any) -> dict[int, int]:
    """Of each leaf of the state that the view shows as it is, the leaf of the view."""
    jaxpr = jax.make_jaxpr(task.view)(state).jaxpr
    place = {var: k for k, var in enumerate(jaxpr.invars)}
    pairs = enumerate(jaxpr.outvars)
    return {place[var]: leaf for leaf, var in pairs if isinstance(var, core.Var) and var in place}


def _kept(task: Task, state: Any, action: Any) -> frozenset[int]:
    """The leaves of a state that a step leaves as they are."""
    jaxpr = jax.make_jaxpr(task.step)(state, action).jaxpr
    return frozenset(k for k, var in enumerate(jaxpr.outvars) if var is jaxpr.invars[k])


def _bare(text: str) -> str:
    """`text` without parentheses around all of it."""
    inner = text[1:-1]
    if not (text.startswith("(") and text.endswith(")")):
        return text
    try:
        same = ast.dump(ast.parse(inner, mode="eval")) == ast.dump(ast.parse(text, mode="eval"))
    except SyntaxError:
        return text
    return inner if same else text
