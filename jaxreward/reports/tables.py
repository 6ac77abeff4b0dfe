"""Intervals of scores, and scores in tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from jaxreward.config import label_of
from jaxreward.records import SUCCESS, Feedback, Measure, Score
from jaxreward.records.measure import wilson


def interval(score: Score) -> tuple[float, float]:
    """A 95 % interval for the mean.

    Over seeds by Student's t; of a rate within [0, 1], and widened to Wilson's interval over the episodes where that
    is wider: agreement of a few seeds is no proof of certainty. With one seed of another metric, by the standard error
    over episodes.
    """
    if not score.measure.rate:
        half = (t95(score.n) if score.n > 1 else t95(max(score.episodes, 2))) * score.se
        return score.mean - half, score.mean + half
    low, high = wilson(score)
    if score.n > 1:
        half = t95(score.n) * score.se
        low, high = min(low, score.mean - half), max(high, score.mean + half)
    return max(0.0, low), min(1.0, high)


def t95(n: int) -> float:
    """The two-sided 95 % quantile of Student's t for the mean of `n` values, at least 2."""
    from scipy.special import stdtrit  # as in scipy.stats.t.ppf, which takes half a second more to import

    return float(stdtrit(n - 1, 0.975))


def mean_over(scores: Sequence[Score | None], measure: Measure | None = None) -> Score | None:
    """The mean of the scores of several searches, with its standard error over searches.

    A search that found nothing with a score counts as the worst, 0 of a rate: leaving it out would favour its strategy.
    `measure` is the metric, for the case that no search has a score.
    `episodes` are those of one search, for all are evaluated on the same. None where there is no search.
    """
    if not scores:
        return None
    measure = measure or measure_of_scores(scores)
    means = [s.mean if s else measure.worst for s in scores]
    se = stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    episodes = min((s.episodes for s in scores if s), default=0)
    return Score(mean=mean(means), se=se, n=len(means), episodes=episodes, measure=measure)


def measure_of_scores(scores: Sequence[Score | None]) -> Measure:
    """The metric of scores of one task."""
    return next((s.measure for s in scores if s), SUCCESS)


def interval_over_searches(score: Score) -> tuple[float, float] | None:
    """`interval` of a mean over searches; None with one search, or where none found anything."""
    return interval(score) if score.n > 1 and score.episodes else None


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences with a 95 % interval, which is None with one pair."""

    mean: float
    interval: tuple[float, float] | None
    deltas: tuple[float, ...]

    @property
    def pairs(self) -> int:
        return len(self.deltas)


def paired_difference(
    pairs: Sequence[tuple[Score | None, Score | None]], measure: Measure | None = None
) -> Difference | None:
    """The mean difference between searches with the same seed; None without pairs.

    The interval is Student's t over pairs; of rates widened to Newcombe's for two proportions (1998, method
    10) over the episodes where that is wider: agreement of a few pairs is no proof of certainty.
    """
    measure = measure or measure_of_scores([score for pair in pairs for score in pair])
    mine, others = mean_over([a for a, _ in pairs], measure), mean_over([b for _, b in pairs], measure)
    if mine is None or others is None:
        return None
    worst = mine.measure.worst
    deltas = tuple((a.mean if a else worst) - (b.mean if b else worst) for a, b in pairs)
    middle, n = mean(deltas), len(deltas)
    if n == 1:
        return Difference(middle, None, deltas)
    half = t95(n) * stdev(deltas) / math.sqrt(n)
    if not mine.measure.rate:
        return Difference(middle, (middle - half, middle + half), deltas)
    (low, high), (other_low, other_high) = wilson(mine), wilson(others)
    below = max(half, math.hypot(mine.mean - low, other_high - others.mean))
    above = max(half, math.hypot(high - mine.mean, others.mean - other_low))
    return Difference(middle, (max(-1.0, middle - below), min(1.0, middle + above)), deltas)


def score_json(score: Score | None) -> dict[str, Any] | None:
    """`{mean, se, n}` with the 95 % interval and the number of episodes; of a metric that is no rate, what it is."""
    if score is None:
        return None
    low, high = interval(score)
    found = {"mean": score.mean, "se": score.se, "n": score.n, "low": low, "high": high, "episodes": score.episodes}
    return found if score.measure == SUCCESS else {**found, "measure": score.measure.model_dump()}


def alignment_text(score: Score | None) -> str:
    """How far agents do the subtasks of an instruction, with its 95 % interval; empty where that is not measured."""
    if score is None:
        return ""
    low, high = interval(score)
    return f"{figure(score.mean)} ({figure(low)} to {figure(high)})"


def figure(value: float, digits: int = 3, sign: bool = False, rate: bool = True) -> str:
    """A score for a table: `digits` decimals, fewer of a large number; of a small one that is no `rate`,
    `digits` significant digits."""
    plus = "+" if sign else ""
    if not rate and 0.0 < abs(value) < 0.1:
        return f"{value:{plus}#.{digits}g}"
    digits = digits if abs(value) < 100 else 1 if abs(value) < 10_000 else 0
    return f"{value:{plus}.{digits}f}"


def task_title(task: str, arguments: Sequence[str]) -> str:
    """The name of a task in tables and plots, of one in a file without its folders, and its options KEY=VALUE."""
    name = label_of(task)
    return f"{name} ({', '.join(arguments)})" if arguments else name


def score_table(title: str, rows: Sequence[tuple[str, Score | None, Mapping[str, str]]]) -> Table:
    """Name, metric, standard error, 95 % interval, seeds, and further columns by name."""
    measure = measure_of_scores([score for _, score, _ in rows])
    extra = list(dict.fromkeys(key for _, _, more in rows for key in more))
    columns = (measure.name, "s.e.", "95\N{NO-BREAK SPACE}%\N{NO-BREAK SPACE}interval", "seeds", *extra)
    body = list[tuple[str, ...]]()
    for name, score, more in rows:
        if score is None:
            cells = ["-", "-", "-", "-"]
        else:
            value, se, low, high = (figure(x, rate=measure.rate) for x in (score.mean, score.se, *interval(score)))
            cells = [value, se, f"{low} to {high}", str(score.n)]
        body.append((name, *cells, *(more.get(key, "") for key in extra)))
    return Sheet(title, ("interface", *columns), tuple(body)).rich(narrow=True)


@dataclass(frozen=True)
class Sheet:
    """A table as text, for the terminal and for Markdown; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def rich(self, narrow: bool = False) -> Table:
        """For the terminal; `narrow` saves space, and lets long names be broken, as those of files are."""
        padding = (0, 0) if narrow else (0, 1, 0, 0)
        table = Table(title=self.title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=padding)
        for number, column in enumerate(self.columns):
            # Headers may be broken between words, figures may not.
            width = max(len(part) for part in (*column.split(), *(row[number] for row in self.rows)))
            if narrow and not number:
                table.add_column(column, overflow="fold", min_width=min(width, 12))
            elif narrow:
                table.add_column("\n".join(column.split(" ")), justify="right", no_wrap=True)
            else:
                table.add_column(column, justify="right" if number else "left", min_width=width)
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        lines = [self.columns, ("---", *["---:"] * (len(self.columns) - 1)), *self.rows]
        return f"{self.title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def diagnosis(feedback: Feedback) -> list[str]:
    """The feedback of a training as lines: curves, terms, extra metrics, notices."""
    thin = lambda xs: " ".join(f"{x:.3g}" for x in xs)  # noqa: E731
    lines = [
        f"{feedback.measure.name}  {thin(feedback.success)}",
        f"return   {thin(feedback.episode_return)}",
        f"length   {thin(feedback.length)}",
    ]
    if feedback.return_solved is not None and feedback.return_failed is not None:
        lines.append(f"return of episodes that succeed {feedback.return_solved:.3g}, "
                     f"of those that fail {feedback.return_failed:.3g}")  # fmt: skip
    for term in feedback.terms:
        lines.append(f"term {term.name}: share {term.share:.0%}, mean {thin(term.mean)}")
    lines += [f"{name.replace('_', ' ')}  {value:.3g}" for name, value in feedback.extra_metrics.items()]
    lines += [f"{notice.kind}: {notice.message}" for notice in feedback.notices]
    return lines
