"""The outcome of a comparison: its searches gathered from folders, as tables, a plot and `comparison.json`."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxreward import files
from jaxreward.comparison.cells import (
    HARMLESS,
    Cell,
    SearchCell,
    Unfinished,
    error_file,
    first_difference,
    given_digest,
    learner_with_defaults,
    observation_digest,
    sparse_label,
    with_defaults,
)
from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.comparison_plot import search_curves
from jaxreward.comparison.comparison_table import notes, row_json, score_sheet, search_json, use_sheet
from jaxreward.comparison.finished_searches import (
    Grid,
    Search,
    SearchKey,
    Sparse,
    folder_of,
    joined,
    read_search,
    read_sparse,
    rows_of,
    searches_of,
)
from jaxreward.comparison.shards import Shard, differences, read_records, read_shards
from jaxreward.errors import ChangedSetting, FileProblem, InvalidSetting, UnusableFile, UserError
from jaxreward.evolution.search_options import OF_GENETIC
from jaxreward.extras import install, missing
from jaxreward.reports.tables import score_json
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.events import json_ready
from jaxreward.runs.run import read_config
from jaxreward.runs.toml import flat
from jaxreward.sentences import mention

FORMAT = 1

# Unfinished cells of earlier commands that are named; comparison.json has all.
_NAMED = 3


# ---- gathering


@dataclass(frozen=True)
class Gathered:
    """The cells in some folders of those that were asked for; `missing` holds the reason for each unfinished one.

    Where a process has a grid of its own, `wanted`, `missing` is of that, and `before` of what only others asked for,
    in the records `before_in`.
    """

    searches: tuple[Search, ...]
    sparse: Mapping[str, Sparse]
    missing: Mapping[str, str]
    shards: tuple[Shard, ...]
    wanted: Grid | None = None
    before: Mapping[str, str] = field(default_factory=dict)
    before_in: tuple[Path, ...] = ()


def gather(folders: Sequence[Path], wanted: Grid | None = None) -> Gathered:
    """Read all cells that were asked for in any of `folders`, each from the folder that has it.

    Args:
        wanted: what this process was asked for; without it all that ever was.

    Raises:
        UserError: a folder without a comparison, a cell that is finished in two folders, or cells of unequal budget.
    """
    records: list[tuple[Path, Shard]] = []
    for folder in folders:
        mine = read_records(folder)
        if not mine:
            message = f"{folder} is no folder of a comparison: give the {mention('out')} of jaxreward compare"
            raise UnusableFile(message, folder, FileProblem.WRONG_KIND)
        records += mine
    grids = [shard.grid for _, shard in records]
    searches: list[Search] = []
    missing: dict[str, str] = {}
    for key in searches_of(grids):
        label, paths = key.label, [key.path(folder) for folder in folders]
        found: list[Search] = []
        for path in paths:
            try:
                search = read_search(path)
            except UserError as error:
                missing[label] = str(error)
                continue
            if search is not None:
                found.append(dataclasses.replace(search, config=with_defaults(search.config, key.strategy)))
        done = [s for s in found if s.finished]
        if len(done) > 1:
            message = f"{done[0].path} and {done[1].path} are the same search: leave one of the folders out"
            raise InvalidSetting(message, "merge")
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
            missing[sparse_label(task)] = "it has not been trained" + _failures(paths)
    each = [_Budgeted.of(s.path, s.key, s.config) for s in searches]
    _require_equal_budgets(each, sparse, "leave one of the folders out")
    mine = _labels(wanted) if wanted else missing.keys()
    before = {cell: why for cell, why in missing.items() if cell not in mine}
    missing = {cell: why for cell, why in missing.items() if cell in mine}
    before_in = tuple(path for path, shard in records if not before.keys().isdisjoint(_labels(shard.grid)))
    shards = tuple(shard for _, shard in records)
    return Gathered(tuple(searches), sparse, missing, shards, wanted, before, before_in)


def _labels(grid: Grid) -> set[str]:
    """The labels of the cells of a grid."""
    return {key.label for key in grid.searches()} | {sparse_label(task) for task in grid.tasks}


def _failures(paths: Sequence[Path]) -> str:
    """Where the tracebacks of an unfinished cell are, if it has failed before."""
    kept = [str(file) for path in paths if files.is_there(file := error_file(path))]
    return f"; tracebacks of earlier failures are in {' and '.join(kept)}" if kept else ""


def _same_sparse(paths: Sequence[Path]) -> Sparse | None:
    """The training of a task's own interface in those of the files that there are; UserError where they differ."""
    known = [(path, sparse) for path in paths if (sparse := read_sparse(path)) is not None]
    for path, other in known[1:]:
        first, sparse = known[0]
        a, b = ({"final_seeds": s.seeds, "final_steps": s.steps, **_learner_of(s)} for s in (sparse, other))
        unlike = sparse.dense and other.dense and sparse.dense.digest != other.dense.digest
        if sparse.digest != other.digest or unlike:
            message = f"{first} and {path} are of different versions of {other.task}: leave one of the folders out"
            raise ChangedSetting(message, "task")
        if found := first_difference(a, b):
            raise ChangedSetting(
                f"{first} has {found[0]} {found[1]} and {path} has {found[2]}: only trainings of equal budget can be "
                "compared; leave one of the folders out",
                found[0],
            )
    return next((sparse for _, sparse in known if sparse.dense), known[0][1]) if known else None


def _sparse_json(sparse: Sparse) -> dict[str, Any]:
    found: dict[str, Any] = sparse.model_dump() | {"score": score_json(sparse.score)}
    if sparse.dense is not None:
        found["dense"]["score"] = score_json(sparse.dense.score)
    return found


# Settings that may differ between cells; all others must be equal.
_MAY_DIFFER = HARMLESS | {"task", "strategy", "proposer", "seed", "chunk"}


@dataclass(frozen=True)
class _Budgeted:
    """A search in `path` and its settings by name, with the digest of its observation, None while unknown."""

    path: Path
    key: SearchKey
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, path: Path, key: SearchKey, config: Mapping[str, Any]) -> _Budgeted:
        return cls(path, key, {**dict(flat(config)), "observation": observation_digest(path, config)})


def _require_equal_budgets(searches: Sequence[_Budgeted], sparse: Mapping[str, Sparse], advice: str) -> None:
    first: dict[tuple[str, ...], tuple[Any, Path]] = {}
    known_names = {name for search in searches for name in search.settings}
    for search in searches:
        for name in sorted(known_names - _MAY_DIFFER):
            value = search.settings.get(name)
            if name == "observation" and value is None:
                continue
            key = search.key
            own = name in ("option", "ablations", "confirm_seeds", "surrogate")  # what not every strategy has
            of_proposer = name.startswith("llm.") or name in OF_GENETIC or name == "option"  # those with a model
            same = ((key.strategy,) if own else ()) + ((key.proposer,) if of_proposer else ())
            other, where = first.setdefault((key.task, name, *same), (value, search.path))
            if other == value:
                continue
            differ = f"{where} has {name} {other} and {search.path} has {value}"
            if name == "observation":
                differ = f"{where} and {search.path} have different observations"
            raise ChangedSetting(f"{differ}: only searches of equal budget can be compared; {advice}", name)
        if search.key.task in sparse:
            _require_sparse_of(search, sparse[search.key.task], advice)


def _learner_of(sparse: Sparse) -> dict[str, Any]:
    """The learner that trained it, as a search writes it down."""
    return {"learner": sparse.learner, sparse.learner: learner_with_defaults(sparse.learner, sparse.ppo)}


def _require_sparse_of(search: _Budgeted, sparse: Sparse, advice: str) -> None:
    s = search.settings
    fresh = (s.get("final_seeds"), s.get("final_steps") or s.get("steps"))
    if fresh != (sparse.seeds, sparse.steps):
        raise ChangedSetting(
            f"{search.path} has {fresh[0]} fresh seeds x {fresh[1]} steps and sparse.json of {search.key.task} has "
            f"{sparse.seeds} x {sparse.steps}: {advice}",
            "final_seeds" if fresh[0] != sparse.seeds else "final_steps",
        )
    mine = {name: value for name, value in s.items() if name.partition(".")[0] in ("learner", "ppo", "sac")}
    if found := first_difference({"learner": "ppo", **mine}, _learner_of(sparse)):
        raise ChangedSetting(
            f"{search.path} has {found[0]} {found[1]} and sparse.json of {search.key.task} has {found[2]}: {advice}",
            found[0],
        )


def require_fitting(out: Path, cells: Sequence[Cell]) -> None:
    """Raise a UserError where `out` has searches of earlier commands that `cells` cannot be compared with."""
    asked = [cell for cell in cells if isinstance(cell, SearchCell)]
    mine = {cell.path for cell in asked}
    each = []
    for key in searches_of([shard.grid for shard in read_shards(out)]):
        path = key.path(out)
        if path not in mine and files.is_there(path / "config.toml"):
            config = with_defaults(_logged_config(path), key.strategy)  # as `gather` will compare it in the end
            each.append(_Budgeted.of(path, key, config))
    for cell in asked:
        s = cell.settings
        settings = dict(flat(json_ready(s.as_config()))) | {"observation": given_digest(s.observation)}
        each.append(_Budgeted(cell.path, SearchKey(s.task, s.strategy, s.proposer, s.seed), settings))
    _require_equal_budgets(each, {}, f"give what the one was started with, or another folder with {mention('out')}")


def _logged_config(path: Path) -> Mapping[str, Any]:
    """The settings of a search that has begun: those of its log, else those of config.toml."""
    with suppress(UserError):  # damaged: `gather` leaves it out too
        if (search := read_search(path)) is not None:
            return search.config
    return json_ready(read_config(path))


def idle(out: Path, grid: Grid, cells: Sequence[Cell]) -> bool:
    """Whether all that a process is asked for is done, and recorded as asked for."""
    known = searches_of([shard.grid for shard in read_shards(out)])
    return set(grid.searches()) <= set(known) and all(cell.status() == "done" for cell in cells)


# ---- output


def conclude(settings: CompareSettings, unfinished: Sequence[Unfinished], console: Console) -> None:
    """Report the outcome of this process; write table and plot unless other shards of its grid are still to come."""
    out, (index, count) = settings.out, settings.part()
    gathered = gather([out], settings.grid())
    failed = {t.cell: t.reason for t in unfinished}
    if count > 1 and gathered.missing:
        _list_missing(failed, console)
        console.print(
            f"shard {index} of {count} has ended; when all are done, its table comes of jaxreward compare --merge "
            f"{out}, with the --out of the other shards if they have their own"
        )
        if settings.json:
            print_json({"shard": f"{index}/{count}", "out": str(out), "finished": not unfinished, "missing": failed})
        return
    report(dataclasses.replace(gathered, missing={**gathered.missing, **failed}), out, console, settings.json)


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
    grids = [shard.grid for shard in gathered.shards]
    rows, grid = rows_of(gathered.searches, *grids, wanted=gathered.wanted), joined(grids)
    pages = ["# Search strategies at equal budget\n"]

    def say(note: str) -> None:
        console.print(note)
        pages.append(f"{note}\n")

    for task in grid.tasks:
        mine, sparse = [row for row in rows if row.task == task], gathered.sparse.get(task)
        if not mine:  # of an earlier command, no search finished
            continue
        for sheet in (score_sheet(mine, sparse), use_sheet(mine)):
            console.print(sheet.rich())
            pages.append(sheet.markdown())
        for note in notes(mine, sparse):
            say(note)
    unlike = differences(gathered.shards)
    for note in [*unlike, *_before_note(gathered.before, gathered.before_in)]:
        say(note)
    if gathered.missing:
        _list_missing(gathered.missing, console)
        pages.append("Not finished:\n\n" + "".join(f"- {cell}: {why}\n" for cell, why in gathered.missing.items()))
    pictured = any(row.searches for row in rows) and not missing("reports")
    if pictured:
        pages.append("![Best score so far, over trained candidates and over device seconds](comparison.png)\n")
    write_atomic(out / "comparison.md", "\n".join(pages))
    table = [row_json(row) for row in rows]
    whole = {
        "format": FORMAT, "grid": grid.model_dump(), "rows": table, "notes": unlike,
        "sparse": {task: _sparse_json(sparse) for task, sparse in gathered.sparse.items()},
        "missing": dict(gathered.missing), "asked_before": dict(gathered.before),
        "shards": [s.model_dump(exclude={"grid"}) for s in gathered.shards],
        "cells": [search_json(s) for s in gathered.searches],
    }  # fmt: skip
    write_atomic(out / "comparison.json", json.dumps(json_ready(whole), indent=1, allow_nan=False) + "\n")
    if pictured:  # last and atomically: the tables are kept if it fails
        with tempfile.TemporaryDirectory(prefix=".comparison-", dir=out) as folder:
            drawn = Path(folder) / "comparison.png"
            search_curves(drawn, rows)
            write_atomic(out / "comparison.png", drawn.read_bytes())
    console.print(f"table in {out / 'comparison.md'}, {_plot_note(pictured)}all figures in comparison.json")
    if as_json:
        print_json({"out": str(out), "finished": not gathered.missing, "rows": table, "notes": unlike,
                    "missing": dict(gathered.missing), "asked_before": dict(gathered.before)})  # fmt: skip


def _plot_note(pictured: bool) -> str:
    if pictured:
        return "plot in the same folder, "
    return f"no plot ({install('reports')}), " if missing("reports") else ""


def _before_note(cells: Mapping[str, str], files: Sequence[Path]) -> list[str]:
    """One line on unfinished cells that only earlier commands asked for."""
    if not cells:
        return []
    named = "; ".join(list(cells)[:_NAMED]) + (f"; and {len(cells) - _NAMED} more" if len(cells) > _NAMED else "")
    return [f"Earlier commands asked for {len(cells)} more that are not finished: {named}. To withdraw them, delete "
            f"{', '.join(map(str, files))} and give this command again."]  # fmt: skip


def _list_missing(missing: Mapping[str, str], console: Console) -> None:
    for cell, why in missing.items():
        console.print(f"not finished: {cell}: {why}")


def print_json(value: dict[str, Any]) -> None:
    """One object as the last line of standard output."""
    print(json.dumps(json_ready(value), allow_nan=False), flush=True)
