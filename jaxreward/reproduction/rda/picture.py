"""The picture of RDA's figures: bars of alignment and success, and where the paper's are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jaxreward.reproduction.layout import Measured
from jaxreward.reproduction.rda.published import Rates
from jaxreward.runs.disk import explain_full_disk

_COLOURS = {"alignment": "#0072b2", "success": "#e69f00"}


class Bar(NamedTuple):
    """A row: what was measured, as far as it is, and what the paper says."""

    name: str
    alignment: Measured | None
    success: Measured | None
    paper: Rates


def draw_bars(path: Path, panels: Mapping[str, Sequence[Bar]]) -> None:
    """A row of two plots for each task, with 95 % intervals; the paper's figures are diamonds.

    Args:
        path: where it goes; the ending chooses png or svg.
        panels: the bars of each task.
    """
    from matplotlib.figure import Figure

    most = max(len(bars) for bars in panels.values())
    figure = Figure(figsize=(7.5, 0.5 + len(panels) * (0.6 + 0.3 * most)))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(len(panels), 2, squeeze=False, sharex=True, sharey="row")
    for row, (task, bars) in zip(grid, panels.items(), strict=True):
        for axes, rate in zip(row, _COLOURS, strict=True):
            for at, bar in enumerate(bars):
                found, paper = getattr(bar, rate), getattr(bar.paper, rate)
                if found is not None:
                    low, high = found.interval or (found.mean, found.mean)
                    axes.barh(at, found.mean, height=0.6, color=_COLOURS[rate])
                    axes.plot([low, high], [at, at], color="black", linewidth=1)
                if paper is not None:
                    axes.plot(paper, at, marker="D", markersize=5, color="white", markeredgecolor="black")
            axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=8)
            axes.set_title(f"{task}: {rate}", fontsize=8, loc="left")
            axes.set_xlim(0.0, 1.03)
            axes.tick_params(labelsize=8)
            axes.spines[["top", "right"]].set_visible(False)
        row[0].invert_yaxis()
    if any(rate is not None for bars in panels.values() for bar in bars for rate in bar.paper):
        figure.supxlabel("diamonds: the paper's, on its own tasks", fontsize=8)
    with explain_full_disk(path):
        figure.savefig(path, dpi=160)
