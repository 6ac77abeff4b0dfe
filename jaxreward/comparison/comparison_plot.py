"""The plot of a comparison: best score so far over candidates and over seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward.comparison.finished_searches import BEST_OF_N, Curve, Row, over_candidates, over_seconds
from jaxreward.config import label_of
from jaxreward.runs.disk import explain_full_disk

_OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def search_curves(path: Path, rows: Sequence[Row]) -> None:
    """Best score so far of the searches, over trained candidates and over device seconds.

    Two panels for each task and proposer. Lines are means over searches and end where the last of them
    did, at a dot; bands are one standard error either side, where there are several searches.

    Args:
        path: where the picture goes; the suffix chooses png or svg.
        rows: of one or several tasks; those without searches are left out.
    """
    from matplotlib.figure import Figure

    rows = [row for row in rows if row.searches]
    panels = list(dict.fromkeys((row.task, row.proposer) for row in rows))
    several = len({row.proposer for row in rows}) > 1
    others = list(dict.fromkeys(row.strategy for row in rows if row.strategy != BEST_OF_N))
    colours = {BEST_OF_N: "black"} | {name: _OKABE_ITO[i % len(_OKABE_ITO)] for i, name in enumerate(others)}
    figure = Figure(figsize=(7.2, 0.8 + 2.3 * len(panels)))
    figure.set_layout_engine("constrained", h_pad=0.08)
    grid = figure.subplots(len(panels), 2, squeeze=False, sharey="row")
    lines: dict[str, Any] = {}
    for (task, proposer), axes in zip(panels, grid, strict=True):
        mine = [row for row in rows if (row.task, row.proposer) == (task, proposer)]
        for row in mine:
            _steps(axes[0], over_candidates(row.searches), colours[row.strategy])
            lines[label_of(row.strategy)] = _steps(axes[1], over_seconds(row.searches), colours[row.strategy])
        title, measure = mine[0].title, mine[0].measure
        axes[0].set_title(
            f"{title}, {label_of(proposer)}" if several else title, loc="left", fontsize=9, fontweight="bold"
        )
        axes[0].set_ylabel("best search score so far" if measure.rate else f"best so far: {measure.label}", fontsize=9)
        for panel, label in zip(axes, ("trained candidates", "device seconds (compiling and training)"), strict=True):
            panel.set_xlabel(label, fontsize=9)
            panel.spines[["top", "right"]].set_visible(False)
            panel.grid(axis="y", color="#dddddd", linewidth=0.8)
            panel.tick_params(labelsize=8)
            panel.set_xlim(left=0)
            if measure.rate:
                panel.set_ylim(bottom=0)
    figure.legend(
        lines.values(), lines.keys(), loc="outside lower center", ncols=min(7, len(lines)), frameon=False, fontsize=9,
        title="mean over searches; band: one standard error", title_fontsize=8, handlelength=1.4, columnspacing=1.4,
    )  # fmt: skip
    with explain_full_disk(path):
        figure.savefig(path, dpi=200)


def _steps(axes: Any, curve: Curve, colour: str) -> Any:
    """Mean and standard error over searches of step functions; returns the line."""
    mean = curve.values.mean(0)
    (line,) = axes.step(curve.at, mean, where="post", color=colour, linewidth=1.6, zorder=3)
    axes.plot(curve.at[-1:], mean[-1:], "o", color=colour, markersize=3.5, zorder=4, clip_on=False)
    if len(curve.values) > 1:
        se = curve.values.std(0, ddof=1) / np.sqrt(len(curve.values))
        axes.fill_between(curve.at, mean - se, mean + se, step="post", color=colour, alpha=0.1, linewidth=0, zorder=2)
    return line
