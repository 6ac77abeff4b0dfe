"""`jaxreward compare`: strategies x proposers x tasks x search seeds at equal budget, cell by cell."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from rich.console import Console

from jaxreward import programs
from jaxreward.commands.estimate import cost_s, duration, search_s, shape_text
from jaxreward.commands.evolve import TOPICS
from jaxreward.commands.output import console_of
from jaxreward.commands.resolve import Command, Given, Resolved, Source
from jaxreward.commands.spending import Spending, confirm, spending_of
from jaxreward.comparison.cells import Cell, SearchCell, Tools, Unfinished, attempt, exit_code
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.outcome import conclude, idle, merge, print_json, require_fitting
from jaxreward.comparison.shards import keep_record, read_shards
from jaxreward.errors import UserError
from jaxreward.evolution.presets import quick_learner
from jaxreward.evolution.setup import Setup
from jaxreward.proposers.llm.cost import Estimate
from jaxreward.proposers.llm.endpoint import Endpoint
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.llm.secrets import Secrets
from jaxreward.reports.live import Live
from jaxreward.reports.tables import Sheet
from jaxreward.runs import StopSignal
from jaxreward.tasks import Task, make_task_of


def resolve(given: Given[CompareSettings]) -> Resolved[CompareSettings]:
    """The settings: what is given of the learner replaces that of each task, whose other values stay. The device of the
    process that began the comparison decides that of the task, for all shards in its folder."""
    tasks, platform = given.get("tasks", CompareSettings.tasks), given.platform
    if given.line.topic is None:
        begun = read_shards(given.get("out", CompareSettings.out))
        platform = begun[0].platform if begun else platform
    base = CompareSettings(ppo=quick_learner(tasks[0], platform)) if tasks else CompareSettings()
    resolved = given.over(base, Source.PRESET)
    llm = resolved.settings.llm
    return resolved.with_settings(
        learner=given.group("ppo"), platform=platform, command=resolved.line.text,
        llm=dataclasses.replace(llm, prompts=llm.prompts and llm.prompts.absolute()),  # a search is resumed anywhere
    )  # fmt: skip


def run(resolved: Resolved[CompareSettings]) -> int:
    """Compare search strategies at equal budget; returns the exit status."""
    settings = resolved.settings
    if not settings.merge and resolved.source("merge") is Source.COMMAND_LINE:
        raise UserError("--merge needs a value: the folders of comparisons or shards to put together")
    console = console_of(settings.json)
    if settings.merge:
        return merge(settings.merge, settings.out, console, settings.json)
    settings.check()
    tasks = _examine(settings)
    cells = settings.dealt()
    if settings.dry_run:
        return _plan(settings, cells, console)
    if asking := [c for c in cells if isinstance(c, SearchCell) and c.settings.proposer == "llm"]:
        confirm(_spending_of(cells), asking[0].settings)
    for first in [c.settings for c in asking if not c.begun][:1]:  # before there is a folder; all ask the same models
        Setup.of(first, tasks[first.task]).proposer.prepare(console.print)
    if not idle(settings.out, settings.grid(), cells):  # else it is not this process whose versions matter
        keep_record(settings.out, settings.grid(), settings.part(), settings.command, settings.platform)
    with StopSignal() as stop, Live(console, settings.candidates) as live:
        unfinished = _work(cells, tasks, live, stop, hiding(Secrets(), settings.llm))
    if stop.requested:
        console.print(f"stopped by {stop.reason}: the same command goes on where it stopped")
        if settings.json:
            print_json({"out": str(settings.out), "finished": False, "reason": f"stopped by {stop.reason}"})
        return stop.exit_code
    conclude(settings, unfinished, console)
    return exit_code(unfinished)


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


def _examine(settings: CompareSettings) -> dict[str, Task]:
    """The tasks by name; UserError for a name that does not exist, or cells that do not fit what is there already."""
    tasks = {name: make_task_of(name, settings.task_arg) for name in settings.tasks}
    for cell in settings.cells():
        if cell.settings.seed == 0:
            Setup.of(cell.settings, tasks[cell.settings.task])
    for cell in settings.cells():  # of other shards too: they may share the folder
        cell.require_same(tasks[cell.settings.task])
    require_fitting(settings.out, settings.cells())
    return tasks


def _work(
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


# ---- the plan


def _plan(settings: CompareSettings, cells: Sequence[Cell], console: Console) -> int:
    """Print the cells of this shard, which are done, and what the others will cost."""
    rows = [(cell.label, cell.status()) for cell in cells]
    index, count = settings.part()
    part = f"shard {index} of {count}, " if count > 1 else ""
    console.print(Sheet(f"{part}{len(cells)} cells in {settings.out}", ("cell", "state"), tuple(rows)).rich())
    seconds, steps = 0.0, 0
    for cell, (_, status) in zip(cells, rows, strict=True):
        s = cell.settings
        final = s.final_seeds * (s.final_steps or s.steps)
        search = s.candidates * s.seeds * s.steps if isinstance(cell, SearchCell) else 0
        if status != "done":
            steps += search + final
            task = s.make_task()
            seconds += cost_s(task, s.ppo, 1, s.final_seeds, s.final_steps or s.steps, episodes=s.eval_episodes)
            seconds += search_s(s, task) if search else 0.0
    for task, text in {cell.settings.task: shape_text(cell.settings.ppo) for cell in cells}.items():
        console.print(f"{task}, {text}", highlight=False)
    console.print(f"to do: at most {steps:,} environment steps, about {duration(seconds)} on two CPU cores")
    spending = _spending_of(cells)
    if spending is not None:
        console.print(spending.text())
    if settings.json:
        listed = [{"cell": label, "state": status} for label, status in rows]
        print_json({"dry_run": True, "cells": listed, "env_steps": steps})
    return 0


def _spending_of(cells: Sequence[Cell]) -> Spending | None:
    """What all searches together will spend on language models; None where none is asked."""
    waiting = [c for c in cells if isinstance(c, SearchCell) and c.status() != "done"]
    each = [found for c in waiting if (found := spending_of(dataclasses.replace(c.settings, resume=c.begun)))]
    # Each search has caps of its own, and so has its estimate.
    if not each:
        return None
    estimates = [s.estimate for s in each]
    total = Estimate(
        sum(e.expected_usd for e in estimates), sum(e.most_usd for e in estimates), estimates[0].unknown_models
    )
    return Spending(sum(s.calls for s in each), max(s.prompt_tokens for s in each), total)


COMMANDS = (
    Command(
        "compare", CompareSettings, run=run, resolve=resolve,
        main=("tasks", "strategies", "proposers", "search_seeds", "candidates", "steps", "seeds", "shard", "merge",
              "out", "dry_run"),
        topics=TOPICS | {
            "search": ("tasks", "strategies", "proposers", "search_seeds", *TOPICS["search"]),
            "run": ("shard", "merge", *TOPICS["run"]),
        },
        examples=("compare --tasks xland-easy --strategies limen best-of-n",),
    ),
)  # fmt: skip
