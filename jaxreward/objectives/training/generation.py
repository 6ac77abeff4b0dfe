"""How the candidates of a generation are trained: tuned weights, rungs, more seeds for those that may be the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxreward.objectives.training.candidate_trainer import CandidateTrainer
from jaxreward.objectives.training.results import filtered, result_of
from jaxreward.objectives.training.tuning import tune
from jaxreward.programs import Checker, Program
from jaxreward.records import Candidate, Result, Score
from jaxreward.training import Rung, TrainResult
from jaxreward.training.rungs import SURE, possible_winners


@dataclass(frozen=True)
class Agents:
    """The agents of a candidate: row `row` of a training."""

    candidate: Candidate
    trained: TrainResult
    row: int

    @property
    def sound(self) -> bool:
        """Trained to the end, by at least one seed without diverging."""
        return not self.trained.stopped[self.row] and not self.trained.diverged[self.row].all()


@dataclass(frozen=True)
class Outcome:
    """Of a generation: a result for every candidate, and agents for those that passed a separate short rung."""

    programs: tuple[Program, ...]
    results: tuple[Result, ...]
    agents: tuple[Agents, ...]


def train_generation(
    candidates: Sequence[Candidate], programs: Sequence[Program], best: Score | None, trainer: CandidateTrainer,
    checker: Checker,
) -> Outcome:  # fmt: skip
    """Train candidates by the settings of `trainer`; `best` is the score to beat, if there is one. With tuning, the
    candidates and programs of the outcome have the weights that were found."""
    s = trainer.settings
    tuned = tune(candidates, programs, trainer, checker)
    candidates, programs = tuned.candidates, tuned.programs
    results = dict[int, Result]()
    alive, taken = list(range(len(candidates))), [0] * len(candidates)
    if s.restart:
        short = trainer.train(programs, "short", steps=s.filter_steps, seeds=1)
        taken = [short.env_steps // len(programs)] * len(programs)
        passed = [short.measure.reaches(float(short.success[i].mean()), s.threshold) for i in alive]
        for i in (i for i in alive if not passed[i]):
            results[i] = filtered(candidates[i], short, i, f"is short of the threshold of {s.threshold:g}", taken[i])
        alive = [i for i in alive if passed[i]]
    agents = _train(candidates, programs, alive, taken, None if best is None else best.merit - SURE * best.se, trainer)
    for i, own in zip(alive, agents, strict=True):
        results[i] = result_of(candidates[i], own.trained, own.row, taken[i])
    return Outcome(programs, tuple(tuned.annotated(i, results[i]) for i in range(len(candidates))), agents)


def confirm(candidates: Sequence[Candidate], programs: Sequence[Program], trainer: CandidateTrainer) -> Outcome:
    """Train candidates of before with seeds that none of them had."""
    s = trainer.settings
    first = max(s.seeds, s.contender_seeds)
    trained = trainer.train(programs, steps=s.steps, seeds=range(first, first + s.confirm_seeds))
    each = trained.env_steps // len(programs)
    results = tuple(result_of(candidate, trained, row, each) for row, candidate in enumerate(candidates))
    return Outcome(tuple(programs), results, tuple(Agents(c, trained, row) for row, c in enumerate(candidates)))


def _train(
    candidates: Sequence[Candidate], programs: Sequence[Program], alive: Sequence[int], taken: list[int],
    bar: float | None, trainer: CandidateTrainer,
) -> tuple[Agents, ...]:  # fmt: skip
    """Train the candidates in `alive` with the whole budget; adds the environment steps of each to `taken`. `bar` is
    the merit of the lower end of the best score's interval."""
    if not alive:
        return ()
    s, rungs = trainer.settings, trainer.settings.rungs(bar, trainer.untrained_merit)
    full = trainer.train([programs[i] for i in alive], steps=s.steps, rungs=rungs)
    for i in alive:
        taken[i] += full.env_steps // len(alive)
    agents = [Agents(candidates[i], full, row) for row, i in enumerate(alive)]
    ended = [own.row for own in agents if own.sound]
    if not s.contender_seeds or not ended:
        return tuple(agents)
    rows = [ended[k] for k in possible_winners(full.standing(ended), bar)]
    if rows:
        points = [Rung(rung.steps) for rung in rungs]  # the same points of the curves, and nothing stops
        seeds = range(s.seeds, s.contender_seeds)
        more = trainer.train(
            [programs[alive[row]] for row in rows], "contenders", steps=s.steps, seeds=seeds, rungs=points
        )
        joined = full.extended(rows, more)
        for at, row in enumerate(rows):
            agents[row] = Agents(candidates[alive[row]], joined, at)
            taken[alive[row]] += more.env_steps // len(rows)
    return tuple(agents)
