"""What about a task's view is no mistake and yet worth knowing: arrays that programs cannot use, or should not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax import tree_util

from jaxreward.errors import UserError
from jaxreward.tasks import Finding, SourceLocator
from jaxreward.tasks.automatic.fields import never_read
from jaxreward.tasks.automatic.play import LARGEST_ARRAY
from jaxreward.tasks.automatic.quantities import MOST_COMPONENTS
from jaxreward.tasks.automatic.scene import MOST_NUMBERS
from jaxreward.tasks.random_keys import are_random_keys, is_typed_key, may_be_random_key
from jaxreward.tasks.traces import label
from jaxreward.views import view_shapes

_STATES = 64
"""First states in which an array is examined that may hold random keys."""


def remarks_on(task: Any) -> tuple[Finding, ...]:
    """What about the view of a sound task is no mistake and worth knowing, each in a sentence with its line as far as
    that is known; empty for most tasks.

    It names fields that programs are rejected for reading, random keys, and what a derived vocabulary leaves out.
    """
    try:
        view = view_shapes(task)
        location = SourceLocator(task).line_of_result(task.view)
        return tuple(Finding(message, *location) for message in _messages(task, view))
    except UserError:
        return ()


def _messages(task: Any, view: Any) -> Iterator[str]:
    leaves = tree_util.tree_flatten_with_path(view)[0]
    names = dict.fromkeys(name for path, _ in leaves if (name := never_read(path)))
    for name in names:
        yield (
            f"the view has a field '{name}', which programs cannot read, because Python's objects have a dangerous "
            f"attribute of that name: rename it, for example to '{name}_'"
        )
    for where in _random_keys(task, leaves):
        yield (
            f"the view shows a random key, {where}: leave it out of the view, or agents could foresee what it draws; "
            "derived vocabularies do"
        )
    large = [label(path, "view") for path, x in leaves if math.prod(x.shape) > LARGEST_ARRAY]
    for where in large:
        yield (
            f"{where} has more than {LARGEST_ARRAY:,} elements: no derived vocabulary reads it, and programs that do "
            "are slow; show a smaller picture or what it is about"
        )
    sizes = [math.prod(x.shape) for _, x in leaves if len(x.shape) < 2]
    numbers = sum(size for size in sizes if size <= MOST_COMPONENTS)
    if numbers > MOST_NUMBERS and not task.vocabulary().fragments:
        yield (
            f"the view has {numbers} numbers: a derived vocabulary is about at most {MOST_NUMBERS}, those that tell "
            "most of the reward in random play; leave out what nobody needs"
        )


def _random_keys(task: Any, leaves: Any) -> Iterator[str]:
    may = [k for k, (_, x) in enumerate(leaves) if not is_typed_key(x.dtype) and may_be_random_key(x.shape, x.dtype)]
    if not may:
        return

    def shown(key: jax.Array) -> list[jax.Array]:
        found = jax.tree.leaves(task.view(task.reset(key)))
        return [found[k] for k in may]

    values = jax.device_get(jax.jit(jax.vmap(shown))(jax.random.split(jax.random.key(0), _STATES)))
    for k, x in zip(may, values, strict=True):
        if are_random_keys(np.asarray(x)):
            yield label(leaves[k][0], "view")
