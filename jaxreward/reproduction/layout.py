"""Measured figures beside published ones: rows, for the terminal, for Markdown and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from jaxreward.records import SUCCESS, Measure, Score
from jaxreward.reports.tables import Sheet, figure, interval, t95

_NONE = "-"


@dataclass(frozen=True)
class Measured:
    """A mean over `n` repetitions with its 95 % interval, which is None with one."""

    mean: float
    interval: tuple[float, float] | None
    n: int
    rate: bool = True

    @staticmethod
    def of(values: Sequence[float], *, rate: bool = True) -> Measured | None:
        """Of one value for each repetition, by Student's t, of a `rate` within [0, 1]; None without values."""
        if not values:
            return None
        middle, n = mean(values), len(values)
        if n == 1:
            return Measured(middle, None, 1, rate)
        half = t95(n) * stdev(values) / math.sqrt(n)
        low, high = middle - half, middle + half
        return Measured(middle, (max(0.0, low), min(1.0, high)) if rate else (low, high), n, rate)

    @staticmethod
    def of_episodes(values: Sequence[float], episodes: int, measure: Measure = SUCCESS) -> Measured | None:
        """Of a task's metric, over `episodes` in all: as `reports.tables.interval`, which a rate that all repetitions
        have in common does not make a certainty."""
        if not values:
            return None
        n = len(values)
        se = stdev(values) / math.sqrt(n) if n > 1 else 0.0
        score = Score(mean=mean(values), se=se, n=n, episodes=episodes, measure=measure)
        return Measured(score.mean, interval(score) if n > 1 or measure.rate else None, n, measure.rate)

    def text(self) -> str:
        middle = figure(self.mean, rate=self.rate)
        if self.interval is None:
            return middle
        low, high = (figure(end, rate=self.rate) for end in self.interval)
        return f"{middle} ({low} to {high})"

    def as_json(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        return {"mean": self.mean, "low": low, "high": high, "n": self.n}


@dataclass(frozen=True)
class Published:
    """A figure of a paper, as it prints it: `digits` decimals, and a standard deviation where it gives one."""

    value: float
    deviation: float | None = None
    digits: int = 2

    @staticmethod
    def of(value: float | None, digits: int = 2) -> Published | None:
        """A figure without a deviation; None for one that the paper does not have."""
        return None if value is None else Published(value, digits=digits)

    def text(self) -> str:
        more = "" if self.deviation is None else f" ± {self.deviation:.{self.digits}f}"
        return f"{self.value:.{self.digits}f}{more}"

    def as_json(self) -> dict[str, Any]:
        return {"published": self.value} | ({} if self.deviation is None else {"deviation": self.deviation})


Figure = Measured | Published | None
"""What stands in a column of a row; None for a dash."""


@dataclass(frozen=True)
class Row:
    """One row: its name, and a figure for each column."""

    name: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class ResultTable:
    """Rows under columns, the first of which names the row.

    Attributes:
        title: what it is.
        columns: their names, that of the first included.
        notes: sentences under it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def sheet(self) -> Sheet:
        body = tuple((row.name, *(_NONE if f is None else f.text() for f in row.figures)) for row in self.rows)
        return Sheet(self.title, self.columns, body)

    def as_json(self) -> dict[str, Any]:
        rows = [
            {self.columns[0]: row.name}
            | {name: f and f.as_json() for name, f in zip(self.columns[1:], row.figures, strict=True)}
            for row in self.rows
        ]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


def mean_row(name: str, rows: Sequence[Row]) -> Row:
    """The mean of each column over those of the rows that have it; measured ones without interval, which rows of
    different tasks do not have."""

    def over(column: Sequence[Figure]) -> Figure:
        known = [f for f in column if f is not None]
        if not known or len(known) < len(column):
            return None
        if all(isinstance(f, Published) for f in known):
            return Published(mean(f.value for f in known if isinstance(f, Published)))
        return Measured(mean(f.mean for f in known if isinstance(f, Measured)), None, 1)

    return Row(name, tuple(over(column) for column in zip(*(row.figures for row in rows), strict=True)))


def numbers_of(found: Mapping[str, Any], name: str) -> list[float]:
    """The numbers of this name in a cell: a list, or one alone."""
    value = found[name]
    return [float(x) for x in value] if isinstance(value, list | tuple) else [float(value)]
