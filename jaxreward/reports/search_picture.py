"""A search as one picture: the score of every candidate, and beside it the reward of the first one and of the best."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward.errors import UserError
from jaxreward.extras import require
from jaxreward.formatting import seeds_text
from jaxreward.records import Result
from jaxreward.reports.plots import scale_of_metric
from jaxreward.reports.run_tables import task_of
from jaxreward.reports.run_view import RunView
from jaxreward.reports.short_code import HALVES, short_code
from jaxreward.reports.tables import figure
from jaxreward.runs.disk import check_target, write_atomic

_SIZE, _DPI = (10.0, 4.4), 200
"""Inches, and dots an inch: with half as many it is as wide as a page of GitHub."""
_LETTER = 15 * 72.0 / _DPI
"""Points that a letter of code is wide: whole dots, as it is drawn."""
_FONT, _LINE = _LETTER / 0.602, 12.8
"""Points of the letters of DejaVu Sans Mono, and from line to line."""
_INK = "#1f2328"
_GREY = "#6e7781"
_DOTS, _BEST, _SPARSE = "#7aa6d6", "#1f5fa8", "#c4570c"
_COLOURS = {
    "Token.Keyword": "#a0258f", "Token.Operator.Word": "#a0258f", "Token.Literal.Number": "#0a58ad",
    "Token.Literal.String": "#1a7f37", "Token.Comment": _GREY, "Token.Name.Function": "#7a4b00",
}  # fmt: skip


def search_picture(view: RunView, path: Path) -> None:
    """Draw a run: on the left the metric of every trained candidate in the order proposed, the best so far and the
    sparse baseline as lines; on the right the reward of the first candidate and of the best, in short form. Where
    observations alone were evolved, those.

    Args:
        path: where the picture goes; the suffix chooses png or svg. The background is white.

    Raises:
        UserError: no candidate has a score, a package is missing, or the file cannot be written.
    """
    require("reports", "a picture of a search")
    trained, best = [r for r in view.results.values() if r.score], view.best
    if best is None or not trained:
        raise UserError(f"{view.path} cannot be drawn: none of its candidates has a score")
    check_target(path)
    from matplotlib.figure import Figure

    drawing = Figure(figsize=_SIZE, facecolor="white")
    chart = drawing.add_axes((0.06, 0.12, 0.36, 0.8))
    _draw_scores(chart, view, trained, best)
    width, height = (72.0 * inches for inches in _SIZE)
    page = drawing.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, width), ylim=(0, height), zorder=-1)
    page.axis("off")
    top = height - 17.0
    for name, shown in (("first", trained[0]), ("found", best)):
        number = 1 + next(k for k, r in enumerate(trained) if r.candidate.id == shown.candidate.id)
        heading = _heading(f"{name}, candidate {number}", shown, view, fresh=name == "found")
        top = _draw_code(page, 0.45 * width, width - 6.0, top, heading, _half_of(shown)) - 14.0
    image = io.BytesIO()
    drawing.savefig(image, dpi=_DPI, format=path.suffix.removeprefix("."))
    write_atomic(path, image.getvalue())


def _draw_scores(axes: Any, view: RunView, trained: list[Result], best: Result) -> None:
    measure = view.measure
    scores = np.array([r.score.mean for r in trained if r.score])
    order = np.arange(1, len(scores) + 1)
    so_far = measure.oriented(1.0) * np.maximum.accumulate(measure.oriented(1.0) * scores)
    axes.step(order, so_far, where="post", color=_BEST, linewidth=2, label="best so far", zorder=1)
    axes.plot(order, scores, "o", color=_DOTS, markersize=6, label="candidate")
    chosen = next(k for k, r in enumerate(trained) if r.candidate.id == best.candidate.id)
    for k, name in {0: "first", chosen: "found"}.items():
        axes.plot(order[k], scores[k], "o", markersize=10, markerfacecolor="none", markeredgecolor=_BEST)
        _label(axes, name, order[k], scores[k], low=scores[k] > np.mean(axes.get_ylim()))
    sparse = view.baselines.get("sparse")
    if sparse is not None and sparse.score is not None:
        axes.axhline(
            sparse.score.mean, color=_SPARSE, linewidth=1.5, linestyle=(0, (5, 3)), label="sparse reward, fresh seeds"
        )
    scale_of_metric(axes, measure)
    axes.set_xlabel("candidates, in the order proposed")
    axes.set_title(_title(view), loc="left", fontsize=10.5, color=_INK)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9, loc="best")


def _label(axes: Any, text: str, x: float, y: float, low: bool) -> None:
    """A word below or above a point."""
    axes.annotate(
        text, (x, y), (0, -14 if low else 14), textcoords="offset points", ha="center", va="center", fontsize=9,
        color=_BEST,
    )  # fmt: skip


def _title(view: RunView) -> str:
    config = view.progress.config
    seeds, steps = config.get("seeds"), config.get("steps")
    return f"{task_of(view)}: {seeds_text(seeds)} x {steps:,} steps each" if seeds and steps else task_of(view)


def _heading(name: str, shown: Result, view: RunView, fresh: bool) -> str:
    measure = view.measure
    text = f"{name}: {measure.name} {figure(shown.score.mean, rate=measure.rate) if shown.score else '-'}"
    if fresh and view.final is not None:
        text += f", on {view.final.n} fresh seeds {figure(view.final.mean, rate=measure.rate)}"
    return text


def _half_of(shown: Result) -> str:
    """The reward in short form; the observation of a program without one."""
    source = shown.candidate.source
    return short_code(source, HALVES[1]) or short_code(source, HALVES[0])


def _draw_code(page: Any, left: float, right: float, top: float, heading: str, text: str) -> float:
    """A heading and code in its colours on a frame, in points; returns where the frame ends below."""
    from matplotlib.patches import FancyBboxPatch

    columns, rows = int((right - left - 16.0) / _LETTER), max(1, int((top - 40.0) / _LINE))
    lines = text.splitlines()
    if len(lines) > rows:
        lines = [*lines[: rows - 1], "    ..."]
    page.text(left, top, heading, fontsize=10.5, color=_INK, va="top", weight="bold")
    begin = top - 20.0
    end = begin - _LINE * len(lines) - 10.0
    frame = FancyBboxPatch((left, end), right - left, begin - end, boxstyle="round,pad=0,rounding_size=4")
    frame.set(facecolor="#f6f8fa", edgecolor="#d0d7de", linewidth=0.8)
    page.add_patch(frame)
    for row, line in enumerate(lines):
        line, column = line if len(line) <= columns else line[: columns - 1] + "\u2026", 0
        for word, colour in _coloured(line):
            if word.strip():
                page.text(
                    left + 8.0 + _LETTER * column, begin - 5.0 - _LINE * row, word, fontsize=_FONT, color=colour,
                    family="DejaVu Sans Mono", va="top", parse_math=False,
                )  # fmt: skip
            column += len(word)
    return end


def _coloured(line: str) -> list[tuple[str, str]]:
    """Words of a line of Python with their colours."""
    from pygments.lexers import PythonLexer

    words = PythonLexer(stripnl=False, ensurenl=False).get_tokens(line)
    return [(word, next((c for kind, c in _COLOURS.items() if str(of).startswith(kind)), _INK)) for of, word in words]
