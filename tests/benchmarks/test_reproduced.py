"""The tables of `jaxreward reproduce` in docs/appendix/grace_results.md are those of the results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.command import ROOT
from jaxreward.reproduction.registry import entry_of

PAGE = (ROOT / "docs" / "appendix" / "grace_results.md").read_text()


def text(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return "-"
    if "published" in figure:
        return f"{figure['published']:.2f}"
    interval = "" if figure["low"] is None else f" ({figure['low']:.3f} to {figure['high']:.3f})"
    return f"{figure['mean']:.3f}{interval}"


@pytest.mark.parametrize("name", ["figure4", "table2"])
def test_the_page_has_the_numbers_of_the_results(name: str) -> None:
    report = json.loads((ROOT / "benchmarks" / "results" / f"grace_{name}.json").read_text())
    assert not report["missing"] and report["entry"] == f"grace/{name}" == entry_of(report["entry"]).name
    assert f"jaxreward reproduce grace/{name}" in PAGE and report["machines"][0]["commit"] in PAGE
    shown = PAGE.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
    (table,) = report["tables"]
    for row in table["rows"]:
        label, *figures = row.values()
        assert f"| {label} | {' | '.join(map(text, figures))} |" in shown
