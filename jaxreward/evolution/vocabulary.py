"""The vocabulary of a search: the task's own, one derived from the task, or both."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from pydantic import ValidationError

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.evolution.search_options import VocabularyOption
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.objectives.demonstrations.scoring import DemonstrationData
from jaxreward.records import Vocabulary
from jaxreward.runs.disk import write_atomic
from jaxreward.tasks import Task
from jaxreward.tasks.automatic import (
    automatic_vocabulary,
    contrast_vocabulary,
    labelled,
    vocabulary_of_data,
    with_more_contrasts,
)
from jaxreward.tasks.automatic.play import Play
from jaxreward.views import view_shapes

FILE = "vocabulary.json"
"""A vocabulary that is not the task's own, in the folder of a run, which it is resumed with."""

WITHOUT = ("llm", "manual", "replay")
"""Proposers that have no use for a vocabulary."""

_KEPT = 8
_derived: OrderedDict[int, tuple[Any, Vocabulary]] = OrderedDict()


def vocabulary_for(task: Task, kind: VocabularyOption, discount: float | None = None) -> tuple[Vocabulary, bool]:
    """The vocabulary of this kind, and whether any of it is derived; potentials have `discount`, if given."""
    own = task.vocabulary() if discount is None else task.vocabulary().discounted(discount)
    if kind == "own" or (kind == "auto" and own.fragments):
        return own, False
    derived = _derive(task) if discount is None else _derive(task).discounted(discount)
    return (merged(own, derived) if kind == "both" else derived), True


def search_vocabulary(settings: EvolveSettings, task: Task) -> tuple[Vocabulary, bool]:
    """The vocabulary of a search, and whether any of it is derived: that of the run's folder where it is resumed, or a
    new one, in which potentials have the learner's discount."""
    if settings.proposer in WITHOUT:
        return task.vocabulary(), False
    if settings.resume and files.is_there(kept := settings.out / settings.run_name / FILE):
        return read_vocabulary(kept), True
    return vocabulary_for(task, settings.vocabulary, settings.hyper.discount)


def demonstration_vocabulary(settings: EvolveSettings, task: Task, data: DemonstrationData) -> Vocabulary:
    """The vocabulary of a search on demonstrations: the task's own, one derived from the data, or both, with terms of
    what tells the expert's states from others; that of the run's folder where it is resumed."""
    if settings.resume and files.is_there(kept := settings.out / settings.run_name / FILE):
        return read_vocabulary(kept)
    played, discount = _labelled(task, data), settings.hyper.discount
    own = task.vocabulary().discounted(discount)
    if settings.vocabulary == "own" or (settings.vocabulary == "auto" and own.fragments):
        return contrast_vocabulary(own, played)
    derived = vocabulary_of_data(task, played).discounted(discount)
    return contrast_vocabulary(merged(own, derived) if settings.vocabulary == "both" else derived, played)


def expanded_vocabulary(vocabulary: Vocabulary, task: Task, expansions: Iterable[DemonstrationData]) -> Vocabulary:
    """`vocabulary` with terms of what tells the expert's states from those of each policy that expanded the data: what
    random play never did, such as falling, is in no other."""
    for data in expansions:
        vocabulary = with_more_contrasts(vocabulary, _labelled(task, data))
    return vocabulary


def _labelled(task: Task, data: DemonstrationData) -> Play:
    """The transitions as play in which the expert's are marked."""
    states = data.transitions
    tree = jax.tree.structure(view_shapes(task))
    # a transition that stands for many is there as often, in about as many rows as there are transitions
    share = data.weights * len(states) / data.weights.sum()
    rows = np.repeat(np.arange(len(states)), np.maximum(1, np.round(share)).astype(int))
    before, after = ([x[rows] for x in leaves] for leaves in (states.states, states.next_states))
    return labelled(
        jax.tree.unflatten(tree, before), states.actions[rows], jax.tree.unflatten(tree, after), rows < data.experts
    )


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary of a file.

    Raises:
        UnusableFile: it holds none.
    """
    try:
        return Vocabulary.model_validate_json(files.read_text(path))
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        message = f"{path} holds no vocabulary ({where or 'its text'}: {error.errors()[0]['msg']})"
        raise UnusableFile(message, path, FileProblem.DAMAGED) from error


def write_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Write a vocabulary into the folder of a run."""
    write_atomic(folder / FILE, vocabulary.model_dump_json(indent=1) + "\n")


def merged(own: Vocabulary, derived: Vocabulary) -> Vocabulary:
    """Both, parts of `derived` renamed whose names `own` has."""
    other = derived.apart_from(own, own.texts.keys() & derived.texts.keys())
    return Vocabulary(
        constants=own.constants | other.constants, helpers=own.helpers | other.helpers,
        fragments=(*own.fragments, *other.fragments), discount=own.discount or other.discount,
    )  # fmt: skip


def _derive(task: Task) -> Vocabulary:
    """The derived vocabulary of a task, made once."""
    if id(task) not in _derived:
        _derived[id(task)] = task, automatic_vocabulary(task)  # the task itself, so that no other gets its id
        while len(_derived) > _KEPT:
            _derived.popitem(last=False)
    return _derived[id(task)][1]
