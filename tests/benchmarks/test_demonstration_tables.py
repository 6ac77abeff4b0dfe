"""The tables of levels.py, scoring.py and recovered.py in docs/appendix/benchmarks.md, and that they measure."""

from __future__ import annotations

import re

import pytest

from benchmarks import demonstration_tables as tables
from benchmarks import recovered, scoring
from benchmarks.command import ROOT
from benchmarks.markdown import results
from benchmarks.table import PAGE
from jaxreward.commands.new_task import TEMPLATE


def test_the_page_has_the_tables_of_the_results() -> None:
    page = PAGE.read_text()
    assert (
        tables.fill(
            page, {name: results(tables.RESULTS / f"{name}.json", name) for name in ("levels", "scoring", "recovered")}
        )
        == page
    )


def test_every_step_beside_minigrid_agrees_and_every_expert_succeeds() -> None:
    report = results(tables.RESULTS / "levels.json", "levels")
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


def test_the_task_of_the_page_is_the_one_that_is_measured() -> None:
    expert = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "demonstrations.md").read_text(), re.DOTALL)[0]
    assert recovered.PARCEL.read_text() == f"{TEMPLATE.replace('KeyAndDoor', 'Parcel')}\n{expert}"


@pytest.mark.slow
def test_every_reward_is_trained_by_all_learners() -> None:
    settings = recovered.RecoveredSettings(
        tasks=("babyai/GoToObjS4",), search_seeds=1, expansions=(0,), candidates=4, seeds=1, steps=2_000
    )  # fmt: skip
    sparse, constant, found = recovered.run(settings)["rows"]
    assert (sparse["reward"], constant["reward"]) == ("sparse", "constant") and (
        found["expansions"],
        found["seed"],
    ) == (0, 0)
    assert "def compute_reward" in found["program"] and found["fitness"] < 0.0 <= found["accuracy"]
    rows = (sparse, constant, found)
    assert all(0.0 <= value <= 1.0 for row in rows for name in recovered.LEARNERS for value in row[name])
