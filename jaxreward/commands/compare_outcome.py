"""What a comparison came to: its searches gathered from folders, as tables, a picture and `comparison.json`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from jaxreward.commands.compare_cells import (
    HARMLESS,
    Cell,
    SearchCell,
    Trouble,
    error_file,
    flat,
    given_digest,
    observation_digest,
    started_with,
)
from jaxreward.errors import UserError
from jaxreward.records import Record
from jaxreward.reports.comparison import (
    Grid,
    Search,
    Sparse,
    folder_of,
    joined,
    name_of,
    read_search,
    read_sparse,
    rows_of,
    searches_of,
)
from jaxreward.reports.comparison_tables import notes, row_json, score_sheet, search_json, use_sheet
from jaxreward.reports.plots import search_curves
from jaxreward.reports.tables import score_json
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.events import json_ready
from jaxreward.runs.provenance import commit, versions

FORMAT = 1


class Shard(Record):
    """What one process was asked to compare, by which command, on which machine, `at` what Unix time it first was.

    Kept in `shards/`, for every process that differs from the ones before it: what the cells of a folder were asked
    for with, and trained on, is what all of them say.
    """

    grid: Grid
    shard: str
    command: str
    device: str
    cores: int
    versions: dict[str, str]
    commit: str = ""
    at: float = 0.0


def keep_record(out: Path, grid: Grid, part: tuple[int, int], command: str) -> None:
    """Write down what this process is asked for, before it begins."""
    import jax

    devices = jax.local_devices()
    kinds = {f"{d.platform} {d.device_kind}" for d in devices}
    shard = Shard(
        grid=grid, shard=f"{part[0]}/{part[1]}", command=command, device=f"{len(devices)} x {', '.join(sorted(kinds))}",
        cores=len(os.sched_getaffinity(0)), versions=versions("jaxlib", "flax", "optax", "xminigrid"), commit=commit(),
    )  # fmt: skip
    # Named after what it says: two processes that begin at once cannot overwrite each other's.
    digest = hashlib.sha256(shard.model_dump_json().encode()).hexdigest()[:8]
    path = out / "shards" / f"{part[0]}-of-{part[1]}-{digest}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_atomic(path, shard.model_copy(update={"at": time.time()}).model_dump_json(indent=1) + "\n")


def read_shards(folder: Path) -> list[Shard]:
    """What was asked for in a folder, the first first.

    Raises:
        UserError: a record is damaged.
    """
    found = []
    for path in sorted((folder / "shards").glob("*-of-*.json"), key=lambda p: (len(p.name), p.name)):
        try:
            found.append(Shard.model_validate_json(path.read_text(encoding="utf-8")))
        except (ValidationError, UnicodeDecodeError) as error:
            raise UserError(f"{path} is damaged: delete it, and give the command that wrote it again") from error
    return sorted(found, key=lambda shard: shard.at)


def differences(shards: Sequence[Shard]) -> list[str]:
    """A sentence that says in which commit, versions and device the processes differ; none where they are alike."""
    said: dict[str, dict[str, None]] = {}
    for shard in shards:
        for name, value in {"commit": shard.commit, **shard.versions, "device": shard.device}.items():
            said.setdefault(name, {})[value or "unknown"] = None
    apart = [f"{name} {' and '.join(values)}" for name, values in said.items() if len(values) > 1]
    if not apart:
        return []
    return [f"Not all processes were alike, and figures may differ for that alone: {', '.join(apart)}; `shards` in "
            "comparison.json says which was which."]  # fmt: skip


# ---- gathering


@dataclass(frozen=True)
class Gathered:
    """What some folders hold of what was asked for; `missing` says of each cell that is not finished why."""

    grids: tuple[Grid, ...]
    searches: tuple[Search, ...]
    sparse: Mapping[str, Sparse]
    missing: Mapping[str, str]
    shards: tuple[Shard, ...]


def gather(folders: Sequence[Path]) -> Gathered:
    """Read all cells that were asked for in any of `folders`, each from the folder that has it.

    Raises:
        UserError: a folder without a comparison, a cell that is finished in two folders, or cells of unequal budget.
    """
    shards: list[Shard] = []
    for folder in folders:
        mine = read_shards(folder)
        if not mine:
            raise UserError(f"{folder} is no folder of a comparison: give the --out of jaxreward compare")
        shards += mine
    grids = tuple(dict.fromkeys(shard.grid for shard in shards))
    searches: list[Search] = []
    missing: dict[str, str] = {}
    for task, strategy, proposer, seed in searches_of(grids):
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
            missing.setdefault(label, (found[0].reason if found else "it has not begun") + _failures(paths))
        searches += done or found[:1]
    sparse: dict[str, Sparse] = {}
    for task in joined(grids).tasks:
        paths = [folder / folder_of(task) / "sparse.json" for folder in folders]
        known = _same_sparse(paths)
        if known is not None:
            sparse[task] = known
        else:
            missing[f"{task}, sparse"] = "it has not been trained" + _failures(paths)
    each = [_Budgeted.of(s.path, s.config, (s.task, s.strategy, s.proposer)) for s in searches]
    _require_equal_budgets(each, sparse, "leave one of the folders out")
    return Gathered(grids, tuple(searches), sparse, missing, tuple(shards))


def _failures(paths: Sequence[Path]) -> str:
    """Where the tracebacks of an unfinished cell are, if it has failed before."""
    files = [str(file) for path in paths if (file := error_file(path)).exists()]
    return f"; tracebacks of earlier failures are in {' and '.join(files)}" if files else ""


def _same_sparse(paths: Sequence[Path]) -> Sparse | None:
    """The training of a task's own interface in those of the files that there are; UserError where they differ."""
    known = [(path, sparse) for path in paths if (sparse := read_sparse(path)) is not None]
    for path, other in known[1:]:
        first, sparse = known[0]
        a, b = (dict(flat({"fresh seeds": s.seeds, "steps": s.steps, "ppo": s.ppo})) for s in (sparse, other))
        if sparse.digest != other.digest:
            raise UserError(
                f"{first} and {path} are of different versions of {other.task}: leave one of the folders out"
            )
        for name in sorted(a.keys() | b.keys()):
            if a.get(name) != b.get(name):
                raise UserError(f"{first} has {name} {a.get(name)} and {path} has {b.get(name)}: only trainings of "
                                "equal budget can be compared; leave one of the folders out")  # fmt: skip
    return known[0][1] if known else None


# What sets the cells of a comparison apart; all else must be the same for them to be compared.
_APART = HARMLESS | {"task", "strategy", "proposer", "seed", "chunk"}


@dataclass(frozen=True)
class _Budgeted:
    """A search in `path` and its settings by name; of its observation the digest, None where nothing is known yet."""

    path: Path
    task: str
    strategy: str
    proposer: str
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, path: Path, config: Mapping[str, Any], which: tuple[str, str, str]) -> _Budgeted:
        return cls(path, *which, {**dict(flat(config)), "observation": observation_digest(path, config)})


def _require_equal_budgets(searches: Sequence[_Budgeted], sparse: Mapping[str, Sparse], advice: str) -> None:
    first: dict[tuple[str, ...], tuple[Any, Path]] = {}
    known_names = {name for search in searches for name in search.settings}
    for search in searches:
        for name in sorted(known_names - _APART):
            value = search.settings.get(name)
            if name == "observation" and value is None:
                continue
            same = {"option": (search.strategy,)}.get(name, (search.proposer,) if name.startswith("llm.") else ())
            other, where = first.setdefault((search.task, name, *same), (value, search.path))
            if other == value:
                continue
            differ = f"{where} has {name} {other} and {search.path} has {value}"
            if name == "observation":
                differ = f"{where} and {search.path} have different observations"
            raise UserError(f"{differ}: only searches of equal budget can be compared; {advice}")
        if search.task in sparse:
            _require_sparse_of(search, sparse[search.task], advice)


def _require_sparse_of(search: _Budgeted, sparse: Sparse, advice: str) -> None:
    s = search.settings
    fresh = (s.get("final_seeds"), s.get("final_steps") or s.get("steps"))
    if fresh != (sparse.seeds, sparse.steps):
        raise UserError(f"{search.path} has {fresh[0]} fresh seeds x {fresh[1]} steps and sparse.json of {search.task} "
                        f"has {sparse.seeds} x {sparse.steps}: {advice}")  # fmt: skip
    mine = {name: value for name, value in s.items() if name.startswith("ppo.")}
    its = dict(flat({"ppo": sparse.ppo}))
    for name in sorted(mine.keys() | its.keys()):
        if mine.get(name) != its.get(name):
            raise UserError(f"{search.path} has {name} {mine.get(name)} and sparse.json of {search.task} has "
                            f"{its.get(name)}: {advice}")  # fmt: skip


def require_fitting(out: Path, cells: Sequence[Cell]) -> None:
    """Raise a UserError where `out` has searches of earlier commands that `cells` cannot be compared with."""
    asked = [cell for cell in cells if isinstance(cell, SearchCell)]
    mine = {cell.path for cell in asked}
    each = []
    for task, strategy, proposer, seed in searches_of([shard.grid for shard in read_shards(out)]):
        path = out / folder_of(task) / name_of(strategy, proposer, seed)
        if path not in mine and (path / "config.toml").exists():
            each.append(_Budgeted.of(path, json_ready(started_with(path)), (task, strategy, proposer)))
    for cell in asked:
        s = cell.settings
        settings = dict(flat(json_ready(s.as_config()))) | {"observation": given_digest(s.observation)}
        each.append(_Budgeted(cell.path, s.task, s.strategy, s.proposer, settings))
    _require_equal_budgets(each, {}, "give what the one was started with, or another folder with --out")


def idle(out: Path, grid: Grid, cells: Sequence[Cell]) -> bool:
    """Whether a process has nothing to do that is not done, and known to be asked for, already."""
    known = searches_of([shard.grid for shard in read_shards(out)])
    return set(grid.searches()) <= set(known) and all(cell.status() == "done" for cell in cells)


# ---- the end of a process, and merging


def conclude(out: Path, part: tuple[int, int], troubles: Sequence[Trouble], console: Console, as_json: bool) -> None:
    """Say what this process came to; write table and picture unless other shards are still to come."""
    gathered = gather([out])
    failed = {t.cell: t.reason for t in troubles}
    if part[1] > 1 and gathered.missing:
        _list_missing(failed, console)
        console.print(
            f"shard {part[0]} of {part[1]} has ended; when all are done, its table comes of jaxreward compare --merge "
            f"{out}, with the --out of the other shards if they have their own"
        )
        if as_json:
            print_json({"shard": f"{part[0]}/{part[1]}", "out": str(out), "finished": not troubles, "missing": failed})
        return
    report(dataclasses.replace(gathered, missing={**gathered.missing, **failed}), out, console, as_json)


def merge(folders: Sequence[Path], out: Path, console: Console, as_json: bool) -> int:
    """Compare what is in `folders`; returns 1 where cells of what was asked for there are missing.

    Raises:
        UserError: a folder that holds no comparison, searches of unequal budget.
    """
    gathered = gather(folders)
    out.mkdir(parents=True, exist_ok=True)
    report(gathered, out, console, as_json)
    return 1 if gathered.missing else 0


def report(gathered: Gathered, out: Path, console: Console, as_json: bool) -> None:
    """Print the tables and write `comparison.md`, `comparison.json` and `comparison.png` into `out`."""
    rows, grid = rows_of(gathered.searches, *gathered.grids), joined(gathered.grids)
    pages = ["# Search strategies at equal budget\n"]
    for task in grid.tasks:
        mine, sparse = [row for row in rows if row.task == task], gathered.sparse.get(task)
        for sheet in (score_sheet(mine, sparse), use_sheet(mine)):
            console.print(sheet.rich())
            pages.append(sheet.markdown())
        for note in notes(mine, sparse):
            console.print(note)
            pages.append(f"{note}\n")
    apart = differences(gathered.shards)
    for note in apart:
        console.print(note)
        pages.append(f"{note}\n")
    if gathered.missing:
        _list_missing(gathered.missing, console)
        pages.append("Not finished:\n\n" + "".join(f"- {cell}: {why}\n" for cell, why in gathered.missing.items()))
    pictured = any(row.searches for row in rows)
    if pictured:
        pages.append("![Best score so far, over trained candidates and over device seconds](comparison.png)\n")
    write_atomic(out / "comparison.md", "\n".join(pages))
    table = [row_json(row) for row in rows]
    whole = {
        "format": FORMAT, "grid": grid.model_dump(), "rows": table, "notes": apart,
        "sparse": {task: s.model_dump() | {"score": score_json(s.score)} for task, s in gathered.sparse.items()},
        "missing": dict(gathered.missing), "shards": [s.model_dump(exclude={"grid"}) for s in gathered.shards],
        "cells": [search_json(s) for s in gathered.searches],
    }  # fmt: skip
    write_atomic(out / "comparison.json", json.dumps(json_ready(whole), indent=1, allow_nan=False) + "\n")
    if pictured:  # last and in one step: figures are kept whatever becomes of it, and nobody sees half of it
        with tempfile.TemporaryDirectory(prefix=".comparison-", dir=out) as folder:
            drawn = Path(folder) / "comparison.png"
            search_curves(drawn, rows)
            drawn.replace(out / "comparison.png")
    console.print(f"table in {out / 'comparison.md'}, picture beside it, all figures in comparison.json")
    if as_json:
        print_json({"out": str(out), "finished": not gathered.missing, "rows": table, "notes": apart,
                    "missing": dict(gathered.missing)})  # fmt: skip


def _list_missing(missing: Mapping[str, str], console: Console) -> None:
    for cell, why in missing.items():
        console.print(f"not finished: {cell}: {why}")


def print_json(value: dict[str, Any]) -> None:
    """One object as the last line of standard output."""
    print(json.dumps(json_ready(value), allow_nan=False), flush=True)
