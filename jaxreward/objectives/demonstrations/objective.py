"""The objective `demonstrations`: a reward is worth how well it tells an expert's states from others (GRACE)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

import numpy as np

from jaxreward import files
from jaxreward.config import parse_json
from jaxreward.demonstrations import Trajectories, joined, load_trajectories, record, save_trajectories
from jaxreward.objectives.demonstrations.demonstration_sets import FOLDER, DemonstrationSets, is_there
from jaxreward.objectives.demonstrations.illustrations import illustrations
from jaxreward.objectives.demonstrations.scoring import DemonstrationData, Separation, separate
from jaxreward.objectives.objective import Bench, Expansion, Scored
from jaxreward.objectives.training.candidate_trainer import CandidateTrainer
from jaxreward.objectives.training.training_settings import TrainingSettings
from jaxreward.programs import Program
from jaxreward.records import ACCURACY, Candidate, ExampleChoice, Failure, Feedback, Measure, Request, Result, Score
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import Task

FITNESS = Measure(name="fitness", rate=False, worst=-100.0)
"""GRACE's equation 4.1: at most 0, about -1.4 for a reward that says nothing where half of the probability is known."""


class DemonstrationObjective:
    """Scores programs on episodes; nothing is trained but to expand the data."""

    name: ClassVar[str] = "demonstrations"

    def __init__(self, task: Task, settings: TrainingSettings, sets: DemonstrationSets) -> None:
        self._task, self._settings, self._sets = task, settings, sets
        self._bench: Bench | None = None
        self._made: dict[tuple[str, ...], DemonstrationData] = {}
        self._held_out: DemonstrationData | None = None

    @property
    def data(self) -> DemonstrationData:
        """The transitions to search with, those of all expansions that the run has logged among them."""
        return self._with(self._bench.expansions() if self._bench is not None else ())

    def _with(self, expansions: tuple[str, ...]) -> DemonstrationData:
        """The data with these expansions."""
        if expansions not in self._made:
            more = [load_trajectories(self._file_of(id)) for id in expansions]
            negative = joined([self._sets.negative, *more])
            self._made = {
                expansions: DemonstrationData.of(self._task, self._sets.expert, negative, self._sets.positives)
            }
        return self._made[expansions]

    def _file_of(self, expansion: str) -> Path:
        assert self._bench is not None
        return self._bench.folder / FOLDER / f"expansion-{expansion}.npz"

    @property
    def measure(self) -> Measure:
        return FITNESS

    def open(self, bench: Bench) -> None:
        self._bench, sets = bench, self._sets
        if not is_there(bench.folder):
            sets.write(bench.folder)
        if sets.held_out is not None:
            self._held_out = DemonstrationData.of(self._task, *sets.held_out, sets.positives)

    def prepare(self, place: int, of: int) -> Callable[[Program], None] | None:
        return None

    def illustrated(self, request: Request, program: Callable[[], Program | None]) -> Request:
        choice, parent = request.examples or ExampleChoice(trajectory=not request.parents), program()
        found = separate([parent], self.data)[0] if parent is not None else None
        rng = derive_rng(self._settings.seed, "illustrations", request.id)
        lines = illustrations(choice, found, self.data, self._sets.expert, rng)
        return request.model_copy(update={"illustrations": lines})

    def score(
        self, tag: str, label: str, candidates: Sequence[Candidate], programs: Sequence[Program], best: Score | None
    ) -> Scored:
        found, *rest = separate(programs, self.data, *([self._held_out] if self._held_out is not None else []))
        held_out = rest[0] if rest else None
        results = [self._result(c, found, held_out, k) for k, c in enumerate(candidates)]
        return Scored(tuple(programs), tuple(results))

    def _result(self, candidate: Candidate, found: Separation, held_out: Separation | None, row: int) -> Result:
        extra = {ACCURACY: float(found.accuracy[row])}
        if held_out is not None:
            extra["held_out_accuracy"] = float(held_out.accuracy[row])
            if np.isfinite(held_out.fitness[row]):
                extra["held_out_fitness"] = float(held_out.fitness[row])
        feedback = Feedback(measure=FITNESS, extra_metrics=extra)
        if not np.isfinite(found.fitness[row]):
            count = int((~np.isfinite(found.rewards[row])).sum())
            failure = Failure(
                stage="diverged",
                message=f"the reward of {count} of {found.rewards.shape[1]} states is not finite",
                hint="guard divisions, logarithms, square roots and powers; clip what can grow",
            )
            return Result(candidate=candidate, failure=failure, feedback=feedback)
        episodes = len(self._sets.expert) + len(self._sets.negative)
        score = Score(
            mean=float(found.fitness[row]), se=float(found.error[row]), n=1, episodes=episodes, measure=FITNESS
        )
        return Result(candidate=candidate, score=score, feedback=feedback)

    def expand(self, tag: str, label: str, request: Request, program: Program) -> Expansion | None:
        assert self._bench is not None
        path, folder = self._file_of(request.id), self._bench.folder
        account = path.with_suffix(".json")
        if account.exists():  # of a run that ended before it was logged
            return Expansion(**parse_json(files.read_text(account, below=folder)))
        more, steps = self._played(tag, label, program)
        save_trajectories(path, more)
        earlier = self._bench.expansions()
        before, after = separate([program], self._with(earlier), self._with((*earlier, request.id)))
        words = (
            f"{len(more)} episodes of a policy trained with {request.parents[0].candidate.id}, success "
            f"{float(np.mean(more.success)):.3g}: its fitness was {float(before.fitness[0]):.4g} and is "
            f"{float(after.fitness[0]):.4g} with them, its accuracy {float(after.accuracy[0]):.4g}"
        )
        found = Expansion(words, steps)
        files.replace(account, json.dumps(asdict(found)).encode(), below=folder)
        return found

    def _played(self, tag: str, label: str, program: Program) -> tuple[Trajectories, int]:
        """Episodes of a policy that is trained with a program, and the environment steps of that."""
        assert self._bench is not None
        bench, s = self._bench, self._settings
        trainer = CandidateTrainer(
            s, self._task, bench.store, bench.room(), tag, label, bench.progress, bench.should_stop
        )
        trained = trainer.train([program], steps=s.steps, seeds=1, points=1)
        policy, episodes = trained.policy(0), len(self._sets.expert)
        number = int(derive_rng(s.seed, "expansion", tag).integers(1 << 31))
        return record(self._task, policy, episodes, seed=number), trained.env_steps
