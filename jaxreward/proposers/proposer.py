"""What a proposer is, and what a run lends it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from jaxreward.errors import ProposerStopped
from jaxreward.records import Exchange, Proposal, Request

RngOf = Callable[[Request], np.random.Generator]
"""The random generator of a request, the same whenever it is asked for."""


class Transcript(Protocol):
    """The exchanges of a run so far, and the place for more; every one is on the disk once added."""

    def add(self, exchange: Exchange) -> None: ...
    def exchanges(self) -> Sequence[Exchange]:
        """All of them, in the order in which they were added."""
        ...

    def of(self, request_id: str) -> Sequence[Exchange]: ...


class NoTranscript:
    """Remembers nothing: for proposers that talk to nobody."""

    def add(self, exchange: Exchange) -> None:
        return None

    def exchanges(self) -> Sequence[Exchange]:
        return ()

    def of(self, request_id: str) -> Sequence[Exchange]:
        return ()


@dataclass(frozen=True)
class Desk:
    """What a run lends to its proposer.

    Attributes:
        folder: the run's directory.
        transcript: what was said to and by language models.
        should_stop: whether the run was asked to stop.
        note: shows a line to the user.
        status: shows what is going on now, replacing what it showed before.
        name: of the run that a user would resume; the folder's where it is empty.
        elsewhere: what searches beside this one, under the same budgets, said before.
        calling: told, before the first call of each language model, where its calls go.
        foresee: told of a proposal as soon as there is one, from any thread; it will be among the answers.
    """

    folder: Path
    transcript: Transcript = field(default_factory=NoTranscript)
    should_stop: Callable[[], bool] = lambda: False
    note: Callable[[str], None] = lambda _: None
    status: Callable[[str], None] = lambda _: None
    name: str = ""
    elsewhere: Sequence[Exchange] = ()
    foresee: Callable[[Proposal], None] = lambda _: None
    calling: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Answers:
    """Proposals in the order of their requests; those that were not asked for are missing.

    `spent` names the budget that ended the asking, e.g. `the budget of dollars is spent`; `stopped`
    says why the proposer cannot go on now. Requests may also be missing because the run was asked to
    stop.
    """

    proposals: tuple[Proposal, ...]
    spent: str = ""
    stopped: ProposerStopped | None = None


class Proposer(Protocol):
    """Turns requests into program sources.

    An answer depends on its request, the random generator of the request and, for a language model
    or a person, on what they reply; a reply that reached the transcript is used again by a resumed
    run, so that it proposes what an uninterrupted one would have. `mends` says whether an answer
    that was rejected may be sent back with the verdict.
    """

    @property
    def name(self) -> str: ...
    @property
    def mends(self) -> bool: ...

    def prepare(self, told: Callable[[str], None]) -> None:
        """Called before a run is created: raises UserError if nobody could be asked, and tells who will be."""
        ...

    def open(self, desk: Desk) -> None:
        """Called once, before the first request, with what the run lends."""
        ...

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        """Answers to requests that do not depend on each other."""
        ...

    def planned(self, generation: int) -> int | None:
        """How many requests a generation has, where that is given: by a recording; else None."""
        ...


class Unprepared:
    """Base of proposers that need nothing from outside."""

    def prepare(self, told: Callable[[str], None]) -> None:
        return None


class Unplanned(Unprepared):
    """Base of proposers that leave the size of a generation to the run."""

    def planned(self, generation: int) -> int | None:
        return None


class OneByOne(Unplanned, ABC):
    """Base of proposers that answer requests one after another and keep nothing."""

    mends = False

    def open(self, desk: Desk) -> None:
        return None

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        return Answers(tuple(self.propose(request, rng_of(request)) for request in requests))

    @abstractmethod
    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        """The answer to one request."""
