"""The tables of levels.py and scoring.py in docs/appendix/benchmarks.md, and that scoring.py measures."""

from __future__ import annotations

import pytest

from benchmarks import demonstration_tables as tables
from benchmarks import scoring
from benchmarks.table import PAGE


def test_the_page_has_the_tables_of_the_results() -> None:
    page = PAGE.read_text()
    assert tables.fill(page, {name: tables.read(name) for name in ("levels", "scoring")}) == page


def test_every_step_beside_minigrid_agrees_and_every_expert_succeeds() -> None:
    report = tables.read("levels")
    assert len(report["rows"]) == 20 and report["steps"] >= 100_000 and report["mismatches"] == 0
    assert all(row["expert"]["success"] == 1.0 for row in report["rows"])


@pytest.mark.slow
def test_a_row_has_what_is_timed() -> None:
    settings = scoring.ScoringSettings(
        tasks=("babyai/GoToObjS4",), programs=(1, 2), episodes=(2,), alone=1, repeats=2
    )  # fmt: skip
    (part,) = scoring.run(settings)["tasks"]
    one, two = part["rows"]
    assert (one["programs"], two["programs"]) == (1, 2) and one["states"] == two["states"] > 2
    assert min(one["run_s"], one["scored_s"], part["alone"]["run_s"]) > 0
    assert one["programs_states_per_s"] == pytest.approx(one["states"] / one["run_s"])
