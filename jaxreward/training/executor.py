"""Where chunks train: what an executor is given, and what comes back.

`train` cuts a population into chunks and their training, at rungs, into segments. A segment of a chunk is a `Job`,
which depends on nothing outside it. `local.LocalExecutor` runs jobs on the devices of this process; an engine that
spans machines implements the same protocol.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from jaxreward.errors import UserError
from jaxreward.programs import Program
from jaxreward.tasks import Task, digest_of, options_of
from jaxreward.training.chunk import TrainerState
from jaxreward.training.history import History
from jaxreward.training.hyperparameters import CollectorName, CompileName, PopulationName
from jaxreward.training.imitation import ImitationRows
from jaxreward.training.networks import Variables
from jaxreward.training.plan import Evaluation, Schedule
from jaxreward.training.sac_hyperparameters import Learner
from jaxreward.training.warm_start import digest_of as digest_of_policy


class Interrupted(Exception):
    """`should_stop` said so; what was trained so far is in the store, if one was given."""


class WorkerLost(Exception):
    """The worker that had a job is gone, with what it had not saved: the job is submitted again."""


class ExecutorLost(UserError):
    """The executor trains no more, for a reason that may be gone when the search goes on."""

    later = True


class WorkersLost(UserError):
    """So many workers were lost with one chunk that the training ends.

    Attributes:
        chunk: its index in the population.
        losses: how often its worker was lost.
    """

    def __init__(self, chunk: int, losses: int, last: WorkerLost) -> None:
        super().__init__(
            f"{losses} workers were lost with chunk {chunk}, the last one: {last}; see to the engine and start again: "
            "what was saved is kept"
        )
        self.chunk, self.losses = chunk, losses


class Store(Protocol):
    """Where a training is kept between updates (`jaxreward.runs.checkpoint.Checkpoints` is one)."""

    def save(self, tag: str, tree: Any) -> None: ...
    def restore(self, tag: str, like: Any) -> Any | None: ...


@dataclass(frozen=True)
class Checkpointing:
    """Where a training is saved every `every_s` seconds, under names that begin with `tag`; what is found there is
    resumed."""

    store: Store
    tag: str = "train"
    every_s: float = 120.0


@dataclass(frozen=True)
class Job:
    """Updates `first` to `last` of the agents of a chunk.

    Attributes:
        tag: the beginning of its name in a store.
        index: of the chunk in the population; what is compiled for it serves its later jobs too.
        programs: of the rows. Rows from `members` on are of no interest.
        width, terms: features and terms that there is room for.
        evaluation: held-out episodes at points of the curves and at the end.
        collector, compilation, population: how experience is collected, see `execution.Execution`.
        imitation: what the agents of each row learn from in place of its program's rewards.
        start: the policy of one agent that all begin with, None for new ones.
        state, history: after `first` updates, None before any.
        slot: of the executor that it should be done by; None for that of its index.
        code: the identity of the task's code and values, where what is saved is to be found again.
    """

    tag: str
    index: int
    task: Task
    programs: tuple[Program, ...]
    members: int
    width: int
    terms: int
    ppo: Learner
    seeds: tuple[int, ...]
    schedule: Schedule
    first: int
    last: int
    evaluation: Evaluation
    collector: CollectorName
    compilation: CompileName
    population: PopulationName
    imitation: ImitationRows | None = None
    start: Variables | None = None
    state: TrainerState | None = None
    history: History | None = None
    slot: int | None = None
    code: str = ""

    @property
    def place(self) -> int:
        """Jobs of one place are done by one slot, if possible: that of this number, modulo how many there are."""
        return self.index if self.slot is None else self.slot

    @property
    def chunk(self) -> tuple[Any, ...]:
        """What is compiled for it depends on this; good while the task lives."""
        programs = tuple((p.digest, p.terms) for p in self.programs)
        return (
            id(self.task),
            programs,
            self.width,
            self.terms,
            self._hyper,
            self.seeds,
            self.evaluation.lanes,
            self.collector,
            self.compilation,
            self.population,
            self.imitation and self.imitation.key,
        )

    @property
    def _hyper(self) -> tuple[Any, ...]:
        return tuple((f.name, getattr(self.ppo, f.name)) for f in dataclasses.fields(self.ppo))

    @property
    def name(self) -> str:
        """A name for what is kept of it, and for everything that this is only good for."""
        options = sorted(options_of(self.task).items())
        task = (self.task.name, self.task.horizon, options, digest_of(self.task), self.code)
        programs = tuple((p.digest, p.terms) for p in self.programs)
        what = (task, programs, self.seeds, list(self._hyper), self.schedule, self.evaluation, self.width)
        if self.imitation is not None:
            what = (*what, self.imitation.key)
        if self.start is not None:
            what = (*what, digest_of_policy(self.start))
        return f"{self.tag}-{self.index}-{hashlib.sha256(repr(what).encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Done:
    """The result of a job: state and history after its last update, seconds, and the device memory it took."""

    state: TrainerState
    history: History
    compile_s: float
    run_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Supervisor:
    """Whom a worker reports to, asks, and saves with; callable from every thread.

    Attributes:
        compiling: called before a job's functions are waited for.
        reached: called with the number of updates done: where a job begins, or goes on from what was saved, and at the
            points of the curves.
        should_stop: asked before every update; if so the job is saved and ends with `Interrupted`.
        checkpointing: where the state is saved at intervals and at the end, under the job's name, and where a job looks
            for it first.
    """

    compiling: Callable[[Job], None]
    reached: Callable[[Job, int, History], None]
    should_stop: Callable[[], bool]
    checkpointing: Checkpointing | None = None


class Executor(Protocol):
    """Runs jobs, as many at a time as it has `slots`.

    Attributes:
        platform: of its devices: `cpu`, `gpu` or `tpu`.
        limit: bytes that a job may take there.
    """

    platform: str
    slots: int
    limit: int

    def prepare(self, jobs: Sequence[Job]) -> int:
        """Compile for jobs that may be submitted later; the largest number of bytes that one of them takes, 0 where
        that is not known."""
        ...

    def submit(self, job: Job, supervisor: Supervisor) -> Future[Done]:
        """Have the job done. The future raises `WorkerLost` where its worker is gone, and what the job raises else.

        An executor that can lose workers leaves the job's state as it is. A future may be cancelled while it waits, so
        `set_running_or_notify_cancel` comes before any work. What is compiled is kept with the task that the job has:
        workers in other processes keep one, and do not unpickle another for every job.
        """
        ...
