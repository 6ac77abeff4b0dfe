"""Cells: a training of programs that are known."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxreward.comparison.cells import Tools, Unfinished
from jaxreward.reproduction.cell import Cell, Plan
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.tasks import Task
from jaxreward.training import PPO, Checkpointing, Interrupted, TrainResult, quick

_POINTS = 5
"""Of the learning curves, which only a picture would need more of."""


@dataclass(frozen=True)
class Training(Cell):
    """A training of several candidates and seeds, resumed where it stopped."""

    @abstractmethod
    def task(self) -> Task: ...

    def ppo(self) -> PPO:
        """The learner, before it is adapted to the kind of reward."""
        return quick(self.task())

    @abstractmethod
    def train(self, plan: Plan, tools: Tools, **how: Any) -> TrainResult:
        """Train; `how` are arguments of `training.train` that all trainings have in common."""

    @abstractmethod
    def numbers(self, values: list[list[float]], result: TrainResult, plan: Plan) -> dict[str, Any]:
        """What it measured: `values` are the task's metric by candidate and seed."""

    def seeds(self, plan: Plan) -> range:
        return range(plan.budget.seeds)

    def steps(self, plan: Plan) -> int:
        return plan.steps

    def points(self, plan: Plan) -> int:
        """Points of the learning curves."""
        return _POINTS

    def settings(self, plan: Plan) -> dict[str, Any]:
        return {"steps": self.steps(plan), "seeds": len(self.seeds(plan))}

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        kept = self.folder(plan.out) / "checkpoints"
        how: dict[str, Any] = {
            "seeds": self.seeds(plan), "steps": self.steps(plan), "checkpoints": self.points(plan),
            "checkpointing": Checkpointing(Checkpoints(kept), self.kind),
            "progress": lambda p: tools.watcher.training("training", p),
            "should_stop": lambda: tools.stop.requested,
        }  # fmt: skip
        try:
            result = self.train(plan, tools, **how)
        except Interrupted as interrupted:
            return Unfinished(self.label, str(interrupted), later=True)
        numbers = self.numbers(result.success.tolist(), result, plan)
        shutil.rmtree(kept, ignore_errors=True)
        return numbers | {
            "episodes": result.score(0).episodes, "env_steps": result.env_steps,
            "compile_s": round(result.compile_s, 2), "run_s": round(result.run_s, 2),
        }  # fmt: skip
