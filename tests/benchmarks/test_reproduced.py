"""The tables of `jaxreward reproduce` in docs/appendix/grace_results.md are those of the results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.command import ROOT
from jaxreward.reproduction.registry import entry_of

PAGE = (ROOT / "docs" / "appendix" / "grace_results.md").read_text()


def text(figure: dict[str, Any] | None, digits: int) -> str:
    if figure is None:
        return "-"
    if "published" in figure:
        more = f" ± {figure['deviation']}" if "deviation" in figure else ""
        return f"{figure['published']:.{2 if digits == 3 else 0}f}{more}"
    ends = None if figure["low"] is None else [f"{figure[end]:.{digits}f}" for end in ("low", "high")]
    return f"{figure['mean']:.{digits}f}" + (f" ({' to '.join(ends)})" if ends else "")


@pytest.mark.parametrize(("name", "digits"), [("figure4", 3), ("table2", 3), ("table1", 1), ("table1_ant", 1)])
def test_the_page_has_the_numbers_of_the_results(name: str, digits: int) -> None:
    report = json.loads((ROOT / "benchmarks" / "results" / f"grace_{name}.json").read_text())
    assert (
        not report["missing"]
        and report["entry"] == f"grace/{name.removesuffix('_ant')}" == entry_of(report["entry"]).name
    )
    assert f"{report['command']} --out runs/grace" in PAGE and report["machines"][0]["commit"] in PAGE
    shown = PAGE.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
    (table,) = report["tables"]
    for row in table["rows"]:
        label, *figures = row.values()
        assert f"| {label} | {' | '.join(text(figure, digits) for figure in figures)} |" in shown
