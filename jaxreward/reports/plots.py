"""Pictures: learning curves, and the course of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward.records import Result
from jaxreward.runs.disk import explain_full_disk

_COLOURS = ("#2a6fb0", "#d1600a", "#3a8f4a", "#8a4fa3", "#b03a48", "#6b6b6b", "#1a9e96", "#b8860b")


def _axes(width: float = 6.4, height: float = 3.6) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    return figure, axes


def learning_curves(path: Path, curves: Mapping[str, tuple[Sequence[int], np.ndarray]], title: str = "") -> None:
    """Success over environment steps: mean over seeds with the range of the seeds as a band.

    Args:
        path: where the picture goes; the suffix chooses png or svg.
        curves: by name, the steps (P,) and the success (S, P).
    """
    figure, axes = _axes()
    for (name, (steps, success)), colour in zip(curves.items(), _COLOURS * 4, strict=False):
        at = np.asarray(steps) / 1e6
        axes.plot(at, success.mean(0), color=colour, label=name, linewidth=2)
        axes.fill_between(at, success.min(0), success.max(0), color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="environment steps (millions)", ylabel="success", ylim=(-0.02, 1.02), title=title)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    with explain_full_disk(path):
        figure.savefig(path, dpi=150)


def search_course(path: Path, searches: Mapping[str, Sequence[Result]], title: str = "") -> None:
    """Success of every trained candidate in order, and the best so far as a line."""
    figure, axes = _axes()
    for (name, results), colour in zip(searches.items(), _COLOURS, strict=False):
        scores = np.array([r.score.mean if r.score else np.nan for r in results])
        order = np.arange(1, len(scores) + 1)
        best = np.fmax.accumulate(np.nan_to_num(scores, nan=0.0))
        axes.step(order, best, where="post", color=colour, linewidth=2, label=f"{name}, best so far")
        axes.plot(order, scores, "o", color=colour, markersize=4, alpha=0.6)
    axes.set(xlabel="trained candidates", ylabel="success", ylim=(-0.02, 1.02), title=title)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    with explain_full_disk(path):
        figure.savefig(path, dpi=150)
