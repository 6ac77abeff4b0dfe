"""RDA's figures 4 and 7: alignment with an instruction and success, of what was found and of what a person wrote."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jaxreward.evolution.settings import EvolveSettings
from jaxreward.reproduction.cell import Budget, Cell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.layout import Figure, Published, ResultTable, Row
from jaxreward.reproduction.rda.picture import Bar, draw_bars
from jaxreward.reproduction.rda.published import FIGURE_4, FIGURE_7A, FIGURE_7B, Rates
from jaxreward.reproduction.searches import FRESH, OwnInterfaces, TrainedSearch, fresh_alignment, fresh_score
from jaxreward.tasks.registry import INSTRUCTED

SEEDS = 5
"""Of the final training."""
SAMPLES = 4
"""Candidates of an iteration, on table-top tasks (section 9)."""
CANDIDATES = 20
"""Of a search: five iterations (section 9)."""
PARTS = {
    "Eureka": "subtasks=false watch=false",
    "and policies of the iteration before": "subtasks=false watch=false warm=true",
    "and what was seen": "subtasks=false warm=true",
    "and subtasks: RDA": "warm=true",
}
"""Options of the strategy rda for the rows of figure 7 (a)."""


@dataclass(frozen=True)
class RDASearch(TrainedSearch):
    """A search by RDA.

    Attributes:
        samples: candidates of an iteration; there are as many iterations as with `SAMPLES` of them.
    """

    kind: ClassVar[str] = "rda"

    samples: int = SAMPLES

    def candidates(self, plan: Plan) -> int:
        return self.samples * max(1, plan.candidates // SAMPLES)

    def search(self, plan: Plan) -> EvolveSettings:
        found = super().search(plan)
        return dataclasses.replace(found, option=(*found.option, f"samples={self.samples}"))


@dataclass(frozen=True)
class SingleSample(TrainedSearch):
    """One program that nothing was asked about again."""

    kind: ClassVar[str] = "sample"

    def candidates(self, plan: Plan) -> int:
        return 1


def by_rda(part: str, plan: Plan, option: str = "", samples: int = SAMPLES) -> list[RDASearch]:
    return [RDASearch(part, "rda", "reward", seed, option, SEEDS, samples) for seed in range(plan.budget.seeds)]


def searches(part: str, plan: Plan, strategy: str) -> list[TrainedSearch]:
    return [TrainedSearch(part, strategy, "reward", seed, "", SEEDS) for seed in range(plan.budget.seeds)]


def single_samples(part: str, plan: Plan) -> list[SingleSample]:
    return [SingleSample(part, "best-of-n", "reward", seed, "", SEEDS) for seed in range(plan.budget.seeds)]


class RDAEntry(Entry):
    """What the figures have in common: for each task rows of two rates, in a table and as bars."""

    budget: ClassVar[Budget] = Budget(seeds=3, steps=0, candidates=CANDIDATES)
    folder: ClassVar[str] = "rda"
    parts: ClassVar[tuple[str, ...]] = INSTRUCTED
    heading: ClassVar[str]

    @abstractmethod
    def rows(self, part: str, plan: Plan) -> Mapping[str, tuple[Sequence[Cell], str, Rates]]:
        """By the name of a row its cells, the name of its numbers in them, and what the paper says."""

    def cells(self, plan: Plan) -> Sequence[Cell]:
        found = [cell for part in plan.parts for cells, _, _ in self.rows(part, plan).values() for cell in cells]
        return list(dict.fromkeys(found))

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        columns = (self.heading, "alignment", "paper", "success", "its paper")
        return [
            ResultTable(
                f"{part}: agents on {SEEDS} fresh seeds", columns,
                tuple(Row(name, _figures(results, *row)) for name, row in self.rows(part, plan).items()),
                _notes(plan),
            )
            for part in plan.parts
        ]  # fmt: skip

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        panels = {part: self._bars(part, plan, results) for part in plan.parts}
        panels = {part: bars for part, bars in panels.items() if any(bar.alignment or bar.success for bar in bars)}
        if panels:
            draw_bars(path, panels)
        return bool(panels)

    def _bars(self, part: str, plan: Plan, results: Results) -> list[Bar]:
        return [
            Bar(name, fresh_alignment(results, cells, which), fresh_score(results, cells, which), paper)
            for name, (cells, which, paper) in self.rows(part, plan).items()
        ]


class Figure4(RDAEntry):
    """Rewards by method."""

    name: ClassVar[str] = "rda/figure4"
    summary: ClassVar[str] = "alignment and success of sparse, dense, Eureka's and RDA's rewards"
    heading: ClassVar[str] = "rewards"

    def rows(self, part: str, plan: Plan) -> Mapping[str, tuple[Sequence[Cell], str, Rates]]:
        own = [OwnInterfaces(part, SEEDS)]
        return {
            "sparse": (own, "sparse", Rates()),
            "dense, by a person": (own, "dense", Rates()),
            "a single sample": (single_samples(part, plan), FRESH, Rates()),
            "best of as many samples": (searches(part, plan, "best-of-n"), FRESH, Rates()),
            "Eureka": (searches(part, plan, "eureka"), FRESH, Rates()),
            "RDA": (by_rda(part, plan), FRESH, Rates()),
        }

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        """Those of the tasks, and the paper's means over its own."""
        ours = [dataclasses.replace(table, columns=("rewards", "alignment", "success"), rows=tuple(
            Row(row.name, (row.figures[0], row.figures[2])) for row in table.rows
        )) for table in super().tables(plan, results)]  # fmt: skip
        names = {"sparse": "sparse", "dense": "dense, by a person", "eureka": "Eureka", "rda": "RDA"}
        columns = ("rewards", *(f"{rate}, {of}" for of in FIGURE_4 for rate in Rates._fields))
        rows = [
            Row(name, tuple(Published.of(x) for rates in FIGURE_4.values() for x in rates.get(key, Rates())))
            for key, name in names.items()
        ]
        return [*ours, ResultTable("The paper: means over its tasks", columns, tuple(rows))]


class Figure7a(RDAEntry):
    """Parts of the method, one after another."""

    name: ClassVar[str] = "rda/figure7a"
    summary: ClassVar[str] = "RDA by parts: from Eureka, warm starts, what was seen, subtasks"
    heading: ClassVar[str] = "method"

    def rows(self, part: str, plan: Plan) -> Mapping[str, tuple[Sequence[Cell], str, Rates]]:
        return {name: (by_rda(part, plan, PARTS[name]), FRESH, paper) for name, paper in FIGURE_7A.items()}


class Figure7b(RDAEntry):
    """The number of candidates of an iteration."""

    name: ClassVar[str] = "rda/figure7b"
    summary: ClassVar[str] = "RDA with 1, 2, 4 and 8 candidates in each iteration"
    heading: ClassVar[str] = "candidates"

    def rows(self, part: str, plan: Plan) -> Mapping[str, tuple[Sequence[Cell], str, Rates]]:
        whole = PARTS["and subtasks: RDA"]
        return {str(k): (by_rda(part, plan, whole, k), FRESH, paper) for k, paper in FIGURE_7B.items()}


def _figures(results: Results, cells: Sequence[Cell], which: str, paper: Rates) -> tuple[Figure, ...]:
    alignment, success = fresh_alignment(results, cells, which), fresh_score(results, cells, which)
    return alignment, Published.of(paper.alignment), success, Published.of(paper.success)


def _notes(plan: Plan) -> tuple[str, ...]:
    iterations, judge = max(1, plan.candidates // SAMPLES), plan.llm.judge_model or "the same metrics"
    return (
        f"Here: {plan.budget.seeds} searches of {iterations} iterations of {SAMPLES} candidates where nothing else is "
        f"said, {plan.proposer} proposer, judged by {judge}, PPO and the steps of the preset quick, rewards for the "
        "task's own observation; alignment by the metrics of the task's subtasks. The paper: GPT-5 proposes and "
        "judges, SAC, 10 or 50 million steps, alignment rated by GPT-4.1, other tasks.",
        "What was found is trained from scratch. Intervals of 95 %: of one search over fresh training seeds, of "
        "several over searches.",
    )
