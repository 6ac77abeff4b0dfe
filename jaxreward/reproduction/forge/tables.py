"""FORGE's tables 2 and 3, and figures 2 and 3: rewards for small games and a humanoid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from jaxreward.comparison.cells import Tools, Unfinished
from jaxreward.reproduction.cell import Budget, Cell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.forge.picture import Curves, draw_lines
from jaxreward.reproduction.forge.published import TABLE_2, TABLE_3, TASKS, Scores
from jaxreward.reproduction.layout import Figure, Published, ResultTable, Row
from jaxreward.reproduction.searches import OwnInterfaces, TrainedSearch, fresh_score, number, task_of
from jaxreward.runs import fold, read_log
from jaxreward.tasks import measure_of

SEEDS = 5
"""Of the final training."""
CANDIDATES = 32
"""Of a search by default: four rounds of `ROUND`; the paper has eleven of 16 (section 4.2)."""
ROUND = 8
"""Candidates of a round: the generation of the preset quick, and FORGE's first pool."""
TITLES = {"best-of-n": "best of as many samples", "eureka": "Eureka", "revolve": "REvolve", "forge": "FORGE"}
PARTS = {"without selection": "initial={candidates}", "without planning": "planner=false", "whole": ""}
"""Options of the strategy for the rows of table 3."""


@dataclass(frozen=True)
class ForgeSearch(TrainedSearch):
    """A search by FORGE, with the depths of its candidates (equation 4)."""

    kind: ClassVar[str] = "forge"

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        found = super().run(plan, tools)
        if isinstance(found, Unfinished):
            return found
        entries = read_log(self._run_folder(plan) / "events.jsonl")
        progress = fold((entry.event for entry in entries), None, lambda state, _: state)
        scored = [r for r in progress.results.values() if r.score is not None]
        return {**found, "depths": [[r.candidate.depth, r.score.mean] for r in scored if r.score is not None]}


def searches(part: str, plan: Plan, strategy: str, option: str = "") -> list[TrainedSearch]:
    """One for each search seed."""
    kind = ForgeSearch if strategy == "forge" else TrainedSearch
    option = option.format(candidates=plan.candidates)
    return [kind(part, strategy, "reward", seed, option, SEEDS) for seed in range(plan.budget.seeds)]


class ForgeEntry(Entry):
    """What they have in common."""

    budget: ClassVar[Budget] = Budget(seeds=5, steps=0, candidates=CANDIDATES)
    folder: ClassVar[str] = "forge"
    parts: ClassVar[tuple[str, ...]] = TASKS


class Table2(ForgeEntry):
    """Methods, with rewards as they were first proposed and after the search; drawn by round, as in figure 2."""

    name: ClassVar[str] = "forge/table2"
    summary: ClassVar[str] = "native rewards, Eureka, REvolve and FORGE on three games and a humanoid"

    def cells(self, plan: Plan) -> Sequence[Cell]:
        found = [[OwnInterfaces(part, SEEDS), *self._searches(part, plan)] for part in plan.parts]
        return [cell for cells in found for cell in cells]

    def _searches(self, part: str, plan: Plan) -> list[TrainedSearch]:
        return [cell for strategy in TITLES for cell in searches(part, plan, strategy)]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        columns = ("rewards", "zero-shot", "paper", "evolved", "its paper")
        return [
            ResultTable(_title(part), columns, tuple(self._rows(part, plan, results)), _notes(plan))
            for part in plan.parts
        ]

    def _rows(self, part: str, plan: Plan, results: Results) -> list[Row]:
        own = [OwnInterfaces(part, SEEDS)]
        native, by_hand = fresh_score(results, own, "sparse"), fresh_score(results, own, "dense")
        rows = [Row("native", (native, _published(TABLE_2["native"][part].zero_shot), None, None))]
        if hasattr(task_of(part), "dense_reward"):
            rows.append(Row("dense, by a person", (by_hand, None, None, None)))
        for strategy, title in TITLES.items():
            cells = searches(part, plan, strategy)
            paper = TABLE_2.get(strategy, {}).get(part, Scores())
            rows.append(Row(title, (
                _first_round(results, cells), _published(paper.zero_shot),
                fresh_score(results, cells), _published(paper.evolved),
            )))  # fmt: skip
        return rows

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        panels = {part: (_metric(part), self._by_round(part, plan, results)) for part in plan.parts}
        return _drawn(path, panels, "round")

    def _by_round(self, part: str, plan: Plan, results: Results) -> Curves:
        """The mean score of each round; candidates without one count as the worst."""
        worst, found = measure_of(task_of(part)).worst, dict[str, list[list[float]]]()
        for strategy, title in TITLES.items():
            for cell in searches(part, plan, strategy):
                if cell in results:
                    scores = [worst if s is None else s for s in results[cell].numbers["scores"]]
                    rounds = [scores[at : at + ROUND] for at in range(0, len(scores), ROUND)]
                    found.setdefault(title, []).append([fmean(some) for some in rounds])
        return found


class Table3(ForgeEntry):
    """Without the selection of pairs, and without plans."""

    name: ClassVar[str] = "forge/table3"
    summary: ClassVar[str] = "FORGE without its planner, and without the crossover of what was selected"

    def cells(self, plan: Plan) -> Sequence[Cell]:
        return [cell for part in plan.parts for option in PARTS.values() for cell in _forge(part, plan, option)]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        columns = ("method", *(column for part in plan.parts for column in (_title(part), f"{part}, paper")))
        rows = [
            Row(name, tuple(
                figure for part in plan.parts
                for figure in (fresh_score(results, _forge(part, plan, option)), _published(TABLE_3[name][part]))
            ))
            for name, option in PARTS.items()
        ]  # fmt: skip
        return [ResultTable("Scores of what was found", columns, tuple(rows), _notes(plan))]


class Figure3(ForgeEntry):
    """Scores by depth."""

    name: ClassVar[str] = "forge/figure3"
    summary: ClassVar[str] = "scores of FORGE's candidates by depth"

    def cells(self, plan: Plan) -> Sequence[Cell]:
        return [cell for part in plan.parts for cell in _forge(part, plan)]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        deepest = max((d for part in plan.parts for c in self._known(part, plan, results) for d, _ in c), default=0)
        columns = ("task", *(f"depth {depth}" for depth in range(deepest + 1)), "depth of the best")
        rows = [self._row(part, plan, results, deepest) for part in plan.parts]
        note = "Mean scores by the searches. The paper prints none; its best are of depth 3, or of 7 on the humanoid."
        return [ResultTable("Scores by depth", columns, tuple(rows), (note, *_notes(plan)))]

    def _known(self, part: str, plan: Plan, results: Results) -> list[list[tuple[int, float]]]:
        return [results[cell].numbers["depths"] for cell in _forge(part, plan) if cell in results]

    def _row(self, part: str, plan: Plan, results: Results, deepest: int) -> Row:
        cells, sign = _forge(part, plan), measure_of(task_of(part)).oriented(1.0)

        def at(depth: int) -> Figure:
            having = [c for c in cells if c in results and any(d == depth for d, _ in results[c].numbers["depths"])]
            return number(results, having, lambda n: fmean(s for d, s in n["depths"] if d == depth)) if having else None

        best = number(results, cells, lambda n: max(n["depths"], key=lambda pair: sign * pair[1], default=(0, 0.0))[0])
        return Row(_title(part), (*(at(depth) for depth in range(deepest + 1)), best))

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        panels = dict[str, tuple[str, Curves]]()
        for part in plan.parts:
            known = [_means_by_depth(pairs) for pairs in self._known(part, plan, results)]
            panels[part] = (_metric(part), {"FORGE": known} if known else {})
        return _drawn(path, panels, "depth")


def _forge(part: str, plan: Plan, option: str = "") -> list[TrainedSearch]:
    return searches(part, plan, "forge", option)


def _means_by_depth(pairs: Sequence[tuple[int, float]]) -> list[float]:
    """Mean scores from depth 0 on, NaN where there is none."""
    at = [[score for depth, score in pairs if depth == d] for d in range(max((d for d, _ in pairs), default=-1) + 1)]
    return [fmean(scores) if scores else float("nan") for scores in at]


def _drawn(path: Path, panels: Mapping[str, tuple[str, Curves]], axis: str) -> bool:
    known = {part: panel for part, panel in panels.items() if panel[1]}
    if known:
        draw_lines(path, known, axis)
    return bool(known)


def _first_round(results: Results, cells: Sequence[TrainedSearch]) -> Figure:
    """The best of the first round, by its score in the search."""
    measure = measure_of(task_of(cells[0].part))

    def best(numbers: Mapping[str, Any]) -> float:
        known = [s for s in numbers["scores"][:ROUND] if s is not None]
        return max(known, key=measure.oriented, default=measure.worst)

    return number(results, cells, best)


def _metric(part: str) -> str:
    return measure_of(task_of(part)).label


def _title(part: str) -> str:
    return f"{part}: {_metric(part)}"


def _published(value: float | None) -> Published | None:
    return None if value is None else Published(value, digits=1)


def _notes(plan: Plan) -> tuple[str, ...]:
    return (
        f"Here: {plan.budget.seeds} searches of {plan.candidates} candidates, {plan.proposer} proposer, rewards for "
        f"the task's own observation, the learner and steps of the preset quick; evolved: trained again on {SEEDS} "
        f"fresh seeds; zero-shot: the best of the first {ROUND}, by its score in the search. The snake's score is the "
        "food that it ate. The paper: Claude Sonnet 4, 160 candidates and more, PPO of Stable-Baselines3, games that "
        "are not cut; the humanoid is Gymnasium's.",
        "Intervals of 95 %: of one search over fresh training seeds, of several over searches.",
    )
