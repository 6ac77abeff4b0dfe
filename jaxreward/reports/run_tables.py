"""Runs in a table, one a line or side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.config import label_of
from jaxreward.formatting import count, dollars, span
from jaxreward.records import Measure, Score
from jaxreward.reports.facts import RunFacts
from jaxreward.reports.tables import figure, interval, score_json, task_title
from jaxreward.reports.timeline import Reached, first_to_reach
from jaxreward.runs.toml import flat

GAP = "  "


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Rows as lines, columns two spaces apart; those at the places `left` begin at the left, all others end at the
    right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        lines.append(GAP.join(cells).rstrip())
    return lines


def told_score(score: Score | None, *, bare: bool = False) -> str:
    """`0.996 (0.981 to 1.000)`: a score with its 95 % interval, or without it; `-` for none."""
    if score is None:
        return "-"
    mean, low, high = (figure(x, rate=score.measure.rate) for x in (score.mean, *interval(score)))
    return mean if bare else f"{mean} ({low} to {high})"


def task_of(facts: RunFacts) -> str:
    """The task of a run with the options that it was given."""
    return task_title(facts.started.task, facts.progress.config.get("task_arg", ()))


def budget(facts: RunFacts) -> int:
    """Candidates that a run is to train."""
    return int(facts.progress.config.get("candidates", 0))


def summary_json(facts: RunFacts, name: str) -> dict[str, Any]:
    """A run in short; the documented object of `runs list --json` (docs/commands.md)."""
    spent, started, best = facts.progress.spent, facts.started, facts.best
    return {
        "run": name,
        "path": str(facts.path),
        "task": label_of(started.task),
        "task_arg": list(facts.progress.config.get("task_arg", ())),
        "strategy": started.strategy,
        "proposer": started.proposer,
        "seed": started.seed,
        "standing": facts.standing,
        "reason": facts.reason,
        "candidates": {
            "trained": spent.trained, "failed": spent.failed, "duplicate": spent.duplicate, "budget": budget(facts),
        },
        "best": {"id": best.candidate.id, "score": score_json(best.score)} if best else None,
        "fresh": score_json(facts.final),
        "env_steps": spent.env_steps,
        "compile_s": spent.compile_s,
        "run_s": spent.run_s,
        "wall_s": facts.wall_s,
        "tokens": facts.tokens,
        "cost_usd": facts.cost_usd,
        "started_at": facts.entries[0].at,
        "last_at": facts.last_at,
    }  # fmt: skip


# ---- one a line


@dataclass(frozen=True)
class _Column:
    """A column of the list. What is `left` begins at the left; what is `spare` may be left out of a narrow terminal,
    the highest number first."""

    title: str
    left: bool = False
    spare: int = 0


_COLUMNS = (
    _Column("run", left=True), _Column("task", left=True, spare=2), _Column("strategy", left=True, spare=3),
    _Column("proposer", left=True, spare=6), _Column("standing", left=True), _Column("trained"),
    _Column("best (95 % interval)"), _Column("fresh", spare=1), _Column("steps", spare=5), _Column("wall", spare=4),
    _Column("cost", spare=1), _Column("age"),
)  # fmt: skip


def list_lines(runs: Sequence[tuple[str, RunFacts]], width: int | None = None, now: float | None = None) -> list[str]:
    """A table of runs by name, in their order.

    Args:
        runs: with the name of each.
        width: characters that there are in a line, if there is a limit: columns that do not fit are left out, and named
            in a line of their own.
        now: Unix seconds.
    """
    now = time.time() if now is None else now
    rows = [_cells(name, facts, now) for name, facts in runs]
    shown = [k for k in range(len(_COLUMNS)) if any(row[k] for row in rows)]  # what no run has is no column
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


def _cells(name: str, facts: RunFacts, now: float) -> tuple[str, ...]:
    spent = facts.progress.spent
    return (
        name, task_of(facts), facts.started.strategy, facts.started.proposer, facts.standing,
        f"{spent.trained}/{budget(facts)}", told_score(facts.best.score if facts.best else None),
        told_score(facts.final, bare=True) if facts.final else "", count(spent.env_steps), span(facts.wall_s),
        dollars(facts.cost_usd) if facts.cost_usd else "", span(now - facts.last_at),
    )  # fmt: skip


# ---- side by side


@dataclass(frozen=True)
class SideBySide:
    """Runs beside each other, by name.

    Args:
        runs: at least one.
        levels: scores whose candidate is asked for; by default 0.25, 0.5, 0.75 and 0.9 of rates, and the best score
            that all runs reached.
    """

    runs: Sequence[tuple[str, RunFacts]]
    levels: Sequence[float] = ()

    @property
    def tasks(self) -> list[str]:
        """The tasks, each once; more than one cannot be compared."""
        return list(dict.fromkeys(task_of(facts) for _, facts in self.runs))

    @property
    def differing(self) -> dict[str, list[Any]]:
        """Settings that are not the same in all runs, by name."""
        each = [dict(flat(facts.progress.config)) for _, facts in self.runs]
        names = dict.fromkeys(name for settings in each for name in settings)
        found = {name: [settings.get(name) for settings in each] for name in names}
        return {name: values for name, values in found.items() if any(value != values[0] for value in values)}

    @property
    def asked_levels(self) -> list[float]:
        """The levels, the easiest first."""
        if self.levels or len(self.tasks) > 1:
            return list(self.levels)
        measure = self._measure
        bests = [facts.best.score.merit for _, facts in self.runs if facts.best and facts.best.score]
        common = [measure.oriented(min(bests))] if len(bests) == len(self.runs) else []
        return sorted({*((0.25, 0.5, 0.75, 0.9) if measure.rate else ()), *common}, key=measure.oriented)

    @property
    def _measure(self) -> Measure:
        return self.runs[0][1].measure

    def json(self) -> dict[str, Any]:
        """The documented object of `runs compare --json` (docs/commands.md)."""
        rows = []
        for name, facts in self.runs:
            levels = [(level, first_to_reach(facts.course, facts.measure, level)) for level in self.asked_levels]
            reached = {
                "to_best": _reached_json(_to_best(facts)),
                "to_levels": [{"level": level, "reached": _reached_json(point)} for level, point in levels],
            }
            rows.append({**summary_json(facts, name), **reached})
        return {"runs": rows, "tasks_differ": len(self.tasks) > 1, "settings": self.differing}

    def lines(self, width: int | None = None) -> list[str]:
        """The same for people; as many runs beside each other as `width` characters hold, the rest below."""
        names = [name for name, _ in self.runs]
        rows = {"": names, **self._facts(), **self._differing_lines()}
        lines = list[str]()
        first = 0
        while first < len(names):
            last = first + 1
            while last < len(names) and (width is None or len(_block(rows, first, last + 1)[0]) <= width):
                last += 1
            lines += [*([""] if first else []), *(line.rstrip() for line in _block(rows, first, last))]
            first = last
        if len(self.tasks) > 1:
            lines += [
                "",
                f"the tasks differ ({'; '.join(self.tasks)}): scores and levels cannot be set against each other",
            ]
        return lines

    def _facts(self) -> dict[str, list[str]]:
        each = [facts for _, facts in self.runs]
        rows: dict[str, list[str]] = {
            "task": [task_of(f) for f in each],
            "strategy, proposer": [f"{f.started.strategy}, {f.started.proposer}" for f in each],
            "standing": [f.standing for f in each],
            "candidates trained": [f"{f.progress.spent.trained} of {budget(f)}" for f in each],
            "best in the search": [told_score(f.best.score if f.best else None) for f in each],
            "on fresh seeds": [told_score(f.final) for f in each],
        }
        points = [_to_best(f) for f in each]
        rows |= {
            "candidates to its best": [_said(p, lambda p: str(p.number)) for p in points],
            "steps to its best": [_said(p, lambda p: count(p.env_steps)) for p in points],
            "device time to its best": [_said(p, lambda p: span(p.device_s)) for p in points],
            "wall time to its best": [_said(p, lambda p: span(p.wall_s)) for p in points],
        }
        if any(f.cost_usd for f in each):
            rows["dollars to its best"] = [_said(p, lambda p: dollars(p.cost_usd)) for p in points]
        for level in self.asked_levels:
            title = f"candidates to {figure(level, rate=self._measure.rate)}"
            at = [first_to_reach(f.course, f.measure, level) for f in each]
            rows[title] = [_said(p, lambda p: str(p.number)) for p in at]
        return rows

    def _differing_lines(self) -> dict[str, list[str]]:
        shown = {
            name: values for name, values in self.differing.items() if name not in ("task", "strategy", "proposer")
        }
        return {f"--{name.replace('_', '-')}": [_short(value) for value in values] for name, values in shown.items()}


def _block(rows: Mapping[str, Sequence[str]], first: int, last: int) -> list[str]:
    """The lines of the runs from place `first` to before `last`, all of one length."""
    lines = aligned([[title, *values[first:last]] for title, values in rows.items()])
    width = max(map(len, lines))
    return [line.ljust(width) for line in lines]


def _to_best(facts: RunFacts) -> Reached | None:
    best = facts.best
    return next((p for p in facts.course if best and p.result.candidate.id == best.candidate.id), None)


def _reached_json(point: Reached | None) -> dict[str, Any] | None:
    if point is None:
        return None
    return {
        "candidates": point.number, "id": point.result.candidate.id, "env_steps": point.env_steps,
        "device_s": point.device_s, "wall_s": point.wall_s, "cost_usd": point.cost_usd,
    }  # fmt: skip


def _said(point: Reached | None, how: Any) -> str:
    return "-" if point is None else how(point)


def _short(value: Any, longest: int = 40) -> str:
    """A setting in a cell."""
    if value is None or value == []:
        return "none"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
