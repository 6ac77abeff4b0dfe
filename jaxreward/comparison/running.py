"""The work of a comparison: its tasks are examined, then its cells run one after another."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from jaxreward import programs
from jaxreward.comparison.cells import Cell, SearchCell, Tools, Unfinished, attempt
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.outcome import idle, require_fitting
from jaxreward.comparison.shards import keep_record
from jaxreward.evolution.setup import Objects, Setup
from jaxreward.proposers.llm.endpoint import Endpoint
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.reports.live import Live
from jaxreward.runs import StopSignal
from jaxreward.secrets import Secrets
from jaxreward.tasks import Task, make_task_of


def examine(settings: CompareSettings) -> dict[str, Task]:
    """The tasks by name; UserError for a name that does not exist, or cells that do not fit what is there already."""
    own = settings.own_tasks
    tasks = {name: own[name] if name in own else make_task_of(name, settings.task_arg) for name in settings.tasks}
    for cell in settings.cells():
        if cell.settings.seed == 0:
            given = cell.given if isinstance(cell, SearchCell) else Objects()
            Setup.of(cell.settings, tasks[cell.settings.task], given=given)
    for cell in settings.cells():  # of other shards too: they may share the folder
        cell.require_same(tasks[cell.settings.task])
    require_fitting(settings.out, settings.cells())
    return tasks


def keep(
    settings: CompareSettings, cells: Sequence[Cell], tasks: Mapping[str, Task], note: Callable[[str], None]
) -> None:
    """Record what this process is asked for, once the language models of its searches, if any, can be asked."""
    asking = [c for c in cells if isinstance(c, SearchCell) and c.settings.proposer == "llm"]
    for first in [c.settings for c in asking if not c.begun][:1]:  # before there is a folder; all ask the same models
        Setup.of(first, tasks[first.task]).proposer.prepare(note)
    if not idle(settings.out, settings.grid(), cells):  # else it is not this process whose versions matter
        keep_record(settings.out, settings.grid(), settings.part(), settings.command, settings.platform)


def work(
    cells: Sequence[Cell], tasks: Mapping[str, Task], live: Live, stop: StopSignal, redact: Callable[[str], str]
) -> list[Unfinished]:
    """Run what is not done; a cell that fails does not keep the others."""
    import jax

    waiting = [cell for cell in cells if cell.status() != "done"]
    if len(waiting) < len(cells):
        live.note(f"{len(cells) - len(waiting)} of {len(cells)} cells are done already")
    if not waiting:
        return []
    unfinished = list[Unfinished]()
    with programs.Checker(unsafe_no_sandbox=waiting[0].settings.unsafe_no_sandbox) as checker:
        for number, cell in enumerate(waiting, start=1 + len(cells) - len(waiting)):
            live.part = f"cell {number} of {len(cells)}"
            live.note(f"{live.part}: {cell.label}")
            # Searches with the same seed begin with the same programs: none may find them compiled by another.
            jax.clear_caches()
            if why := attempt(cell, tasks[cell.settings.task], Tools(checker, live, stop, redact)):
                live.note(f"{cell.label} is not finished: {why.reason}")
                unfinished.append(why)
            if stop.requested:
                break
    return unfinished


def hiding(secrets: Secrets, llm: LlmSettings) -> Callable[[str], str]:
    """Takes keys out of a text, those of the providers that are asked whatever they look like.

    Whose a model is litellm knows, which takes seconds to import: it is asked when the first text comes.
    """

    @functools.cache
    def guard() -> None:
        endpoint = Endpoint(llm)
        for model in llm.weights():
            secrets.guard(model.partition("/")[0])
            with suppress(Exception):  # an unknown model, or no memory: the text must still be printed
                secrets.guard((origin := endpoint.origin(model)).provider, origin.key)

    def redact(text: str) -> str:
        guard()
        return secrets.redact(text)

    return redact
