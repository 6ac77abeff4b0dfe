"""The fused trainer: candidates x seeds x environments, trained side by side."""

from __future__ import annotations

from jaxreward.training.execution import Execution
from jaxreward.training.executor import Checkpointing, Executor, Interrupted, WorkerLost
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.learners import paper, quick, quick_real
from jaxreward.training.policy import Policy
from jaxreward.training.result import TrainResult
from jaxreward.training.rungs import Rung
from jaxreward.training.trainer import Progress, train

__all__ = [
    "PPO", "Checkpointing", "Execution", "Executor", "Interrupted", "Policy", "Progress", "Rung", "TrainResult",
    "WorkerLost", "paper", "quick", "quick_real", "train",
]  # fmt: skip
