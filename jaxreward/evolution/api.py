"""`run_search`: a search in a run directory, from its settings to its outcome."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxreward.errors import (
    FAILED_EXIT_CODE,
    USAGE_EXIT_CODE,
    End,
    EndCause,
    FileProblem,
    ProposerStopped,
    UnusableFile,
    UserError,
)
from jaxreward.evolution.copying import copied, place_of
from jaxreward.evolution.endings import why_failed
from jaxreward.evolution.final_evaluation import BEST_OF_N, final_evaluation
from jaxreward.evolution.loop import Evolution
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Objects, Setup
from jaxreward.evolution.steady_state import searched
from jaxreward.evolution.watcher import Watcher
from jaxreward.programs import Checker
from jaxreward.proposers.human.manual import ManualProposer
from jaxreward.proposers.human.people import People
from jaxreward.proposers.llm.consent import remember
from jaxreward.records import Result, Score
from jaxreward.runs import (
    REQUEUE_EXIT_CODE,
    Baseline,
    Entry,
    Failed,
    Paused,
    Progress,
    Run,
    StopSignal,
    read_transcript,
)
from jaxreward.runs.transcripts import TRANSCRIPT
from jaxreward.secrets import Secrets
from jaxreward.tasks import Task
from jaxreward.tracking import Tracker
from jaxreward.training import Interrupted


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    `score` and `baselines` are of the final training on fresh seeds where there was one, else of
    the search itself. `reason` says why it ended and `cause` is its type, None where the log of an earlier
    version does not say; `exit_code` is 0, 1 where nothing was ever trained, the code of the signal, or that of a
    proposer that stopped: 75 where it may go on later, 2 where the user must act first.
    """

    settings: EvolveSettings
    path: Path
    best: Result | None
    score: Score | None
    baselines: dict[str, Baseline]
    progress: Progress[Any]
    reason: str
    exit_code: int = 0
    cause: EndCause | None = None


def run_search(
    settings: EvolveSettings,
    watcher: Watcher,
    *,
    task: Task | None = None,
    given: Objects = Objects(),
    setup: Setup | None = None,
    stop: StopSignal | None = None,
    checker: Checker | None = None,
    generations: int | None = None,
) -> Outcome:
    """Run a search, or go on with one.

    Args:
        settings: what to do; for a resumed run, what it was started with and larger budgets.
        watcher: observes the run.
        task: the task that `settings.task` names, where it is made already.
        given: objects in place of what the settings name.
        setup: the objects of checked settings, `Setup.of(settings)`; made if omitted.
        stop: an entered StopSignal; signals are not watched if omitted.
        checker: to check programs with; one is started, and ended, if omitted.
        generations: complete so many and leave the run open, to be resumed.

    Raises:
        UserError: invalid settings, a run that exists or does not. What goes wrong later ends
            the run so that it can be resumed, and is the outcome's `reason`.
    """
    if setup is None:
        settings.check()
        setup = Setup.of(settings, task, given=given)
    stop, path = stop or StopSignal(), settings.out / settings.run_name
    place = place_of(settings)  # before there is a folder
    if not settings.resume:
        setup.proposer.prepare(watcher.note)  # before there is a folder
        if setup.judge is not None:
            setup.judge.prepare(watcher.note)
    _remember(settings, watcher)
    own = nullcontext(checker) if checker else Checker(unsafe_no_sandbox=settings.unsafe_no_sandbox)
    redact = Secrets(models=settings.llm.asked()).redact
    with (
        _opened(settings, path) as run, copied(settings, place, stop, watcher.note) as changed,
        Tracker(settings.track, path, watcher.note, redact) as tracker, own as checking,
    ):  # fmt: skip
        if settings.resume:
            run.update_config(settings.as_config())
        for entry in run.entries:
            tracker.feed(entry)
        others = read_transcript(path / BEST_OF_N / "transcripts" / TRANSCRIPT)

        def logged(entry: Entry) -> None:
            tracker.feed(entry)
            changed()

        main = Evolution(run, settings, setup, checking, watcher, stop, elsewhere=others, on_event=logged)
        try:
            found = searched(main, generations)
            if found is None:
                complete = End("the generations that were asked for are complete", EndCause.GENERATIONS)
                return _paused(main, path, complete, 0)
            score = final_evaluation(main) if main.progress.spent.trained else None
            main.conclude()
        except Interrupted as interrupted:
            return _paused(main, path, End(str(interrupted), EndCause.SIGNAL), stop.exit_code)
        except UserError as error:
            if main.progress.started is None:
                raise
            return _paused(main, path, _end_of(error), REQUEUE_EXIT_CODE if error.later else USAGE_EXIT_CODE)
        best = main.strategy.best(main.progress.state)
        end = main.end(found)
        code = FAILED_EXIT_CODE if isinstance(end, Failed) else 0
        reason = why_failed(settings, main.progress) if isinstance(end, Failed) else end.reason
        return Outcome(settings, path, best, score, dict(main.progress.baselines), main.progress, reason, code,
                       end.cause)  # fmt: skip


def ask(settings: EvolveSettings, watcher: Watcher, *, task: Task | None = None) -> tuple[list[tuple[Path, Path]], str]:
    """Open the next generation of a run of the manual proposer, unless one waits for answers, and
    write its requests as files.

    Returns:
        The file of every request without an answer with the file that will answer it, and where there
        are none, why.

    Raises:
        UserError: invalid settings, a run that exists or does not, another proposer.
    """
    settings.check()
    path, setup = settings.out / settings.run_name, Setup.of(settings, task)
    if not isinstance(setup.proposer, ManualProposer):
        raise UserError(f"only --proposer manual can be asked for files; this run's is {settings.proposer}")
    _remember(settings, watcher)
    stop, place = StopSignal(), place_of(settings)
    with _opened(settings, path) as run, copied(settings, place, stop, watcher.note), Checker() as checker:
        main = Evolution(run, settings, setup, checker, watcher, stop)
        end = main.spent()
        why = end.reason if end else "" if main.asks else "all requests are answered"
        if why and main.progress.started is not None:
            return [], why  # the run stays as it stands
        if settings.resume:
            run.update_config(settings.as_config())
        main.begin()
        main.ask()
        requests = main.questions(main.opened)
        if not requests:
            return [], "the search answers what it asks next by itself: `jaxreward tell` goes on"
        writer = setup.proposer
        if setup.judge is not None and requests[0].operator in setup.judge.operators:
            if not isinstance(setup.judge, People):
                return [], "the search answers what it asks next by itself: `jaxreward tell` goes on"
            if setup.judge.how == "terminal":
                return [], "people vote on the terminal"
            writer = setup.judge
        pages = writer.write_requests(requests, main.rng_of)
        if pages:
            main.log(Paused(reason=f"{len(pages)} requests wait for answers", cause=EndCause.PEOPLE))
        return list(zip(pages, map(writer.reply_path, requests), strict=True)), why


def _remember(settings: EvolveSettings, watcher: Watcher) -> None:
    """Record that this user chose the language models, so that the run can be resumed without naming them again."""
    why = remember(settings.proposer, settings.llm)
    if why:
        watcher.note(
            f"it cannot be remembered that you chose these language models ({why}): say --model, --api-base and "
            "--prompts again when you resume the run"
        )


@contextmanager
def _opened(settings: EvolveSettings, path: Path) -> Iterator[Run]:
    """The run of these settings, open. One that is begun here, and ends before anything is logged, leaves no trace."""
    new = not path.exists()
    with Run.resume(path) if settings.resume else Run.create(path, settings.as_config()) as run:
        try:
            yield run
        except BaseException:
            if new and not run.entries:
                shutil.rmtree(path, ignore_errors=True)
            raise


def _end_of(error: UserError) -> End:
    """The end that an error makes of a search."""
    if isinstance(error, ProposerStopped):
        return End(error.sentence, error.cause, error.problem)
    full = isinstance(error, UnusableFile) and error.problem in (FileProblem.FULL, FileProblem.TOO_LARGE)
    return End(error.sentence, EndCause.DISK if full else EndCause.ERROR)


def _paused(main: Evolution, path: Path, end: End, exit_code: int) -> Outcome:
    with suppress(UserError):  # a full disk
        main.log(Paused(reason=end.reason, cause=end.cause, problem=end.problem))
    best = main.strategy.best(main.progress.state)
    return Outcome(main.settings, path, best, best.score if best else None, dict(main.progress.baselines),
                   main.progress, end.reason, exit_code, end.cause)  # fmt: skip
