"""A vocabulary made from a task itself: what its view holds, what random play shows, and what its reward reads."""

from __future__ import annotations

from dataclasses import replace

from jaxreward.function_source.scopes import fresh_name
from jaxreward.records import Vocabulary
from jaxreward.tasks.automatic import cells, features, terms
from jaxreward.tasks.automatic.clues import Clues, clues_of
from jaxreward.tasks.automatic.draft import Draft
from jaxreward.tasks.automatic.play import Play, play
from jaxreward.tasks.automatic.ranking import ranked
from jaxreward.tasks.automatic.scene import Hints, scene_of
from jaxreward.tasks.fragment_template import SHAPES, functions_of
from jaxreward.tasks.task import Task

CONSTANTS = {"GAMMA": "0.99"}
"""The discount of potentials; a search puts that of its learner there."""
READ = 1.6
"""How much more a fragment counts that reads what the reward, the metric or the end of an episode reads."""


def automatic_vocabulary(task: Task, seed: int = 0) -> Vocabulary:
    """Features and terms for `task`, from its view and random play.

    Places, numbers, grids and orientations are recognised by shapes, dtypes and values in play; fragments of them are
    ranked by what they tell of the task's own reward and of its metric's progress, where random play meets any, and
    by whether reward, metric or end read the same arrays. `Fragment.weight` is that rank.

    The same task, seed and machine give the same vocabulary. Takes some seconds, on a simulation of bodies up to a
    minute, most of them to compile.
    """
    played = play(task, seed)
    return _of_play(task, played, clues_of(task, played))


def vocabulary_of_data(task: Task, played: Play) -> Vocabulary:
    """Features and terms for the view of `task`, from transitions alone: nothing of the task is read but its view, its
    actions and its horizon. Fragments are ranked by what they tell of the play's reward."""
    return _of_play(task, played, Clues((), (), Hints()))


def _of_play(task: Task, played: Play, clues: Clues) -> Vocabulary:
    scene = scene_of(played, task.horizon, clues.hints)
    named = [*features.features(scene), *terms.terms(scene, task.action_space)]
    helpers = {**functions_of(SHAPES + features.TURN_HELPERS + cells.HELPERS), **scene.measures, **scene.helpers}
    drafts = _unique([*clues.own, *named, *clues.conditions], {*helpers, *CONSTANTS})
    reads = clues.hints.reads
    if 0 < len(reads) <= len(scene.fields) / 2:
        drafts = [replace(d, weight=d.weight * READ) if d.reads & reads else d for d in drafts]
    fragments = ranked(drafts, helpers, CONSTANTS, played)
    return Vocabulary(constants=CONSTANTS, helpers=helpers, fragments=tuple(fragments), discount="GAMMA")


def _unique(drafts: list[Draft], taken: set[str]) -> list[Draft]:
    """The drafts under names of their own; of equal ones the first, and none has a name of `taken`."""
    found: dict[str, Draft] = {}
    for draft in drafts:
        if (known := found.get(draft.name)) is not None and known.source == draft.source:
            continue
        name = fresh_name(draft.name, taken | found.keys())
        found[name] = replace(draft, template=draft.template._replace(name=name))
    return list(found.values())
