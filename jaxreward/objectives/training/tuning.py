"""The constants of a reward, searched numerically: a proposer writes the terms, and their weights are found here.

Every structure has a CMA-ES of its own (Hansen and Ostermeier 2001) over the logarithms of its constants. Of a
generation all settings of all structures train side by side, and each structure is compiled once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxreward.objectives.training.candidate_trainer import CandidateTrainer
from jaxreward.programs import Checker, Program
from jaxreward.records import Candidate, Notice, Result
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import Task

Merit = tuple[float, ...]
"""What a setting is compared by, see `Standing.merits`."""

MOST_AT_ONCE = 16
"""Settings of a generation."""

_SPREAD, _FARTHEST = 0.5, math.log(10.0)
"""Standard deviation of the first generation, and how far a constant may go, in natural logarithms."""

_REPRESENTABLE = tuple(float(v) for v in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))


@dataclass(frozen=True)
class Tuned:
    """Candidates with the best settings found, in the order of the candidates; `notices` describes the result for
    each. `env_steps` are those of each candidate that has constants."""

    candidates: tuple[Candidate, ...]
    programs: tuple[Program, ...]
    notices: tuple[Notice | None, ...]
    env_steps: tuple[int, ...]

    def annotated(self, row: int, result: Result) -> Result:
        """The result of candidate `row`, with the steps of its tuning and a notice of what it found."""
        notice, feedback = self.notices[row], result.feedback
        if notice is not None and feedback is not None:
            feedback = feedback.model_copy(update={"notices": (*feedback.notices, notice)})
        return result.model_copy(update={"env_steps": result.env_steps + self.env_steps[row], "feedback": feedback})


def generations(settings: int) -> tuple[int, int]:
    """How many generations of how many settings at most `settings` make."""
    count = -(-settings // MOST_AT_ONCE)
    return count, settings // count


def tune(
    candidates: Sequence[Candidate], programs: Sequence[Program], trainer: CandidateTrainer, checker: Checker
) -> Tuned:
    """Try at most `trainer.settings.tune` weight settings of every program, its own first, and keep the best by the
    task's metric: its own where none is better, or none are tried. Where the search looks at progress, and settings are
    not told from random actions by success, progress decides."""
    s, task = trainer.settings, trainer.task
    pairs = list(zip(candidates, programs, strict=True))
    searches = [_Search(p, s.tune, s.seed, c.id) for c, p in pairs if s.tune and len(p.constants)]
    steps = 0
    for number in range(generations(s.tune)[0]) if searches else ():
        asked = [search.ask(number) for search in searches]
        every = [program for group in asked for program in group]
        trained = trainer.train(every, f"tune-{number}", steps=s.tuning_steps, points=1)
        merits = iter(trained.standing(range(len(every))).merits(trainer.untrained_merit))
        for search, group in zip(searches, asked, strict=True):
            search.tell([next(merits) for _ in group])
        steps += trained.env_steps // len(searches)
    found = {search.id: search.best(checker, task) for search in searches}
    chosen = [found.get(c.id, (p, None)) for c, p in pairs]
    changed = [{"source": p.source, "summary": p.summary} for p, _ in chosen] if s.tune else [{}] * len(pairs)
    return Tuned(
        candidates=tuple(c.model_copy(update=new) for c, new in zip(candidates, changed, strict=True)),
        programs=tuple(p for p, _ in chosen),
        notices=tuple(notice for _, notice in chosen),
        env_steps=tuple(steps if c.id in found else 0 for c in candidates),
    )


def _said(merit: Merit) -> str:
    return f"{merit[0]:.3g}" if len(merit) == 1 else f"{merit[2]:.3g} (progress {merit[1]:.3g})"


class _Search:
    """The settings of one program."""

    def __init__(self, program: Program, settings: int, seed: int, id: str) -> None:
        from cmaes import CMA  # which imports scipy.stats: half a second that most searches have no use for

        self.id, self.program = id, program
        _, size = generations(settings)
        dimensions = max(2, len(program.constants))  # a second that nothing depends on: CMA-ES wants two
        bounds = np.tile([-_FARTHEST, _FARTHEST], (dimensions, 1))
        number = int(derive_rng(seed, "tune", id).integers(1 << 31))
        self._cma = CMA(np.zeros(dimensions), _SPREAD, bounds=bounds, seed=number, population_size=max(4, size))
        self._size = size
        self._asked: list[tuple[np.ndarray, Program]] = []
        self._tried: list[tuple[Merit, Program]] = []

    def ask(self, number: int) -> list[Program]:
        points = [self._cma.ask() for _ in range(self._size)]
        if number == 0:
            points[0] = np.zeros_like(points[0])
        self._asked = [(x, self._at(x)) for x in points]
        return [program for _, program in self._asked]

    def _at(self, x: np.ndarray) -> Program:
        if not x.any():
            return self.program
        own, (least, most) = np.asarray(self.program.constants, np.float64), _REPRESENTABLE
        values = np.clip(own * np.exp(x[: len(own)]), least, most)
        return self.program.with_constants([float(c) for c in values])

    def tell(self, merits: Sequence[Merit]) -> None:
        """`merits` are those of what was asked for last; more is better."""
        self._tried += [(merit, program) for merit, (_, program) in zip(merits, self._asked, strict=True)]
        if len(self._asked) == self._cma.population_size:  # CMA-ES looks at the order alone
            order = sorted(set(merits), reverse=True)
            self._cma.tell([(x, float(order.index(m))) for m, (x, _) in zip(merits, self._asked, strict=True)])

    def best(self, checker: Checker, task: Task) -> tuple[Program, Notice]:
        own = self._tried[0][0]
        better = sorted((pair for pair in self._tried if pair[0] > own), key=lambda pair: pair[0], reverse=True)
        value, program = own, self.program
        for value_of, setting in better:
            if again := self._rechecked(setting, checker, task):
                value, program = value_of, again
                break
        kept = program is self.program
        changed = ", ".join(
            f"{a:.3g} to {b:.3g}" for a, b in zip(self.program.constants, program.constants, strict=True)
        )
        what = "none better than as proposed" if kept else f"{_said(own)} as proposed, {_said(value)} with {changed}"
        return program, Notice(kind="tuned", message=f"{len(self._tried)} weight settings tried: {what}")

    def _rechecked(self, program: Program, checker: Checker, task: Task) -> Program | None:
        """What the checker makes of the source with its new numbers; None where it is not what was trained."""
        _, again = checker.check_many([program.source], task)[0]
        if again is None or again.structure != program.structure:
            return None
        if not np.array_equal(again.constants, program.constants):
            return None
        return replace(again, name=self.program.name)
