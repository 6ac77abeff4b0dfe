"""Cells on Brax's robots: an expert trained with the native reward, searches on its episodes, and policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jaxreward.demonstrations import (
    Actor,
    Positives,
    Trajectories,
    joined,
    load_trajectories,
    record,
    record_random,
    save_trajectories,
)
from jaxreward.objectives.demonstrations.demonstration_sets import DemonstrationSets
from jaxreward.objectives.demonstrations.scoring import RULES, DemonstrationData
from jaxreward.programs import Program
from jaxreward.reproduction.cell import Cell, Plan
from jaxreward.reproduction.grace.policies import Imitation, OwnPolicies, RewardPolicies
from jaxreward.reproduction.grace.reward_search import POPULATION, RewardSearch
from jaxreward.reproduction.training_cell import Training
from jaxreward.search.grace import Grace
from jaxreward.tasks import Task, make_task_of
from jaxreward.training import PPO, TrainResult, quick
from jaxreward.training.learners import for_recovered_rewards

TRAJECTORIES = 10
"""Expert trajectories that a search is given, and as many negative ones. The paper does not say how many it gives; its
GAIL has 10, or 200."""
IMITATED = 200
_HELD_OUT = 16
EXPANSIONS = 10
"""How often the data of a search are expanded, as in the paper (section 5.1)."""
CANDIDATES = POPULATION * (2 + EXPANSIONS)
"""The first population, and a generation before, between and after the expansions."""
_POLICIES = EXPANSIONS + Grace.confirmations
"""The most policies that expand the data of a search."""
STEPS = 1_000_000
_RECORDED, _NEGATIVE = "expert.npz", 2_000
_BATCHES = 16
"""How many times as many episodes as are wanted are played for such that do not end early."""

_LONG_DISCOUNT = 0.995
_DISCOUNTS: dict[str, float] = dict.fromkeys(("hopper", "walker2d"), _LONG_DISCOUNT)
"""Of the robots that fall forward when they only run fast: with Brax's 0.97 a hopper's policies fall sooner (returns of
359 and 401 after 3,000,000 steps, against 546 and 540; two seeds). 0.995 is MuJoCo Playground's for its hopper."""

_COMPILE_S, _STEPS_A_SECOND = 60.0, {"hopper": 40_000, "walker2d": 20_000, "ant": 13_000, "humanoid": 8_000}


@lru_cache(maxsize=2)
def robot_task(name: str) -> Task:
    """The robot; its metric is the return of the native reward."""
    return make_task_of(name)


def robot_learner(name: str) -> PPO:
    """The learner that all policies of a robot begin with."""
    ppo = quick(robot_task(name))
    return ppo.replace(discount=_DISCOUNTS.get(name, ppo.discount))


def _seconds(part: str, env_steps: int) -> float:
    return _COMPILE_S + env_steps / _STEPS_A_SECOND[part]


class RobotTraining(Training):
    """Of policies of a robot."""

    def task(self) -> Task:
        return robot_task(self.part)

    def ppo(self) -> PPO:
        return robot_learner(self.part)

    def settings(self, plan: Plan) -> dict[str, Any]:
        return super().settings(plan) | {"discount": self.ppo().discount}

    def seconds(self, plan: Plan) -> float:
        return _seconds(self.part, self.env_steps(plan))


@dataclass(frozen=True)
class NativePolicies(RobotTraining, OwnPolicies):
    """Policies of the native reward; the episodes of the best are the expert's."""

    shown: ClassVar[tuple[str, ...]] = ("ppo", "expert")

    def program(self) -> Program:
        return Program.dense(self.task())

    def numbers(self, values: list[list[float]], result: TrainResult, plan: Plan) -> dict[str, Any]:
        found, played = whole_episodes(self.task(), result.policy(0), IMITATED + _HELD_OUT)
        save_trajectories(self.folder(plan.out) / _RECORDED, found)
        return super().numbers(values, result, plan) | {
            "expert": float(found.success.mean()), "expert_played": played,
            "expert_fell": float(found.ended.mean()),
        }  # fmt: skip

    def episodes(self, plan: Plan) -> Trajectories:
        """Those of the expert, the held-out ones last."""
        return _loaded(self.folder(plan.out) / _RECORDED)


def whole_episodes(task: Task, policy: Actor, episodes: int) -> tuple[Trajectories, int]:
    """Episodes of a policy that last to the horizon, and of how many they were chosen: a robot that falls is no
    example. Where there are too few of them, the longest of the others are among them. In an order by chance."""
    batches, played = [record(task, policy, episodes, seed=0)], 1
    while sum(int((~batch.ended).sum()) for batch in batches) < episodes and played < _BATCHES:
        more = record(task, policy, episodes, seed=played)
        played += 1
        if not more.ended.all():
            batches.append(more.take(np.flatnonzero(~more.ended)))
    found = joined(batches)
    best = np.lexsort((-found.lengths, found.ended))[:episodes]
    return found.take(np.random.default_rng(0).permutation(best)), episodes * played


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
            "reserve": Grace.reserve, "expansions": EXPANSIONS, "rules": RULES,
            "discount": robot_learner(self.part).discount,
        }  # fmt: skip

    def env_steps(self, plan: Plan) -> int:
        return _POLICIES * plan.steps

    def seconds(self, plan: Plan) -> float:
        return super().seconds(plan) + _POLICIES * _seconds(self.part, plan.steps)

    def options(self, plan: Plan) -> tuple[str, ...]:
        rounds = (plan.candidates - POPULATION) // (POPULATION * (1 + EXPANSIONS))
        return f"generations={max(1, rounds)}", f"expansions={EXPANSIONS}"

    def more(self, plan: Plan) -> dict[str, Any]:
        return {"steps": plan.steps, "ppo": for_recovered_rewards(robot_learner(self.part))}

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
class RobotPolicies(RobotTraining, RewardPolicies):
    """Policies of found rewards."""

    def needs(self, plan: Plan) -> Sequence[RewardSearch]:
        return robot_searches(self.part, plan)


@dataclass(frozen=True)
class RobotImitation(RobotTraining, Imitation):
    """Of all states of the expert's episodes."""

    positives: ClassVar[Positives] = "all"

    episodes: int = IMITATED

    def needs(self, plan: Plan) -> Sequence[Cell]:
        return [NativePolicies(self.part)]

    def expert(self, plan: Plan) -> Trajectories:
        return NativePolicies(self.part).episodes(plan).take(range(self.episodes))


def robot_searches(robot: str, plan: Plan) -> list[RobotSearch]:
    """One for each seed."""
    return [RobotSearch(robot, TRAJECTORIES, TRAJECTORIES, seed) for seed in range(plan.budget.seeds)]
