"""GRACE's figure 4: accuracy on held-out episodes against the number of trajectories that a search is given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import ClassVar

from jaxreward.reproduction.cell import Budget, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.grace.picture import draw_counts, draw_levels
from jaxreward.reproduction.grace.published import FIGURE_4A, FIGURE_4B_ONE_NEGATIVE, TABLE_3, TRAJECTORIES
from jaxreward.reproduction.grace.reward_search import CANDIDATES, LevelSearch
from jaxreward.reproduction.layout import Measured, Published, ResultTable, Row, mean_row, numbers_of

LEVELS = tuple(TABLE_3)
FOLDER = "grace-levels"
ACCURACY = "held_out_accuracy"

_WHAT = (
    "Accuracy: the share of pairs of an expert's last state and another state, in episodes of held-out start states, "
    "in which the expert's has the higher reward; equal ones count half. It is of the reward with the highest fitness "
    "on the episodes that the search was given."
)


class Figure4(Entry):
    """Panel a: as many expert as negative trajectories, by level."""

    name: ClassVar[str] = "grace/figure4"
    summary: ClassVar[str] = "accuracy of found rewards by number of trajectories, on 20 BabyAI levels (panel a)"
    budget: ClassVar[Budget] = Budget(seeds=3, candidates=CANDIDATES)
    parts: ClassVar[tuple[str, ...]] = LEVELS
    folder: ClassVar[str] = FOLDER

    def cells(self, plan: Plan) -> Sequence[LevelSearch]:
        return [
            LevelSearch(level, count, count, seed)
            for level, seed, count in product(plan.parts, range(plan.budget.seeds), TRAJECTORIES)
        ]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        rows = [
            Row(level, tuple(_over_seeds(plan, results, level, count, count) for count in TRAJECTORIES))
            for level in plan.parts
        ]
        paper = Row("paper, text of 5.2", tuple(Published.of(FIGURE_4A.get(count)) for count in TRAJECTORIES))
        columns = ("level", *(f"{count} + {count}" for count in TRAJECTORIES))
        title = (
            f"Accuracy on held-out episodes by expert + negative trajectories, {plan.candidates} candidates a search, "
            f"{plan.proposer} proposer"
        )
        intervals = f"Means over {plan.budget.seeds} seeds with 95 % intervals (Student's t)."
        return [ResultTable(title, columns, (*rows, mean_row("mean", rows), paper), (_WHAT, intervals))]

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        values = {
            level: {count: _values(plan, results, level, count, count) for count in TRAJECTORIES}
            for level in plan.parts
        }
        draw_levels(path, values)
        return True


class Figure4b(Entry):
    """Panel b: numbers of expert and negative trajectories apart, over all levels."""

    name: ClassVar[str] = "grace/figure4b"
    summary: ClassVar[str] = "the same over all levels, numbers of expert and negative trajectories apart (panel b)"
    budget: ClassVar[Budget] = Budget(seeds=1, candidates=CANDIDATES)
    parts: ClassVar[tuple[str, ...]] = LEVELS
    folder: ClassVar[str] = FOLDER

    def cells(self, plan: Plan) -> Sequence[LevelSearch]:
        return [
            LevelSearch(level, expert, negative, seed)
            for level, seed, expert, negative in product(
                plan.parts, range(plan.budget.seeds), TRAJECTORIES, TRAJECTORIES
            )
        ]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        rows = [
            Row(
                f"{negative} negative",
                tuple(_over_levels(plan, results, expert, negative) for expert in TRAJECTORIES),
            )
            for negative in TRAJECTORIES
        ]
        most = TRAJECTORIES[-1]
        paper = Row(
            "paper, text of 5.2: 1 negative",
            tuple(Published(FIGURE_4B_ONE_NEGATIVE) if count == most else None for count in TRAJECTORIES),
        )
        columns = ("trajectories", *(f"{count} expert" for count in TRAJECTORIES))
        title = f"Accuracy on held-out episodes over {len(plan.parts)} levels, {plan.candidates} candidates a search"
        more = (
            "Means over levels of the means over seeds; intervals over levels (Student's t). The paper does not say "
            "how many expert trajectories are sufficient for its figure."
        )
        return [ResultTable(title, columns, (*rows, paper), (_WHAT, more))]

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        found = {
            negative: {expert: _over_levels(plan, results, expert, negative) for expert in TRAJECTORIES}
            for negative in TRAJECTORIES
        }
        draw_counts(path, found)
        return True


def _values(plan: Plan, results: Results, level: str, expert: int, negative: int) -> list[float]:
    """One for each seed that is finished."""
    cells = (LevelSearch(level, expert, negative, seed) for seed in range(plan.budget.seeds))
    return [x for cell in cells if cell in results for x in numbers_of(results[cell].numbers, ACCURACY)]


def _over_seeds(plan: Plan, results: Results, level: str, expert: int, negative: int) -> Measured | None:
    return Measured.of(_values(plan, results, level, expert, negative))


def _over_levels(plan: Plan, results: Results, expert: int, negative: int) -> Measured | None:
    each = [_values(plan, results, level, expert, negative) for level in plan.parts]
    return Measured.of([mean(values) for values in each if values])
