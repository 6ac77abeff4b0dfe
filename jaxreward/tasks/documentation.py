"""The description of a task for a proposer, with shapes taken from its state."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
from jax import tree_util
from jax.extend import core
from jax.interpreters import partial_eval
from pydantic import ValidationError

from jaxreward.errors import UserError
from jaxreward.records import Instruction, Subgoals, TaskCard
from jaxreward.records.subgoals import FEATURES
from jaxreward.tasks.task import Instructed, Staged, Task, measure_of, metric_names
from jaxreward.views import view_shapes

T = TypeVar("T")


def state_leaves(task: Task) -> dict[str, jax.ShapeDtypeStruct]:
    """The arrays that programs see, by path, such as `agent.position` or `info.gyro`."""
    return {_name(path): leaf for path, leaf in _leaves(task)}


def document_state(task: Task) -> str:
    """A table of the arrays that programs see, as they write them, and of the action, with dtype, shape and meaning;
    then the notes."""
    rows = [
        ("state" + tree_util.keystr(path), f"{leaf.dtype.name} {leaf.shape}", task.state_words.get(_name(path), ""))
        for path, leaf in _leaves(task)
    ]
    rows.append(("action", *_action(task)))
    widths = [max(len(row[k]) for row in rows) for k in (0, 1)]
    lines = [f"{name:{widths[0]}}  {kind:{widths[1]}}  {words}".rstrip() for name, kind, words in rows]
    return "\n".join([*lines, *([task.state_notes] if task.state_notes else []), _end(task)])


def card(task: Task) -> TaskCard:
    """What a proposer gets of `task`: descriptions, vocabulary and measure."""
    return TaskCard(
        name=task.name, description=task.description, state_doc=document_state(task), vocabulary=task.vocabulary(),
        measure=measure_of(task), subgoals=subgoals_of(task), instruction=instruction_of(task),
    )  # fmt: skip


def subgoals_of(task: Task) -> Subgoals:
    """What leads to the task's goal, where it says so.

    Raises:
        UserError: no `Subgoals`, a name that is no fragment of the vocabulary or of the subgoals, or one of the wrong
            kind, or a part of the subgoals' vocabulary that the task's has another of.
    """
    if not (isinstance(task, Staged) and _is_method(task, "subgoals", Subgoals)):
        return Subgoals()
    found = _stated(task, "subgoals", Subgoals)
    own = task.vocabulary()
    if twice := found.vocabulary.differing(own):
        raise UserError(
            f"the vocabulary of the subgoals of {task.name} has another '{twice[0]}' than the task's: give it another "
            "name there"
        )
    kinds = {fragment.name: fragment.kind for fragment in found.joined(own).fragments}
    for words, role, name in found.named():
        what = f"the subgoal '{words}' of {task.name}" if words else f"the reward of the subgoals of {task.name}"
        if name not in kinds:
            raise UserError(
                f"{what} names '{name}', which is no fragment: add it to the vocabulary or to that of the subgoals, or "
                "take the name out"
            )
        kind = "feature" if role in FEATURES else "term"
        if kinds[name] != kind:
            where = f" among its {role}, which are {kind}s" if words else ""
            raise UserError(f"{what} names the {kinds[name]} '{name}'{where}: name a {kind} there")
    return found


def subtask_metrics(task: Task) -> tuple[str, ...]:
    """The extra metrics by which the subtasks of the task's instruction are measured, one each; empty where one of them
    has none, or there is no instruction."""
    instruction = instruction_of(task)
    metrics = tuple(subtask.metric for subtask in instruction.subtasks) if instruction is not None else ()
    return metrics if all(metrics) else ()


def instruction_of(task: Task) -> Instruction | None:
    """How the task is to be done, where it says so.

    Raises:
        UserError: no `Instruction`, a subtask that names a metric or a fragment which the task does not have, or two of
            one name.
    """
    if not (isinstance(task, Instructed) and _is_method(task, "instruction", Instruction)):
        return None
    found = _stated(task, "instruction", Instruction)
    names = [subtask.name for subtask in found.subtasks]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UserError(f"two subtasks of {task.name} are called '{twice}': give one another name")
    metrics = metric_names(task)
    terms = {fragment.name for fragment in task.vocabulary().fragments if fragment.kind == "term"}
    for subtask in found.subtasks:
        if subtask.metric and subtask.metric not in metrics:
            raise UserError(
                f"the subtask '{subtask.name}' of {task.name} is scored by '{subtask.metric}', which is none of the "
                f"task's extra metrics: they are {', '.join(metrics) or 'none'}"
            )
        if wrong := next((name for name in subtask.terms if name not in terms), ""):
            raise UserError(
                f"the subtask '{subtask.name}' of {task.name} names '{wrong}', which is no term of the vocabulary: add "
                "it there, or take the name out"
            )
    return found


def _is_method(task: Task, name: str, kind: type) -> bool:
    """Whether the task has such a method; an attribute of another kind than what the method returns is its own."""
    said = getattr(task, name)
    if isinstance(said, kind):
        raise UserError(f"`{name}` of {task.name} is a value: make it a method that returns it")
    return callable(said)


def _stated(task: Task, method: str, kind: type[T]) -> T:
    """What a method of the task returns, of the `kind` that it is to return."""
    try:
        found = getattr(task, method)()
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        said = ": ".join(filter(None, (where, error.errors()[0]["msg"])))
        raise UserError(f"a part of `{method}()` of {task.name} is invalid: {said}") from error
    if not isinstance(found, kind):
        raise UserError(
            f"`{method}()` of {task.name} returns {type(found).__name__}: let it return {kind.__name__} of "
            "jaxreward.records, or give the method another name"
        )
    return found


def _end(task: Task) -> str:
    """How an episode ends, as `terminated` has it."""
    steps = f"{task.horizon} step" + "s" * (task.horizon != 1)
    if not _may_terminate(task):
        return f"An episode ends after {steps}, never earlier."
    if early := getattr(task, "ends_early", ""):
        return f"An episode ends after {steps}, earlier {early}."
    return f"An episode ends in a state that the task declares final, at the latest after {steps}."


def _may_terminate(task: Task) -> bool:
    """False if `terminated` is False whatever the state."""
    state = jax.eval_shape(task.reset, jax.random.key(0))
    closed = jax.make_jaxpr(lambda s: jax.numpy.asarray(task.terminated(s)))(state)
    jaxpr, used = partial_eval.dce_jaxpr(closed.jaxpr, [True])
    return any(used) or bool(core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, closed.consts))()[0])


def _leaves(task: Task) -> list[tuple[Any, jax.ShapeDtypeStruct]]:
    view = view_shapes(task)
    return tree_util.tree_flatten_with_path(view)[0]


def _action(task: Task) -> tuple[str, str]:
    words = task.state_words.get("action", "")
    space: Any = task.action_space
    if hasattr(space, "n"):
        return "int32 ()", words or f"0 .. {space.n - 1}"
    return f"float32 {tuple(space.shape)}", words or f"from {space.low:g} to {space.high:g}"


def _name(path: Any) -> str:
    return tree_util.keystr(path, simple=True, separator=".")
