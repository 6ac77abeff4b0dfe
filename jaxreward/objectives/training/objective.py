"""The objective `training`: a program is worth what agents that are trained with it reach."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import jax

from jaxreward.demonstrations import record_random
from jaxreward.errors import InvalidSetting
from jaxreward.objectives.objective import Bench, Expansion, Scored
from jaxreward.objectives.training.candidate_trainer import CandidateTrainer
from jaxreward.objectives.training.generation import confirm, train_generation
from jaxreward.objectives.training.training_settings import TrainingSettings
from jaxreward.operators import REPEATS
from jaxreward.programs import Program
from jaxreward.records import Candidate, Measure, Request, Result, Score
from jaxreward.sentences import mention
from jaxreward.tasks import Task, measure_of, progress_names
from jaxreward.training.ahead import compile_ahead
from jaxreward.training.banks import BANKS
from jaxreward.training.plan import EVAL_EPISODES

UNTRAINED_SEED = 2_000_000
"""Of the episodes of random actions, which no training has."""


class TrainingObjective:
    """Trains candidates side by side, and scores them by the task's metric."""

    name: ClassVar[str] = "training"
    shows_debug: ClassVar[bool] = False

    def __init__(self, task: Task, settings: TrainingSettings) -> None:
        """Raises:
        InvalidSetting: a search by stages on a task that says none.
        """
        if settings.stages and not progress_names(task):
            message = f"{task.name} does not say what comes before success: leave {mention('stages')} out"
            raise InvalidSetting(message, "stages")
        self._task, self._settings = task, settings
        self._bench: Bench | None = None
        self._expecting, self._preparing = False, threading.Lock()

    @property
    def measure(self) -> Measure:
        return measure_of(self._task)

    @property
    def slots(self) -> int:
        executor = self._settings.execution().executor
        return executor.slots if executor is not None else jax.local_device_count()

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def open(self, bench: Bench) -> None:
        self._bench = bench

    def trainer(self, tag: str, label: str, slot: int | None = None) -> CandidateTrainer:
        """A trainer with the settings of the search, whose checkpoints begin with `tag`, on all devices or one."""
        assert self._bench is not None
        bench = self._bench
        return CandidateTrainer(
            self._settings, self._task, bench.store, bench.room(), tag, label, bench.progress, bench.should_stop,
            untrained=self._untrained, slot=slot,
        )  # fmt: skip

    def prepare(self, place: int, of: int) -> Callable[[Program], None] | None:
        s = self._settings
        if s.tune or s.chunk or s.executor != "local":  # compiled is for the devices of this process
            return None

        def ahead(program: Program) -> None:
            assert self._bench is not None
            steps, seeds = (s.filter_steps, 1) if s.restart else (s.steps, s.seeds)
            compile_ahead(
                self._task, program, s.hyper, seeds=range(seeds), steps=steps,
                execution=s.execution(self._bench.room()), place=place, of=of, eval_episodes=s.eval_episodes,
            )  # fmt: skip

        return ahead

    def illustrated(self, request: Request, program: Callable[[], Program | None]) -> Request:
        return request

    def score(
        self, tag: str, label: str, candidates: Sequence[Candidate], programs: Sequence[Program], best: Score | None,
        slot: int | None = None,
    ) -> Scored:  # fmt: skip
        assert self._bench is not None
        with self._preparing:  # once, whoever comes first
            self._expect_parts(self._bench)
            _ = self._untrained
        trainer = self.trainer(tag, label, slot)
        if all(candidate.operator in REPEATS for candidate in candidates):
            outcome = confirm(candidates, programs, trainer)
        else:
            trainer.start = self._bench.start(candidates, programs)
            outcome = train_generation(candidates, programs, best, trainer, self._bench.checker)
        results = outcome.results
        if self._untrained is not None:
            results = tuple(_beside(result, self._untrained) for result in results)
        return Scored(outcome.programs, results, outcome.agents, trainer.compile_s, trainer.run_s)

    def _expect_parts(self, bench: Bench) -> None:
        """Once, where programs are data: have everything that the proposer builds programs from in their bank, so that
        only the first generation compiles."""
        execution = self._settings.execution()
        if self._expecting or self._settings.executor != "local" or execution.form(execution.platform) != "bank":
            return
        self._expecting = True
        if not (sources := bench.covering()):
            return
        bench.note(f"checking all parts of the vocabulary, in {len(sources)} programs, for later generations")
        sound = [program for _, program in bench.checker.check_many(sources, self._task) if program is not None]
        if (known := BANKS.expect(sound)) < len(sources):
            bench.note(f"the bank has the parts of {known} of them: later programs with other parts are compiled anew")

    @cached_property
    def _untrained(self) -> Score | None:
        """The success of random actions, where the search looks at progress and the task says some."""
        if not self._settings.stages:
            return None
        played = record_random(self._task, EVAL_EPISODES, seed=UNTRAINED_SEED).success
        mean = float(played.mean())
        se = float(played.std()) / len(played) ** 0.5
        return Score(mean=mean, se=se, n=1, episodes=len(played), measure=self.measure)

    def expand(self, tag: str, label: str, request: Request, program: Program) -> Expansion | None:
        return None

    def conclude(self, best: Callable[[], Program]) -> None:
        pass  # its training is logged


def _beside(result: Result, untrained: Score) -> Result:
    """A result that says what random actions reach."""
    if result.feedback is None:
        return result
    return result.model_copy(update={"feedback": result.feedback.model_copy(update={"untrained": untrained})})
