"""How the candidates of a generation are trained: weights tuned, cuts on the way, more seeds where they may matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jaxreward.evolve.results import filtered, result_of
from jaxreward.evolve.settings import EvolveSettings
from jaxreward.evolve.tuning import Tuned, tune
from jaxreward.programs import Checker, Program
from jaxreward.records import Candidate, Result, Score
from jaxreward.tasks import Task
from jaxreward.training import Rung, TrainResult
from jaxreward.training.rungs import SURE, contenders


class Trainer(Protocol):
    """Trains programs side by side, with the seeds of the search unless others are given."""

    def __call__(
        self, programs: Sequence[Program], *, tag: str, label: str, steps: int, seeds: Any = None,
        rungs: Sequence[Rung] = (), points: int | None = None,
    ) -> TrainResult: ...  # fmt: skip


@dataclass(frozen=True)
class Agents:
    """What was trained for a candidate: row `row` of a training."""

    candidate: Candidate
    trained: TrainResult
    row: int

    @property
    def sound(self) -> bool:
        """Trained to the end, by at least one seed without diverging."""
        return not self.trained.stopped[self.row] and not self.trained.diverged[self.row].all()


@dataclass(frozen=True)
class Outcome:
    """Of a generation: a result for every candidate, agents for those that no short rung apart had stopped."""

    programs: tuple[Program, ...]
    results: tuple[Result, ...]
    agents: tuple[Agents, ...]
    compile_s: float
    run_s: float


def train_generation(
    s: EvolveSettings, candidates: Sequence[Candidate], programs: Sequence[Program], best: Score | None,
    train: Trainer, checker: Checker, task: Task, tag: str, label: str,
) -> Outcome:  # fmt: skip
    """Train candidates as the settings say; `best` is the score to beat, if there is one. Candidates are not those that
    came where weights were tuned. Names of what is kept of the trainings begin with `tag`."""
    return _Course(s, best, train, checker, task, tag, label).run(candidates, programs)


class _Course:
    def __init__(
        self, s: EvolveSettings, best: Score | None, train: Trainer, checker: Checker, task: Task, tag: str, label: str
    ) -> None:
        self.s, self.checker, self.task, self.tag, self.label = s, checker, task, tag, label
        self._trainer = train
        self.bar = None if best is None else best.merit - SURE * best.se
        self.compile_s = self.run_s = 0.0

    def train(self, programs: Sequence[Program], name: str = "", **options: Any) -> TrainResult:
        """One training, its seconds counted; `name` is what it is called beside the training proper."""
        tag, label = (f"{self.tag}-{name}", f"{self.label} ({name})") if name else (self.tag, self.label)
        trained = self._trainer(programs, tag=tag, label=label, **options)
        self.compile_s, self.run_s = self.compile_s + trained.compile_s, self.run_s + trained.run_s
        return trained

    def run(self, candidates: Sequence[Candidate], programs: Sequence[Program]) -> Outcome:
        tuned = self._tuned(candidates, programs)
        candidates, programs = tuned.candidates, tuned.programs
        results = dict[int, Result]()
        alive, taken = list(range(len(candidates))), [0] * len(candidates)
        if self.s.restart:
            short = self.train(programs, "short", steps=self.s.filter_steps, seeds=1)
            taken = [short.env_steps // len(programs)] * len(programs)
            alive = [i for i in alive if short.measure.reaches(float(short.success[i].mean()), self.s.threshold)]
            for i in set(range(len(candidates))) - set(alive):
                reason = f"is short of the threshold of {self.s.threshold:g}"
                results[i] = filtered(candidates[i], short, i, reason, taken[i])
        agents = self._agents([candidates[i] for i in alive], [programs[i] for i in alive], taken, alive)
        for i, of in zip(alive, agents, strict=True):
            results[i] = result_of(candidates[i], of.trained, of.row, taken[i])
        told = tuple(tuned.told(i, results[i]) for i in range(len(candidates)))
        return Outcome(programs, told, agents, self.compile_s, self.run_s)

    def _tuned(self, candidates: Sequence[Candidate], programs: Sequence[Program]) -> Tuned:
        """The candidates with the best weights found for them; as they are without `--tune`."""
        s = self.s
        if not s.tune:
            return Tuned.none(candidates, programs)

        def attempt(programs: Sequence[Program], generation: int) -> TrainResult:
            return self.train(programs, f"tune-{generation}", steps=s.tuning_steps, points=1)

        return tune(candidates, programs, s.tune, s.seed, attempt, self.checker, self.task)

    def _agents(
        self, candidates: Sequence[Candidate], programs: Sequence[Program], taken: list[int], places: list[int]
    ) -> tuple[Agents, ...]:
        """The training proper; adds what each candidate took to `taken`, at its place in the generation."""
        if not candidates:
            return ()
        s, rungs = self.s, self.s.rungs(self.bar)
        full = self.train(programs, steps=s.steps, rungs=rungs)
        for place in places:
            taken[place] += full.env_steps // len(candidates)
        agents = [Agents(candidate, full, row) for row, candidate in enumerate(candidates)]
        ended = [row for row, of in enumerate(agents) if of.sound]
        if not s.contender_seeds or not ended:
            return tuple(agents)
        rows = [ended[k] for k in contenders(full.standing(ended), self.bar)]
        if rows:
            points = [Rung(rung.steps) for rung in rungs]  # the same, but nobody is stopped
            seeds = range(s.seeds, s.contender_seeds)
            more = self.train([programs[k] for k in rows], "contenders", steps=s.steps, seeds=seeds, rungs=points)
            joined = full.extended(rows, more)
            for at, row in enumerate(rows):
                agents[row] = Agents(candidates[row], joined, at)
                taken[places[row]] += more.env_steps // len(rows)
        return tuple(agents)
