"""The task protocol as far as it can be checked without a call: attributes, and signatures of methods."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jaxreward.errors import UserError
from jaxreward.tasks.finding import Finding
from jaxreward.tasks.option_checks import check_horizon
from jaxreward.tasks.source_locator import SourceLocator
from jaxreward.tasks.task import Box, Discrete
from jaxreward.tasks.wording import OF_A_CLASS, Wording

METHODS: Mapping[str, tuple[str, ...]] = {
    "reset": ("key",),
    "step": ("state", "action"),
    "terminated": ("state",),
    "view": ("state",),
    "score": (),
    "default_observation": ("view",),
    "sparse_reward": ("view", "action", "next_view"),
    "vocabulary": (),
}
"""The methods of a task and what each is given."""

OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "dense_reward": ("view", "action", "next_view"),
    "compiler_options": ("platform",),
    "max_envs_per_step": ("platform",),
    "lanes_at_once": ("platform",),
    "draw": ("state",),
    "sample_transitions": (),
}

SOURCES: Mapping[str, tuple[str, ...]] = {"success": ("state",), "observation": ("view",)}
"""What some tasks compute methods from that they leave to their defaults; see `base.derived_methods`."""

METRIC: Mapping[str, tuple[str, ...]] = {
    "init": (),
    "update": ("acc", "state", "action", "next_state"),
    "value": ("acc",),
}

_ATTRIBUTES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "name": (str, "a text"),
    "description": (str, "a text"),
    "state_notes": (str, "a text, empty where there is nothing to say"),
    "state_words": (Mapping, "a dictionary, from the path of an array of the view to a few words"),
    "horizon": ((int, float), "a whole number of steps, an int of Python's"),
    "action_space": ((Discrete, Box), "a jaxreward.tasks.Discrete or Box"),
}


_LONGEST_NAME = 100


def check_attributes(task: Any, locator: SourceLocator) -> Iterator[Finding]:
    """Mistakes in the attributes of a task."""
    try:
        hash(task)
    except TypeError as error:
        yield Finding(f"the task has no hash ({one_line(error)}): {_to_hash(task)}", *locator.line_of_class())
    for name, (kind, what) in _ATTRIBUTES.items():
        try:
            value = getattr(task, name)
        except (Exception, SystemExit) as error:
            location = locator.line_of_class() if not _has(task, name) else locator.line_of_error(error)
            problem = f"there is no `{name}`" if not _has(task, name) else f"`{name}` fails: {one_line(error)}"
            yield Finding(f"{problem}: it is {what}", *location)
            continue
        location = locator.line_of_name(name)
        if inspect.ismethod(value):
            yield Finding(f"`{name}` is a method: write @property over its def", *location)
        elif not isinstance(value, kind):
            yield Finding(f"`{name}` is {described(value)}, and must be {what}", *location)
        elif name == "horizon":
            try:
                check_horizon(value, "`horizon`")
            except UserError as error:
                yield Finding(str(error), *location)
        elif name == "name" and not value.strip():
            yield Finding("`name` is empty: give the task a name, which reports show", *location)
        elif name == "name" and not (value.isprintable() and len(value) <= _LONGEST_NAME):
            text = f"`name` must be one line of at most {_LONGEST_NAME} printable characters: put the rest into"
            yield Finding(f"{text} `description`", *location)


def _to_hash(task: Any) -> str:
    """What makes a task hashable."""
    if not dataclasses.is_dataclass(task):
        return "define __hash__, or leave __eq__ out"
    return f"write @dataclass(frozen=True{'' if type(task).__hash__ is None else ', eq=False'})"


def check_signatures(
    owner: Any,
    methods: Mapping[str, tuple[str, ...]],
    locator: SourceLocator,
    wording: Wording = OF_A_CLASS,
    of: str = "",
) -> Iterator[Finding]:
    """Methods of a task, or of its metric, that are missing or take other arguments.

    Args:
        of: what to write before the name of a method, such as `score().`.
    """
    for attribute, given in methods.items():
        method, name = getattr(owner, attribute, None), wording.name(attribute)
        definition = f"def {wording.signature(name, given)}"
        if method is None and (wording.methods or of):
            yield Finding(f"there is no `{of}{name}`: write {definition}", *locator.line_of_class())
            continue
        if not callable(method):
            must = "a method" if wording.methods else f"a function: write {definition}"
            yield Finding(f"`{of}{name}` is {described(method)}, and must be {must}", *locator.line_of_name(attribute))
            continue
        location = locator.line_of_result(method)
        if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method):
            yield Finding(f"`{of}{name}` must be a plain function: no async def, no yield", *location)
            continue
        if takes := _taken_otherwise(method, given):
            own = location if of else locator.line_of_definition(method, attribute)
            text = f"`{of}{name}` takes {takes} and is called with ({', '.join(given)}): write {definition}"
            yield Finding(text, *own)


def _taken_otherwise(method: Any, given: tuple[str, ...]) -> str:
    """The parameters of a method that cannot be called with `given`, or names them in another order; else empty."""
    try:
        signature = inspect.signature(method)
    except ValueError:  # a function of C without a signature
        return ""
    parameters = list(signature.parameters.values())
    names = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
    try:
        signature.bind(*given)
    except TypeError:
        swapped = True
    else:
        swapped = names != given and sorted(names) == sorted(given)
    return str(inspect.Signature([p.replace(annotation=p.empty) for p in parameters])) if swapped else ""


def described(value: Any) -> str:
    """A value in a sentence: `None`, or what kind of thing it is."""
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"


def one_line(error: BaseException, most: int = 300) -> str:
    """An exception in one line."""
    text = without_addresses(" ".join(str(error).split()))
    kind = type(error).__name__
    return f"{kind}: {text[: most - 3]}..." if len(text) > most else f"{kind}: {text}" if text else kind


def without_addresses(text: str) -> str:
    """Without addresses in memory, which are others in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _has(task: Any, name: str) -> bool:
    """Whether a task has an attribute, even if reading it fails."""
    return any(name in vars(kind) or name in getattr(kind, "__annotations__", {}) for kind in type(task).__mro__)
