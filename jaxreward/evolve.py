"""`evolve`: a search in a run directory, from its settings to its outcome."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxreward.evolution import Evolution, Parts, Watcher
from jaxreward.finals import compare
from jaxreward.programs import Checker
from jaxreward.records import Result, Score
from jaxreward.runs import Baseline, Finished, Paused, Progress, Run, StopSignal
from jaxreward.settings import EvolveSettings
from jaxreward.tasks import Task
from jaxreward.training import Interrupted


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    `score` and `baselines` are of the final training on fresh seeds where there was one, else of
    the search itself. `reason` is why it ended; `exit_code` 0, or the code of the signal.
    """

    settings: EvolveSettings
    path: Path
    best: Result | None
    score: Score | None
    baselines: dict[str, Baseline]
    progress: Progress[Any]
    reason: str
    exit_code: int = 0


def evolve(
    settings: EvolveSettings,
    watcher: Watcher,
    *,
    task: Task | None = None,
    stop: StopSignal | None = None,
    checker: Checker | None = None,
) -> Outcome:
    """Run a search, or go on with one.

    Args:
        settings: what to do; for a resumed run, what it was started with and larger budgets.
        watcher: who is told how it goes.
        task: the task itself, where `settings.task` names none that `make_task` knows.
        stop: an entered StopSignal; signals are not watched if omitted.
        checker: to check programs with; one is started, and ended, if omitted.

    Raises:
        UserError: settings that cannot be, a run that exists or does not.
    """
    settings.check()
    stop = stop or StopSignal()
    path, parts = settings.out / settings.run_name, Parts.of(settings, task)
    opened = Run.resume(path) if settings.resume else Run.create(path, settings.as_config())
    with opened as run, _checking(settings, checker) as checking:
        if settings.resume:
            run.update_config(settings.as_config())
        main = Evolution(run, settings, parts, checking, watcher, stop)
        try:
            reason = main.search()
            score = compare(main)
        except Interrupted as interrupted:
            main.log(Paused(reason=str(interrupted)))
            best = main.strategy.best(main.progress.state)
            return Outcome(settings, path, best, best.score if best else None, dict(main.progress.baselines),
                           main.progress, str(interrupted), stop.exit_code)  # fmt: skip
        best = main.strategy.best(main.progress.state)
        main.log(Finished(reason=reason, best=best.candidate.id if best else None))
        return Outcome(settings, path, best, score, dict(main.progress.baselines), main.progress, reason)


def _checking(settings: EvolveSettings, checker: Checker | None) -> AbstractContextManager[Checker]:
    return nullcontext(checker) if checker else Checker(unsafe_no_sandbox=settings.unsafe_no_sandbox)
