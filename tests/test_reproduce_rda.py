"""RDA's figures: their cells, and how numbers are laid out beside the paper's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jaxreward.commands.reproduce import COMMANDS
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.records import ALIGNMENT, Score
from jaxreward.reproduction.cell import Budget, Cell, FinishedCell, Plan
from jaxreward.reproduction.rda.figures import PARTS, Figure4, Figure7a, Figure7b, RDASearch, by_rda, searches
from jaxreward.reproduction.rda.published import FIGURE_7A
from jaxreward.reproduction.searches import OwnInterfaces, _nothing_done, task_of
from jaxreward.search import make_strategy

(command,) = COMMANDS
PART = "package-push"


def plan_of(entry: Any, *, out: Path = Path("runs"), llm: LlmSettings | None = None, **budget: Any) -> Plan:
    amounts = Budget(**({"seeds": 2, "steps": 0, "candidates": 20} | budget))
    return Plan(out, entry.parts, amounts, llm=llm or LlmSettings())


def finished(cell: Cell, alignment: float = 0.5, success: float = 0.5, name: str = "fresh") -> FinishedCell:
    aligned = Score(mean=alignment, se=0.01, n=5, episodes=1280, measure=ALIGNMENT).model_dump(mode="json")
    numbers = {name: [success] * 5, f"{name}_alignment": aligned, "episodes": 1280}
    return FinishedCell(
        coordinates=cell.coordinates, settings={}, numbers=numbers, seconds=1.0, device="cpu", versions={}, commit=""
    )


@pytest.mark.parametrize("entry", [Figure4(), Figure7a(), Figure7b()])
def test_tasks_have_an_instruction_and_searches_can_be_run(entry: Any) -> None:
    plan = plan_of(entry)
    for part in entry.parts:
        task: Any = task_of(part)
        assert all(subtask.metric for subtask in task.instruction().subtasks)
        assert hasattr(task_of(part), "dense_reward")
    for cell in entry.cells(plan):
        if (s := cell.search(plan)) is not None:
            s.check()
            assert s.evolve == "reward" and s.final_seeds == 5
    assert len({cell.folder(Path()) for cell in entry.cells(plan)}) == len(entry.cells(plan))


def test_rows_of_figure_7a_add_one_part_after_another() -> None:
    rows = [make_strategy("rda", **by_rda(PART, plan_of(Figure7a()), option)[0].search(plan_of(Figure7a()))
            .strategy_options()) for option in PARTS.values()]  # fmt: skip
    parts = [(s.warm, s.watch, s.subtasks) for s in rows]  # type: ignore[attr-defined]
    assert parts == [(False, False, False), (True, False, False), (True, True, False), (True, True, True)]
    assert list(PARTS) == list(FIGURE_7A)


def test_searches_of_figure_7b_have_as_many_iterations() -> None:
    plan = plan_of(Figure7b(), candidates=12)
    cells = [cell for cell in Figure7b().cells(plan) if cell.part == PART]
    assert all(isinstance(cell, RDASearch) for cell in cells)
    found = {cell.samples: cell.search(plan) for cell in cells if isinstance(cell, RDASearch)}
    assert {k: s.candidates for k, s in found.items()} == {1: 3, 2: 6, 4: 12, 8: 24}
    assert all(s.strategy_options()["samples"] == k for k, s in found.items())
    whole = {cell for cell in Figure7a().cells(plan) if cell.coordinates["option"] == "warm=true"}
    assert whole < set(Figure7b().cells(plan)), "the whole method is run once for both figures"


def test_figures_stand_beside_the_published_ones() -> None:
    entry = Figure7a()
    plan = plan_of(entry)
    *_, whole = PARTS.values()
    results: dict[Cell, FinishedCell] = {
        cell: finished(cell, 0.6 + 0.2 * seed, 0.9) for seed, cell in enumerate(by_rda(PART, plan, whole))
    }
    rows = entry.tables(plan, results)[0].as_json()["rows"]
    assert rows[-1]["method"] == "and subtasks: RDA" and rows[-1]["paper"] == {"published": 0.84}
    assert rows[-1]["alignment"]["mean"] == pytest.approx(0.7) and rows[-1]["alignment"]["n"] == 2
    assert rows[-1]["success"]["mean"] == pytest.approx(0.9) and rows[-1]["its paper"] == {"published": 1.0}
    assert rows[0]["alignment"] is None and rows[0]["paper"] == {"published": 0.31}


def test_figure_4_has_the_papers_means_apart(tmp_path: Path) -> None:
    entry = Figure4()
    plan = plan_of(entry, seeds=1)
    own, (found,) = OwnInterfaces(PART, 5), searches(PART, plan, "eureka")
    results = {own: finished(own, 0.3, 0.2, "sparse"), found: finished(found, 0.5, 0.9)}
    *ours, paper = (table.as_json()["rows"] for table in entry.tables(plan, results))
    assert len(ours) == len(entry.parts)
    rows = {row["rewards"]: row for row in ours[0]}
    assert rows["sparse"]["alignment"]["mean"] == 0.3 and rows["dense, by a person"]["alignment"] is None
    assert rows["Eureka"]["alignment"]["n"] == 5, "of one search the interval is over its seeds"
    assert rows["Eureka"]["alignment"]["low"] == pytest.approx(0.5 - 2.776 * 0.01, abs=1e-4)
    assert paper[-1]["alignment, 4 whole-body tasks of HumanoidBench"] == {"published": 0.70}
    assert not entry.draw(plan, {}, tmp_path / "none.png") and not list(tmp_path.iterdir())
    pytest.importorskip("matplotlib")
    assert entry.draw(plan, results, tmp_path / "figure4.png") and (tmp_path / "figure4.png").stat().st_size > 5000


def test_a_model_that_judges_is_for_searches_that_have_agents_judged() -> None:
    llm = LlmSettings(judge_model="openai/eyes", max_usd=1.0)
    plan = plan_of(Figure7a(), llm=llm)
    for cell in Figure7a().cells(plan):
        s = cell.search(plan)
        assert s is not None
        s.check()
        judged = "watch=false" not in str(cell.coordinates["option"])
        assert (s.judged_by == "model", s.llm.judge_model) == (judged, "openai/eyes" if judged else None)
        assert ("judge_model" in cell.settings(plan)) == judged


def test_a_judge_is_refused_where_it_would_judge_nothing(capsys: Any, tmp_path: Path) -> None:
    from jaxreward.cli import main

    out = ["--out", str(tmp_path), "--dry-run"]
    assert main(["reproduce", "rf-agent/table7", "--judge-model", "openai/eyes", *out]) == 2
    assert "--judge-model is for entries with searches by rda" in capsys.readouterr().err
    assert main(["reproduce", "rda/figure7a", "--model", "openai/pen", *out]) == 2
    assert "are for --proposer llm" in capsys.readouterr().err
    assert main(["reproduce", "rda/figure7b", "--only", PART, "--json", *out]) == 0
    assert len(json.loads(capsys.readouterr().out)["cells"]) == 12


def test_a_search_that_found_nothing_counts_in_both_rates() -> None:
    plan = plan_of(Figure4())
    good, bad = searches(PART, plan, "eureka")
    lost = finished(bad, 0.0, 0.0)
    figures = Figure4().tables(plan, {good: finished(good, 0.9, 0.9), bad: lost})[0].as_json()["rows"][4]
    assert (figures["alignment"]["mean"], figures["alignment"]["n"]) == (0.45, 2)
    assert figures["success"]["n"] == 2
    assert _nothing_done(task_of(PART)) == Score(mean=0.0, se=0.0, n=1, episodes=256, measure=ALIGNMENT)
    assert _nothing_done(task_of("probe-choice")) is None


def test_another_way_of_judging_is_another_cell_and_is_checked_before(capsys: Any, tmp_path: Path) -> None:
    from jaxreward.cli import main

    llm = LlmSettings(judge_model="openai/eyes")
    (seen, *_) = by_rda(PART, plan_of(Figure7a()), "warm=true")
    ways = [seen.settings(plan_of(Figure7a(), llm=found)) for found in (llm, replace(llm, judge_votes=3))]
    assert ways[0] != ways[1] and ways[0]["judge_votes"] == 2
    said = ["--judge-model", "openai/eyes", "--model", "openai/pen", "--out", str(tmp_path), "--dry-run"]
    assert main(["reproduce", "rda/figure7a", "--only", PART, *said]) == 2
    assert "--proposer llm" in capsys.readouterr().err
