"""GRACE's tables 2 and 3: success of policies trained with found rewards, the true reward and by imitation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jaxreward.evolution.presets import DEMONSTRATION_CANDIDATES, EXPANSIONS
from jaxreward.reproduction.cell import Budget, Cell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.grace.figure4 import FOLDER
from jaxreward.reproduction.grace.policies import (
    IMITATED,
    STEPS,
    TRAJECTORIES,
    LevelImitation,
    LevelPolicies,
    measured,
    searches_of,
)
from jaxreward.reproduction.grace.published import TABLE_2, TABLE_3
from jaxreward.reproduction.layout import Published, ResultTable, Row, mean_row


class Table3(Entry):
    """All levels."""

    name: ClassVar[str] = "grace/table3"
    summary: ClassVar[str] = "success of policies by PPO on the true reward, GRACE and GAIL, on 20 BabyAI levels"
    budget: ClassVar[Budget] = Budget(seeds=3, steps=STEPS, candidates=DEMONSTRATION_CANDIDATES)
    parts: ClassVar[tuple[str, ...]] = tuple(TABLE_3)
    folder: ClassVar[str] = FOLDER

    def cells(self, plan: Plan) -> Sequence[Cell]:
        each = ([*searches_of(level, plan), LevelPolicies(level), LevelImitation(level)] for level in plan.parts)
        return [cell for cells in each for cell in cells]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        rows = [self._row(level, results) for level in plan.parts]
        columns = ("level", "PPO", "PPO, paper", "GRACE", "GRACE, paper", "GAIL", "GAIL, paper")
        title = (
            f"Success after {plan.steps:,} environment steps, {plan.budget.seeds} seeds; GRACE with {TRAJECTORIES} "
            f"expert trajectories, {plan.candidates} candidates, {EXPANSIONS} expansions and the {plan.proposer} "
            f"proposer, GAIL with {IMITATED:,}"
        )
        notes = (
            "The paper's figures are after 10,000,000 steps of an agent that sees pictures. PPO: over training seeds. "
            "GRACE: over searches, of the mean over training seeds of what each search found. 95 % intervals.",
        )
        return [ResultTable(title, columns, (*rows, mean_row("mean", rows)), notes)]

    def _row(self, level: str, results: Results) -> Row:
        paper = TABLE_3[level]
        policies, imitation = LevelPolicies(level), LevelImitation(level)
        return Row(level, (
            measured(results, policies, "ppo"), Published(paper.ppo),
            measured(results, policies, "grace"), Published(paper.grace),
            measured(results, imitation, imitation.method), Published(paper.gail),
        ))  # fmt: skip


class Table2(Table3):
    """Some of them."""

    name: ClassVar[str] = "grace/table2"
    summary: ClassVar[str] = "the same on the nine levels of table 2"
    parts: ClassVar[tuple[str, ...]] = TABLE_2
