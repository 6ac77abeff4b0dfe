"""Proposers by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jaxreward.errors import InvalidSetting, UnknownName, did_you_mean
from jaxreward.proposers.proposer import Proposer
from jaxreward.records import TaskCard

_PROPOSERS = {
    "genetic": ("genetic.genetic_proposer", "GeneticProposer", ()),
    "llm": ("llm.llm_proposer", "LlmProposer", ("settings",)),
    "manual": ("human.manual", "ManualProposer", ("settings",)),
    "replay": ("replay", "ReplayProposer", ("recording",)),
}
"""The module, the class and the options of each; the module is imported when the proposer is made."""

NAMES = tuple(_PROPOSERS)


def make_proposer(name: str, card: TaskCard, **options: Any) -> Proposer:
    """Make the proposer called `name` for a task.

    Args:
        name: `genetic` (no options); `llm` and `manual` with `settings`, an `LlmSettings`; `replay`
            with `recording`: an events.jsonl, the folder that holds one, or a mapping from request
            id to `Proposal`.
        card: the task's words and vocabulary.

    Raises:
        UserError: if there is no such proposer, an option it does not have, or one it misses.
    """
    if name not in _PROPOSERS:
        raise UnknownName("proposer", name, NAMES, settings=("proposer",))
    module, kind, known = _PROPOSERS[name]
    for option in options:
        if option not in known:
            message = f"the {name} proposer has no option '{option}'; {did_you_mean(option, known, 'it has')}"
            raise UnknownName(f"option of proposer {name}", option, known, message=message)
    make = getattr(import_module(f"jaxreward.proposers.{module}"), kind)
    if name != "replay":
        return make(card, **options)
    if "recording" not in options:
        raise InvalidSetting("the replay proposer needs a recording: give it the events.jsonl of a run", "recording")
    return make(options["recording"])
