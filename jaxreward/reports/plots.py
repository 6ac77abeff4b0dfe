"""Plots of learning curves and of a search."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward.extras import require
from jaxreward.records import SUCCESS, Measure, Result
from jaxreward.reports.tables import measure_of_scores
from jaxreward.runs.disk import explain_full_disk, write_atomic

_COLOURS = ("#2a6fb0", "#d1600a", "#3a8f4a", "#8a4fa3", "#b03a48", "#6b6b6b", "#1a9e96", "#b8860b")


def panels(n: int = 1) -> tuple[Any, list[Any]]:
    """A figure with `n` panels side by side, and room for a legend on the right.

    Raises:
        MissingPackage: Matplotlib is not installed.
    """
    require("reports", "a plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4 if n == 1 else 2.2 + 3.4 * n, 3.6), layout="constrained")
    row = list(figure.subplots(1, n, squeeze=False)[0])
    for axes in row:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    return figure, row


def scale_of_metric(axes: Any, measure: Measure) -> None:
    """The axis of a metric: its name, and of a rate all of its range."""
    axes.set_ylabel(measure.label)
    if measure.rate:
        axes.set_ylim(-0.02, 1.02)


def learning_curves(
    path: Path,
    steps: Sequence[int] | np.ndarray,
    curves: Mapping[str, np.ndarray],
    title: str = "",
    measure: Measure = SUCCESS,
    extra_metrics: Mapping[str, Mapping[str, np.ndarray]] | None = None,
) -> None:
    """The metric over environment steps: mean over seeds with the range of the seeds as a band.

    Args:
        path: where the picture goes; the suffix chooses png or svg.
        steps: of the checkpoints (P,).
        curves: by name of what was trained, the metric (S, P).
        measure: what the metric is.
        extra_metrics: curves as above by name of an extra metric; a panel each.
    """
    extra_metrics = extra_metrics or {}
    figure, shown = panels(1 + len(extra_metrics))
    at = np.asarray(steps) / 1e6
    for axes, lines in zip(shown, (curves, *extra_metrics.values()), strict=True):
        for (name, values), colour in zip(lines.items(), _COLOURS * 4, strict=False):
            axes.plot(at, values.mean(0), color=colour, label=name, linewidth=2)
            axes.fill_between(at, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
        axes.set_xlabel("environment steps (millions)")
    shown[0].set_title(title)
    scale_of_metric(shown[0], measure)
    for axes, name in zip(shown[1:], extra_metrics, strict=True):
        axes.set_ylabel(name.replace("_", " "))
    shown[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    with explain_full_disk(path):
        figure.savefig(path, dpi=150)


def search_plot(path: Path, searches: Mapping[str, Sequence[Result]], title: str = "") -> None:
    """The score of every trained candidate in order, and the best so far as a line."""
    figure, (axes,) = panels()
    measure = measure_of_scores([r.score for results in searches.values() for r in results])
    sign = measure.oriented(1.0)
    for (name, results), colour in zip(searches.items(), _COLOURS, strict=False):
        scores = np.array([r.score.mean if r.score else np.nan for r in results])
        order = np.arange(1, len(scores) + 1)
        best = sign * np.fmax.accumulate(sign * (np.nan_to_num(scores, nan=0.0) if measure.rate else scores))
        axes.step(order, best, where="post", color=colour, linewidth=2, label=f"{name}, best so far")
        axes.plot(order, scores, "o", color=colour, markersize=4, alpha=0.6)
    axes.set(xlabel="trained candidates", title=title)
    scale_of_metric(axes, measure)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=150, format=path.suffix.removeprefix("."))
    write_atomic(path, drawn.getvalue())
