"""FORGE's tables and figures: their cells, and how numbers are laid out beside the paper's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jaxreward.comparison.cells import Tools
from jaxreward.operators import REPEATS
from jaxreward.reproduction.cell import Budget, Cell, FinishedCell, Plan
from jaxreward.reproduction.forge.published import TABLE_2, TABLE_3
from jaxreward.reproduction.forge.tables import (
    PARTS,
    TITLES,
    Figure3,
    RoundsSearch,
    Table2,
    Table3,
    _improvements,
    _rounds,
    searches,
)
from jaxreward.reproduction.layout import Measured
from jaxreward.reproduction.registry import entry_of
from jaxreward.reproduction.searches import OwnInterfaces
from jaxreward.runs import StopSignal
from jaxreward.search import make_strategy
from tests.silent import Silent

PART = "snake"


def plan_of(entry: Any, *, out: Path = Path("runs"), parts: tuple[str, ...] = (), **budget: Any) -> Plan:
    return Plan(out, parts or entry.parts, Budget(**({"seeds": 2, "steps": 0, "candidates": 12} | budget)))


def finished(cell: Cell, **numbers: Any) -> FinishedCell:
    return FinishedCell(
        coordinates=cell.coordinates, settings={}, numbers={"episodes": 1280, **numbers}, seconds=1.0, device="cpu",
        versions={}, commit="",
    )  # fmt: skip


@pytest.mark.parametrize("entry", [Table2(), Table3(), Figure3()])
def test_searches_can_be_run(entry: Any) -> None:
    plan = plan_of(entry)
    assert type(entry_of(entry.name)) is type(entry)
    for cell in entry.cells(plan):
        if (s := cell.search(plan)) is not None:
            s.check()
            assert (s.evolve, s.final_seeds, s.candidates) == ("reward", 5, 12)
    assert len({cell.folder(Path()) for cell in entry.cells(plan)}) == len(entry.cells(plan))


def test_rows_of_table_3_leave_a_part_out() -> None:
    plan = plan_of(Table3())
    rows = [searches(PART, plan, "forge", option)[0].search(plan) for option in PARTS.values()]
    made = [make_strategy("forge", **s.strategy_options()) for s in rows]
    assert [(m.initial, m.planner) for m in made] == [(12, True), (8, False), (8, True)]  # type: ignore[attr-defined]
    assert list(PARTS) == list(TABLE_3)
    whole = set(Figure3().cells(plan_of(Figure3())))
    assert whole < set(Table2().cells(plan_of(Table2()))) and whole < set(Table3().cells(plan_of(Table3())))


def test_table_2_stands_beside_the_published_one(tmp_path: Path) -> None:
    entry = Table2()
    plan = plan_of(entry, parts=(PART,))
    assert list(TABLE_2) == ["native", *(name for name in TITLES if name != "best-of-n")]
    results: dict[Cell, FinishedCell] = {OwnInterfaces(PART, 5): finished(OwnInterfaces(PART, 5), sparse=[6.0] * 5)}
    first, second = [[0, 0, 1.0], [0, 0, 4.0], [0, 0, 1.0]], [[1, 1, 20.0], [1, 0, 9.0]]  # two of a round had no score
    for seed, cell in enumerate(searches(PART, plan, "forge")):
        results[cell] = finished(cell, search=20.0, fresh=[10.0 + 2.0 * seed] * 5, candidates=[*first, *second])
    (table,) = (table.as_json() for table in entry.tables(plan, results))
    rows = {row["rewards"]: row for row in table["rows"]}
    assert list(rows) == ["native", "dense, by a person", *TITLES.values()]
    assert rows["native"]["zero-shot"]["mean"] == 6.0 and rows["native"]["paper"] == {"published": 17.0}
    assert rows["FORGE"]["zero-shot"]["mean"] == 4.0, "of the first round alone"
    assert rows["FORGE"]["evolved"]["mean"] == pytest.approx(11.0) and rows["FORGE"]["evolved"]["n"] == 2
    assert rows["FORGE"]["its paper"] == {"published": 19.8} and rows["Eureka"]["evolved"] is None
    assert rows["FORGE"]["improvements"]["mean"] == 1.0 and rows["native"]["improvements"] is None
    assert entry._by_round(PART, plan, results) == {"FORGE": [[2.0, 14.5]] * 2}
    assert not entry.draw(plan, {}, tmp_path / "none.png") and not list(tmp_path.iterdir())
    pytest.importorskip("matplotlib")
    assert entry.draw(plan, results, tmp_path / "table2.png") and (tmp_path / "table2.png").stat().st_size > 5000


def test_figure_3_has_scores_by_depth(tmp_path: Path) -> None:
    entry = Figure3()
    plan = plan_of(entry, parts=(PART,))
    one, other = searches(PART, plan, "forge")
    results: dict[Cell, FinishedCell] = {
        one: finished(one, candidates=[[0, 0, 1.0], [0, 0, 3.0], [1, 1, 6.0]]),
        other: finished(other, candidates=[[0, 0, 4.0], [1, 2, 3.0]]),
    }  # fmt: skip
    (row,) = entry.tables(plan, results)[0].as_json()["rows"]
    assert [row[f"depth {d}"]["mean"] for d in range(3)] == [3.0, 6.0, 3.0]
    assert (row["depth 0"]["n"], row["depth 1"]["n"], row["depth of the best"]["mean"]) == (2, 1, 0.5)
    pytest.importorskip("matplotlib")
    assert entry.draw(plan, results, tmp_path / "figure3.png")
    assert entry.tables(plan, {})[0].as_json()["rows"][0]["depth 0"] is None


def test_improvements_are_rounds_that_are_better_than_all_before() -> None:
    cells = searches(PART, plan_of(Table2()), "forge")
    scores = [[3.0, 1.0], [2.0], [4.0, 5.0], [5.0], [6.0]]
    rows = [[k, 0, score] for k, found in enumerate(scores) for score in found]
    counts = [_improvements({cells[0]: finished(cells[0], candidates=c)}, cells[:1]) for c in (rows, rows[:2], [])]
    assert [count.mean for count in counts if isinstance(count, Measured)] == [0.5, 0.0, 0.0]


def test_rounds_are_generations_with_scores() -> None:
    """Plans, failures and what is scored again make none."""

    def result(generation: int, depth: int, score: float | None, operator: str = "scratch") -> Any:
        found = None if score is None else SimpleNamespace(mean=score)
        return SimpleNamespace(
            candidate=SimpleNamespace(generation=generation, depth=depth, operator=operator), score=found
        )

    results = [result(0, 0, None, "plan"), result(1, 0, 2.0), result(1, 0, None), result(3, 1, 5.0),
               result(4, 0, 2.5, "keep")]  # fmt: skip
    assert "keep" in REPEATS
    assert _rounds(results) == [[0, 0, 2.0], [1, 1, 5.0]]


@pytest.mark.slow
def test_depths_are_those_of_the_search(tmp_path: Path, checker: Any) -> None:
    plan = plan_of(Figure3(), out=tmp_path, parts=("flappy-bird",), seeds=1, steps=1024, candidates=10)
    (cell,) = searches("flappy-bird", plan, "forge")
    assert isinstance(cell, RoundsSearch)
    numbers = cell.run(plan, Tools(checker, Silent(), StopSignal(), str))
    assert isinstance(numbers, dict) and len(numbers["candidates"]) == 10
    assert {(k, depth) for k, depth, _ in numbers["candidates"]} == {(0, 0), (1, 1)}
    assert max(score for *_, score in numbers["candidates"]) == numbers["search"]
