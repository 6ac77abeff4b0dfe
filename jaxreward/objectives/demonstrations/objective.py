"""The objective `demonstrations`: a reward is worth how well it tells an expert's states from others (GRACE)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
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
from jaxreward.records import Candidate, Failure, Feedback, Measure, Request, Result, Score
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import Task

FITNESS = Measure(name="fitness", rate=False, worst=-100.0)
"""GRACE's equation 4.1: at most 0, about -1.4 for a reward that says nothing where half of the probability is known."""

ACCURACY = "accuracy"

_EXPANSION = "expansion-"
"""What names of files of expansions begin with."""


class DemonstrationObjective:
    """Scores programs on episodes; nothing is trained but to expand the data."""

    name: ClassVar[str] = "demonstrations"

    def __init__(self, task: Task, settings: TrainingSettings, sets: DemonstrationSets) -> None:
        self._task, self._settings, self._sets = task, settings, sets
        self._bench: Bench | None = None
        self._expansions: dict[str, Trajectories] = {}
        self._held_out: DemonstrationData | None = None

    @cached_property
    def data(self) -> DemonstrationData:
        """The transitions to search with."""
        return self._with(self._expansions)

    def _with(self, expansions: Iterable[str]) -> DemonstrationData:
        """The data to search with, the episodes of these expansions among them."""
        negative = joined([self._sets.negative, *(self._expansions[id] for id in expansions)])
        return DemonstrationData.of(self._task, self._sets.expert, negative, self._sets.positives)

    @property
    def measure(self) -> Measure:
        return FITNESS

    def open(self, bench: Bench) -> None:
        self._bench, sets = bench, self._sets
        if not is_there(bench.folder):
            sets.write(bench.folder)
        for path in sorted((bench.folder / FOLDER).glob(f"{_EXPANSION}*.npz")):
            self._expansions[path.stem.removeprefix(_EXPANSION)] = load_trajectories(path)
        if sets.held_out is not None:
            self._held_out = DemonstrationData.of(self._task, *sets.held_out, sets.positives)

    def prepare(self, place: int, of: int) -> Callable[[Program], None] | None:
        return None

    def illustrated(self, request: Request, program: Program) -> Request:
        assert request.examples is not None
        found = separate([program], self.data)
        lines = illustrations(request.examples, found.rewards[0], found.logs[0], self.data, self._sets.expert)
        return request.model_copy(update={"illustrations": lines})

    def score(
        self, tag: str, label: str, candidates: Sequence[Candidate], programs: Sequence[Program], best: Score | None
    ) -> Scored:
        found = separate(programs, self.data)
        held_out = separate(programs, self._held_out) if self._held_out is not None else None
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
        path = self._bench.folder / FOLDER / f"{_EXPANSION}{request.id}.npz"
        account = path.with_suffix(".json")
        if account.exists():  # of a run that ended before it was logged
            return Expansion(**parse_json(files.read_text(account, below=self._bench.folder)))
        earlier = [id for id in self._expansions if id != request.id]
        more, steps = self._played(tag, label, program)
        save_trajectories(path, more)
        self._expansions = {id: self._expansions[id] for id in earlier} | {request.id: more}
        self.__dict__.pop("data", None)
        before, after = (separate([program], self._with(ids)) for ids in (earlier, self._expansions))
        words = (
            f"{len(more)} episodes of a policy trained with {request.parents[0].candidate.id}, success "
            f"{float(np.mean(more.success)):.3g}: its fitness was {float(before.fitness[0]):.4g} and is "
            f"{float(after.fitness[0]):.4g} with them, its accuracy {float(after.accuracy[0]):.4g}"
        )
        found = Expansion(words, steps)
        files.replace(account, json.dumps(asdict(found)).encode(), below=self._bench.folder)
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
