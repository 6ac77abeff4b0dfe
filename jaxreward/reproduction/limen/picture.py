"""The picture of LIMEN's figure 4: learning curves by what was evolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxreward.runs.disk import explain_full_disk

_COLOURS = {"sparse": "#999999", "observations": "#e69f00", "rewards": "#56b4e9", "both": "#0072b2"}
_COLUMNS = 3


class Line(NamedTuple):
    """The success of a method: `curves` (S, P) of S seeds at P numbers of environment steps."""

    name: str
    steps: Sequence[int]
    curves: Sequence[Sequence[float]]


def draw_curves(path: Path, panels: Mapping[str, Sequence[Line]]) -> None:
    """A plot for each task, of the mean over seeds with the standard deviation as a band.

    Args:
        path: where it goes; the ending chooses png or svg.
        panels: the lines of each task.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(0.9 + 2.5 * columns, 0.7 + 1.9 * rows))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    named = dict[str, Line2D]()
    for (task, lines), axes in zip(panels.items(), grid.flat, strict=False):
        for line in lines:
            curves, steps = np.asarray(line.curves, float), np.asarray(line.steps) / 1e6
            mean, spread = curves.mean(0), curves.std(0)
            colour = _COLOURS[line.name]
            (named[line.name],) = axes.plot(steps, mean, color=colour, linewidth=1.4, label=line.name)
            axes.fill_between(steps, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        axes.set_title(task, fontsize=8, loc="left")
        axes.set_ylim(-0.03, 1.03)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    figure.supxlabel("environment steps (million)", fontsize=8)
    figure.supylabel("success rate", fontsize=8)
    figure.legend(
        list(named.values()), list(named), loc="outside upper right", fontsize=7, frameon=False, ncols=len(named)
    )
    with explain_full_disk(path):
        figure.savefig(path, dpi=160)
