"""What a comparison came to: its searches gathered from folders, as tables, a picture and `comparison.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from jaxreward.commands.compare_cells import HARMLESS, Trouble, flat
from jaxreward.errors import UserError
from jaxreward.records import Record
from jaxreward.reports.comparison import (
    Grid,
    Search,
    Sparse,
    folder_of,
    name_of,
    read_search,
    read_sparse,
    rows_of,
)
from jaxreward.reports.comparison_tables import notes, row_json, score_sheet, search_json, use_sheet
from jaxreward.reports.plots import search_curves
from jaxreward.reports.tables import score_json
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.events import json_ready
from jaxreward.runs.provenance import commit, versions

FORMAT = 1


class Shard(Record):
    """What one process was asked to compare, by which command, on which machine: `shards/<i>-of-<n>.json`."""

    grid: Grid
    shard: str
    command: str
    device: str
    cores: int
    versions: dict[str, str]
    commit: str = ""


def keep_record(out: Path, grid: Grid, part: tuple[int, int], command: str) -> None:
    """Write down what this process is asked for, before it begins."""
    import jax

    devices = jax.local_devices()
    kinds = {f"{d.platform} {d.device_kind}" for d in devices}
    shard = Shard(
        grid=grid, shard=f"{part[0]}/{part[1]}", command=command, device=f"{len(devices)} x {', '.join(sorted(kinds))}",
        cores=len(os.sched_getaffinity(0)), versions=versions("jaxlib", "flax", "optax", "xminigrid"), commit=commit(),
    )  # fmt: skip
    (out / "shards").mkdir(parents=True, exist_ok=True)
    write_atomic(out / "shards" / f"{part[0]}-of-{part[1]}.json", shard.model_dump_json(indent=1) + "\n")


# ---- gathering


@dataclass(frozen=True)
class Gathered:
    """What some folders hold of a grid; `missing` says of each cell that is not finished why."""

    grid: Grid
    searches: tuple[Search, ...]
    sparse: Mapping[str, Sparse]
    missing: Mapping[str, str]
    shards: tuple[Shard, ...]


def gather(grid: Grid, folders: Sequence[Path]) -> Gathered:
    """Read the cells of `grid`, each from the folder that has it.

    Raises:
        UserError: a cell that is finished in two folders, or searches of unequal budget.
    """
    searches: list[Search] = []
    missing: dict[str, str] = {}
    for task, strategy, proposer, seed in grid.searches():
        label = f"{task}, {strategy}, {proposer}, search seed {seed}"
        paths = [folder / folder_of(task) / name_of(strategy, proposer, seed) for folder in folders]
        found: list[Search] = []
        for path in paths:
            try:
                search = read_search(path)
            except UserError as error:
                missing[label] = str(error)
                continue
            if search is not None:
                found.append(search)
        done = [s for s in found if s.finished]
        if len(done) > 1:
            raise UserError(f"{done[0].path} and {done[1].path} are the same search: leave one of the folders out")
        if done:
            missing.pop(label, None)
        else:
            missing.setdefault(label, found[0].reason if found else "it has not begun")
        searches += done or found[:1]
    sparse: dict[str, Sparse] = {}
    for task in grid.tasks:
        known = [s for f in folders if (s := read_sparse(f / folder_of(task) / "sparse.json")) is not None]
        if known:
            sparse[task] = known[0]
        else:
            missing[f"{task}, sparse"] = "it has not been trained"
    _require_equal_budgets(searches, sparse)
    shards = tuple(shard for folder in folders for shard in read_shards(folder))
    return Gathered(grid, tuple(searches), sparse, missing, shards)


def read_shards(folder: Path) -> list[Shard]:
    """What was asked for in a folder, in the order of its shards.

    Raises:
        UserError: a record is damaged.
    """
    found = []
    for path in sorted((folder / "shards").glob("*-of-*.json"), key=lambda p: (len(p.name), p.name)):
        try:
            found.append(Shard.model_validate_json(path.read_text(encoding="utf-8")))
        except (ValidationError, UnicodeDecodeError) as error:
            raise UserError(f"{path} is damaged: delete it, and give the command that wrote it again") from error
    return found


# What sets the cells of a comparison apart; all else must be the same for them to be compared.
_APART = HARMLESS | {"task", "strategy", "proposer", "seed", "chunk"}


def _require_equal_budgets(searches: Sequence[Search], sparse: Mapping[str, Sparse]) -> None:
    first: dict[tuple[str, ...], tuple[Any, Path]] = {}
    each = [(search, dict(flat(search.config))) for search in searches]
    known_names = {name for _, settings in each for name in settings}
    for search, settings in each:
        for name in sorted(known_names - _APART):
            same = {"option": (search.strategy,)}.get(name, (search.proposer,) if name.startswith("llm.") else ())
            value, where = first.setdefault((search.task, name, *same), (settings.get(name), search.path))
            if value != settings.get(name):
                raise UserError(
                    f"{where} has {name} {value} and {search.path} has {settings.get(name)}: only searches of equal "
                    "budget can be compared; leave one of the folders out"
                )
        known = sparse.get(search.task)
        fresh = (settings["final_seeds"], settings["final_steps"] or settings["steps"])
        if known is not None and fresh != (known.seeds, known.steps):
            raise UserError(
                f"{search.path} has {fresh[0]} fresh seeds x {fresh[1]} steps and sparse.json of {search.task} has "
                f"{known.seeds} x {known.steps}: leave one of the folders out"
            )


# ---- the end of a process, and merging


def conclude(
    out: Path, grid: Grid, part: tuple[int, int], troubles: Sequence[Trouble], console: Console, as_json: bool
) -> None:
    """Say what this process came to; write table and picture unless other shards are still to come."""
    gathered = gather(grid, [out])
    reasons = {**gathered.missing, **{t.cell: t.reason for t in troubles}}
    if part[1] > 1 and gathered.missing:
        _list_missing({t.cell: t.reason for t in troubles}, console)
        console.print(
            f"shard {part[0]} of {part[1]} has ended; when all are done, its table comes of jaxreward compare --merge "
            f"{out}, with the --out of the other shards if they have their own"
        )
        if as_json:
            print_json({"shard": f"{part[0]}/{part[1]}", "out": str(out), "finished": not troubles,
                        "missing": {t.cell: t.reason for t in troubles}})  # fmt: skip
        return
    report(Gathered(grid, gathered.searches, gathered.sparse, reasons, gathered.shards), out, console, as_json)


def merge(folders: Sequence[Path], out: Path, console: Console, as_json: bool) -> int:
    """Compare what is in `folders`; returns 1 where cells of what was asked for there are missing.

    Raises:
        UserError: a folder that holds no comparison, searches of unequal budget.
    """
    grid: Grid | None = None
    for folder in folders:
        shards = read_shards(folder)
        if not shards:
            raise UserError(f"{folder} is no folder of a comparison: give the --out of jaxreward compare")
        for shard in shards:
            grid = shard.grid if grid is None else grid.joined(shard.grid)
    assert grid is not None
    gathered = gather(grid, folders)
    out.mkdir(parents=True, exist_ok=True)
    report(gathered, out, console, as_json)
    return 1 if gathered.missing else 0


def report(gathered: Gathered, out: Path, console: Console, as_json: bool) -> None:
    """Print the tables and write `comparison.md`, `comparison.json` and `comparison.png` into `out`."""
    rows = rows_of(gathered.searches, gathered.grid)
    pages = ["# Search strategies at equal budget\n"]
    for task in gathered.grid.tasks:
        mine, sparse = [row for row in rows if row.task == task], gathered.sparse.get(task)
        for sheet in (score_sheet(mine, sparse), use_sheet(mine)):
            console.print(sheet.rich())
            pages.append(sheet.markdown())
        for note in notes(mine, sparse):
            console.print(note)
            pages.append(f"{note}\n")
    if gathered.missing:
        _list_missing(gathered.missing, console)
        pages.append("Not finished:\n\n" + "".join(f"- {cell}: {why}\n" for cell, why in gathered.missing.items()))
    if any(row.searches for row in rows):
        search_curves(out / "comparison.png", rows)
        pages.append("![Best score so far, over trained candidates and over device seconds](comparison.png)\n")
    write_atomic(out / "comparison.md", "\n".join(pages))
    table = [row_json(row) for row in rows]
    whole = {
        "format": FORMAT, "grid": gathered.grid.model_dump(), "rows": table,
        "sparse": {task: s.model_dump() | {"score": score_json(s.score)} for task, s in gathered.sparse.items()},
        "missing": dict(gathered.missing), "shards": [s.model_dump(exclude={"grid"}) for s in gathered.shards],
        "cells": [search_json(s) for s in gathered.searches],
    }  # fmt: skip
    write_atomic(out / "comparison.json", json.dumps(json_ready(whole), indent=1, allow_nan=False) + "\n")
    console.print(f"table in {out / 'comparison.md'}, picture beside it, all figures in comparison.json")
    if as_json:
        print_json({"out": str(out), "finished": not gathered.missing, "rows": table,
                    "missing": dict(gathered.missing)})  # fmt: skip


def _list_missing(missing: Mapping[str, str], console: Console) -> None:
    for cell, why in missing.items():
        console.print(f"not finished: {cell}: {why}")


def print_json(value: dict[str, Any]) -> None:
    """One object as the last line of standard output."""
    print(json.dumps(json_ready(value), allow_nan=False), flush=True)
