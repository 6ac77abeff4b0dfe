"""What turns the programs of a search into scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from jaxreward.programs import Checker, Program
from jaxreward.records import Candidate, FunctionLibrary, Measure, Request, Result, Score
from jaxreward.training import Progress
from jaxreward.training.executor import Store
from jaxreward.training.networks import Variables


@dataclass(frozen=True)
class Bench:
    """What a search gives its objective to work with.

    Attributes:
        folder: of the run.
        store: of checkpoints.
        checker: of programs.
        expansions: ids of the requests by which data were expanded so far, in their order.
        results: of all candidates of complete generations, in the order of the requests.
        room: the largest observation and number of terms so far.
        covering: sources of programs that together have all that a proposer builds programs from, where that is known.
        start: of candidates and their programs, the policy that their agents begin with, None for new agents.
        progress: called with a label and the state of a training.
        should_stop: asked before every update; a training then raises `training.Interrupted`.
        note: called with a sentence for the user.
    """

    folder: Path
    store: Store
    checker: Checker
    expansions: Callable[[], tuple[str, ...]]
    results: Callable[[], Sequence[Result]]
    room: Callable[[], tuple[int, int]]
    covering: Callable[[], Sequence[str]]
    start: Callable[[Sequence[Candidate], Sequence[Program]], Variables | None]
    progress: Callable[[str, Progress], None]
    should_stop: Callable[[], bool]
    note: Callable[[str], None]

    def shared_functions(self, request: Request) -> tuple[str, ...]:
        """Functions that good programs of the run share, but for those that the request's first parent has."""
        known = request.parents[0].candidate.source if request.parents else ""
        return FunctionLibrary.of(self.results()).texts(besides=known)


class Written(Protocol):
    """What a search reads of a program that has a score."""

    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str: ...


@dataclass(frozen=True)
class Scored:
    """A generation after its objective.

    Attributes:
        programs: those of the candidates, which may have other constants than were proposed.
        results: a score or a failure for each candidate, in their order.
        agents: `training.generation.Agents` of those that were trained to the end.
        compile_s, run_s: seconds of devices.
    """

    programs: tuple[Written, ...]
    results: tuple[Result, ...]
    agents: tuple[Any, ...] = ()
    compile_s: float = 0.0
    run_s: float = 0.0


@dataclass(frozen=True)
class Expansion:
    """More data: what they are, in words for the strategy and for readers, and what they took."""

    words: str
    env_steps: int = 0
    compile_s: float = 0.0
    run_s: float = 0.0


class Objective(Protocol):
    """Scores programs. Strategies, proposers, the log and resumption know nothing of how.

    A score depends on the program and on the data of the objective alone. `measure` is what its value means.
    `shows_debug` says whether `illustrated` has what programs' `debug(state)` returns, so that it is checked with them;
    otherwise that is a function like any other.
    """

    name: ClassVar[str]
    shows_debug: ClassVar[bool] = False

    @property
    def measure(self) -> Measure: ...

    @property
    def slots(self) -> int:
        """How many calls of `score` may run at the same time, each in a thread and with a slot of its own."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about its data, which a search tells when it begins."""
        ...

    def open(self, bench: Bench) -> None:
        """Called once, before anything else, with what the run has so far."""
        ...

    def prepare(self, place: int, of: int) -> Callable[[Program], None] | None:
        """What to do with a program that passed its check while others are still proposed, e.g. compile for it; `place`
        is its position among `of`. None where there is nothing to do."""
        ...

    def illustrated(self, request: Request, program: Callable[[], Program | None]) -> Request:
        """A request with `illustrations` of the data, and of what its first parent, whose program is given if there is
        one, makes of them, and with `shared_functions`; the request itself where there are no data."""
        ...

    def score(
        self, tag: str, label: str, candidates: Sequence[Candidate], programs: Sequence[Program], best: Score | None,
        slot: int | None = None,
    ) -> Scored:  # fmt: skip
        """Score programs that are none of the earlier ones.

        Args:
            tag: what the names of its checkpoints begin with.
            label: what its work is called in progress.
            best: the score to beat, if there is one.
            slot: the one of `slots` to use; None for all of them.
        """
        ...

    def expand(self, tag: str, label: str, request: Request, program: Program) -> Expansion | None:
        """Add data by means of the first parent of a request, whose program is given; None for an objective without
        data. A second call for the same request adds nothing more."""
        ...

    def conclude(self, best: Callable[[], Program]) -> None:
        """Called when the search ends with what gives the best program: keeps, in the folder of the run, what a
        report shows of it on the objective's data. A second call writes the same."""
        ...
