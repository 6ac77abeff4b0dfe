"""`jaxreward.evolve`: a search as one call, for notebooks and scripts."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from jaxreward.config import is_file
from jaxreward.errors import EndCause, FileProblem, JaxrewardWarning, UnusableFile, errors_in_python
from jaxreward.evolution.api import run_search
from jaxreward.evolution.copying import bring
from jaxreward.evolution.file_code import code_of, require_same_code
from jaxreward.evolution.python_settings import search_settings
from jaxreward.evolution.resuming import (
    free_name,
    has_begun,
    is_complete,
    otherwise,
    require_same_call,
    with_shape_of,
)
from jaxreward.evolution.search_run import SearchRun
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.evolution.task_check import require_vocabulary
from jaxreward.evolution.watcher import Watcher
from jaxreward.evolution.watching import OnGeneration, Watchers, require_watching, shown
from jaxreward.proposers.proposer import Proposer
from jaxreward.runs import StopSignal
from jaxreward.runs.run import check_name
from jaxreward.search import SearchStrategy
from jaxreward.sentences import in_python
from jaxreward.tasks import Task


def evolve(
    task: str | Path | Task,
    *,
    strategy: str | SearchStrategy[Any] | type[SearchStrategy[Any]] | None = None,
    proposer: str | Proposer | Callable[..., Proposer] = EvolveSettings.proposer,
    on_generation: OnGeneration | None = None,
    watcher: Watcher | None = None,
    preset: str = "quick",
    resume: bool = True,
    progress: bool = True,
    **settings: Any,
) -> SearchRun:
    """Search for an interface of a task.

        run = jr.evolve(task, candidates=16, steps=100_000)
        print(run.best.source, run.best.score)

    The search is a run in the folder `out/name`, by default `runs/<task>-<strategy>-<seed>`, that `jaxreward runs`
    and `jaxreward report` read as well. The same call again goes on with it where it stopped, or returns it where it
    has finished. Budgets (`candidates`, `max_*`, `final_seeds`, `final_steps`, `baselines`) may be others then; a run
    with other settings, or another task, strategy, proposer or vocabulary, is refused. One in which nothing was ever
    trained begins again.

    Args:
        task: a name, a Python file (`FILE.py`, `FILE.py:Class`, which is executed), or an object.
        strategy: a name, a file, a class, or an object with its options. Options of a name are `option={"islands": 2}`.
            By default `limen`, and with `objective="demonstrations"` `grace`.
        proposer: a name, a file, an object, or a class or function that makes one, of the `TaskCard` where it takes an
            argument.
        on_generation: called with a `CompletedGeneration` after each. An exception in it pauses the run and is raised.
        watcher: told of everything that happens, see `Watcher`.
        preset: `quick`, `paper-budget` or `paper`: the settings that are not given.
        resume: False: begin a new run, numbered where one of its default name exists; a name that is given must be new.
        progress: show the progress on standard error, or in the notebook.
        settings: the options of `jaxreward evolve`, by name: `candidates`, `generation`, `steps`, `seeds`, `baselines`,
            `seed`, `out`, `name`, `ppo=jr.PPO(...)` or some of its values as a dictionary, those of language models
            (`model`, `max_usd`), and all others. `vocabulary` may also be a list of `jr.Fragment` or a `jr.Vocabulary`,
            which takes the place of the task's own.

    Returns:
        The run. Where it stopped before its end, by an endpoint that is down or a full disk, a warning says so.

    Raises:
        UnknownName: a name of anything that does not exist, with the nearest one.
        UserError: settings that cannot be, a run that is another, a task with mistakes.
        KeyboardInterrupt: Ctrl-C, or an interrupted kernel: the run is paused after a checkpoint.
        SystemExit: SIGTERM or SIGUSR1, likewise, with the status 75.
    """
    require_watching(on_generation, watcher)
    with errors_in_python():
        chosen, objects = search_settings(task, strategy, proposer, preset, settings)
        path = chosen.out / check_name(chosen.run_name, "run")
        if resume and (said := bring(chosen)) and progress:
            print(said, file=sys.stderr)
        begun = (resume or bool(chosen.name)) and has_begun(path)
        if resume and begun:
            chosen = with_shape_of(path, chosen, settings.get("ppo"), objects.task or chosen.task)
        chosen.check()
        if resume and begun:
            require_same_call(path, chosen, objects.identities)
            if is_complete(path, chosen):
                own = objects.task or (chosen.make_task() if is_file(chosen.task) else None)
                if own is not None:
                    require_same_code(path, chosen, code_of(chosen, own), otherwise(chosen))
                return SearchRun(path, own)
            chosen = dataclasses.replace(chosen, resume=True)
        else:
            chosen = as_new(chosen, resume, begun)
        setup = Setup.of(chosen, given=objects)
        if objects.vocabulary is not None:
            require_vocabulary(setup.task, objects.vocabulary, unsafe_no_sandbox=chosen.unsafe_no_sandbox)
    return searched(chosen, setup, setup.task, on_generation, watcher, progress)


def as_new(chosen: EvolveSettings, resume: bool, begun: bool) -> EvolveSettings:
    """The settings of a new run: a default name is numbered with `resume=False`.

    Raises:
        UnusableFile: there is a run of the name that was given.
    """
    if not resume and not chosen.name:
        return dataclasses.replace(chosen, name=free_name(chosen))
    if begun:
        path = chosen.out / chosen.run_name
        message = f"{path} holds a run already: leave resume=False out to go on with it, or {otherwise(chosen)}"
        raise UnusableFile(message, path, FileProblem.EXISTS)
    return chosen


def searched(
    chosen: EvolveSettings, setup: Setup, task: Task | None, on_generation: OnGeneration | None,
    watcher: Watcher | None, progress: bool, checker: Any = None,
) -> SearchRun:  # fmt: skip
    """Run a search, and end as a call in Python does; `checker` is for programs that are no array programs."""
    with errors_in_python(), StopSignal() as stop, shown(progress, chosen.candidates) as live:
        watchers = Watchers([live, watcher] if watcher else [live], chosen.strategy, on_generation)
        outcome = run_search(chosen, watchers, setup=setup, stop=stop, checker=checker)
    if watchers.raised is not None:
        raise watchers.raised
    if outcome.cause is EndCause.SIGNAL:
        raise_stopped(stop, f"{outcome.path} is paused: the same call goes on, jaxreward.open_run reads it")
    if outcome.exit_code:
        warnings.warn(
            f"{outcome.path} stopped before its end: {in_python(outcome.reason)}", JaxrewardWarning, stacklevel=3
        )
    return SearchRun(outcome.path, task)


def raise_stopped(stop: StopSignal, what: str) -> NoReturn:
    """End a call that a signal stopped as the signal would have: `what` is known now."""
    if stop.reason == "SIGINT":
        raise KeyboardInterrupt(what)
    raise SystemExit(stop.exit_code)
