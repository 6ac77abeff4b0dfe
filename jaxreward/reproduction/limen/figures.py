"""LIMEN's figures 4 to 6: joint search and its halves, independent samples, and shifts of the dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from jaxreward.reproduction.cell import Budget, Cell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.layout import Figure, Published, ResultTable, Row
from jaxreward.reproduction.limen.picture import Line, draw_curves
from jaxreward.reproduction.limen.published import FIGURE_4, FIGURE_5, FIGURE_6, Shift
from jaxreward.reproduction.searches import (
    ShiftedTraining,
    SparseInterface,
    TrainedSearch,
    fresh_score,
    number,
)

TASKS = tuple(FIGURE_4)
FOLDER = "limen"
CANDIDATES = 30
"""The paper's iterations."""
HALVES = ("observation", "reward", "both")


def searches(part: str, plan: Plan, evolve: str = "both", strategy: str = "limen") -> list[TrainedSearch]:
    return [TrainedSearch(part, strategy, evolve, seed) for seed in range(plan.budget.seeds)]


def samples(part: str, plan: Plan) -> list[TrainedSearch]:
    """Independent ones, of which the best is trained on fresh seeds too."""
    return searches(part, plan, strategy="best-of-n")


class LimenEntry(Entry):
    """What the figures have in common."""

    budget: ClassVar[Budget] = Budget(seeds=1, steps=0, candidates=CANDIDATES)
    parts: ClassVar[tuple[str, ...]] = TASKS
    folder: ClassVar[str] = FOLDER

    def notes(self, plan: Plan) -> tuple[str, ...]:
        return (
            f"Here: {plan.budget.seeds} search(es) of {plan.candidates} candidates, {plan.proposer} proposer, the "
            "learner and steps of the preset quick; the paper's candidates are by Claude Sonnet 4.6, with 1 to 25 "
            "million steps and three seeds each. The genetic proposer builds programs in blocks where the task says "
            "its subgoals; candidates come eight at a time. Intervals of 95 %: of one search over fresh training "
            "seeds, of several over searches.",
        )


class Figure4(LimenEntry):
    """Success on fresh seeds of what was found, by what was evolved."""

    name: ClassVar[str] = "limen/figure4"
    summary: ClassVar[str] = "success by sparse reward, of found observations, rewards and both, ten fresh seeds each"

    def cells(self, plan: Plan) -> Sequence[Cell]:
        return [cell for part in plan.parts for cell in self._of(part, plan)]

    def _of(self, part: str, plan: Plan) -> list[Cell]:
        evolved = [cell for evolve in HALVES for cell in searches(part, plan, evolve)]
        return [SparseInterface(part), *evolved, *samples(part, plan)]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        names = ("sparse", *HALVES)
        columns = ("task", *(column for name in names for column in (_title(name), f"{_title(name)}, paper")))
        rows = [self._row(part, plan, results) for part in plan.parts]
        title = "Success of what was found, on ten fresh seeds"
        return [ResultTable(title, (*columns, "best of as many samples"), tuple(rows), self.notes(plan))]

    def _row(self, part: str, plan: Plan, results: Results) -> Row:
        figures: list[Figure] = [
            fresh_score(results, [SparseInterface(part)], "sparse"),
            Published.of(FIGURE_4[part].sparse),
        ]
        for evolve in HALVES:
            found = fresh_score(results, searches(part, plan, evolve))
            figures += [found, Published.of(getattr(FIGURE_4[part], evolve))]
        return Row(part, (*figures, fresh_score(results, samples(part, plan))))

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        panels = {part: self._lines(part, plan, results) for part in plan.parts}
        if not any(panels.values()):
            return False
        draw_curves(path, {part: lines for part, lines in panels.items() if lines})
        return True

    def _lines(self, part: str, plan: Plan, results: Results) -> list[Line]:
        found = list[Line]()
        own = SparseInterface(part)
        if own in results:
            numbers = results[own].numbers
            found.append(Line("sparse", numbers["steps"], numbers["sparse_curves"]))
        for evolve in HALVES:
            known = [results[c].numbers for c in searches(part, plan, evolve) if c in results]
            known = [numbers for numbers in known if "curves" in numbers]
            if known:
                curves = [curve for numbers in known for curve in numbers["curves"]]
                found.append(Line(_title(evolve), known[0]["steps"], curves))
        return found


class Figure5(LimenEntry):
    """Scores of independent samples, and of a search of as many candidates."""

    name: ClassVar[str] = "limen/figure5"
    summary: ClassVar[str] = "independent samples against a search of as many candidates"

    def cells(self, plan: Plan) -> Sequence[Cell]:
        return [cell for part in plan.parts for cell in (*searches(part, plan), *samples(part, plan))]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        columns = ("task", "mean of samples", "paper", "best sample", "best of the search", "its paper")
        rows = [self._row(part, plan, results) for part in plan.parts]
        note = "By the scores of the searches, not on fresh seeds. Candidates without a score count as 0."
        return [ResultTable("Success of candidates", columns, tuple(rows), (note, *self.notes(plan)))]

    def _row(self, part: str, plan: Plan, results: Results) -> Row:
        drawn, found, paper = samples(part, plan), searches(part, plan), FIGURE_5[part]
        return Row(part, (
            number(results, drawn, lambda n: fmean([s or 0.0 for s in n["scores"]] or [0.0])),
            Published.of(paper.samples),
            number(results, drawn, lambda n: n["search"]),
            number(results, found, lambda n: n["search"]), Published.of(paper.evolved),
        ))  # fmt: skip


class Figure6(LimenEntry):
    """What a search found, trained under other dynamics."""

    name: ClassVar[str] = "limen/figure6"
    summary: ClassVar[str] = "what was found for the Go1 and the Panda, trained under shifted dynamics"
    parts: ClassVar[tuple[str, ...]] = tuple(FIGURE_6)

    def cells(self, plan: Plan) -> Sequence[Cell]:
        return [cell for part in plan.parts for cell in (*searches(part, plan), *self._trained(part, plan))]

    def _trained(self, part: str, plan: Plan) -> list[ShiftedTraining]:
        return [cell for shift in FIGURE_6[part] for cell in _shifted(part, shift, plan)]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        rows = [
            Row(
                f"{part}, {shift.words}",
                (fresh_score(results, _shifted(part, shift, plan)), Published(shift.success, digits=3)),
            )
            for part in plan.parts
            for shift in FIGURE_6[part]
        ]
        note = "Five fresh seeds; the paper does not say by how much speed, radius and frequency are larger."
        return [ResultTable("Success under shifts", ("task", "LIMEN", "paper"), tuple(rows), (note, *self.notes(plan)))]


def _shifted(part: str, shift: Shift, plan: Plan) -> list[ShiftedTraining]:
    return [ShiftedTraining(part, seed=seed, argument=shift.argument) for seed in range(plan.budget.seeds)]


def _title(evolve: str) -> str:
    return {"observation": "observations", "reward": "rewards", "both": "both"}.get(evolve, evolve)
