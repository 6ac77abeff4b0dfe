"""The work of an entry: its cells run one after another, and what is there is written down as tables and a picture."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from jaxreward.comparison.cells import Tools, Unfinished, attempted
from jaxreward.errors import UserError
from jaxreward.extras import missing
from jaxreward.reproduction.cell import Cell, FinishedCell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.layout import ResultTable, numbers_of
from jaxreward.reproduction.searches import early_ends
from jaxreward.reproduction.watching import CellWatcher
from jaxreward.runs.disk import make_folder, write_atomic
from jaxreward.runs.events import json_ready
from jaxreward.sentences import Sentence

FORMAT = 1


def waiting(cells: Sequence[Cell], plan: Plan) -> list[Cell]:
    """The cells that are to be run.

    Raises:
        ChangedSetting: one was begun with other settings.
    """
    for cell in cells:
        cell.require_same(plan)
    return [cell for cell in cells if not cell.lacking() and cell.status(plan) != "done"]


def work(cells: Sequence[Cell], plan: Plan, tools: Tools, watcher: CellWatcher) -> list[Unfinished]:
    """Run what is not done; a cell that fails does not keep the others."""
    todo = waiting(cells, plan)
    runnable = [cell for cell in cells if not cell.lacking()]
    watcher.begin(len(runnable), len(runnable) - len(todo))
    unfinished, part = list[Unfinished](), ""
    for cell in todo:
        if tools.stop.requested:
            break
        if part and cell.part != part:
            jax.clear_caches()  # what was compiled for another task is of no use, and takes memory
        part = cell.part
        watcher.cell(cell.label)
        why = attempted(cell.label, cell.folder(plan.out), partial(_run, cell, plan, tools, watcher), tools)
        if why is not None:
            unfinished.append(why)
            watcher.failed(cell.label, why.reason)
    return unfinished


def _run(cell: Cell, plan: Plan, tools: Tools, watcher: CellWatcher) -> Unfinished | None:
    for need in cell.needs(plan):
        if need.status(plan) != "done":
            reason = Sentence(f"it needs {need.label}, which is not finished")
            return Unfinished(cell.label, reason, later=False)
    begin = time.perf_counter()
    cell.begin(plan)
    numbers = cell.run(plan, tools)
    if isinstance(numbers, Unfinished):
        return numbers
    found = cell.finish(plan, numbers, time.perf_counter() - begin)
    shown = {name: numbers_of(found.numbers, name) for name in cell.shown if name in found.numbers}
    watcher.finished(cell.label, shown, found.seconds)
    return None


# ---- the outcome


def conclude(entry: Entry, cells: Sequence[Cell], plan: Plan, reasons: Mapping[str, str]) -> list[ResultTable]:
    """Write the results of the cells that are finished into `NAME.json` and `NAME.md` of the folder, and the picture if
    there is one; returns the tables.

    Args:
        reasons: why a cell could not be finished, by its label.
    """
    results, left = gather(cells, plan, reasons)
    tables = list(entry.tables(plan, results)) if results else []
    if tables and (early := early_ends(results)):
        tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *early))
    make_folder(plan.out)
    pictured = _draw(entry, plan, results) if results else False
    pages = [f"# {entry.name}: {entry.summary}\n", *map(_page, tables)]
    if pictured:
        pages.append(f"![{entry.summary}]({entry.title}.png)\n")
    if left:
        pages.append("Not finished:\n\n" + "".join(f"- {label}: {why}\n" for label, why in left.items()))
    whole = {
        "format": FORMAT, "entry": entry.name, "command": plan.command,
        "tables": [table.as_json() for table in tables], "missing": left,
        "machines": machines(results.values()),
        "cells": [cell.model_dump() for cell in results.values()],
    }  # fmt: skip
    write_atomic(plan.out / f"{entry.title}.json", json.dumps(json_ready(whole), indent=1, allow_nan=False) + "\n")
    write_atomic(plan.out / f"{entry.title}.md", "\n".join(pages))
    return tables


def gather(cells: Sequence[Cell], plan: Plan, reasons: Mapping[str, str]) -> tuple[Results, dict[str, str]]:
    """The finished cells, and why each of the others is not, by its label."""
    results, left = dict[Cell, FinishedCell](), dict[str, str]()
    for cell in cells:
        try:
            found = cell.read(plan)
        except UserError as error:
            left[cell.label] = str(error)
            continue
        if found is not None:
            results[cell] = found
        else:
            left[cell.label] = reasons.get(cell.label) or cell.lacking() or "it has not been run"
    return results, left


def machines(found: Any) -> list[dict[str, Any]]:
    """The different devices, versions and commits of cells, each with how many cells it finished."""
    counts = dict[str, int]()
    for cell in found:
        text = json.dumps({"device": cell.device, "versions": cell.versions, "commit": cell.commit}, sort_keys=True)
        counts[text] = counts.get(text, 0) + 1
    return [{**json.loads(text), "cells": count} for text, count in counts.items()]


def _page(table: ResultTable) -> str:
    return table.sheet().markdown() + "".join(f"\n{note}\n" for note in table.notes)


def _draw(entry: Entry, plan: Plan, results: Results) -> bool:
    """Draw the picture of an entry, last and atomically; returns whether there is one."""
    if missing("reports"):
        return False
    with tempfile.TemporaryDirectory(prefix=".drawn-", dir=plan.out) as folder:
        drawn = Path(folder) / f"{entry.title}.png"
        if not entry.draw(plan, results, drawn):
            return False
        write_atomic(plan.out / drawn.name, drawn.read_bytes())
    return True
