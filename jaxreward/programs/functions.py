"""Functions of the caller as programs: their text for the checks, or, if they are trusted, tapes traced here."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from jaxreward.errors import InvalidSetting
from jaxreward.function_source import (
    OR_TRUSTED,
    EditedFunction,
    UnreadableFunction,
    name_of,
    own_text,
    role_of,
    source_of,
)  # fmt: skip
from jaxreward.programs.diagnose import diagnose
from jaxreward.programs.encode import trace
from jaxreward.programs.entries import Refused, entries
from jaxreward.programs.guard import guard
from jaxreward.programs.limits import Limits
from jaxreward.programs.namespace import build_state
from jaxreward.programs.program import Half
from jaxreward.programs.spec import Spec
from jaxreward.programs.trace import observation_of, reward_of
from jaxreward.programs.worker_reply import Failed
from jaxreward.records import Failure
from jaxreward.views import view_shapes

_NEEDS_NUMBER = re.compile(
    "Python needs an integer|plain Python value is needed|truth value of an array|static integer"
)
_NUMBER = re.compile(r"\bjnp\.(u?int|float|bfloat|bool_)\d*\(")
"""How a number of NumPy is written out."""
Functions = tuple[Callable[..., Any], ...]
ProgramLike = str | Path | Callable[..., Any] | Sequence[Callable[..., Any]]
"""What `load_program` makes a program of."""


def functions_of(given: Any) -> Functions:
    """A function, or a pair of functions, as a tuple; empty for a text or a path.

    Raises:
        InvalidSetting: neither.
    """
    if callable(given):
        return (given,)
    if isinstance(given, tuple | list) and 1 <= len(given) <= 2 and all(map(callable, given)):
        return tuple(given)
    if isinstance(given, tuple | list) or (not hasattr(given, "__fspath__") and not isinstance(given, str)):
        kind = type(given).__name__
        what = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}" + (
            f" of {len(given)}" if isinstance(given, tuple | list) else ""
        )
        message = f"a program is a path, a text, a function or a pair (get_observation, compute_reward), not {what}"
        raise InvalidSetting(message, "programs")
    return ()


def label(functions: Functions) -> str:
    """The name of a program of these functions."""
    return "+".join(name_of(function) for function in functions)


def explained(failure: Failure, source: str, spec: Spec, limits: Limits) -> Failure:
    """A failure of a program that was written from functions: in place of a line of that text, what it says, and that
    they may be trusted, where that helps."""
    lines = source.splitlines()
    said = f", in `{lines[failure.line - 1].strip()}`" if failure.line and failure.line <= len(lines) else ""
    advice = ""
    if failure.stage == "guard" and _is_forbidden(source, spec, limits):
        advice = "or pass trusted=True"
    if failure.stage == "trace" and _NEEDS_NUMBER.search(failure.message) and _NUMBER.search(source):
        advice = "numbers of NumPy are arrays in a program: write int(N), float(N) or bool(N)"
    hint = "; ".join(filter(None, [failure.hint, advice]))
    return failure.model_copy(update={"message": failure.message + said, "line": None, "hint": hint})


def _is_forbidden(source: str, spec: Spec, limits: Limits) -> bool:
    """Whether a program is refused for a rule alone, and not for what fails anywhere."""
    try:
        guard(source, spec.fields(), limits)
    except Refused as refused:
        return not refused.always
    return False


def traced(functions: Functions, task: Any, spec: Spec, limits: Limits) -> tuple[Half | None, Half | None]:
    """Observation and reward of trusted functions as tapes, None for the one that is missing. They are called here, on
    abstract arrays, with the types of the task's view.

    Raises:
        Failed: they do not keep the contract of a program, or compute what tapes do not hold.
        UnreadableFunction: one of another number of parameters.
    """
    roles = [role_of(function) for function in functions]
    if len({role == "get_observation" for role in roles}) < len(roles):
        message = f"{label(functions)} are two functions of the same kind: a program has one observation and one reward"
        raise UnreadableFunction(message, label(functions))
    halves: dict[bool, Half] = {}
    for function, role in zip(functions, roles, strict=True):
        try:
            half = _observation(function, task, spec, limits) if role == "get_observation" else None
            halves[role == "get_observation"] = half or _reward(function, role, task, spec, limits)
        except (Exception, SystemExit) as error:
            told = diagnose(error, "", spec)
            message = f"{name_of(function)}: {told['message']}"
            raise Failed(Failure.model_validate({**told, "line": None, "message": message})) from error
    return halves.get(True), halves.get(False)


def _observation(function: Callable[..., Any], task: Any, spec: Spec, limits: Limits) -> Half:
    view = _views(task, spec)

    def observe(*arrays: Any) -> list[Any]:
        return [observation_of(function(view(arrays)), limits)]

    return Half(trace(observe, spec.structs()[0], spec.labels()[0], limits))


def _reward(function: Callable[..., Any], role: str, task: Any, spec: Spec, limits: Limits) -> Half:
    view, n, terms = _views(task, spec), len(spec.leaves), list[str]()

    def reward(*arrays: Any) -> list[Any]:
        state, action, next_state = view(arrays[:n]), arrays[n], view(arrays[n + 1 :])
        value = function(next_state) if role == "reward" else function(state, action, next_state)
        values, terms[:] = reward_of(value, role, limits)
        return values

    return Half(trace(reward, spec.structs()[1], spec.labels()[1], limits), tuple(terms))


def _views(task: Any, spec: Spec) -> Callable[[Sequence[Any]], Any]:
    """What makes a view of the task of its arrays; without a task, a stand-in with the same fields."""
    if isinstance(task, Spec):
        return lambda arrays: build_state(spec.tree, list(arrays))
    if hasattr(task, "action_space"):
        structure = jax.tree.structure(view_shapes(task))
    else:
        structure = jax.tree.structure(task[0])
    return lambda arrays: jax.tree.unflatten(structure, arrays)


def text_of(functions: Functions) -> tuple[str, int]:
    """The source of trusted functions and the size of its reward: the text of a program where it can be written,
    else that of the functions, or a remark that there is none, as a comment above or alone.

    Raises:
        EditedFunction: one whose file was edited after it was imported.
    """
    try:
        text = source_of(*functions)
        return text, entries(ast.parse(text)).reward_nodes
    except EditedFunction:
        raise
    except (UnreadableFunction, Refused) as error:  # Refused: it binds a name that programs have for something else
        said = f"Traced from functions; not a program by itself: {str(error).removesuffix(OR_TRUSTED)}."
        blocks = [f"# {line}" for line in textwrap.wrap(said, 110)]
    for function in functions:
        try:
            blocks.append("\n" + textwrap.dedent(own_text(inspect.unwrap(function))).rstrip())
        except (OSError, TypeError):
            blocks.append(f"\n# {name_of(function)}: the source is not available")
    return "\n".join(blocks) + "\n", 0
