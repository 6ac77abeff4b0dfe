"""FORGE's tables 2 and 3, and figures 2 and 3: rewards for small games and a humanoid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from jaxreward.comparison.cells import Tools, Unfinished
from jaxreward.operators import REPEATS
from jaxreward.records import Result
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
"""Of a search by default: four rounds of eight, the generation of the preset quick and FORGE's first pool; the paper's
other methods have ten of 16 (section 4.2)."""
TITLES = {"best-of-n": "best of as many samples", "eureka": "Eureka", "revolve": "REvolve", "forge": "FORGE"}
PARTS = {"without selection": "initial={candidates}", "without planning": "planner=false", "whole": ""}
"""Options of the strategy for the rows of table 3."""


@dataclass(frozen=True)
class RoundsSearch(TrainedSearch):
    """A search, with the round, the depth (equation 4) and the score of each candidate that has one."""

    kind: ClassVar[str] = "rounds"

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        found = super().run(plan, tools)
        if isinstance(found, Unfinished):
            return found
        entries = read_log(self._run_folder(plan) / "events.jsonl")
        progress = fold((entry.event for entry in entries), None, lambda state, _: state)
        return {**found, "candidates": _rounds(progress.results.values())}


def _rounds(results: Iterable[Result]) -> list[list[float]]:
    """Rows of (round, depth, score); a round is a generation in which a program has a score."""
    new = [result for result in results if result.candidate.operator not in REPEATS]
    scored = [(result.candidate, result.score.mean) for result in new if result.score is not None]
    rounds = {generation: k for k, generation in enumerate(sorted({c.generation for c, _ in scored}))}
    return [[rounds[c.generation], c.depth, score] for c, score in scored]


def searches(part: str, plan: Plan, strategy: str, option: str = "") -> list[TrainedSearch]:
    """One for each search seed."""
    option = option.format(candidates=plan.candidates)
    return [RoundsSearch(part, strategy, "reward", seed, option, SEEDS) for seed in range(plan.budget.seeds)]


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
        columns = ("rewards", "zero-shot", "paper", "evolved", "its paper", "improvements")
        return [
            ResultTable(_title(part), columns, tuple(self._rows(part, plan, results)), _notes(plan))
            for part in plan.parts
        ]

    def _rows(self, part: str, plan: Plan, results: Results) -> list[Row]:
        own = [OwnInterfaces(part, SEEDS)]
        native, by_hand = fresh_score(results, own, "sparse"), fresh_score(results, own, "dense")
        rows = [Row("native", (native, Published.of(TABLE_2["native"][part].zero_shot, digits=1), None, None, None))]
        if hasattr(task_of(part), "dense_reward"):
            rows.append(Row("dense, by a person", (by_hand, None, None, None, None)))
        for strategy, title in TITLES.items():
            cells = searches(part, plan, strategy)
            paper = TABLE_2.get(strategy, {}).get(part, Scores())
            rows.append(Row(title, (
                _first_round(results, cells), Published.of(paper.zero_shot, digits=1),
                fresh_score(results, cells), Published.of(paper.evolved, digits=1), _improvements(results, cells),
            )))  # fmt: skip
        return rows

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        panels = {part: (_metric(part), self._by_round(part, plan, results)) for part in plan.parts}
        return _drawn(path, panels, "round")

    def _by_round(self, part: str, plan: Plan, results: Results) -> Curves:
        """The mean score of each round, of the candidates that have one."""
        found = dict[str, list[list[float]]]()
        for strategy, title in TITLES.items():
            known = [_candidates(results, cell) for cell in searches(part, plan, strategy) if cell in results]
            if known:
                found[title] = [_means((k, score) for k, _, score in rows) for rows in known]
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
                for figure in (
                    fresh_score(results, _forge(part, plan, option)), Published(TABLE_3[name][part], digits=1)
                )
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
        known = [rows for part in plan.parts for rows in self._known(part, plan, results)]
        deepest = max((depth for rows in known for _, depth, _ in rows), default=0)
        columns = ("task", *(f"depth {depth}" for depth in range(deepest + 1)), "depth of the best")
        rows = [self._row(part, plan, results, deepest) for part in plan.parts]
        note = (
            "Means over searches of mean scores in the search. The paper prints no numbers; its best are at depths "
            "around 3, and at 7 on the humanoid."
        )
        return [ResultTable("Scores by depth", columns, tuple(rows), (note, *_notes(plan)))]

    def _known(self, part: str, plan: Plan, results: Results) -> list[Candidates]:
        return [_candidates(results, cell) for cell in _forge(part, plan) if cell in results]

    def _row(self, part: str, plan: Plan, results: Results, deepest: int) -> Row:
        having = [c for c in _forge(part, plan) if c in results and _candidates(results, c)]
        better = measure_of(task_of(part)).oriented

        def at(depth: int) -> Figure:
            cells = [c for c in having if any(d == depth for _, d, _ in _candidates(results, c))]
            if not cells:
                return None
            return number(results, cells, lambda n: fmean(score for _, d, score in n["candidates"] if d == depth))

        best = number(results, having, lambda n: max(n["candidates"], key=lambda row: better(row[2]))[1])
        return Row(_title(part), (*(at(depth) for depth in range(deepest + 1)), best if having else None))

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        panels = dict[str, tuple[str, Curves]]()
        for part in plan.parts:
            known = [_means((d, score) for _, d, score in rows) for rows in self._known(part, plan, results)]
            panels[part] = (_metric(part), {"FORGE": known} if known else {})
        return _drawn(path, panels, "depth")


def _forge(part: str, plan: Plan, option: str = "") -> list[TrainedSearch]:
    return searches(part, plan, "forge", option)


Candidates = Sequence[tuple[int, int, float]]
"""Of a search, as `RoundsSearch` has them."""


def _candidates(results: Results, cell: Cell) -> Candidates:
    return results[cell].numbers["candidates"]


def _means(pairs: Iterable[tuple[int, float]]) -> list[float]:
    """Mean scores by a number from 0 on, NaN where there is none."""
    known = list(pairs)
    at = [[score for k, score in known if k == n] for n in range(max((k for k, _ in known), default=-1) + 1)]
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
        first = [score for k, _, score in numbers["candidates"] if k == 0]
        return max(first, key=measure.oriented, default=measure.worst)

    return number(results, cells, best)


def _improvements(results: Results, cells: Sequence[TrainedSearch]) -> Figure:
    """The share of rounds after the first that had a better program than all before."""
    better = measure_of(task_of(cells[0].part)).oriented

    def count(numbers: Mapping[str, Any]) -> float:
        best = dict[int, float]()
        for k, _, score in numbers["candidates"]:
            best[k] = max(best.get(k, -math.inf), better(score))
        rounds = [best[k] for k in sorted(best)]
        improved = sum(later > max(rounds[:k]) for k, later in enumerate(rounds) if k)
        return improved / max(1, len(rounds) - 1)

    return number(results, cells, count)


def _metric(part: str) -> str:
    return measure_of(task_of(part)).label


def _title(part: str) -> str:
    return f"{part}: {_metric(part)}"


def _notes(plan: Plan) -> tuple[str, ...]:
    return (
        f"Here: {plan.budget.seeds} searches of {plan.candidates} candidates, {plan.proposer} proposer, rewards for "
        f"the task's own observation, the learner and steps of the preset quick; evolved: trained again on {SEEDS} "
        "fresh seeds; zero-shot: the best of the first round, by its score in the search; improvements: the share of "
        "rounds after the first that had a better program than all before; all methods have as many candidates. The "
        "snake's score is the food that it ate, the paper's its length, which in its example begins with three cells. "
        "The paper: Claude Sonnet 4, PPO of Stable-Baselines3, no last step of a game is named; the humanoid is "
        "Gymnasium's.",
        "Intervals of 95 %: of one search over fresh training seeds, of several over searches.",
    )
