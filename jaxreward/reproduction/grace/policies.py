"""Cells: policies trained with known rewards, with found ones, and by imitation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxreward.comparison.cells import Tools
from jaxreward.demonstrations import Positives, Trajectories
from jaxreward.programs import Program
from jaxreward.records import SUCCESS, Measure
from jaxreward.reproduction.cell import Cell, Plan
from jaxreward.reproduction.entry import Results
from jaxreward.reproduction.grace.episodes import LevelEpisodes, level_seconds, level_task, levels_of
from jaxreward.reproduction.grace.reward_search import ExpandedLevelSearch, RewardSearch
from jaxreward.reproduction.layout import Measured, numbers_of
from jaxreward.reproduction.training_cell import Training
from jaxreward.tasks import Task
from jaxreward.training import PPO, TrainResult, imitate, train
from jaxreward.training.learners import for_imitation, for_recovered_rewards

TRAJECTORIES = 8
"""Expert trajectories of each level that GRACE is given in tables 2 and 3, and as many negative ones."""
IMITATED = 2_000
"""Expert trajectories that GAIL is given there; in the multi-task row of all levels together."""
STEPS = 1_000_000
"""Environment steps of a policy by default. The paper trains 10 million."""


@dataclass(frozen=True)
class OwnPolicies(Training):
    """Policies trained with a reward of the task's own. It says what an early end is worth, so that this is not a state
    that is never left, as it is for found rewards."""

    kind: ClassVar[str] = "own"
    shown: ClassVar[tuple[str, ...]] = ("ppo",)

    @abstractmethod
    def program(self) -> Program: ...

    def settings(self, plan: Plan) -> dict[str, Any]:
        return super().settings(plan) | {"absorbing": False}

    def env_steps(self, plan: Plan) -> int:
        return plan.budget.seeds * plan.steps

    def train(self, plan: Plan, tools: Tools, **how: Any) -> TrainResult:
        ppo = for_recovered_rewards(self.ppo()).replace(absorbing=False)
        return train(self.task(), [self.program()], ppo, **how)

    def numbers(self, values: list[list[float]], result: TrainResult, plan: Plan) -> dict[str, Any]:
        return {"ppo": values[0]}


@dataclass(frozen=True)
class RewardPolicies(Training):
    """Policies trained with what each search found, in one call of the trainer."""

    kind: ClassVar[str] = "policies"
    shown: ClassVar[tuple[str, ...]] = ("grace",)

    @abstractmethod
    def needs(self, plan: Plan) -> Sequence[RewardSearch]: ...

    def settings(self, plan: Plan) -> dict[str, Any]:
        return super().settings(plan) | self.needs(plan)[0].settings(plan)

    def env_steps(self, plan: Plan) -> int:
        return len(self.needs(plan)) * plan.budget.seeds * plan.steps

    def train(self, plan: Plan, tools: Tools, **how: Any) -> TrainResult:
        found = [cell.found(plan, tools.checker) for cell in self.needs(plan)]
        return train(self.task(), found, for_recovered_rewards(self.ppo()), **how)

    def numbers(self, values: list[list[float]], result: TrainResult, plan: Plan) -> dict[str, Any]:
        return {"grace": [sum(row) / len(row) for row in values], "grace_by_seed": values}


@dataclass(frozen=True)
class Imitation(Training):
    """Policies that imitate episodes of an expert.

    Attributes:
        method: of `training.imitate`.
        episodes: of the expert.
    """

    kind: ClassVar[str] = "imitation"
    shown: ClassVar[tuple[str, ...]] = ("gail", "airl", "bc")
    positives: ClassVar[Positives]
    """The expert's states that count as its own, all or the last."""

    method: str = "gail"
    episodes: int = IMITATED

    @abstractmethod
    def expert(self, plan: Plan) -> Trajectories: ...

    def settings(self, plan: Plan) -> dict[str, Any]:
        return super().settings(plan) | {"absorbing": for_imitation(PPO()).absorbing}

    def env_steps(self, plan: Plan) -> int:
        return plan.budget.seeds * plan.steps

    def train(self, plan: Plan, tools: Tools, **how: Any) -> TrainResult:
        ppo, expert = for_imitation(self.ppo()), self.expert(plan)
        return imitate(self.task(), [expert], self.method, ppo, positives=self.positives, **how)

    def numbers(self, values: list[list[float]], result: TrainResult, plan: Plan) -> dict[str, Any]:
        return {self.method: values[0]}


def measured(results: Results, cell: Cell, name: str, measure: Measure = SUCCESS) -> Measured | None:
    """The numbers of a training under a name; None where it is not finished."""
    if cell not in results:
        return None
    numbers = results[cell].numbers
    return Measured.of_episodes(numbers_of(numbers, name), int(numbers["episodes"]), measure)


# ---- levels


def searches_of(level: str, plan: Plan) -> list[ExpandedLevelSearch]:
    """The searches whose rewards are trained on, one for each seed."""
    given = TRAJECTORIES * len(levels_of(level))
    return [ExpandedLevelSearch(level, given, given, seed) for seed in range(plan.budget.seeds)]


@dataclass(frozen=True)
class LevelOwnPolicies(OwnPolicies):
    """Of the sparse reward of a level."""

    def task(self) -> Task:
        return level_task(self.part)

    def program(self) -> Program:
        return Program.default(self.task())

    def seconds(self, plan: Plan) -> float:
        return level_seconds(self.env_steps(plan))


@dataclass(frozen=True)
class LevelPolicies(RewardPolicies):
    """On a level."""

    def task(self) -> Task:
        return level_task(self.part)

    def needs(self, plan: Plan) -> Sequence[RewardSearch]:
        return searches_of(self.part, plan)

    def seconds(self, plan: Plan) -> float:
        return level_seconds(self.env_steps(plan))


@dataclass(frozen=True)
class LevelImitation(Imitation):
    """On a level: of the last transitions of the expert's episodes. The paper's discriminator reads the last states."""

    positives: ClassVar[Positives] = "last"

    def task(self) -> Task:
        return level_task(self.part)

    def expert(self, plan: Plan) -> Trajectories:
        return LevelEpisodes(self.part, plan.out).expert(self.episodes)

    def seconds(self, plan: Plan) -> float:
        return level_seconds(2 * self.env_steps(plan))
