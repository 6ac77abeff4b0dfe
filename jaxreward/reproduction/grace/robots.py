"""Cells on Brax's robots: an expert trained with the native reward, searches on its episodes, and policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jaxreward.comparison.cells import Tools
from jaxreward.demonstrations import (
    Positives,
    Trajectories,
    load_trajectories,
    record,
    record_random,
    save_trajectories,
)
from jaxreward.evolution.presets import EXPANSIONS
from jaxreward.objectives.demonstrations.demonstration_sets import DemonstrationSets
from jaxreward.objectives.demonstrations.scoring import DemonstrationData
from jaxreward.programs import Program
from jaxreward.reproduction.cell import Cell, Plan
from jaxreward.reproduction.grace.episodes import learner
from jaxreward.reproduction.grace.policies import Imitation, RewardPolicies, Training
from jaxreward.reproduction.grace.reward_search import POLICIES, POPULATION, RewardSearch
from jaxreward.search.grace import Grace
from jaxreward.tasks import Task, make_task_of
from jaxreward.training import TrainResult, train

TRAJECTORIES = 10
"""Expert trajectories that a search is given, and as many negative ones. The paper does not say how many it gives; its
GAIL has 10, or 200."""
IMITATED = 200
_HELD_OUT = 16
CANDIDATES = POPULATION * (2 + EXPANSIONS)
"""The first population, and a generation before, between and after the expansions."""
STEPS = 1_000_000
_RECORDED, _NEGATIVE = "expert.npz", 2_000

_COMPILE_S, _STEPS_A_SECOND = 60.0, {"hopper": 40_000, "walker2d": 20_000, "ant": 13_000, "humanoid": 8_000}


@lru_cache(maxsize=2)
def robot_task(name: str) -> Task:
    """The robot; its metric is the return of the native reward."""
    return make_task_of(name)


def _seconds(part: str, env_steps: int) -> float:
    return _COMPILE_S + env_steps / _STEPS_A_SECOND[part]


@dataclass(frozen=True)
class NativePolicies(Training):
    """Policies of the native reward; the episodes of the best are the expert's."""

    kind: ClassVar[str] = "native"
    shown: ClassVar[tuple[str, ...]] = ("ppo", "expert")

    def task(self) -> Task:
        return robot_task(self.part)

    def env_steps(self, plan: Plan) -> int:
        return plan.budget.seeds * plan.steps

    def seconds(self, plan: Plan) -> float:
        return _seconds(self.part, self.env_steps(plan))

    def train(self, plan: Plan, tools: Tools, **how: Any) -> TrainResult:
        return train(self.task(), [Program.dense(self.task())], learner(self.task()).replace(absorbing=False), **how)

    def numbers(self, values: list[list[float]], result: TrainResult, plan: Plan) -> dict[str, Any]:
        found = record(self.task(), result.policy(0), IMITATED + _HELD_OUT, seed=0)
        save_trajectories(self.folder(plan.out) / _RECORDED, found)
        return {"ppo": values[0], "expert": float(found.success.mean())}

    def episodes(self, plan: Plan) -> Trajectories:
        """Those of the expert, the held-out ones last."""
        return _loaded(self.folder(plan.out) / _RECORDED)


@lru_cache(maxsize=1)
def _loaded(path: Path) -> Trajectories:
    return load_trajectories(path)


@dataclass(frozen=True)
class RobotSearch(RewardSearch):
    """A search on all states of the expert's episodes, whose data are expanded."""

    def task(self) -> Task:
        return robot_task(self.part)

    def needs(self, plan: Plan) -> Sequence[Cell]:
        return [NativePolicies(self.part)]

    def settings(self, plan: Plan) -> dict[str, Any]:
        return super().settings(plan) | {
            "steps": plan.steps, "seeds": plan.budget.seeds, "confirmations": Grace.confirmations,
            "reserve": Grace.reserve,
        }  # fmt: skip

    def env_steps(self, plan: Plan) -> int:
        return POLICIES * plan.steps

    def seconds(self, plan: Plan) -> float:
        return super().seconds(plan) + POLICIES * _seconds(self.part, plan.steps)

    def options(self, plan: Plan) -> tuple[str, ...]:
        rounds = (plan.candidates - POPULATION) // (POPULATION * (1 + EXPANSIONS))
        return f"generations={max(1, rounds)}", f"expansions={EXPANSIONS}"

    def more(self, plan: Plan) -> dict[str, Any]:
        return {"steps": plan.steps, "ppo": learner(self.task())}

    def sets(self, plan: Plan) -> DemonstrationSets:
        episodes = NativePolicies(self.part).episodes(plan)
        first = self.expert * self.seed
        chosen = np.arange(first, first + self.expert) % IMITATED
        others = record_random(self.task(), self.negative, seed=_NEGATIVE + self.seed)
        return DemonstrationSets(episodes.take(chosen), others, None, "all")

    def held_out(self, plan: Plan) -> DemonstrationData:
        expert = NativePolicies(self.part).episodes(plan).take(range(IMITATED, IMITATED + _HELD_OUT))
        others = record_random(self.task(), _HELD_OUT, seed=_NEGATIVE - 1)
        return DemonstrationData.of(self.task(), expert, others, "all")


@dataclass(frozen=True)
class RobotPolicies(RewardPolicies):
    """Policies of found rewards; those of the native one are the expert's."""

    def task(self) -> Task:
        return robot_task(self.part)

    def known(self) -> list[Program]:
        return []

    def needs(self, plan: Plan) -> Sequence[RewardSearch]:
        return robot_searches(self.part, plan)

    def env_steps(self, plan: Plan) -> int:
        return len(self.needs(plan)) * plan.budget.seeds * plan.steps

    def seconds(self, plan: Plan) -> float:
        return _seconds(self.part, self.env_steps(plan))


@dataclass(frozen=True)
class RobotImitation(Imitation):
    """Of all states of the expert's episodes."""

    positives: ClassVar[Positives] = "all"

    episodes: int = IMITATED

    def task(self) -> Task:
        return robot_task(self.part)

    def needs(self, plan: Plan) -> Sequence[Cell]:
        return [NativePolicies(self.part)]

    def expert(self, plan: Plan) -> Trajectories:
        return NativePolicies(self.part).episodes(plan).take(range(self.episodes))

    def seconds(self, plan: Plan) -> float:
        return _seconds(self.part, self.env_steps(plan))


def robot_searches(robot: str, plan: Plan) -> list[RobotSearch]:
    """One for each seed."""
    return [RobotSearch(robot, TRAJECTORIES, TRAJECTORIES, seed) for seed in range(plan.budget.seeds)]
