"""LIMEN's figures and RF-Agent's tables: their cells, and how numbers are laid out beside the papers'."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jaxreward.commands.reproduce import COMMANDS
from jaxreward.errors import EndCause, InvalidSetting
from jaxreward.evolution.final_evaluation import FIRST_SEED
from jaxreward.evolution.presets import PAPER_BUDGETS, quick_steps
from jaxreward.reproduction import registry
from jaxreward.reproduction.cell import Budget, Cell, FinishedCell, Plan
from jaxreward.reproduction.limen import figures
from jaxreward.reproduction.limen.figures import Figure4, Figure5, Figure6, samples, searches
from jaxreward.reproduction.limen.published import Ablation
from jaxreward.reproduction.rf_agent import tables as rf_agent
from jaxreward.reproduction.rf_agent.published import TABLE_1, TABLE_7
from jaxreward.reproduction.runner import conclude
from jaxreward.reproduction.searches import (
    OwnInterfaces,
    ShiftedTraining,
    TrainedSearch,
    task_of,
)
from jaxreward.tasks import measure_of

(command,) = COMMANDS


def plan_of(entry: Any, out: Path = Path("runs"), **budget: Any) -> Plan:
    return Plan(out, entry.parts, Budget(**({"seeds": 1, "steps": 0, "candidates": 30} | budget)))


def finished(cell: Cell, **numbers: Any) -> FinishedCell:
    return FinishedCell(
        coordinates=cell.coordinates, settings={}, numbers={"episodes": 256} | numbers, seconds=1.0, device="cpu",
        versions={}, commit="",
    )  # fmt: skip


def test_a_search_is_that_of_the_paper_with_the_learner_and_steps_of_two_cores() -> None:
    for part in Figure4.parts:
        s = TrainedSearch(part, "limen", "both").search(plan_of(Figure4()))
        s.check()
        assert (s.task, s.candidates, s.steps, s.final_seeds) == (part, 30, quick_steps(part), 10)
        paper = PAPER_BUDGETS[part]
        share = s.filter_steps / s.steps
        assert share == pytest.approx(paper.filter_steps / paper.steps)
        assert not share or s.threshold == paper.filter_threshold
    assert TrainedSearch("xland-easy", "limen", "both").search(plan_of(Figure4(), steps=640)).steps == 640


@pytest.mark.parametrize("part", rf_agent.Table1.parts)
def test_tasks_of_rf_agent_have_its_metrics(part: str) -> None:
    task = task_of(part)
    assert hasattr(task, "dense_reward")
    if "speed" in part:
        assert "speed" in measure_of(task).name
    s = TrainedSearch(part, "rf-agent", "reward", fresh=5).search(plan_of(rf_agent.Table1()))
    s.check()
    assert s.make_task().name == task.name and measure_of(s.make_task()) == measure_of(task)


def test_combinations_of_actions_are_options_of_the_strategy() -> None:
    entry = rf_agent.Table7()
    for cell in entry.cells(plan_of(entry)):
        assert isinstance(cell, TrainedSearch)
        cell.search(plan_of(entry)).check()
        assert cell.option == "" or sum(map(int, cell.option.partition("=")[2].split(","))) == 8
    assert len({cell.folder(Path()) for cell in entry.cells(plan_of(entry))}) == len(TABLE_7)


def test_shifts_are_of_the_task_and_of_what_the_search_found() -> None:
    entry = Figure6()
    plan = plan_of(entry)
    for cell in entry.cells(plan):
        if isinstance(cell, ShiftedTraining):
            name, _, value = cell.argument.partition("=")
            assert not name or getattr(cell.task(), name) == float(value)
            assert cell.needs(plan)[0] in entry.cells(plan) and cell.seeds(plan)[0] == FIRST_SEED


def test_figures_stand_beside_the_published_ones() -> None:
    entry, plan = Figure4(), plan_of(Figure4(), seeds=2)
    cells = {
        cell: finished(cell, sparse=[0.1] * 10) for cell in entry.cells(plan) if not isinstance(cell, TrainedSearch)
    }
    for seed, cell in enumerate(searches("xland-hard", plan)):
        cells[cell] = finished(cell, search=0.9, fresh=[0.5 + 0.2 * seed] * 10, scores=[None, 0.9])
    (table,) = entry.tables(plan, cells)
    row = next(row for row in table.as_json()["rows"] if row["task"] == "xland-hard")
    assert row["both"]["mean"] == pytest.approx(0.6) and row["both"]["n"] == 2
    assert row["both, paper"] == {"published": 0.85} and row["sparse"]["mean"] == pytest.approx(0.1)
    assert row["rewards"] is None and row["rewards, paper"] == {"published": 0.01}


def test_samples_are_averaged_and_the_best_of_them_is_named() -> None:
    entry, plan = Figure5(), plan_of(Figure5())
    (drawn,), (found,) = samples("xland-medium", plan), searches("xland-medium", plan)
    results: dict[Cell, FinishedCell] = {
        drawn: finished(drawn, search=0.4, fresh=[0.3], scores=[0.4, None, 0.2, 0.0]),
        found: finished(found, search=0.8, fresh=[0.7], scores=[0.8]),
    }
    (table,) = entry.tables(plan, results)
    row = next(row for row in table.as_json()["rows"] if row["task"] == "xland-medium")
    assert row["mean of samples"]["mean"] == pytest.approx(0.15) and row["best sample"]["mean"] == 0.4
    assert row["best of the search"]["mean"] == 0.8 and row["paper"] == {"published": 0.021}


def test_scores_of_rf_agent_are_normalised_by_sparse_and_dense_rewards() -> None:
    entry = rf_agent.Table1()
    plan = plan_of(entry)
    results: dict[Cell, FinishedCell] = {}
    for part in entry.parts:
        own = OwnInterfaces(part, rf_agent.FRESH)
        sign = measure_of(task_of(part)).oriented(1.0)
        results[own] = finished(own, sparse=[sign * 1.0] * 5, dense=[sign * 3.0] * 5)
        (cell,) = rf_agent.searches(part, "revolve", plan)
        results[cell] = finished(cell, search=0.0, fresh=[sign * 2.0] * 5, scores=[])
    raw, normal = (table.as_json()["rows"] for table in entry.tables(plan, results))
    assert all(row["REvolve"]["mean"] == pytest.approx(0.5) for row in normal)
    ant = next(row for row in normal if row["task"].startswith("ant"))
    paper = TABLE_1["ant, speed"]
    expected = (paper.revolve.value - paper.sparse.value) / (6.75 - paper.sparse.value)
    assert ant["REvolve, paper"]["published"] == pytest.approx(expected) and ant["Eureka"] is None
    assert raw[0]["person, paper"] == {"published": 6.75, "deviation": 0.30}


def test_a_share_of_all_actions() -> None:
    entry = rf_agent.Table7()
    plan, results = plan_of(entry), dict[Cell, FinishedCell]()
    for cell in entry.cells(plan):
        results[cell] = finished(cell, fresh=[3.0 if cell.coordinates["option"] else 4.0] * 5)
    (table,) = entry.tables(plan, results)
    rows = {row["actions"]: row for row in table.as_json()["rows"]}
    assert rows["mutation"]["share of all actions"]["mean"] == pytest.approx(0.75)
    assert rows["mutation"]["paper's share"]["published"] == pytest.approx(5.13 / 6.22)


@pytest.mark.parametrize(
    ("cause", "reason"),
    [(EndCause.CANDIDATES, "all candidates are trained"), (EndCause.USD, "the budget of dollars is spent")],
)
def test_a_search_that_a_cap_ended_is_named_below_the_table(
    cause: EndCause, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Figure4()
    plan = replace(plan_of(entry, tmp_path), parts=("xland-easy",))
    (cell,) = searches("xland-easy", plan)
    score, spent = SimpleNamespace(mean=0.5), SimpleNamespace(env_steps=9)
    ended: Any = SimpleNamespace(exit_code=0, reason=reason, cause=cause, progress=SimpleNamespace(baselines={}))
    found = SimpleNamespace(search_score=score, scores=[0.5], spent=spent)
    monkeypatch.setattr("jaxreward.reproduction.searches.run_search", lambda *_, **__: ended)
    monkeypatch.setattr("jaxreward.reproduction.searches.read_search", lambda _: found)
    tools: Any = SimpleNamespace(watcher=None, stop=None, checker=None)
    numbers: Any = cell.run(plan, tools)
    cell.begin(plan)
    cell.finish(plan, numbers, 1.0)
    (table,) = conclude(entry, [cell], plan, {})
    note = f"Searches that ended before all their candidates were trained: 1 of 1 ({reason})."
    assert (note in table.notes) == (cause is EndCause.USD) == (note in (tmp_path / "figure4.md").read_text())


class Small(Figure4):
    """On a task that trains in a second."""

    parts = ("probe-choice",)


@pytest.mark.usefixtures("unoptimised", "unsynced", "warm")
@pytest.mark.slow
def test_a_figure_is_run_drawn_and_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Small()
    monkeypatch.setattr(registry, "entries", lambda: {entry.name: entry})
    monkeypatch.setattr("jax.clear_caches", lambda: None)
    monkeypatch.setattr(figures, "FIGURE_4", {"probe-choice": Ablation()})
    monkeypatch.setattr(figures, "HALVES", ("both",))
    words = [entry.name, "--steps", "2048", "--candidates", "4", "--out", str(tmp_path)]
    assert command(words) == 0
    whole = json.loads((tmp_path / "figure4.json").read_text())
    (row,) = whole["tables"][0]["rows"]
    assert not whole["missing"] and {row[name]["n"] for name in ("sparse", "both", "best of as many samples")} == {10}
    assert all(
        len(cell["numbers"]["fresh"]) == 10 for cell in whole["cells"] if cell["coordinates"]["kind"] == "search"
    )
    assert (tmp_path / "figure4.png").stat().st_size > 10_000
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("cell.json")}
    assert command(words) == 0
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("cell.json")}


def test_steps_may_be_given_to_an_entry_whose_tasks_have_their_own() -> None:
    assert Figure4().budgeted(None, 500, None).steps == 500 and Figure4().budgeted(None, None, None).steps == 0
    with pytest.raises(InvalidSetting, match="has no xland"):
        Figure6().chosen(["xland-easy"])
