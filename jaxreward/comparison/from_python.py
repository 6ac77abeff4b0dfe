"""`jaxreward.compare`: searches at equal budget as one call, for notebooks and scripts."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import jax

from jaxreward.comparison.compare_settings import CompareSettings
from jaxreward.comparison.comparison_plot import search_curves
from jaxreward.comparison.finished_searches import Grid, Row, rows_of
from jaxreward.comparison.outcome import Gathered, conclude, gather
from jaxreward.comparison.running import examine, hiding, keep, work
from jaxreward.comparison.shards import read_shards
from jaxreward.config import label_of, with_values
from jaxreward.errors import InvalidSetting, JaxrewardWarning, errors_in_python
from jaxreward.evolution.from_python import raise_stopped
from jaxreward.evolution.learner_options import named_learner, require_one_learner
from jaxreward.evolution.presets import quick_learner
from jaxreward.evolution.python_settings import (
    call_text,
    proposer_of,
    strategy_of,
    task_of,
    typed_values,
)
from jaxreward.evolution.search_run import SearchRun
from jaxreward.evolution.watching import shown
from jaxreward.proposers.proposer import Proposer
from jaxreward.reports.console import PlainConsole
from jaxreward.reports.tables import interval_over_searches
from jaxreward.runs import StopSignal
from jaxreward.search import SearchStrategy
from jaxreward.search.registry import strategy_class
from jaxreward.secrets import Secrets
from jaxreward.sentences import in_python
from jaxreward.table import Table
from jaxreward.tasks import Task

_PARAMETERS = {"tasks", "strategies", "proposers", "search_seeds"}

AnyTask = str | Path | Task
AnyStrategy = str | SearchStrategy[Any] | type[SearchStrategy[Any]]
AnyProposer = str | Callable[..., Proposer]


def compare(
    tasks: AnyTask | Sequence[AnyTask],
    *,
    strategies: Sequence[AnyStrategy] = ("limen", "best-of-n"),
    proposers: Sequence[AnyProposer] = ("genetic",),
    search_seeds: int = 3,
    progress: bool = True,
    **settings: Any,
) -> Comparison:
    """Search with several strategies at equal budget, on the same tasks with the same search seeds, and compare what
    they found on fresh seeds.

        jr.compare(task, strategies=["limen", MyStrategy(), "best-of-n"], candidates=16).table()

    Every search is a run of its own in `out`, by default `runs/compare`; the same call goes on where it stopped, and
    one that has finished is read. `best-of-n` among the strategies is what the others are compared with.

    Args:
        tasks: one or several, as for `evolve`.
        strategies: as for `evolve`, each of another name.
        proposers: names, files, or classes and functions that make one: each search has its own.
        search_seeds: searches of each strategy, proposer and task.
        progress: show the progress on standard error, or in the notebook.
        settings: the options of `jaxreward compare`, by name.

    Raises:
        UserError: as `evolve`; searches in `out` that cannot be compared with these. What goes wrong in one search is
            in `Comparison.missing`, and a warning says so.
        KeyboardInterrupt: Ctrl-C, or an interrupted kernel; SystemExit: SIGTERM or SIGUSR1. The search is paused.
    """
    with errors_in_python():
        chosen = _settings(tasks, strategies, proposers, search_seeds, settings)
        chosen.check()
        examined, cells = examine(chosen), chosen.dealt()
        with StopSignal() as stop, shown(progress, chosen.candidates) as live:
            keep(chosen, cells, examined, live.note)
            unfinished = work(cells, examined, live, stop, hiding(Secrets(), chosen.llm))
        if stop.requested:
            raise_stopped(stop, f"the comparison in {chosen.out} is paused: the same call goes on")
        conclude(chosen, unfinished, PlainConsole(quiet=True))
    told = {cell.cell: in_python(cell.reason) for cell in unfinished}
    for cell, reason in told.items():
        warnings.warn(f"{cell} is not finished: {reason}", JaxrewardWarning, stacklevel=2)
    return Comparison(chosen.out, chosen.grid(), chosen.own_tasks, told)


def _settings(tasks: Any, strategies: Any, proposers: Any, search_seeds: int, given: dict[str, Any]) -> CompareSettings:
    if not all(isinstance(given, list | tuple) for given in (strategies, proposers)):
        raise InvalidSetting("strategies and proposers are lists", "strategies", "proposers")
    if not isinstance(search_seeds, int):
        raise InvalidSetting(f"search_seeds is the number of searches of each, not {search_seeds!r}", "search_seeds")
    each = [task_of(task) for task in (tasks if isinstance(tasks, list | tuple) else [tasks])]
    named, makers, options = list[str](), dict[str, Any](), list[str]()
    for strategy in strategies:
        name, own = strategy_of(strategy)
        named.append(name)
        options += [f"{strategy_class(name).name}.{text}" for text in own or ()]
    for proposer in proposers:
        name, own = proposer_of(proposer)
        if own is not None:
            if not (isinstance(own, type) or not hasattr(own, "propose_all")):
                kind = type(own).__name__
                raise InvalidSetting(f"each search needs a proposer of its own: give the class {kind}", "proposers")
            makers[name] = own
    values = typed_values(CompareSettings, named_learner(given), _PARAMETERS, "jaxreward.compare")
    require_one_learner(values.get("learner", CompareSettings.learner), values)
    learner = {path.partition(".")[2]: value for path, value in values.items() if path.startswith("ppo.")}
    if "ppo" in values:
        learner = {f.name: getattr(values["ppo"], f.name) for f in dataclasses.fields(values["ppo"])}
    begun = read_shards(Path(values.get("out", CompareSettings.out)))
    platform = begun[0].platform if begun else jax.default_backend()
    base = CompareSettings(ppo=quick_learner(each[0][1] or each[0][0], platform)) if each else CompareSettings()
    settings = with_values(base, values)
    prompts = settings.llm.prompts
    called = {"tasks": [name for name, _ in each], "strategies": named, "search_seeds": search_seeds}
    return dataclasses.replace(
        settings, tasks=tuple(name for name, _ in each), strategies=tuple(named),
        proposers=tuple(proposer_of(p)[0] for p in proposers), search_seeds=search_seeds,
        option=(*options, *settings.option), of_ppo=learner, platform=platform,
        llm=dataclasses.replace(settings.llm, prompts=prompts and prompts.absolute()),
        own_tasks={name: own for name, own in each if own is not None}, own_proposers=makers,
        command=call_text("compare", {**called, **given}),
    )  # fmt: skip


class Comparison:
    """The searches of a comparison as its folder holds them when it is read.

    Attributes:
        path: the folder, with `comparison.md`, `comparison.json` and `comparison.png`.
        grid: what was compared; all that was ever asked for there where it is not given.
        told: why searches that this call ran are not finished, in the words of Python.
    """

    def __init__(
        self,
        path: Path,
        grid: Grid | None = None,
        tasks: Mapping[str, Task] | None = None,
        told: Mapping[str, str] | None = None,
    ) -> None:
        self.path, self.grid, self._tasks, self.told = path, grid, tasks or {}, told or {}

    @cached_property
    def _gathered(self) -> Gathered:
        return gather([self.path], self.grid)

    @property
    def missing(self) -> dict[str, str]:
        """The searches that are not finished, with the reason: of one that another call ran, as its log has it."""
        return {cell: self.told.get(cell, reason) for cell, reason in self._gathered.missing.items()}

    @cached_property
    def rows(self) -> list[Row]:
        """A row for each task, strategy and proposer, with its searches."""
        grids = [self.grid] if self.grid else [shard.grid for shard in read_shards(self.path)]
        return rows_of(self._gathered.searches, *grids)

    def runs(self) -> list[SearchRun]:
        """The finished searches."""
        return [SearchRun(search.path, self._tasks.get(row.task)) for row in self.rows for search in row.searches]

    def table(self) -> Table:
        """Means over searches: `score` on fresh seeds with its 95 % interval, the difference to best-of-n with the same
        search seeds, and the score as the n searches measured it themselves; and `sparse`, the task's own interface,
        and `dense`, with the reward that a person made for it, where there is one."""
        columns = (
            "task",
            "strategy",
            "proposer",
            "score",
            "low",
            "high",
            "minus_best_of_n",
            "search_score",
            "n",
        )
        found = []
        for row in self.rows:
            low, high = (interval_over_searches(row.score) if row.score else None) or (None, None)
            delta = row.versus_best_of_n
            found.append((
                row.title, label_of(row.strategy), label_of(row.proposer), row.score and row.score.mean, low, high,
                delta and delta.mean, row.search_score and row.search_score.mean, len(row.searches),
            ))  # fmt: skip
        for task, sparse in self._gathered.sparse.items():
            for name, (score, _) in sparse.rows().items():
                found.append((label_of(task), name, "", score.mean, None, None, None, None, None))
        return Table(columns, found)

    def plot(self, path: str | Path) -> Path:
        """Draw the best score so far over trained candidates and over device seconds; the suffix chooses png or svg."""
        target = Path(path)
        search_curves(target, self.rows)
        return target

    def __repr__(self) -> str:
        missing = f", {len(self.missing)} searches are not finished" if self.missing else ""
        return f"Comparison({str(self.path)!r}){missing}\n{self.table()!r}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
