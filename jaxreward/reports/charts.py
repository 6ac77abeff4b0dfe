"""The charts of a report as Vega-Lite specifications: plain data, drawn by Vega in the reader's browser.

Text and axes take the colour of the page (`currentColor`); the colours of marks can be distinguished on white and on
black, also with any form of colour blindness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxreward.records import Measure

Row = Mapping[str, Any]
Spec = dict[str, Any]

COLOURS = ("#2f86c9", "#e0782f", "#2fa37a", "#b665b0", "#c99a1e", "#63b7e6", "#d2525f", "#8a8a8a")

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
"""As in report.css: Vega measures words before it draws them."""

ROOM = "(containerSize()[0] + 0 * width)"
"""Pixels from edge to edge of a chart; it names `width` to be computed again when a phone is turned."""

CONFIG: Spec = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor", "titleColor": "currentColor", "tickColor": "currentColor",
        "domainColor": "currentColor", "gridColor": "currentColor", "gridOpacity": 0.12, "domainOpacity": 0.4,
        "tickOpacity": 0.4, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
        "labelLimit": {"expr": f"min(240, {ROOM} / 2)"},
    },
    "legend": {
        "labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "orient": "bottom", "columns": 1, "symbolOpacity": 1, "symbolType": "circle",
        "labelLimit": {"expr": f"min(300, {ROOM} - 90)"},
    },
    "text": {"color": "currentColor"},
    "range": {"category": list(COLOURS)},
}  # fmt: skip


def _spec(description: str, height: int, **parts: Any) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": description,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": CONFIG,
        **parts,
    }


def _values(rows: Sequence[Row]) -> Spec:
    return {"values": list(rows)}


def _number(field: str, title: str, **more: Any) -> Spec:
    """A quantitative channel."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def _name(field: str, **more: Any) -> Spec:
    """A nominal channel in the order of the data."""
    return {"field": field, "type": "nominal", "sort": None, "title": None, **more}


def _metric(measure: Measure, field: str = "mean") -> Spec:
    """The channel of a metric: of a rate all of its range, of others what the data spans."""
    scale = {"domain": [0, 1]} if measure.rate else {"zero": False}
    return _number(field, measure.label, scale=scale, axis={"tickCount": 5})


def _shade(measure: Measure) -> Spec:
    """The metric as a colour."""
    legend = {"title": measure.label, "gradientLength": 160, "gradientOpacity": 1}
    return _number("mean", measure.label, scale={"scheme": "viridis", **_metric(measure)["scale"]}, legend=legend)


_STEPS = _number(
    "steps", "environment steps", scale={"nice": False, "zero": True},
    axis={"labelExpr": "datum.value ? format(datum.value, '~s') : '0'", "grid": False, "tickCount": 6},
)  # fmt: skip

_PICKED: Spec = {"opacity": {"condition": {"param": "pick", "value": 1}, "value": 0.12}}


def _pick(field: str) -> list[Spec]:
    """A click on the legend leaves one line; a double click all."""
    return [{"name": "pick", "select": {"type": "point", "fields": [field]}, "bind": "legend"}]


def _tips(**titles: str) -> list[Spec]:
    """Fields that are shown where the pointer rests; numbers with three significant digits."""
    return [
        {"field": field, "title": title.rstrip("#"), **({"format": ".3~g"} if title.endswith("#") else {})}
        for field, title in titles.items()
    ]


def intervals(rows: Sequence[Row], measure: Measure) -> Spec:
    """Means with 95 % intervals: rows with `name`, `mean`, `low`, `high`."""
    return _spec(
        f"{measure.name} of the winner and the baselines with 95 % intervals", 34 * len(rows), data=_values(rows),
        encoding={"y": _name("name"), "tooltip": _tips(name="", mean="mean#", low="from#", high="to#")},
        layer=[
            {"mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.55, "color": COLOURS[0]},
             "encoding": {"x": _metric(measure, "low"), "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 110, "color": COLOURS[0], "opacity": 1},
             "encoding": {"x": _metric(measure)}},
        ],
    )  # fmt: skip


def curves(measure: Measure, rows: Sequence[Row] = ()) -> Spec:
    """Learning curves: rows with `name`, `steps`, `mean`, and `low` and `high` of the seeds' band."""
    return _spec(
        f"{measure.name} over environment steps", 280, data=_values(rows),
        encoding={"x": _STEPS, "color": _name("name"), **_PICKED},
        layer=[
            {"mark": {"type": "area", "opacity": 0.18},
             "encoding": {"y": _metric(measure, "low"), "y2": {"field": "high"},
                          "opacity": {"condition": {"param": "pick", "value": 0.18}, "value": 0.02}}},
            {"mark": {"type": "line", "strokeWidth": 2, "point": {"size": 24, "filled": True}}, "params": _pick("name"),
             "encoding": {"y": _metric(measure),
                          "tooltip": _tips(name="", steps="steps", mean="mean#", low="lowest seed#",
                                           high="highest seed#")}},
        ],
    )  # fmt: skip


def search(candidates: Sequence[Row], best: Sequence[Row], measure: Measure) -> Spec:
    """Scores through a search: candidates with `order`, `mean`, `search`, `id`, `operator`; `best` with the first 3."""
    axis = {"grid": False, "tickMinStep": 1, "tickCount": 10}
    order = _number("order", "trained candidates", axis=axis, scale={"domainMin": 0, "nice": False})
    colour = _name("search")
    return _spec(
        f"{measure.name} of every trained candidate in order, and the best so far", 280,
        layer=[
            {"data": _values(best), "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
             "encoding": {"x": order, "y": _metric(measure), "color": colour, **_PICKED}},
            {"data": _values(candidates), "params": _pick("search"),
             "mark": {"type": "point", "filled": True, "size": 55, "cursor": "pointer"},
             "encoding": {"x": order, "y": _metric(measure), "color": colour,
                          "opacity": {"condition": {"param": "pick", "value": 0.75}, "value": 0.05},
                          "tooltip": _tips(id="candidate", operator="operator", mean="score#")}},
        ],
    )  # fmt: skip


def archive(cells: Sequence[Row], candidates: Sequence[Row], measure: Measure) -> Spec:
    """The map of an archive: `cells` with `x`, `x2`, `y`, `y2` and the `mean` of the elite; candidates with
    `reward_nodes`, `observation_size`, `mean`, `id`, `operator`. Without cells, the candidates alone."""
    colour = _shade(measure)
    x = _number("reward_nodes", "reward complexity (syntax nodes)", axis={"grid": False})
    y = _number("observation_size", "observation size", axis={"grid": False})
    point: Spec = {
        "data": _values(candidates),
        "mark": {"type": "point", "filled": True, "size": 70, "stroke": "currentColor", "strokeWidth": 0.8,
                 "opacity": 1, "cursor": "pointer"},
        "encoding": {"x": x, "y": y, "color": colour,
                     "tooltip": _tips(id="candidate", operator="operator", mean="score#",
                                      observation_size="features", reward_nodes="reward nodes")},
    }  # fmt: skip
    box: Spec = {
        "data": _values(cells),
        "mark": {"type": "rect", "opacity": 0.45, "stroke": "currentColor", "strokeOpacity": 0.25, "cursor": "pointer"},
        "encoding": {
            "x": {**x, "field": "x"}, "x2": {"field": "x2"}, "y": {**y, "field": "y"}, "y2": {"field": "y2"},
            "color": colour, "tooltip": _tips(id="elite of the cell", mean="score#"),
        },
    }  # fmt: skip
    return _spec("observation size and reward complexity of every candidate, coloured by score", 320,
                 layer=[box, point] if cells else [point])  # fmt: skip


def tree(nodes: Sequence[Row], edges: Sequence[Row], measure: Measure) -> Spec:
    """The tree of first parents: nodes with `x`, `depth`, `id`, `operator`, `state`, and `mean` if scored; edges
    with `x`, `depth`, `x2`, `depth2`."""
    x = {"field": "x", "type": "quantitative", "axis": None, "scale": {"nice": False, "zero": False, "padding": 12}}
    deepest = max((int(node["depth"]) for node in nodes), default=0)
    ticks = list(range(0, deepest + 1, 1 + deepest // 10))  # Vega's own lie between whole numbers
    scale = {"reverse": True, "padding": 12, "zero": True, "nice": False}
    axis = {"values": ticks, "grid": False, "format": "d"}
    y = _number("depth", "generations from the first ancestor", scale=scale, axis=axis)
    colour = _shade(measure)
    tips = _tips(id="candidate", operator="operator", state="state", mean="score#", q="Q of the tree#", visits="visits")
    scored = {"filter": "isValid(datum.mean)"}
    return _spec(
        "the lineage of all candidates: each below its first parent", 320,
        layer=[
            {"data": _values(edges), "mark": {"type": "rule", "opacity": 0.35, "color": "currentColor"},
             "encoding": {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "depth2"}}},
            {"data": _values([n for n in nodes if n.get("mean") is None]),
             "mark": {"type": "point", "size": 45, "shape": "cross", "color": "currentColor", "opacity": 0.5,
                      "cursor": "pointer"},
             "encoding": {"x": x, "y": y, "tooltip": tips}},
            {"data": _values(nodes), "transform": [scored],
             "mark": {"type": "point", "filled": True, "size": 95, "stroke": "currentColor", "strokeWidth": 0.8,
                      "opacity": 1, "cursor": "pointer"},
             "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips}},
        ],
    )  # fmt: skip


def terms(rows: Sequence[Row] = ()) -> Spec:
    """Reward terms through training: rows with `term`, `steps`, `mean`, `minimum`, `maximum`."""
    return _spec(
        "mean of every reward term per step through training", 280, data=_values(rows),
        params=_pick("term"),
        mark={"type": "line", "strokeWidth": 2, "point": {"size": 24, "filled": True}},
        encoding={
            "x": _STEPS, "y": _number("mean", "mean per step"), "color": _name("term"), **_PICKED,
            "tooltip": _tips(term="", steps="steps", mean="mean#", minimum="least#", maximum="most#"),
        },
    )  # fmt: skip


def functions(rows: Sequence[Row], best: Sequence[Row], measure: Measure) -> Spec:
    """New and reused functions through a search: rows with `generation`, `kind` and `functions`; `best` with the
    `generation` and the `mean` of its best candidate."""
    x = {
        "field": "generation",
        "type": "ordinal",
        "title": "generation",
        "axis": {"labelAngle": 0, "labelOverlap": True},
    }
    return _spec(
        f"new and reused functions of every generation, and the {measure.name} of its best candidate", 280,
        layer=[
            {"data": _values(rows), "mark": {"type": "bar", "opacity": 0.75},
             "encoding": {"x": x, "y": _number("functions", "functions", axis={"tickMinStep": 1, "tickCount": 6}),
                          "color": _name("kind"),
                          "tooltip": _tips(generation="generation", kind="", functions="functions")}},
            {"data": _values(best), "mark": {"type": "line", "color": COLOURS[3], "strokeWidth": 2,
                                             "point": {"filled": True, "color": COLOURS[3]}},
             "encoding": {"x": x, "y": {**_metric(measure), "title": f"best {measure.label}"},
                          "tooltip": _tips(generation="generation", mean="best#")}},
        ],
        resolve={"scale": {"y": "independent"}},
    )  # fmt: skip


def bars(rows: Sequence[Row], value: str, name: str, title: str, description: str, percent: bool = False) -> Spec:
    """Horizontal bars, in the order of the rows."""
    axis = {"format": "%", "tickCount": 5} if percent else {"format": "~s", "tickMinStep": 1, "tickCount": 8}
    return _spec(
        description, 24 * len(rows), data=_values(rows), mark={"type": "bar", "color": COLOURS[0], "height": 16},
        encoding={
            "y": _name(name), "x": _number(value, title, axis=axis),
            "tooltip": [{"field": name}, {"field": value, "title": title, "format": ".1%" if percent else ""}],
        },
    )  # fmt: skip


def time(rows: Sequence[Row]) -> Spec:
    """Wall time: rows with `period`, `phase`, `seconds` and `order`, by which they are stacked."""
    legend = {"columns": {"expr": f"{ROOM} < 360 ? 2 : 3"}}
    height = 24 * len({row["period"] for row in rows})
    return _spec(
        "wall-clock seconds by generation and phase", height, data=_values(rows),
        mark={"type": "bar", "height": 16}, params=_pick("phase"),
        encoding={
            "y": _name("period"), "x": _number("seconds", "seconds of the wall clock"),
            "color": _name("phase", legend=legend), "order": {"field": "order"}, **_PICKED,
            "tooltip": _tips(period="", phase="", seconds="seconds#"),
        },
    )  # fmt: skip
