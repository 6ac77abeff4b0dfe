"""Trains programs with the settings of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxreward.objectives.training.training_settings import TrainingSettings
from jaxreward.programs import Program
from jaxreward.records import Score
from jaxreward.records.measure import episodes_interval
from jaxreward.tasks import Task
from jaxreward.training import Checkpointing, Progress, Rung, TrainResult, train
from jaxreward.training.executor import Store
from jaxreward.training.networks import Variables
from jaxreward.training.plan import curve_points


@dataclass
class CandidateTrainer:
    """Trains programs with the learner, seeds and execution of a search; sums the seconds of its trainings.

    Attributes:
        room: features and terms to allocate at least.
        tag: what the names of its checkpoints begin with.
        label: what its trainings are called in `progress`.
        progress: called with a label and the state of its training.
        should_stop: asked before every update.
        start: the policy that agents begin with, None for new ones.
        slot: the one slot of the devices, or of the executor, to train on; None for all.
        untrained: the success of random actions, where the search looks at progress.
    """

    settings: TrainingSettings
    task: Task
    store: Store
    room: tuple[int, int]
    tag: str
    label: str
    progress: Callable[[str, Progress], None]
    should_stop: Callable[[], bool]
    start: Variables | None = None
    untrained: Score | None = None
    slot: int | None = None
    compile_s: float = 0.0
    run_s: float = 0.0

    @property
    def untrained_merit(self) -> float | None:
        """The upper end of the 95 % interval of `untrained`, as a merit: what a program must be above to be told from
        random actions."""
        return None if self.untrained is None else episodes_interval(self.untrained)[1]

    def train(
        self,
        programs: Sequence[Program],
        name: str = "",
        *,
        steps: int,
        seeds: int | Sequence[int] | None = None,
        rungs: Sequence[Rung] = (),
        points: int | None = None,
    ) -> TrainResult:
        """One training; `name` tells it from the main one of this trainer. `points` are those of the curves."""
        s = self.settings
        tag, label = (f"{self.tag}-{name}", f"{self.label} ({name})") if name else (self.tag, self.label)
        trained = train(
            self.task, programs, s.hyper, seeds=s.seeds if seeds is None else seeds, steps=steps, rungs=rungs,
            checkpoints=points or curve_points(self.task, s.hyper, steps, s.eval_episodes),
            eval_episodes=s.eval_episodes, execution=replace(s.execution(self.room), slot=self.slot),
            checkpointing=Checkpointing(self.store, tag), progress=lambda state: self.progress(label, state),
            should_stop=self.should_stop, start=self.start,
        )  # fmt: skip
        self.compile_s, self.run_s = self.compile_s + trained.compile_s, self.run_s + trained.run_s
        return trained
