"""The fused trainer: candidates x seeds x environments, trained side by side."""

from __future__ import annotations

from jaxreward.training.execution import Execution
from jaxreward.training.executor import Checkpointing, Executor, Interrupted, WorkerLost
from jaxreward.training.hyperparameters import PPO
from jaxreward.training.imitation import AIRL, GAIL, Cloning, Imitation
from jaxreward.training.imitation.imitate import imitate
from jaxreward.training.learners import paper, quick, quick_real
from jaxreward.training.policy import Policy
from jaxreward.training.population_training import Progress
from jaxreward.training.result import TrainResult
from jaxreward.training.rungs import Rung
from jaxreward.training.sac_hyperparameters import SAC, Learner
from jaxreward.training.trainer import train

__all__ = [
    "AIRL", "GAIL", "PPO", "SAC", "Checkpointing", "Cloning", "Execution", "Executor", "Imitation", "Interrupted",
    "Learner", "Policy", "Progress", "Rung", "TrainResult", "WorkerLost", "imitate", "paper", "quick", "quick_real",
    "train",
]  # fmt: skip
