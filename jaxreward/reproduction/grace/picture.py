"""The pictures of GRACE's figure 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxreward.reproduction.layout import Measured
from jaxreward.runs.disk import explain_full_disk

_COLUMNS = 5
_CHANCE = 0.5
"""The accuracy of a reward that tells nothing."""
_COLOURS = ("#cc79a7", "#e69f00", "#56b4e9", "#009e73", "#0072b2")


def draw_levels(path: Path, values: Mapping[str, Mapping[int, Sequence[float]]]) -> None:
    """Panel a: a small plot for each level, of the mean over seeds with each seed as a dot.

    Args:
        path: where it goes; the ending chooses png or svg.
        values: accuracies by level and number of trajectories, one for each seed.
    """
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(values))
    lowest = min([_CHANCE, *(x for by_count in values.values() for found in by_count.values() for x in found)])
    rows = -(-len(values) // columns)
    figure = Figure(figsize=(1.0 + 1.55 * columns, 0.5 + 1.35 * rows))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[len(values) :]:
        axes.set_visible(False)
    for (level, by_count), axes in zip(values.items(), grid.flat, strict=False):
        counts = [count for count, found in by_count.items() if found]
        means = [sum(by_count[count]) / len(by_count[count]) for count in counts]
        axes.plot(counts, means, color=_COLOURS[-1], linewidth=1.4)
        for count in counts:
            axes.plot([count] * len(by_count[count]), by_count[count], ".", color="black", markersize=3, alpha=0.5)
        axes.set_title(level, fontsize=7, loc="left")
        _counts_along(axes, list(by_count))
        axes.set_ylim(lowest - 0.03, 1.02)
    figure.supxlabel("expert trajectories, and as many negative ones", fontsize=8)
    figure.supylabel("accuracy on held-out episodes", fontsize=8)
    with explain_full_disk(path):
        figure.savefig(path, dpi=160)


def draw_counts(path: Path, found: Mapping[int, Mapping[int, Measured | None]]) -> None:
    """Panel b: accuracy over all levels against the number of expert trajectories, a line for each number of negative
    ones.

    Args:
        found: by number of negative and of expert trajectories.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4, 3.0))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    for (negative, by_expert), colour in zip(found.items(), _COLOURS, strict=False):
        known = {expert: measured.mean for expert, measured in by_expert.items() if measured is not None}
        axes.plot(list(known), list(known.values()), ".-", color=colour, linewidth=1.4, label=str(negative))
    _counts_along(axes, list(next(iter(found.values()))))
    axes.set_xlabel("expert trajectories", fontsize=8)
    axes.set_ylabel("accuracy on held-out episodes, all levels", fontsize=8)
    axes.legend(title="negative", fontsize=7, title_fontsize=7, frameon=False)
    with explain_full_disk(path):
        figure.savefig(path, dpi=160)


def _counts_along(axes: object, counts: Sequence[int]) -> None:
    """Numbers of trajectories as a logarithmic axis."""
    axes.set_xscale("log", base=2)  # type: ignore[attr-defined]
    axes.set_xticks(counts, [str(count) for count in counts])  # type: ignore[attr-defined]
    axes.tick_params(labelsize=7)  # type: ignore[attr-defined]
    axes.spines[["top", "right"]].set_visible(False)  # type: ignore[attr-defined]
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)  # type: ignore[attr-defined]
