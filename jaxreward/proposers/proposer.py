"""What a proposer is, and how to make one by name."""

from __future__ import annotations

import difflib
from typing import Any, Protocol

import numpy as np

from jaxreward.errors import UserError
from jaxreward.records import Proposal, Request, TaskCard


class Proposer(Protocol):
    """Turns a request into program source.

    `propose` depends on the request and the random generator alone, so that a resumed run
    proposes what an uninterrupted one would have.
    """

    @property
    def name(self) -> str: ...

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal: ...


NAMES = ("genetic", "replay")


def make_proposer(name: str, card: TaskCard, **options: Any) -> Proposer:
    """Make the proposer called `name` for a task.

    Args:
        name: `genetic` (no options), or `replay` with `recording`: an events.jsonl, the folder
            that holds one, or a mapping from request id to `Proposal`.
        card: the task's words and vocabulary.

    Raises:
        UserError: if there is no such proposer, an option it does not have, or one it misses.
    """
    from jaxreward.proposers.genetic import GeneticProposer
    from jaxreward.proposers.replay import ReplayProposer

    if name == "genetic":
        _only(name, options, ())
        return GeneticProposer(card)
    if name == "replay":
        _only(name, options, ("recording",))
        if "recording" not in options:
            raise UserError("the replay proposer needs a recording: give it the events.jsonl of a run")
        return ReplayProposer(options["recording"])
    close = difflib.get_close_matches(name, NAMES, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"choose from {', '.join(NAMES)}"
    raise UserError(f"there is no proposer '{name}'; {hint}")


def _only(name: str, options: dict[str, Any], known: tuple[str, ...]) -> None:
    for option in options:
        if option not in known:
            close = difflib.get_close_matches(option, known, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else f"; it has {', '.join(known) or 'none'}"
            raise UserError(f"the {name} proposer has no option '{option}'{hint}")
