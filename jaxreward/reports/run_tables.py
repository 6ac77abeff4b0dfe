"""Tables of runs: one a line, or side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.config import label_of
from jaxreward.formatting import count, dollars, shortened, span
from jaxreward.records import Measure, Score
from jaxreward.reports.run_view import RunView
from jaxreward.reports.tables import figure, interval, score_json, task_title
from jaxreward.reports.timeline import TrainedCandidate, first_to_reach
from jaxreward.runs.toml import flat

GAP = "  "


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Rows as lines, columns two spaces apart; those with an index in `left` are aligned left, all others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        lines.append(GAP.join(cells).rstrip())
    return lines


def score_text(score: Score | None, *, bare: bool = False) -> str:
    """`0.996 (0.981 to 1.000)`: a score with its 95 % interval, or without it; `-` for none."""
    if score is None:
        return "-"
    mean, low, high = (figure(x, rate=score.measure.rate) for x in (score.mean, *interval(score)))
    return mean if bare else f"{mean} ({low} to {high})"


def task_of(view: RunView) -> str:
    """The task of a run with the options that it was given."""
    return task_title(view.started.task, view.progress.config.get("task_arg", ()))


def budget(view: RunView) -> int:
    """Candidates that a run is to train."""
    return int(view.progress.config.get("candidates", 0))


def summary_json(view: RunView, name: str) -> dict[str, Any]:
    """The summary of a run; the documented object of `runs list --json` (docs/commands.md)."""
    spent, started, best = view.progress.spent, view.started, view.best
    return {
        "run": name,
        "path": str(view.path),
        "task": label_of(started.task),
        "task_arg": list(view.progress.config.get("task_arg", ())),
        "strategy": label_of(started.strategy),
        "proposer": label_of(started.proposer),
        "seed": started.seed,
        "standing": view.standing,
        "reason": view.reason,
        "candidates": {
            "trained": spent.trained, "failed": spent.failed, "duplicate": spent.duplicate, "budget": budget(view),
        },
        "best": {"id": best.candidate.id, "score": score_json(best.score)} if best else None,
        "fresh": score_json(view.final),
        "env_steps": spent.env_steps,
        "compile_s": spent.compile_s,
        "run_s": spent.run_s,
        "wall_s": view.wall_s,
        "tokens": view.tokens,
        "cost_usd": view.cost_usd,
        "started_at": view.entries[0].at,
        "last_at": view.last_at,
    }  # fmt: skip


# ---- one a line


@dataclass(frozen=True)
class _Column:
    """A column of the list, aligned `left` or right; on a narrow terminal those with the highest `spare` go first, and
    those with 0 stay."""

    title: str
    left: bool = False
    spare: int = 0


_COLUMNS = (
    _Column("run", left=True), _Column("task", left=True, spare=2), _Column("strategy", left=True, spare=3),
    _Column("proposer", left=True, spare=6), _Column("standing", left=True), _Column("trained"),
    _Column("best (95 % interval)"), _Column("fresh", spare=1), _Column("steps", spare=5), _Column("wall", spare=4),
    _Column("cost", spare=1), _Column("age"),
)  # fmt: skip


def list_lines(runs: Sequence[tuple[str, RunView]], width: int | None = None, now: float | None = None) -> list[str]:
    """A table of runs by name, in their order.

    Args:
        runs: with the name of each.
        width: most characters of a line: columns that do not fit are left out, and named in a last line.
        now: Unix seconds.
    """
    now = time.time() if now is None else now
    rows = [_cells(name, view, now) for name, view in runs]
    shown = [k for k in range(len(_COLUMNS)) if any(row[k] for row in rows)]  # no empty columns
    left_out: list[str] = []

    def lines() -> list[str]:
        table = [[_COLUMNS[k].title for k in shown], *([row[k] for k in shown] for row in rows)]
        return aligned(table, [place for place, k in enumerate(shown) if _COLUMNS[k].left])

    while width is not None and max(map(len, lines())) > width:
        spare = [k for k in shown if _COLUMNS[k].spare]
        if not spare:
            break
        shown.remove(gone := max(spare, key=lambda k: _COLUMNS[k].spare))
        left_out.append(_COLUMNS[gone].title)
    note = f"no room for {', '.join(left_out)}"
    return [*lines(), *([note] if left_out else [])]


def _cells(name: str, view: RunView, now: float) -> tuple[str, ...]:
    spent = view.progress.spent
    return (
        name, task_of(view), label_of(view.started.strategy), label_of(view.started.proposer), view.standing,
        f"{spent.trained}/{budget(view)}", score_text(view.best.score if view.best else None),
        score_text(view.final, bare=True) if view.final else "", count(spent.env_steps), span(view.wall_s),
        dollars(view.cost_usd) if view.cost_usd else "", span(now - view.last_at),
    )  # fmt: skip


# ---- side by side


@dataclass(frozen=True)
class SideBySide:
    """Runs side by side, by name.

    Args:
        runs: at least one.
        levels: scores to say what each run used to reach them; by default 0.25, 0.5, 0.75 and 0.9 of rates, and
            the best score that all runs reached.
    """

    runs: Sequence[tuple[str, RunView]]
    levels: Sequence[float] = ()

    @property
    def tasks(self) -> list[str]:
        """The tasks, each once; runs of several cannot be compared."""
        return list(dict.fromkeys(task_of(view) for _, view in self.runs))

    @property
    def differing(self) -> dict[str, list[Any]]:
        """Settings that are not the same in all runs, by name."""
        each = [dict(flat(view.progress.config)) for _, view in self.runs]
        names = dict.fromkeys(name for settings in each for name in settings)
        found = {name: [settings.get(name) for settings in each] for name in names}
        return {name: values for name, values in found.items() if any(value != values[0] for value in values)}

    @property
    def asked_levels(self) -> list[float]:
        """The levels, the easiest first."""
        if self.levels or len(self.tasks) > 1:
            return list(self.levels)
        measure = self._measure
        bests = [view.best.score.merit for _, view in self.runs if view.best and view.best.score]
        common = [measure.oriented(min(bests))] if len(bests) == len(self.runs) else []
        return sorted({*((0.25, 0.5, 0.75, 0.9) if measure.rate else ()), *common}, key=measure.oriented)

    @property
    def _measure(self) -> Measure:
        return self.runs[0][1].measure

    def json(self) -> dict[str, Any]:
        """The documented object of `runs compare --json` (docs/commands.md)."""
        rows = []
        for name, view in self.runs:
            candidates = view.timeline.candidates
            firsts = [(level, first_to_reach(candidates, view.measure, level)) for level in self.asked_levels]
            rows.append({
                **summary_json(view, name), "to_best": _reached_json(_to_best(view)),
                "to_levels": [{"level": level, "reached": _reached_json(point)} for level, point in firsts],
            })  # fmt: skip
        return {"runs": rows, "tasks_differ": len(self.tasks) > 1, "settings": self.differing}

    def lines(self, width: int | None = None) -> list[str]:
        """The same for people; as many runs in a row as `width` characters hold, the rest below."""
        names = [name for name, _ in self.runs]
        rows = {"": names, **self._rows()}
        for name, values in self.differing.items():
            if name not in ("task", "strategy", "proposer"):
                rows[f"--{name.replace('_', '-')}"] = [_short(value) for value in values]
        lines = list[str]()
        first = 0
        while first < len(names):
            last = first + 1
            while last < len(names) and (width is None or len(_block(rows, first, last + 1)[0]) <= width):
                last += 1
            lines += [*([""] if first else []), *(line.rstrip() for line in _block(rows, first, last))]
            first = last
        if len(self.tasks) > 1:
            lines += ["", f"the tasks differ ({'; '.join(self.tasks)}): scores and levels cannot be compared"]
        return lines

    def _rows(self) -> dict[str, list[str]]:
        each = [view for _, view in self.runs]
        points = [_to_best(f) for f in each]
        rows: dict[str, list[str]] = {
            "task": [task_of(f) for f in each],
            "strategy, proposer": [f"{label_of(f.started.strategy)}, {label_of(f.started.proposer)}" for f in each],
            "standing": [f.standing for f in each],
            "candidates trained": [f"{f.progress.spent.trained} of {budget(f)}" for f in each],
            "best in the search": [score_text(f.best.score if f.best else None) for f in each],
            "on fresh seeds": [score_text(f.final) for f in each],
            "candidates to its best": [_cell(p, lambda p: str(p.number)) for p in points],
            "steps to its best": [_cell(p, lambda p: count(p.env_steps)) for p in points],
            "device time to its best": [_cell(p, lambda p: span(p.device_s)) for p in points],
            "wall time to its best": [_cell(p, lambda p: span(p.wall_s)) for p in points],
        }
        if any(f.cost_usd for f in each):
            rows["dollars to its best"] = [_cell(p, lambda p: dollars(p.cost_usd)) for p in points]
        for level in self.asked_levels:
            title = f"candidates to {figure(level, rate=self._measure.rate)}"
            at = [first_to_reach(f.timeline.candidates, f.measure, level) for f in each]
            rows[title] = [_cell(p, lambda p: str(p.number)) for p in at]
        return rows


def _block(rows: Mapping[str, Sequence[str]], first: int, last: int) -> list[str]:
    """The lines of runs `first` to `last` - 1, padded to one length."""
    lines = aligned([[title, *values[first:last]] for title, values in rows.items()])
    width = max(map(len, lines))
    return [line.ljust(width) for line in lines]


def _to_best(view: RunView) -> TrainedCandidate | None:
    best = view.best
    return next((p for p in view.timeline.candidates if best and p.result.candidate.id == best.candidate.id), None)


def _reached_json(point: TrainedCandidate | None) -> dict[str, Any] | None:
    if point is None:
        return None
    return {
        "candidates": point.number, "id": point.result.candidate.id, "env_steps": point.env_steps,
        "device_s": point.device_s, "wall_s": point.wall_s, "cost_usd": point.cost_usd,
    }  # fmt: skip


def _cell(point: TrainedCandidate | None, how: Any) -> str:
    return "-" if point is None else how(point)


def _short(value: Any) -> str:
    """A setting in a cell."""
    if value is None or value == []:
        return "none"
    return shortened(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value), 40)
