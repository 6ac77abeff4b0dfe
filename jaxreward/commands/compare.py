"""`jaxreward compare`: strategies x proposers x tasks x search seeds at equal budget, cell by cell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from jaxreward.commands.estimate import duration, shape_text
from jaxreward.commands.evolve import TOPICS
from jaxreward.commands.output import console_of
from jaxreward.commands.resolve import Command, Given, Resolved, Source
from jaxreward.commands.spending import Spending, confirm, spending_of, total_of
from jaxreward.comparison.cells import Cell, SearchCell, exit_code
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.outcome import conclude, merge, print_json
from jaxreward.comparison.running import examine, hiding, keep, work
from jaxreward.comparison.shards import read_shards
from jaxreward.config import is_file
from jaxreward.errors import UserError
from jaxreward.evolution.costs import cost_s, search_s, search_steps
from jaxreward.evolution.presets import quick_learner
from jaxreward.programs import Program
from jaxreward.proposers.registry import load_proposer
from jaxreward.reports.live import Live
from jaxreward.reports.tables import Sheet
from jaxreward.runs import StopSignal
from jaxreward.search.registry import load_strategy
from jaxreward.secrets import Secrets


def resolve(given: Given[CompareSettings]) -> Resolved[CompareSettings]:
    """The settings: what is given of the learner replaces that of each task, whose other values stay. The device of the
    process that began the comparison decides that of the task, for all shards in its folder."""
    tasks, platform = given.get("tasks", CompareSettings.tasks), given.platform
    if given.line.topic is None:
        begun = read_shards(given.get("out", CompareSettings.out))
        platform = begun[0].platform if begun else platform
    base = CompareSettings(ppo=quick_learner(tasks[0], platform)) if tasks else CompareSettings()
    resolved = given.over(base, Source.PRESET)
    llm, topic = resolved.settings.llm, given.line.topic
    files = {
        "strategies": loaded(resolved.settings.strategies, load_strategy if topic is None else None),
        "proposers": loaded(resolved.settings.proposers, load_proposer if topic is None else None),
    }
    return resolved.with_settings(
        **files,
        of_ppo=given.group("ppo"), platform=platform, command=resolved.line.text,
        llm=dataclasses.replace(llm, prompts=llm.prompts and llm.prompts.absolute()),  # a search is resumed anywhere
    )  # fmt: skip


def loaded(names: Sequence[str], load: Callable[[str], None] | None) -> tuple[str, ...]:
    """The names, those of files as absolute paths, which `load` imports."""
    found = tuple(str(Path(name).absolute()) if is_file(name) else name for name in names)
    for name in filter(is_file, found):
        if load is not None:
            load(name)
    return found


def run(resolved: Resolved[CompareSettings]) -> int:
    """Compare search strategies at equal budget; returns the exit status."""
    settings = resolved.settings
    if not settings.merge and resolved.source("merge") is Source.COMMAND_LINE:
        raise UserError("--merge needs a value: the folders of comparisons or shards to put together")
    console = console_of(settings.json)
    if settings.merge:
        return merge(settings.merge, settings.out, console, settings.json)
    settings.check()
    tasks = examine(settings)
    cells = settings.dealt()
    if settings.dry_run:
        return _plan(settings, cells, console)
    if asking := [c for c in cells if isinstance(c, SearchCell) and c.settings.proposer == "llm"]:
        confirm(_spending_of(cells), asking[0].settings.llm)
    keep(settings, cells, tasks, console.print)
    with StopSignal() as stop, Live(console, settings.candidates) as live:
        unfinished = work(cells, tasks, live, stop, hiding(Secrets(), settings.llm))
    if stop.requested:
        console.print(f"stopped by {stop.reason}: the same command goes on where it stopped")
        if settings.json:
            print_json({"out": str(settings.out), "finished": False, "reason": f"stopped by {stop.reason}"})
        return stop.exit_code
    conclude(settings, unfinished, console)
    return exit_code(unfinished)


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
        if status == "done":
            continue
        task, last = s.make_task(), s.final_steps or s.steps
        programs = 1 if isinstance(cell, SearchCell) else len(Program.own(task))
        steps += programs * s.final_seeds * last
        seconds += cost_s(task, s.hyper, programs, s.final_seeds, last, episodes=s.eval_episodes)
        if isinstance(cell, SearchCell):
            steps += search_steps(s)
            seconds += search_s(s, task)
    for task, text in {cell.settings.task: shape_text(cell.settings.hyper) for cell in cells}.items():
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
    return total_of([found for c in waiting if (found := spending_of(dataclasses.replace(c.settings, resume=c.begun)))])


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
