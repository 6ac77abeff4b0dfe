"""GRACE's tables 2 and 3: success of policies trained with found rewards, the true reward and by imitation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jaxreward.evolution.presets import DEMONSTRATION_CANDIDATES, EXPANSIONS
from jaxreward.reproduction.cell import Budget, Cell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.grace.episodes import MIXED
from jaxreward.reproduction.grace.figure4 import FOLDER
from jaxreward.reproduction.grace.policies import (
    IMITATED,
    STEPS,
    TRAJECTORIES,
    LevelImitation,
    LevelOwnPolicies,
    LevelPolicies,
    measured,
    searches_of,
)
from jaxreward.reproduction.grace.published import MULTI_TASK, MULTI_TASK_RATES, TABLE_2, TABLE_3
from jaxreward.reproduction.layout import Published, ResultTable, Row, mean_row


class Table3(Entry):
    """All levels."""

    name: ClassVar[str] = "grace/table3"
    summary: ClassVar[str] = "success of policies by PPO on the true reward, GRACE and GAIL, 20 BabyAI levels and a mix"
    budget: ClassVar[Budget] = Budget(seeds=3, steps=STEPS, candidates=DEMONSTRATION_CANDIDATES)
    parts: ClassVar[tuple[str, ...]] = (*TABLE_3, MULTI_TASK)
    folder: ClassVar[str] = FOLDER

    def cells(self, plan: Plan) -> Sequence[Cell]:
        trainings = (LevelOwnPolicies, LevelPolicies, LevelImitation)
        each = ([*searches_of(level, plan), *(cell(level) for cell in trainings)] for level in plan.parts)
        return [cell for cells in each for cell in cells]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        rows = [self._row(level, results) for level in plan.parts]
        columns = ("level", "PPO", "PPO, paper", "GRACE", "GRACE, paper", "GAIL", "GAIL, paper")
        title = (
            f"Success after {plan.steps:,} environment steps, {plan.budget.seeds} seeds; GRACE with {TRAJECTORIES} "
            f"expert trajectories, {plan.candidates} candidates, {EXPANSIONS} expansions and the "
            f"{plan.proposer} proposer, GAIL with {IMITATED:,}"
        )
        return [ResultTable(title, columns, (*rows, mean_row("mean", rows)), self._notes(plan))]

    def _notes(self, plan: Plan) -> tuple[str, ...]:
        notes = [
            "The paper's figures are after 10,000,000 steps of an agent that sees pictures. PPO: over training seeds. "
            "GRACE: over searches, of the mean over training seeds of what each search found. 95 % intervals."
        ]
        if MULTI_TASK in plan.parts:
            notes.append(
                f"{MULTI_TASK}: one reward, that reads the mission, for the {len(MIXED)} levels of one room of 8 x 8 "
                f"cells, with {TRAJECTORIES * len(MIXED)} trajectories drawn over all of them; the paper's is for all "
                "levels."
            )
        return tuple(notes)

    def _row(self, level: str, results: Results) -> Row:
        paper = MULTI_TASK_RATES if level == MULTI_TASK else TABLE_3[level]
        imitation = LevelImitation(level)
        return Row(level, (
            measured(results, LevelOwnPolicies(level), "ppo"), Published(paper.ppo),
            measured(results, LevelPolicies(level), "grace"), Published(paper.grace),
            measured(results, imitation, imitation.method), Published(paper.gail),
        ))  # fmt: skip


class Table2(Table3):
    """Some of them."""

    name: ClassVar[str] = "grace/table2"
    summary: ClassVar[str] = "the same on the nine levels of table 2, and by one reward for several levels"
    parts: ClassVar[tuple[str, ...]] = (*TABLE_2, MULTI_TASK)
