"""The pictures of FORGE's figures 2 and 3: scores of candidates by round and by depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxreward.runs.disk import explain_full_disk

_COLOURS = {"best of as many samples": "#999999", "Eureka": "#e69f00", "REvolve": "#56b4e9", "FORGE": "#0072b2"}

Curves = Mapping[str, Sequence[Sequence[float]]]
"""By method the values of each search, one after another: of rounds, or of depths; searches differ in how many they
have."""


def draw_lines(path: Path, panels: Mapping[str, tuple[str, Curves]], axis: str) -> None:
    """A plot for each task of means over searches, with the standard deviation as a band.

    Args:
        path: where it goes; the ending chooses png or svg.
        panels: for each task the name of its metric, and the lines.
        axis: what is counted along it, from 0.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(0.6 + 2.6 * len(panels), 2.5))
    figure.set_layout_engine("constrained")
    named = {}
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (task, (metric, curves)) in zip(row, panels.items(), strict=True):
        for name, searches in curves.items():
            longest = max(map(len, searches))
            values = np.full((len(searches), longest), np.nan)
            for line, search in zip(values, searches, strict=True):
                line[: len(search)] = search
            at = np.flatnonzero(np.isfinite(values).any(0))
            mean, spread = np.nanmean(values[:, at], 0), np.nanstd(values[:, at], 0)
            colour = _COLOURS[name]
            (named[name],) = axes.plot(at, mean, color=colour, linewidth=1.4, marker="o", markersize=2.5)
            axes.fill_between(at, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        axes.set_title(task, fontsize=8, loc="left")
        axes.set_ylabel(metric, fontsize=8)
        axes.set_xlabel(axis, fontsize=8)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    if len(named) > 1:
        figure.legend(
            list(named.values()), list(named), loc="outside upper right", fontsize=7, frameon=False, ncols=len(named)
        )
    with explain_full_disk(path):
        figure.savefig(path, dpi=160)
