"""Scores in tables, and the same as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from jaxreward.records import Feedback, Score

# Two-sided 95 % quantiles of Student's t for 1 .. 30 degrees of freedom.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def interval(score: Score) -> tuple[float, float]:
    """A 95 % interval for the mean success, within [0, 1].

    Over seeds by Student's t, widened to Wilson's interval over the episodes where that is wider:
    seeds that agree are no proof of certainty.
    """
    low, high = _wilson(score)
    if score.n > 1:
        t = _T95[score.n - 2] if score.n <= len(_T95) + 1 else 1.96
        low, high = min(low, score.mean - t * score.se), max(high, score.mean + t * score.se)
    return max(0.0, low), min(1.0, high)


def _wilson(score: Score) -> tuple[float, float]:
    """Wilson's interval for a proportion."""
    n, p, z = max(score.episodes, 1), score.mean, 1.96
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return centre - half, centre + half


def score_json(score: Score | None) -> dict[str, Any] | None:
    """`{mean, se, n}` with the 95 % interval and the number of episodes."""
    if score is None:
        return None
    low, high = interval(score)
    return {"mean": score.mean, "se": score.se, "n": score.n, "low": low, "high": high, "episodes": score.episodes}


def score_table(title: str, rows: Sequence[tuple[str, Score | None, Mapping[str, str]]]) -> Table:
    """Name, success, standard error, 95 % interval, seeds, and further columns by name."""
    extra = list(dict.fromkeys(key for _, _, more in rows for key in more))
    table = Table(title=title, title_justify="left")
    table.add_column("interface", overflow="fold", min_width=12)
    for column in ("success", "s.e.", "95 % interval", "seeds", *extra):
        table.add_column(column, justify="right", no_wrap=True)
    for name, score, more in rows:
        if score is None:
            cells = ["-", "-", "-", "-"]
        else:
            low, high = interval(score)
            cells = [f"{score.mean:.3f}", f"{score.se:.3f}", f"{low:.3f} to {high:.3f}", str(score.n)]
        table.add_row(name, *cells, *(more.get(key, "") for key in extra))
    return table


def diagnosis(feedback: Feedback) -> list[str]:
    """What training showed, in lines: the curves, the terms, and every notice."""
    thin = lambda xs: " ".join(f"{x:.3g}" for x in xs)  # noqa: E731
    lines = [
        f"success  {thin(feedback.success)}",
        f"return   {thin(feedback.episode_return)}",
        f"length   {thin(feedback.length)}",
    ]
    if feedback.return_solved is not None and feedback.return_failed is not None:
        lines.append(f"return of episodes that succeed {feedback.return_solved:.3g}, "
                     f"of those that fail {feedback.return_failed:.3g}")  # fmt: skip
    for term in feedback.terms:
        lines.append(f"term {term.name}: share {term.share:.0%}, mean {thin(term.mean)}")
    lines += [f"{notice.kind}: {notice.message}" for notice in feedback.notices]
    return lines
