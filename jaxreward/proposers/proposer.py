"""What a proposer is, and the context of a run that it works in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np

from jaxreward.errors import End, ProposerStopped
from jaxreward.records import Exchange, Proposal, Request
from jaxreward.sentences import either

Move = tuple[Literal["asked", "told"], int]
"""What was done with a generation, by its index."""

RngOf = Callable[[Request], np.random.Generator]
"""The random generator of a request, the same whenever it is asked for."""


class Known(NamedTuple):
    """A program of the run that has a score, and how good it is: of two, the larger is better."""

    source: str
    merit: tuple[float, ...]


class Transcript(Protocol):
    """The exchanges of a run so far, and the place for more; every one is on the disk once added."""

    def add(self, exchange: Exchange) -> None:
        return None

    def exchanges(self) -> Sequence[Exchange]:
        """All of them, in the order in which they were added."""
        return ()

    def of(self, request_id: str) -> Sequence[Exchange]:
        return ()


class NoTranscript(Transcript):
    """Keeps nothing: for proposers without exchanges."""


@dataclass(frozen=True)
class Context:
    """What a run gives its proposer to work with.

    Attributes:
        folder: the run's directory.
        transcript: what was said to and by language models.
        should_stop: whether the run was asked to stop.
        note: shows a line to the user.
        status: shows what is going on now, replacing what it showed before.
        found_by: the options by which a command finds the run, to be typed; its name where it is empty, None where no
            command goes on with it, since a part of it was given in Python.
        shared_exchanges: of other searches, which count for the same budgets.
        known: the programs that have a score.
        on_endpoint: called before the first call of each language model with a sentence that says where its calls go.
        prefetch: called, from any thread, with a proposal as soon as there is one; it will be among the answers.
    """

    folder: Path
    transcript: Transcript = field(default_factory=NoTranscript)
    should_stop: Callable[[], bool] = lambda: False
    note: Callable[[str], None] = lambda _: None
    status: Callable[[str], None] = lambda _: None
    found_by: str | None = ""
    shared_exchanges: Sequence[Exchange] = ()
    prefetch: Callable[[Proposal], None] = lambda _: None
    known: Callable[[], Sequence[Known]] = lambda: ()
    on_endpoint: Callable[[str], None] = lambda _: None

    def goes_on(self, command: str) -> str:
        """What goes on with the run: a command, with `{}` where its options are, or the same call."""
        if self.found_by is None:
            return "the same call"
        return either(command.format(self.found_by or f"--name {self.folder.name}"), "the same call")


@dataclass(frozen=True)
class Answers:
    """Proposals in the order of their requests; those that were not asked for are missing.

    `spent` is the budget that ended the asking, e.g. `the budget of dollars is spent`; `stopped`
    says why the proposer cannot go on now. Requests may also be missing because the run was asked to
    stop.
    """

    proposals: tuple[Proposal, ...]
    spent: End | None = None
    stopped: ProposerStopped | None = None


class Proposer(Protocol):
    """Turns requests into program sources.

    An answer depends on its request, the random generator of the request, the programs of complete generations
    (`Context.known`) and, for a language model or a person, on what they reply; a reply that reached the transcript
    is used again by a resumed run, so that it proposes what an uninterrupted one would have. `accepts_repairs` says
    whether an answer that was rejected may be sent back with the verdict. One that shows `Request.illustrations` to
    whom it asks has an attribute `reads_data` that is true. `order` is that of a recording.
    """

    name: str
    accepts_repairs: bool = False
    order: Sequence[Move] = ()

    def prepare(self, note: Callable[[str], None]) -> None:
        """Called before a run is created: raises UserError if a model cannot be asked; `note` shows who will be."""
        return None

    def open(self, context: Context) -> None:
        """Called once, before the first request, with the context of the run."""
        return None

    @abstractmethod
    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        """Answers to requests that do not depend on each other."""

    def answers(self, id: str) -> bool:
        """Whether a recording has an answer to the request of this id."""
        return False

    def planned(self, generation: int) -> int | None:
        """How many requests a generation has, where that is given: by a recording; else None."""
        return None


class OneByOne(Proposer):
    """Base of proposers that answer requests one after another."""

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        return Answers(tuple(self.propose(request, rng_of(request)) for request in requests))

    @abstractmethod
    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        """The answer to one request."""
