"""The fused trainer: candidates x seeds x environments, trained side by side."""

from __future__ import annotations

from jaxreward.training.config import PPO, How
from jaxreward.training.executor import Interrupted, Progress, train
from jaxreward.training.learners import paper, quick, quick_real
from jaxreward.training.result import TrainResult
from jaxreward.training.rungs import Rung

__all__ = ["PPO", "How", "Interrupted", "Progress", "Rung", "TrainResult", "paper", "quick", "quick_real", "train"]
