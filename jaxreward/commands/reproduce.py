"""`jaxreward reproduce`: a published table or figure, run again cell by cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from jaxreward.commands.estimate import duration
from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.commands.spending import confirm, spending_of, total_of
from jaxreward.config import Arg, check_bounds
from jaxreward.errors import InvalidSetting
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.reports.tables import Sheet
from jaxreward.runs.folders import RUNS
from jaxreward.sentences import mention

if TYPE_CHECKING:
    from rich.console import Console

    from jaxreward.reproduction.cell import Cell, Plan
    from jaxreward.reproduction.entry import Entry


@dataclass(frozen=True)
class ReproduceSettings:
    """Run a table or figure of a paper again, with the paper's figures beside; without a name, list all."""

    entry: Annotated[str, Arg(positional="PAPER/ENTRY")] = ""
    """Which, such as grace/table2."""
    only: tuple[str, ...] = ()
    """Parts of it, such as names of tasks. By default all; a later command may add others in the same folder."""
    seeds: Annotated[int | None, Arg(least=1)] = None
    """How often everything is repeated. By default what --dry-run shows, as of the next two."""
    steps: Annotated[int | None, Arg(least=1)] = None
    """Environment steps of each policy."""
    candidates: Annotated[int | None, Arg(least=1)] = None
    """Programs that each search proposes and scores."""
    proposer: Literal["genetic", "llm"] = "genetic"
    """Who proposes programs in searches. genetic needs no network; llm takes --model."""
    llm: Annotated[LlmSettings, Arg(flat=True)] = field(default_factory=LlmSettings)
    """Language models. Their budgets are of each search."""
    out: Path | None = None
    """Folder of cells, tables and picture. By default runs/PAPER-..., one for all entries with cells in common."""
    join: tuple[Path, ...] = ()
    """Results of other folders, such as other machines', files NAME.json: cells that they have are not run again."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox. For systems that have none, and programs you trust."""
    dry_run: bool = False
    """Print the cells and their estimated cost alone."""
    json: bool = False
    """End standard output with one JSON object. All else goes to standard error."""


def run(resolved: Resolved[ReproduceSettings]) -> int:
    """List the entries, or run one; returns the exit status."""
    from jaxreward.reproduction.joining import joinable
    from jaxreward.reproduction.registry import entry_of

    s = resolved.settings
    check_bounds(s)
    if not s.entry:
        return _list(s.json)
    entry = entry_of(s.entry)
    plan = _plan(entry, s, resolved.line.text)
    cells = entry.cells(plan)
    _check_judge(cells, plan)
    console = console_of(s.json)
    joined = joinable(cells, plan, s.join)
    if s.dry_run:
        return _show(entry, cells, plan, console, s.json, joined)
    for cell, finished in joined.items():
        cell.begin(plan)
        cell.keep(plan, finished)
    return _work(entry, cells, plan, console, s.json)


def _plan(entry: Entry, s: ReproduceSettings, command: str) -> Plan:
    from jaxreward.reproduction.cell import Plan

    if s.llm != LlmSettings() and s.proposer != "llm" and not s.llm.judge_model:
        message = f"{mention('model')} and what else concerns language models are for {mention('proposer', 'llm')}"
        raise InvalidSetting(f"{message}; name it, or leave them out", "proposer", "llm")
    return Plan(
        out=s.out or RUNS / entry.folder, parts=entry.chosen(s.only),
        budget=entry.budgeted(s.seeds, s.steps, s.candidates), proposer=s.proposer, llm=s.llm,
        unsafe_no_sandbox=s.unsafe_no_sandbox, command=command,
    )  # fmt: skip


def _check_judge(cells: Sequence[Cell], plan: Plan) -> None:
    """Raise `InvalidSetting` where a model that judges is named and judges nothing, or what is said of it is of no
    use."""
    if plan.llm == plan.llm.without_judge():
        return
    judged = [s for c in cells if (s := c.search(plan)) and s.judged_by == "model"]
    if judged:
        judged[0].check()  # the others are like it
        return
    message = f"{mention('judge_model')} is for entries with searches by rda, such as rda/figure4; leave it out"
    raise InvalidSetting(message, "llm.judge_model", "entry")


def _list(as_json: bool) -> int:
    """A line for each entry: its name, what it is, and about how long it takes."""
    from jaxreward.reproduction.cell import Plan
    from jaxreward.reproduction.registry import entries

    found = entries()
    plans = {name: Plan(RUNS / e.folder, e.parts, e.budget) for name, e in found.items()}
    seconds = {name: entry.seconds(plans[name]) for name, entry in found.items()}
    width = max(map(len, found))
    for name, entry in found.items():
        console_of(as_json).print(f"{name:{width}}  {entry.summary}; about {duration(seconds[name])} on two CPU cores")
    if as_json:
        rows = [{"entry": name, "summary": e.summary, "seconds": round(seconds[name])} for name, e in found.items()]
        print_json({"entries": rows})
    return 0


def _show(
    entry: Entry, cells: Sequence[Cell], plan: Plan, console: Console, as_json: bool, joined: Collection[Cell]
) -> int:
    """Print what would be run, and about what it costs."""
    from jaxreward.reproduction.runner import waiting

    todo = [cell for cell in waiting(cells, plan) if cell not in joined]
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.part, cell.kind), []).append(cell)
    rows = []
    for (part, kind), group in groups.items():
        left = [cell for cell in group if cell in todo]
        cost = (f"{sum(c.env_steps(plan) for c in left):,}", duration(sum(c.seconds(plan) for c in left)))
        rows.append((f"{part}, {kind}", _coordinates(group), str(len(group)), str(len(left)), *cost))
    columns = ("cells", "coordinates", "number", "to do", "environment steps", "about")
    console.print(Sheet(f"{entry.name} in {plan.out}", columns, tuple(rows)).rich())
    _tell_lacking(cells, console)
    budget = {name: value for name, value in vars(plan.budget).items() if value is not None}
    said = [f"{name} {value:,}" if value or name != "steps" else "steps by task" for name, value in budget.items()]
    console.print(", ".join(said) + f", {plan.proposer} proposer")
    steps, seconds = sum(cell.env_steps(plan) for cell in todo), sum(cell.seconds(plan) for cell in todo)
    console.print(f"to do: {len(todo)} cells, {steps:,} environment steps, about {duration(seconds)} on two CPU cores")
    spending = total_of([found for cell in todo if (s := cell.search(plan)) and (found := spending_of(s))])
    if spending is not None:
        console.print(spending.text())
    if as_json:
        state = lambda cell: "done" if cell in joined else cell.lacking() or cell.status(plan)  # noqa: E731
        listed = [{**cell.coordinates, "state": state(cell)} for cell in cells]
        print_json({"dry_run": True, "budget": budget, "cells": listed, "env_steps": steps, "seconds": round(seconds)})
    return 0


def _tell_lacking(cells: Sequence[Cell], console: Console) -> None:
    """A line on each kind of cells that cannot be run."""
    for why in dict.fromkeys(why for cell in cells if (why := cell.lacking())):
        console.print(f"{why}: its column has dashes")


def _coordinates(cells: Sequence[Cell]) -> str:
    """The values that each coordinate of some cells has."""
    values = dict[str, dict[str, None]]()
    for cell in cells:
        for name, value in cell.coordinates.items():
            if name not in ("part", "kind") and value != "":
                values.setdefault(name, {})[str(value)] = None
    return "; ".join(f"{name} {' '.join(found)}" for name, found in values.items())


def _work(entry: Entry, cells: Sequence[Cell], plan: Plan, console: Console, as_json: bool) -> int:
    from jaxreward.comparison.cells import Tools, exit_code
    from jaxreward.comparison.running import hiding
    from jaxreward.programs import Checker
    from jaxreward.reproduction.runner import conclude, waiting, work
    from jaxreward.reproduction.watching import CellWatcher
    from jaxreward.runs import StopSignal
    from jaxreward.secrets import Secrets

    searches = [s for cell in waiting(cells, plan) if (s := cell.search(plan))]
    asking = [s for s in searches if s.proposer == "llm" or s.judged_by == "model"]
    if asking:
        confirm(total_of([found for s in asking if (found := spending_of(s))]), asking[0].llm)
    checking = Checker(unsafe_no_sandbox=plan.unsafe_no_sandbox)
    with StopSignal() as stop, CellWatcher(console) as watcher, checking as checker:
        tools = Tools(checker, watcher, stop, hiding(Secrets(), plan.llm))
        unfinished = work(cells, plan, tools, watcher)
    tables = conclude(entry, cells, plan, {why.cell: why.reason for why in unfinished})
    for table in tables:
        console.print(table.sheet().rich())
        for note in table.notes:
            console.print(note)
    _tell_lacking(cells, console)
    for why in unfinished:
        console.print(f"not finished: {why.cell}: {why.reason}")
    console.print(f"tables in {plan.out / entry.title}.md, all numbers in {entry.title}.json")
    if stop.requested:
        console.print(f"stopped by {stop.reason}: the same command goes on where it stopped")
    if as_json:
        print_json({
            "out": str(plan.out), "finished": not unfinished and not stop.requested,
            "tables": [table.as_json() for table in tables], "missing": {why.cell: why.reason for why in unfinished},
        })  # fmt: skip
    return stop.exit_code if stop.requested else exit_code(unfinished)


COMMANDS = (
    Command(
        "reproduce", ReproduceSettings, run=run, config=False,
        main=("entry", "only", "seeds", "steps", "candidates", "proposer", "out", "dry_run"),
        topics={
            "entry": ("entry", "only", "seeds", "steps", "candidates", "proposer"), "models": ("llm",),
            "run": ("out", "join", "unsafe_no_sandbox", "dry_run", "json"),
        },
        examples=("reproduce grace/table2 --dry-run", "reproduce grace/figure4 --only GoToRedBall OpenDoorColor"),
    ),
)  # fmt: skip
