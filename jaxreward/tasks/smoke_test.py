"""A few real steps of a task: numbers that are not finite, and metrics that leave their range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxreward.devices import FAST_COMPILE, on_cpu
from jaxreward.errors import UserError
from jaxreward.tasks.contract import described, one_line
from jaxreward.tasks.documentation import instruction_of
from jaxreward.tasks.finding import Finding
from jaxreward.tasks.source_locator import SourceLocator
from jaxreward.tasks.task import Box, compiler_options, measure_of_metric
from jaxreward.tasks.traces import Traced, label, method_error

STEPS, EPISODES = 16, 4
"""Steps of an episode, at most, and parallel episodes; actions are random."""

LARGE = 2_000
"""Equations of a step that takes more than about a second to compile."""

Traces = Mapping[str, Traced]


def smoke_test(
    task: Any, traces: Traces, metric: Any, locator: SourceLocator, quick: bool = False
) -> Iterator[Finding]:
    """What is wrong with the numbers of a task whose methods were traced without fault.

    Args:
        traces: by name, `reset`, `step`, `view`, `default_observation`, `sparse_reward`, and `init`, `update`, `value`
            and, if it has extra metrics, `also` of the metric.
        quick: leave out a step that takes long to compile, a simulation of bodies for example: the numbers are those of
            first states.
    """
    platform = jax.default_backend()
    moves = not (quick and traces["step"].equations > LARGE)
    try:
        options = dict(compiler_options(task, platform)) | on_cpu(FAST_COMPILE, platform)
        played = jax.jit(lambda key: _episodes(task, traces, key, moves), compiler_options=options)(jax.random.key(0))
    except Exception as error:
        yield Finding(f"a few steps cannot be compiled: {one_line(error)}", *locator.line_of_name("compiler_options"))
        return
    values, first = np.asarray(played.pop("value")), jax.tree.map(lambda x: x[0], played.pop("first"))
    found = jax.device_get(played)
    for name, (method, text) in _SOURCES.items():
        for path, leaf in jax.tree_util.tree_flatten_with_path(found[name])[0]:
            if (bad := ~np.isfinite(leaf)).any():
                where = text.format(label(path, "view"))
                message = f"{where} {_not_finite(leaf[bad])} with random actions: guard divisions, roots and logarithms"
                yield Finding(message, *locator.line_of_result(getattr(task, method)))
                return  # what is computed from it is no better
    measure, location = measure_of_metric(metric), locator.line_of_result(metric.value)
    if (bad := ~np.isfinite(values)).any():
        yield Finding(
            f"the value of the metric {_not_finite(values[bad])} after a few steps, and would count as the worst: "
            "guard divisions, roots and logarithms", *location
        )  # fmt: skip
    elif measure.rate and (values.min() < 0.0 or values.max() > 1.0):
        worst = values.max() if values.max() > 1.0 else values.min()
        yield Finding(
            f"the metric is a rate of success, between 0 and 1, and is {worst:.4g} after a few steps: divide by what "
            "it can be, or give it a `measure` with rate=False", *location
        )  # fmt: skip
    if "also" in found:
        yield from _outside(task, dict(zip(metric.names, np.moveaxis(found["also"], -1, 0), strict=True)), locator)
    if hasattr(task, "draw") and locator.is_user_function(task.draw):
        yield from _drawn(task, jax.device_get(first), locator)


def _outside(task: Any, values: Mapping[str, Any], locator: SourceLocator) -> Iterator[Finding]:
    """Subtasks whose metrics leave [0, 1] or are no numbers: the alignment would count them as 0 or 1."""
    try:
        instruction = instruction_of(task)
    except UserError:  # which is found where the task is described
        return
    for subtask in instruction.subtasks if instruction is not None else ():
        if not subtask.metric:
            continue
        x, location = values[subtask.metric], locator.line_of_result(task.instruction)
        what = f"'{subtask.metric}', by which the subtask '{subtask.name}' is measured, "
        if np.isnan(x).any():
            yield Finding(f"{what}is NaN after a few steps, and would count as 0: guard divisions", *location)
        elif x.min() < 0.0 or x.max() > 1.0:
            worst = x.max() if x.max() > 1.0 else x.min()
            yield Finding(
                f"{what}is {worst:.4g} after a few steps, and must be between 0 and 1: divide it by what it can be",
                *location,
            )


def _drawn(task: Any, state: Any, locator: SourceLocator) -> Iterator[Finding]:
    """What is wrong with a picture of `state`, which films are made of."""
    try:
        picture = task.draw(state)
    except UserError:  # what this machine lacks to draw with is no mistake of the task
        return
    except (Exception, SystemExit) as error:
        yield method_error("draw", error, locator).finding
        return
    kind = f"{picture.dtype} {picture.shape}" if isinstance(picture, np.ndarray) else described(picture)
    if not isinstance(picture, np.ndarray) or picture.dtype != np.uint8 or picture.shape[2:] != (3,):
        text = f"`draw` returns {kind}, and must return a numpy array, uint8 (height, width, 3)"
        yield Finding(text, *locator.line_of_result(task.draw))


_SOURCES = {
    "view": ("view", "{} of a state"),
    "observation": ("default_observation", "the default observation"),
    "reward": ("sparse_reward", "the sparse reward"),
}


def _not_finite(values: np.ndarray[Any, Any]) -> str:
    return "is NaN" if np.isnan(values).any() else "is infinite"


def _episodes(task: Any, traces: Traces, key: jax.Array, moves: bool) -> dict[str, Any]:
    """Random episodes, (`EPISODES`, steps): the first states, and for each step the value of the metric, the view, the
    observation and the reward. Without `moves`, every state is the first."""
    call = {name: _replay(trace) for name, trace in traces.items()}
    also = lambda acc: {"also": call["also"](acc)} if "also" in call else {}  # noqa: E731

    def episode(key: jax.Array) -> dict[str, Any]:
        first, acting = jax.random.split(key)
        state = call["reset"](first)

        def step(carry: Any, key: jax.Array) -> Any:
            before, acc = carry
            action = _action(task.action_space, key)
            after = call["step"](before, action) if moves else before
            acc = call["update"](acc, before, action, after)
            view, next_view = call["view"](before), call["view"](after)
            seen = {"view": _reals(view), "observation": call["default_observation"](next_view)}
            reward = jnp.asarray(call["sparse_reward"](view, action, next_view), jnp.float32)
            value = jnp.asarray(call["value"](acc), jnp.float32)
            return (after, acc), {**seen, **also(acc), "reward": reward, "value": value}

        steps = jax.random.split(acting, min(STEPS, task.horizon))
        return {**jax.lax.scan(step, (state, call["init"]()), steps)[1], "first": state}

    return jax.lax.map(episode, jax.random.split(key, EPISODES))  # batched, it would take longer to compile


def _replay(trace: Traced) -> Any:
    """A traced method, called without tracing it anew."""
    function, tree = core.jaxpr_as_fun(trace.jaxpr), jax.tree.structure(trace.out)
    return lambda *arguments: jax.tree.unflatten(tree, function(*jax.tree.leaves(arguments)))


def _reals(tree: Any) -> Any:
    """The arrays of real numbers in a tree; others in it become zeros."""
    return jax.tree.map(lambda x: x if jnp.issubdtype(x.dtype, jnp.floating) else jnp.zeros(()), tree)


def _action(space: Any, key: jax.Array) -> jax.Array:
    if isinstance(space, Box):
        return jax.random.uniform(key, space.shape, jnp.float32, space.low, space.high)
    return jax.random.randint(key, (), 0, space.n, jnp.int32)
