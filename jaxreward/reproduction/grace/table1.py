"""GRACE's table 1: returns on Brax's robots by PPO on the native reward, GRACE and GAIL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jaxreward.reproduction.cell import Budget, Cell, Plan
from jaxreward.reproduction.entry import Entry, Results
from jaxreward.reproduction.grace.policies import measured
from jaxreward.reproduction.grace.published import TABLE_1
from jaxreward.reproduction.grace.robots import (
    CANDIDATES,
    EXPANSIONS,
    IMITATED,
    STEPS,
    TRAJECTORIES,
    NativePolicies,
    RobotImitation,
    RobotPolicies,
    robot_searches,
    robot_task,
)
from jaxreward.reproduction.layout import Measured, ResultTable, Row
from jaxreward.tasks import measure_of


class Table1(Entry):
    """The four robots."""

    name: ClassVar[str] = "grace/table1"
    summary: ClassVar[str] = "returns of policies by PPO on the native reward, GRACE and GAIL, on four robots of Brax"
    budget: ClassVar[Budget] = Budget(seeds=3, steps=STEPS, candidates=CANDIDATES)
    parts: ClassVar[tuple[str, ...]] = tuple(TABLE_1)
    folder: ClassVar[str] = "grace-robots"

    def cells(self, plan: Plan) -> Sequence[Cell]:
        each = (
            [NativePolicies(robot), *robot_searches(robot, plan), RobotPolicies(robot), RobotImitation(robot)]
            for robot in plan.parts
        )
        return [cell for cells in each for cell in cells]

    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        columns = ("robot", "PPO", "PPO, paper", "expert", "GRACE", "GRACE, paper", "GAIL", "GAIL, paper")
        title = (
            f"Return after {plan.steps:,} environment steps, {plan.budget.seeds} seeds; GRACE with {TRAJECTORIES} "
            f"expert trajectories, {EXPANSIONS} expansions and the {plan.proposer} proposer, GAIL with {IMITATED}"
        )
        notes = (
            "The paper: 5 seeds with their standard deviation, GRACE with GPT-4o, its own experts. The expert is the "
            "best seed of PPO: the mean return of the recorded episodes, which were chosen because they did not end "
            "early. 95 % intervals.",
        )
        return [ResultTable(title, columns, tuple(self._row(robot, results) for robot in plan.parts), notes)]

    def _row(self, robot: str, results: Results) -> Row:
        paper, imitation = TABLE_1[robot], RobotImitation(robot)
        measure = measure_of(robot_task(robot))
        return Row(robot, (
            measured(results, NativePolicies(robot), "ppo", measure), paper.ppo, _expert(results, robot),
            measured(results, RobotPolicies(robot), "grace", measure), paper.grace,
            measured(results, imitation, imitation.method, measure), paper.gail,
        ))  # fmt: skip


def _expert(results: Results, robot: str) -> Measured | None:
    """The mean return of the recorded episodes."""
    cell = NativePolicies(robot)
    return Measured.of([float(results[cell].numbers["expert"])], rate=False) if cell in results else None
